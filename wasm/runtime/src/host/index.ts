/**
 * weft's accelerator hosts from JavaScript: exported programs on somebody else's GPU, without Python.
 *
 *     const host = await connect("wss://gpu.example.org", { token });
 *     const classify = await host.load(new URL("classify.weft", import.meta.url));
 *     const scores = await classify(pixels);
 *
 * It runs in pages, in workers and in Node.
 */
import type { AcceptedAll, OnDevice, Read, Signature } from "../../../src/weft_wasm/page/weft.js";
import { fetched } from "../exported_files.js";
import { WeftHostError } from "./errors.js";
import { parseExported } from "./file.js";
import { HostArray, HostDevice, HostProgram, read } from "./program.js";
import { pack, unpack } from "./keep.js";
import { Session, type Progress, type Ticket, type WebSocketClass } from "./session.js";

export interface ConnectOptions {
  /** The token that `weft-host` prints. */
  token: string;
  /** Names this client in the host's log. */
  name?: string;
  /** The class of websockets; where there is none (Node 20), the package `ws` is looked for. */
  WebSocket?: WebSocketClass;
  /** The `onProgress` of the host, from now on: while it is full, it tells the `place` among the `of` that wait. */
  onProgress?: ((progress: Progress) => void) | null;
  /** Ends the attempt to connect, and gives up a place in the queue of a host that is full. */
  signal?: AbortSignal | null;
}

export interface LoadOptions {
  /** The device that runs it; the first by default. */
  device?: HostDevice;
  /** Numbers of the arrays in the arguments whose memory a call takes over, such as the state of a loop. */
  donate?: readonly number[];
}

/** A tree as it lies on the host; `any` of a program whose types are not said. */
type Remote<T> = 0 extends 1 & T ? any : OnDevice<T, true>;

/** An exported program on a host. Results are promises; arrays on the host go from call to call without a copy. */
export interface RemoteProgram<Arguments extends unknown[] = any[], Result = any> {
  (...args: AcceptedAll<Arguments, true>): Promise<Result>;
  /** The same, but the results stay on the host. */
  onDevice(...args: AcceptedAll<Arguments, true>): Promise<Remote<Result>>;
  /** Checks the arguments of a call and copies them to the host. */
  put(...args: AcceptedAll<Arguments, true>): Promise<Remote<Arguments>>;
  /** The values of a tree of arrays on the host. */
  read<T>(tree: T): Promise<Read<T>>;
  /** Gives the program and its constants back. */
  unload(): void;
  readonly signature: Signature;
  readonly backend: "host";
  readonly device: HostDevice;
}

/** A session on a host. Its arrays live until they are freed, or the session ends. */
export class Host {
  readonly devices: readonly HostDevice[];

  constructor(private readonly session: Session) {
    const { devices } = session;
    const at = (i: number): HostDevice => new HostDevice(session, i, devices[2 * i]!, devices[2 * i + 1]!);
    this.devices = Array.from({ length: devices.length / 2 }, (_, i) => at(i));
  }

  /** Is told a few times a second what the host does for this session, while it takes long. */
  set onProgress(listener: ((progress: Progress) => void) | null) {
    this.session.onProgress = listener;
  }

  /** Why the session is over, or null. */
  get failure(): Error | null {
    return this.session.failure;
  }

  /**
   * Loads an exported program: its bytes (`Exported.serialize()` in Python), or where they are. Rejects with
   * WeftFormatError for other bytes; what the host can't compile, the first call says.
   */
  async load<Arguments extends unknown[] = any[], Result = any>(
    source: Uint8Array | URL | string,
    { device = this.devices[0]!, donate = [] }: LoadOptions = {},
  ): Promise<RemoteProgram<Arguments, Result>> {
    const bytes = source instanceof Uint8Array ? source : await download(source);
    const program = await HostProgram.open(device, parseExported(bytes), donate);
    return callable(program) as never; // The caller says the types of its program.
  }

  /**
   * The session as a text, with arrays and programs on the host, lists, objects and plain values in a tree: for the
   * next page, which takes it up with `resume` within the time that the host grants (60 s, if its operator says nothing
   * else), or within `seconds` if it keeps sessions: then what it computes goes on without a page, and its results wait
   * on disk. Who has the text has the session. Rejects with WeftHostError if the host keeps no sessions, or not for so
   * long.
   */
  async keep(tree: unknown, { seconds = 0 }: { seconds?: number } = {}): Promise<string> {
    await this.ping(); // what has not reached the host would be lost with the page
    if (seconds > 0) {
      const granted = await this.session.keep(seconds);
      if (granted < seconds)
        throw new WeftHostError("LimitError", `the host keeps sessions for ${granted} s at most; ask for less`);
    }
    return pack(this.session.ticket(), tree, (value) => programs.get(value as object));
  }

  /** Resolves when the host has done everything up to now. */
  async ping(): Promise<void> {
    await this.session.request("Ping", {});
  }

  /** Drops all work that is pending; whoever waits for a result gets an error. */
  cancel(): void {
    this.session.cancel();
  }

  /** Closes the connection. The session goes on without it, for whoever resumes what `keep` gave. */
  leave(): void {
    this.session.leave();
  }

  /** Ends the session; its arrays are freed on the host. */
  close(): void {
    this.session.close();
  }
}

/**
 * Opens a session on a host. Rejects with WeftHostError where the host refuses it (`kind` is "AuthenticationError" for
 * a wrong token), and with WeftConnectionLost where none answers. Where the host is full, it waits for its turn;
 * `signal` ends that.
 */
export async function connect(url: string | URL, options: ConnectOptions): Promise<Host> {
  return new Host(await session(url, options));
}

async function session(url: string | URL, options: ConnectOptions, ticket?: Ticket): Promise<Session> {
  const { token, name = "", onProgress, signal } = options;
  if (typeof token !== "string") throw new TypeError("connect(url, { token }) takes the token that weft-host prints");
  const address = new URL(url);
  address.protocol = { "http:": "ws:", "https:": "wss:" }[address.protocol] ?? address.protocol;
  if (!["ws:", "wss:"].includes(address.protocol))
    throw new TypeError(`${String(url)} is not the address of a host; it begins with ws:// or wss://`);
  const opening = { ticket, onProgress, signal };
  return Session.open(address.href, token, name, options.WebSocket ?? (await webSocket()), opening);
}

/**
 * Takes up a session that `keep` made into a text. Rejects with WeftHostError where the host does not know it any more,
 * and with WeftFormatError for another text.
 */
export async function resume<Kept = any>(
  url: string | URL,
  options: ConnectOptions & { kept: string },
): Promise<{ host: Host; tree: Kept }> {
  const [ticket, make] = unpack(options.kept);
  const host = new Host(await session(url, options, ticket));
  return { host, tree: make(host.devices, callable) as Kept };
}

const programs = new WeakMap<object, HostProgram>(); // of the functions that callers have

function callable(program: HostProgram): unknown {
  const { signature, device } = program;
  const call = (...values: unknown[]): Promise<unknown> => program.call(...values);
  const members = {
    onDevice: (...values: unknown[]) => program.onDevice(...values),
    put: (...values: unknown[]) => program.put(...values),
    read,
    unload: () => program.unload(),
    signature,
    backend: "host",
    device,
  };
  Object.defineProperty(Object.assign(call, members), "name", { value: signature.name });
  programs.set(call, program);
  return call;
}

async function webSocket(): Promise<WebSocketClass> {
  const here = (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  if (here) return here;
  try {
    const name = "ws"; // not for bundlers: browsers have their own
    return ((await import(name)) as { WebSocket: WebSocketClass }).WebSocket;
  } catch {
    throw new Error("this runtime has no WebSocket: `npm install ws`, or use Node 22, or pass { WebSocket }");
  }
}

function download(source: URL | string): Promise<Uint8Array> {
  const url = new URL(source, (globalThis as { location?: { href: string } }).location?.href);
  return fetched(url, "serve the file that Exported.serialize() gave");
}

export { WeftFormatError } from "./bytes.js";
export { WeftConnectionLost, WeftHostError } from "./errors.js";
export { HostArray, HostDevice };
export type { Progress };
export { WeftRuntimeError } from "../errors.js";
export { place, run, type Model, type PlacedProgram, type PlaceOptions } from "./place.js";
