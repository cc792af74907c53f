/** The client against a host in a process of its own. */
import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  connect,
  place,
  resume,
  run,
  WeftConnectionLost,
  WeftFormatError,
  WeftHostError,
  type Host,
  type Model,
  type Progress,
} from "../src/host/index.js";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url)); // from dist/test
const PYTHON = process.env["PYTHON"] ?? join(ROOT, ".venv/bin/python");
const PROGRAMS = join(ROOT, "wasm/runtime/test/host_programs.py");
const TOKEN = "sesame";

interface Plain {
  dtype: string;
  shape: number[];
  numbers: number[];
}
type Tree = Plain | Tree[] | { [key: string]: Tree };

const ARRAYS: Record<string, new (numbers: number[]) => ArrayLike<number>> = {
  float32: Float32Array,
  float64: Float64Array,
  complex64: Float32Array,
  complex128: Float64Array,
  int32: Int32Array,
  int8: Int8Array,
  bool: Uint8Array,
};
const isPlain = (tree: Tree): tree is Plain => "numbers" in tree;

/** What the client takes and gives for a value that Python wrote. */
function value(tree: Tree): unknown {
  if (Array.isArray(tree)) return tree.map(value);
  if (!isPlain(tree)) return Object.fromEntries(Object.entries(tree).map(([k, v]) => [k, value(v)]));
  const { dtype, shape, numbers } = tree;
  return shape.length || dtype.startsWith("complex") ? new ARRAYS[dtype]!(numbers) : numbers[0];
}

/** Whether two values are the same but for rounding. */
function close(got: unknown, want: unknown, where = "result"): void {
  if (typeof want === "number") {
    assert.ok(Math.abs((got as number) - want) <= 1e-6 * Math.max(1, Math.abs(want)), `${where}: ${got}, not ${want}`);
  } else if (ArrayBuffer.isView(want)) {
    assert.equal((got as object).constructor, want.constructor, where);
    const numbers = want as unknown as ArrayLike<number>;
    assert.equal((got as typeof numbers).length, numbers.length, where);
    for (let i = 0; i < numbers.length; i++) close((got as typeof numbers)[i], numbers[i], `${where}[${i}]`);
  } else {
    assert.deepEqual(Object.keys(got as object).sort(), Object.keys(want as object).sort(), where);
    for (const [key, branch] of Object.entries(want as object))
      close((got as Record<string, unknown>)[key], branch, `${where}.${key}`);
  }
}

let folder = "";
let server: ChildProcess;
let url = "";

/** Starts a host, and resolves to its address. */
async function start(...options: string[]): Promise<[ChildProcess, string]> {
  const command = ["-W", "ignore", "-m", "weft_native.host", "--port", "0", "--token", TOKEN, "--platform", "cpu"];
  const child = spawn(PYTHON, [...command, ...options], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, JAX_NUM_CPU_DEVICES: "2" },
  });
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout!.on("data", (text: Buffer) => {
      const found = /ws:\/\/[\d.:]+/.exec(text.toString());
      if (found) resolve(found[0]);
    });
    child.once("exit", (code) => reject(new Error(`the host has ended with ${code}`)));
  });
  return [child, address];
}

before(async () => {
  assert.ok(existsSync(PYTHON), `${PYTHON} is not there: \`make setup\`, or set PYTHON`);
  folder = mkdtempSync(join(tmpdir(), "weft-host-"));
  execFileSync(PYTHON, [PROGRAMS, folder], { cwd: ROOT, env: { ...process.env, WEFT_PLATFORMS: "reference" } });
  [server, url] = await start("--equations", "200", "--seconds", "2");
});

after(() => {
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const file = (name: string): URL => pathToFileURL(join(folder, `${name}.weft`));
const said = (name: string): { args: Tree[]; result: Tree } =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")) as never;

async function session(work: (host: Host) => Promise<void>): Promise<void> {
  const host = await connect(url, { token: TOKEN, name: "tests" });
  try {
    await work(host);
  } finally {
    host.close();
  }
}

test("an exported program gives what Python gives, on each device", async () =>
  session(async (host) => {
    assert.equal(host.devices.length, 2);
    const { args, result } = said("layers");
    for (const device of host.devices) {
      const layers = await host.load(file("layers"), { device });
      close(await layers(...(args.map(value) as [])), value(result));
      assert.equal(layers.device, device);
    }
  }));

test("large results come one by one", async () =>
  session(async (host) => {
    const { args, result } = said("large");
    const large = await host.load(file("large"));
    const first = await large(...(args.map(value) as []));
    close(first, value(result));
    assert.deepEqual(await large(...(args.map(value) as [])), first);
  }));

test("state stays on the host, donated from step to step", async () =>
  session(async (host) => {
    const step = await host.load<[Float64Array, number], [Float64Array, number]>(file("step"), { donate: [0] });
    let [state] = await step.put(new Float64Array(4), 0.5);
    const sums: Promise<unknown>[] = [];
    for (let i = 0; i < 20; i++) {
      const before = state;
      let sum;
      [state, sum] = await step.onDevice(state, 0.5);
      sums.push(sum.read());
      await assert.rejects(before.read(), /donated to an earlier call/);
    }
    assert.deepEqual(
      await Promise.all(sums),
      Array.from({ length: 20 }, (_, i) => 2 * i),
    );
    assert.deepEqual(await step.read(state), new Float64Array(4).fill(10));
  }));

test("an array of one device is refused on another", async () =>
  session(async (host) => {
    const [first, second] = await Promise.all(host.devices.map((device) => host.load(file("step"), { device })));
    const [state] = await first!.put(new Float64Array(4), 1);
    await assert.rejects(second!(state, 1), /is on another device/);
  }));

test("a program that is too large is refused, with the reason", async () =>
  session(async (host) => {
    const many = await host.load(file("many"));
    await assert.rejects(many(new Float32Array(6)), (error: unknown) => {
      assert.ok(error instanceof WeftHostError, String(error));
      return /equations exceeds the limit of 200/.test(error.message);
    });
  }));

test("a program without end ends its own session alone", async () =>
  session(async (other) =>
    session(async (host) => {
      const endless = await host.load(file("endless"));
      await assert.rejects(endless(Float32Array.of(1, 1)), /2 s/);
      assert.ok(host.failure);
      await other.ping();
    }),
  ));

test("a computation that is cancelled ends, and the session goes on", async () => {
  const [child, address] = await start("--jobs", join(folder, "jobs"));
  try {
    const host = await connect(address, { token: TOKEN });
    const [endless, step] = await Promise.all([host.load(file("endless")), host.load(file("step"))]);
    const [state] = await step.put(Float64Array.of(1, 2, 3, 4), 0.5);
    const [next] = await step.onDevice(state, 0.5);
    await host.ping();
    const progress = new Promise<Progress>((resolve) => {
      host.onProgress = (now) => void (now.stage === "running" && resolve(now));
    });
    const stopped = assert.rejects(endless(Float32Array.of(1, 1)), /cancelled/);
    const { name, stage, seconds, waiting } = await progress;
    assert.deepEqual([name, stage, seconds > 0.1, waiting <= 2], ["endless", "running", true, true]);
    host.cancel();
    await stopped;
    assert.deepEqual(await next.read(), Float64Array.of(1.5, 2.5, 3.5, 4.5));
    const [last, sum] = await step(next, 1);
    assert.deepEqual([last, sum], [Float64Array.of(2.5, 3.5, 4.5, 5.5), 12]);

    const kept = await host.keep({ step, next }, { seconds: 60 });
    host.leave();
    await assert.rejects(host.ping(), /left to whoever resumes it/);
    while (!readdirSync(join(folder, "jobs")).length) await new Promise((resolve) => setTimeout(resolve, 50));
    const { host: again, tree } = await resume(address, { token: TOKEN, kept });
    assert.deepEqual((await tree.step(tree.next, 1))[1], 12);
    await again.load(file("step")); // which the host still has
    await assert.rejects(again.keep({}, { seconds: 1e9 }), /for 86400 s at most/);
    again.close();
  } finally {
    child.kill();
  }
  await session(async (host) => assert.rejects(host.keep({}, { seconds: 1 }), /keeps no sessions/));
});

test("a session is taken up by the next page, with its arrays and programs", async () => {
  const first = await connect(url, { token: TOKEN });
  const step = await first.load<[Float64Array, number], [Float64Array, number]>(file("step"), { donate: [0] });
  let [state] = await step.put(new Float64Array(4), 0.5);
  for (let i = 0; i < 5; i++) [state] = await step.onDevice(state, 0.5);
  const kept = await first.keep({ step, state, done: 5, losses: [1, null] });
  for (let i = 0; i < 3; i++) await step(new Float64Array(4), 1); // it goes on until it is closed
  const { host, tree } = await resume(url, { token: TOKEN, kept });
  assert.deepEqual([tree.done, tree.losses], [5, [1, null]]);
  let next = tree.state;
  for (let i = 0; i < 5; i++) [next] = await tree.step.onDevice(next, 0.5);
  assert.deepEqual(await next.read(), new Float64Array(4).fill(5));
  await assert.rejects(tree.state.read(), /donated/);
  await assert.rejects(first.ping(), /taken up elsewhere/);
  host.close();
  await assert.rejects(resume(url, { token: TOKEN, kept }), WeftHostError);
  await assert.rejects(resume(url, { token: TOKEN, kept: "{}" }), WeftFormatError);
});

test("a program for pages and hosts gives the same at both places", async () =>
  session(async (host) => {
    const model = (await import(pathToFileURL(join(folder, "site/mixed.js")).href)) as Model;
    const args = [Float32Array.of(1, 2, 3, 4.001), { 9: 1, 10: BigInt64Array.of(5n, -6n) }] as const;
    const want = { b: BigInt64Array.of(10n, -12n), 9: 20, 10: Float32Array.of(1, 2, 3, 4) };
    const device = host.devices[1]!;
    for (const where of ["page", "host"] as const) {
      const mixed = await place(model, { device, where });
      assert.deepEqual(await mixed(...args), want);
      assert.equal(mixed.where, { page: "wasm", host: "host" }[where]);
      assert.ok(mixed.times[where]! > 0);
    }
    const auto = await place(model, { device });
    for (let i = 0; i < 8; i++) assert.deepEqual(await auto(...args), want);
    assert.match(auto.reason, /^a call takes [\d.]+ ms on the host and [\d.]+ ms in the page$/);
    assert.deepEqual(await run(model, args, { device, where: "host" }), want);
    assert.deepEqual(await run(model, args), want);
    await assert.rejects(place(model, { where: "host" }), /give place\(model, \{ device \}\)/);
    const { host: _, ...files } = model.files;
    await assert.rejects(place({ ...model, files }, { device }), /export it with export.web\(…, host=True\)/);
  }));

test("clients of a host that is full wait for their turn, and know their place", async () => {
  const [child, address] = await start("--sessions", "1", "--queue", "2");
  try {
    const first = await connect(address, { token: TOKEN });
    const places: [number, number][] = [];
    const told = (): Promise<void> => new Promise((resolve) => (next = resolve));
    let next = (): void => {};
    const onProgress = ({ name, stage, place, of }: Progress): void => {
      if (stage === "queued" && !name) places.push([place, of]);
      next();
    };
    const stop = new AbortController();
    let heard = told();
    const second = connect(address, { token: TOKEN, signal: stop.signal, onProgress });
    await heard;
    heard = told();
    const third = connect(address, { token: TOKEN, onProgress });
    await heard;
    while (!places.some(([place]) => place === 2)) await told();
    await assert.rejects(connect(address, { token: TOKEN }), /1 sessions already and 2 clients that wait/);
    stop.abort(new Error("not any more"));
    await assert.rejects(second, /not any more/);
    while (String(places.at(-1)) !== "1,1") await told(); // the third has the second's place
    first.close();
    const host = await third;
    await host.ping();
    host.close();
    const { signal } = stop;
    await assert.rejects(connect(address, { token: TOKEN, signal }), /not any more/);
  } finally {
    child.kill();
  }
});

test("a wrong token is refused, and a host that is killed is missed at once", async () => {
  await assert.rejects(connect(url, { token: "guess" }), (e: WeftHostError) => e.kind === "AuthenticationError");
  const [child, address] = await start();
  const host = await connect(address, { token: TOKEN });
  await host.ping();
  child.kill("SIGKILL");
  const began = Date.now();
  // a session's process ends with the host, and may answer until then
  const asked = async (): Promise<never> => host.ping().then(asked);
  await assert.rejects(asked(), WeftConnectionLost);
  assert.ok(Date.now() - began < 8000);
});
