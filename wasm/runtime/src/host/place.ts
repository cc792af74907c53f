/** Programs that `export.web(…, host=True)` wrote, in the page or on a host: wherever a call takes less time. */
import type { Backend, Files, Signature } from "../../../src/weft_wasm/page/weft.js";
import { WeftRuntimeError } from "../errors.js";
import { whole } from "../exported_files.js";
import { WeftConnectionLost, WeftHostError } from "./errors.js";
import { parseExported } from "./file.js";
import { HostProgram, type HostDevice } from "./program.js";

const TRIES = 3; // calls at each place before one is chosen
const AGAIN = 64; // calls after which the other place is tried once more

/** The module that `export.web` writes. */
export interface Model {
  readonly signature: Signature;
  readonly files: Files;
}

export interface PlaceOptions {
  /** A device of a host, `host.devices[0]`; without one, the page runs everything. */
  device?: HostDevice | null;
  /** "auto", the default, measures calls at both places. */
  where?: "auto" | "page" | "host";
}

export interface PlacedProgram<Arguments extends unknown[] = any[], Result = any> {
  (...args: Arguments): Promise<Result>;
  /** What ran the last call. */
  readonly where: Backend | "host";
  /** Why. */
  readonly reason: string;
  /** The least milliseconds that a call took at each place, of the last few; null where none ran. */
  readonly times: { readonly page: number | null; readonly host: number | null };
}

type Call = (...values: unknown[]) => Promise<unknown>;
type PageProgram = Call & { readonly backend: Backend };

/** How long calls take at a place. */
class Clock {
  times: number[] = [];

  get least(): number | null {
    return this.times.length ? Math.min(...this.times) : null;
  }

  async time<T>(work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const result = await work();
    this.times = [...this.times, performance.now() - began].slice(-TRIES);
    return result;
  }
}

/** Runs each call at one of the places that it has. */
export class Runner {
  where: Backend | "host" = "wasm";
  private calls = 0;
  private readonly clocks = { page: new Clock(), host: new Clock() };

  constructor(
    private readonly page: PageProgram | null,
    private host: Call | null,
    public reason: string,
  ) {}

  get times(): PlacedProgram["times"] {
    return { page: this.clocks.page.least, host: this.clocks.host.least };
  }

  async call(values: unknown[]): Promise<unknown> {
    const { page, host } = this;
    if (host && this.next() === "host") {
      try {
        const result = await this.clocks.host.time(() => host(...values));
        this.where = "host";
        return result;
      } catch (error) {
        const refused = error instanceof WeftConnectionLost || error instanceof WeftHostError;
        if (!page || !refused) throw error;
        this.host = null;
        this.reason = `the host does not run it: ${error.message}`;
      }
    }
    const result = await this.clocks.page.time(() => page!(...values));
    this.where = page!.backend;
    return result;
  }

  private next(): "page" | "host" {
    if (!this.page) return "host";
    const { page, host } = this.clocks;
    const count = this.calls++;
    if (page.times.length < TRIES || host.times.length < TRIES) return count % 2 ? "host" : "page";
    const [here, there] = [page.least!, host.least!];
    this.reason = `a call takes ${there.toFixed(1)} ms on the host and ${here.toFixed(1)} ms in the page`;
    return there < here === count % AGAIN > 0 ? "host" : "page";
  }
}

/**
 * Loads a program for a page, a host, or both. Every call runs at one place. With "auto" the first calls are made at
 * both in turn, the later ones where they took less time; if the host is gone or refuses the program, the page goes on.
 */
export async function place<Arguments extends unknown[] = any[], Result = any>(
  model: Model,
  { device = null, where = "auto" }: PlaceOptions = {},
): Promise<PlacedProgram<Arguments, Result>> {
  if (!["auto", "page", "host"].includes(where))
    throw new TypeError(`where must be "auto", "page" or "host"; got ${String(where)}`);
  const { name } = model.signature;
  if (where === "host" && !device)
    throw new TypeError(`${name} shall run on a host: give place(model, { device }) one of host.devices`);
  const remote = where === "page" ? null : device;
  const reason = !device
    ? "no device of a host was given"
    : where === "auto"
      ? "calls are measured at both places"
      : `it was placed with where: "${where}"`;
  const runner = new Runner(
    where === "host" ? null : await inPage(model),
    remote && (await onHost(model, remote)),
    reason,
  );
  const call: Call = (...values) => runner.call(values);
  return Object.defineProperties(call, {
    name: { value: name },
    where: { get: () => runner.where },
    reason: { get: () => runner.reason },
    times: { get: () => runner.times },
  }) as never;
}

async function inPage({ signature, files }: Model): Promise<PageProgram> {
  const { loadAsync } = await import("../exported_async.js"); // three times the size of the client, for `place` alone
  return (await loadAsync(signature, files)) as never;
}

async function onHost({ signature, files }: Model, device: HostDevice): Promise<Call> {
  if (!files.host)
    throw new WeftRuntimeError(
      `${signature.name} was exported for pages alone; export it with export.web(…, host=True)`,
    );
  const file = parseExported(await whole(signature, files, "host"));
  const program = await HostProgram.open(device, file, signature.donated, signature);
  return (...values) => program.call(...values);
}

const placed = new WeakMap<Model, Map<HostDevice | null, Record<string, Promise<PlacedProgram>>>>();

/** Runs a program on the arguments in a list: `place`, which is remembered for the model, and a call. */
export async function run(model: Model, args: readonly unknown[], options: PlaceOptions = {}): Promise<unknown> {
  const { device = null, where = "auto" } = options;
  const devices = placed.get(model) ?? new Map<HostDevice | null, Record<string, Promise<PlacedProgram>>>();
  placed.set(model, devices);
  const known = devices.get(device) ?? {};
  devices.set(device, known);
  return (await (known[where] ??= place(model, options)))(...args);
}
