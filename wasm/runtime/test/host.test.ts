import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocketServer, type WebSocket as Peer } from "ws";
import { Reader, WeftFormatError, Writer } from "../src/host/bytes.js";
import { connect, WeftConnectionLost, WeftHostError } from "../src/host/index.js";
import { Runner } from "../src/host/place.js";
import { decode, encode, type Kind, type Message } from "../src/host/messages.js";
import { sha256 } from "../src/sha256.js";

interface Vectors {
  version: number;
  messages: { message: Kind; fields: Record<string, unknown>; frame: string }[];
  wrong: { what: string; frame: string }[];
}
const file = new URL("../../../../tests/remote/vectors.json", import.meta.url); // from dist/test
const VECTORS = JSON.parse(readFileSync(fileURLToPath(file), "utf8")) as Vectors;
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (data: Uint8Array): string => Buffer.from(data).toString("hex");

/** Fields as the vectors write them. */
function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? hex(value) : value;
}

for (const { message, fields, frame } of VECTORS.messages) {
  test(`${message} is what the vectors say: ${frame.slice(0, 40)}`, () => {
    const [found, ...more] = decode(bytes(frame));
    assert.equal(more.length, 0);
    const { kind, ...got } = found!;
    assert.equal(kind, message);
    assert.deepEqual(Object.fromEntries(Object.entries(got).map(([k, v]) => [k, plain(v)])), fields);
    assert.equal(hex(encode(kind, got as never)), frame);
  });
}

for (const { what, frame } of VECTORS.wrong) {
  test(`${what} is refused`, () => assert.throws(() => decode(bytes(frame)), WeftFormatError));
}

test("changed frames are read or refused, and nothing else", () => {
  let seed = 1;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  const frames = VECTORS.messages.map(({ frame }) => bytes(frame));
  for (let i = Number(process.env.WEFT_HOSTILE_FRAMES ?? 20_000); i > 0; i--) {
    const frame = frames[random(frames.length)]!.slice();
    for (let k = random(3); k >= 0; k--) frame[random(frame.length)] = random(256);
    try {
      decode(random(2) ? frame : frame.subarray(0, random(frame.length + 1)));
    } catch (error) {
      assert.ok(error instanceof WeftFormatError, String(error));
    }
  }
});

test("numbers of every length come back", () => {
  const numbers = [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 + 1, 2 ** 53 - 1];
  const w = new Writer();
  numbers.forEach((n) => w.unsigned(n));
  const r = new Reader(w.finish());
  assert.deepEqual(
    numbers.map(() => r.unsigned()),
    numbers,
  );
  assert.throws(() => new Writer().unsigned(-1), RangeError);
  assert.throws(() => new Writer().unsigned(2 ** 53), RangeError);
});

/** A host of the tests' own: it keeps arrays, and each program adds its arguments, of float32[n]. */
class Host {
  readonly server = new WebSocketServer({
    port: 0,
    verifyClient: () => !this.away,
    handleProtocols: (offers) => (offers.has("weft.6") ? "weft.6" : false),
  });
  readonly arrays = new Map<number, Uint8Array>();
  readonly seen: Message[] = [];
  readonly connections: { path: string; offers: string[] }[] = [];
  received = 0;
  silent = false;
  /** It takes no connection. */
  away = false;
  /** What it does instead of greeting. */
  refuses: string | null = null;
  /** With what it closes the next connections, once their clients have waited. */
  later: number[] = [];
  /** Milliseconds for which each client waits. */
  full = 0;
  peer!: Peer;

  constructor() {
    this.server.on("connection", (peer, request) => {
      const offers = (request.headers["sec-websocket-protocol"] ?? "").split(/, */);
      this.connections.push({ path: request.url!, offers });
      this.peer = peer;
      if (this.silent) return;
      if (this.refuses) return peer.send(encode("End", { error: "AuthenticationError", message: this.refuses }));
      const later = this.later.shift();
      peer.on("message", (data: Buffer) => {
        for (const message of decode(new Uint8Array(data))) this.handle(message, peer);
      });
      if (later || this.full) peer.send(encode("Waiting", { place: 3, of: 7 }));
      if (later) return peer.close(later, "about to stop");
      const greet = (): void => this.greet(peer);
      if (this.full) setTimeout(greet, this.full);
      else greet();
    });
  }

  greet(peer: Peer): void {
    peer.send(
      encode("Welcome", {
        id: "s 1",
        secret: Uint8Array.of(1, 255),
        received: this.received,
        grace_ms: 5000,
        frame: 1 << 20,
        window: 1 << 20,
        devices: ["cpu", "tests"],
      }),
    );
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.server.address() as { port: number }).port}`;
  }

  handle(message: Message, peer: Peer): void {
    this.seen.push(message);
    if (message.kind === "Beat") peer.send(encode("Beat", {}));
    if ("op" in message) this.received = message.op;
    if (message.kind === "Put") this.arrays.set(message.handle, message.data.slice());
    if (message.kind === "Part") {
      const have = this.arrays.get(message.handle)!;
      this.arrays.set(message.handle, Uint8Array.from([...have, ...message.data]));
    }
    if (message.kind === "Execute" || message.kind === "ExecuteFetching") {
      const given = message.arguments.map((h) => new Float32Array(this.arrays.get(h)!.slice().buffer));
      const sum = given[0]!.map((_, i) => given.reduce((total, array) => total + array[i]!, 0));
      for (const result of message.results) this.arrays.set(result, new Uint8Array(sum.buffer));
    }
    if (message.kind === "Free") message.handles.forEach((h) => this.arrays.delete(h));
    if (message.kind === "Ping") peer.send(encode("Ready", { op: message.op }));
    const asked =
      message.kind === "Fetch"
        ? [message.handle]
        : message.kind === "ExecuteFetching"
          ? message.fetched.map((i) => message.results[i]!)
          : [];
    if (asked.length) {
      const data = Uint8Array.from(asked.flatMap((handle) => [...this.arrays.get(handle)!]));
      const half = data.length >> 1;
      const part = (offset: number, end: number): Uint8Array =>
        encode("Data", { op: this.received, size: data.length, offset, data: data.subarray(offset, end) });
      peer.send(part(0, half));
      peer.send(part(half, data.length));
    }
  }

  close(): void {
    this.server.clients.forEach((client) => client.terminate());
    this.server.close();
  }
}

async function hosted(work: (host: Host) => Promise<void>): Promise<void> {
  const host = new Host();
  try {
    await work(host);
  } finally {
    host.close();
  }
}

/** The file of a program of two arrays float32[n], as Python writes it, with a program that this host does not read. */
function exportedFile(n: number, program = Uint8Array.of(1, 2, 3)): Uint8Array {
  const w = new Writer();
  w.string("add");
  w.unsigned(10);
  w.byte(0);
  [1, 0].forEach((count) => {
    w.unsigned(count);
    if (count) w.string("cpu");
  });
  for (const code of [2, 2, 2, 2, 0, 0, 4, 0]) w.byte(code); // ((leaf, leaf), {}): a tuple of two, of which …
  w.byte(0); // one result
  for (const count of [2, 1]) {
    w.unsigned(count);
    for (let i = 0; i < count; i++) {
      w.string("float32");
      w.byte(0);
      w.unsigned(1);
      w.unsigned(2 * n);
    }
  }
  w.unsigned(2);
  w.unsigned(0);
  w.unsigned(1);
  w.unsigned(1); // a constant
  w.string("float32");
  w.unsigned(1);
  w.unsigned(n);
  w.bytes(new Uint8Array(new Float32Array(n).fill(100).buffer));
  w.bytes(program);
  const body = w.finish();
  return Uint8Array.from([...new TextEncoder().encode("weftexp\0"), 1, ...sha256(body), ...body]);
}

test("a client that waits is asked to come again, and does", async () =>
  hosted(async (host) => {
    host.later = [1013, 1012];
    const told: unknown[] = [];
    const here = await connect(host.url, { token: "t", onProgress: (now) => void told.push(now) });
    assert.deepEqual(told, Array(2).fill({ name: "", stage: "queued", seconds: 0, waiting: 0, place: 3, of: 7 }));
    assert.equal(host.connections.length, 3);
    host.later = [1013, 1013];
    host.peer.terminate(); // a session that is taken up waits too
    await here.ping();
    assert.deepEqual([host.connections.length, told.length], [6, 4]);
    here.close();
  }));

test("a client that waits for long asks whether the host is there", async () =>
  hosted(async (host) => {
    host.full = 6000; // longer than a host may take to answer a login
    const here = await connect(host.url, { token: "t" });
    assert.ok(host.seen.filter(({ kind }) => kind === "Beat").length >= 1);
    await here.ping();
    here.close();
  }));

test("an exported program runs on a host in one round trip", async () =>
  hosted(async (host) => {
    const here = await connect(host.url.replace("ws:", "http:"), { token: "größe", name: "a test" });
    assert.deepEqual([here.devices[0]!.platform, here.devices[0]!.kind], ["cpu", "tests"]);
    const [{ path, offers }] = host.connections as [{ path: string; offers: string[] }];
    assert.equal(path, "/session?name=a+test");
    assert.deepEqual(offers, ["weft.6", `weft-token.${Buffer.from("größe").toString("base64url")}`]);
    const add = await here.load(exportedFile(3));
    assert.equal(add.name, "add");
    const sum = await add(Float32Array.of(1, 2, 3), Float32Array.of(10, 20, 30));
    assert.deepEqual(sum, Float32Array.of(111, 122, 133));
    const state = await add.onDevice(Float32Array.of(0, 0, 0), Float32Array.of(1, 1, 1));
    const twice = await add.onDevice(state, state);
    assert.deepEqual(await add.read({ twice }), { twice: Float32Array.of(302, 302, 302) });
    const order = host.seen.map(({ kind }) => kind).filter((kind) => kind !== "Settled" && kind !== "Credit");
    assert.deepEqual(order.slice(0, 6), ["Program", "Put", "Compile", "Put", "Put", "ExecuteFetching"]);
    assert.deepEqual(order.slice(6), ["Put", "Put", "Execute", "Execute", "Fetch"]);
    here.close();
    await assert.rejects(async () => add(Float32Array.of(1, 2, 3), Float32Array.of(1, 2, 3)), WeftConnectionLost);
  }));

test("arguments that do not fit, files that are none and tokens that are wrong say so", async () =>
  hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    const add = await here.load(exportedFile(3));
    await assert.rejects(
      add(Float32Array.of(1), Float32Array.of(1, 2, 3)),
      /add: argument 0 must be a Float32Array of length 3/,
    );
    await assert.rejects(add(Float32Array.of(1, 2, 3)), /add takes 2 arguments \(argument 0, argument 1\); got 1/);
    const file = exportedFile(3);
    await assert.rejects(here.load(file.subarray(0, 50)), /damaged or incomplete/);
    await assert.rejects(here.load(Uint8Array.of(1, 2)), WeftFormatError);
    await assert.rejects(here.load(file, { donate: [2] }), RangeError);
    here.close();
    host.refuses = "this token is not known";
    const refused = await connect(host.url, { token: "t" }).catch((error: unknown) => error);
    assert.ok(refused instanceof WeftHostError);
    assert.deepEqual([refused.kind, refused.message], ["AuthenticationError", "this token is not known"]);
    await assert.rejects(connect("ftp://x", { token: "t" }), /begins with ws/);
    await assert.rejects(connect("ws://127.0.0.1:9", { token: "t" }), WeftConnectionLost);
  }));

test("a program with callbacks is refused before anything is sent", async () =>
  hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    for (const operation of ["debug_report", "remote_callback", "add"]) {
      const w = new Writer();
      w.unsigned(2);
      w.string("float32");
      w.string(operation);
      const program = Uint8Array.from([...new TextEncoder().encode("weft\0"), 1, 0, ...w.finish()]);
      const loaded = here.load(exportedFile(3, program));
      if (operation === "add") await loaded;
      else await assert.rejects(loaded, /add prints or calls Python functions .* export it without debug.print and/);
    }
    here.close();
  }));

test("a host that starts again is asked for longer than one that is gone", async () =>
  hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    const add = await here.load(exportedFile(2));
    await here.ping();
    host.away = true;
    host.peer.close(1012);
    setTimeout(() => (host.away = false), 2500);
    // what comes before the close would be lost, for this host keeps no replies
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.deepEqual(await add(Float32Array.of(1, 2), Float32Array.of(3, 4)), Float32Array.of(104, 106));
    here.close();
  }));

test("a lost connection is taken up again, and nothing is sent twice or lost", async () =>
  hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    const add = await here.load(exportedFile(2));
    await here.ping();
    host.peer.terminate();
    const sum = await add(Float32Array.of(1, 2), Float32Array.of(3, 4));
    assert.deepEqual(sum, Float32Array.of(104, 106));
    assert.equal(host.connections.length, 2);
    const { path, offers } = host.connections[1]!;
    assert.equal(path, "/session/s%201");
    assert.equal(offers[2], `weft-resume.${Buffer.from([1, 255]).toString("base64url")}`);
    const ops = host.seen.flatMap((message) => ("op" in message ? [message.op] : []));
    assert.deepEqual(
      ops,
      ops.map((_, i) => i + 1),
    );
    here.close();
  }));

test("a host that does not come back, or that ends the session, fails what waits for it", async () => {
  await hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    host.handle = (message) => void (message.kind === "Ping" && host.close());
    await assert.rejects(here.ping(), WeftConnectionLost);
    assert.ok(here.failure instanceof WeftConnectionLost);
  });
  await hosted(async (host) => {
    const here = await connect(host.url, { token: "t" });
    host.handle = (_, peer) => peer.send(encode("End", { error: "LimitError", message: "too much" }));
    await assert.rejects(here.ping(), (error: WeftHostError) => error.kind === "LimitError");
    await assert.rejects(here.load(exportedFile(2)), /too much/);
  });
});

test("large arrays travel in parts, and cancelled work rejects", async () =>
  hosted(async (host) => {
    const n = 700_000; // 2.8 MB, of which a frame takes 1
    const here = await connect(host.url, { token: "t" });
    const add = await here.load(exportedFile(n));
    const one = new Float32Array(n).fill(1);
    const sum = (await add(one, one)) as Float32Array;
    assert.equal(sum.length, n);
    assert.ok(sum.every((x) => x === 102));
    host.handle = () => undefined;
    const waiting = here.ping();
    here.cancel();
    await assert.rejects(waiting, (error: WeftHostError) => error.kind === "Cancelled");
    here.close();
  }));

test("a host that says what no host says ends the session", async () =>
  hosted(async (host) => {
    const strange: Uint8Array[] = [Uint8Array.of(255), encode("Beat", {}).subarray(0, 0), encode("Bye", {})];
    for (const frame of strange) {
      const here = await connect(host.url, { token: "t" });
      host.peer.send(frame);
      await assert.rejects(here.ping());
      assert.ok(here.failure);
    }
  }));

type Said = { where: string; reason: string };
const later = async <T>(value: T, ms: number): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms));

test("calls run where they take less time, and the other place is tried again", async () => {
  let [here, there] = [1, 25];
  const page = Object.assign(async () => later("page", here), { backend: "webgpu" as const });
  const runner = new Runner(page, async () => later("host", there), "");
  const counted = async (calls: number): Promise<number> => {
    const found: unknown[] = [];
    for (let i = 0; i < calls; i++) found.push(await runner.call([]));
    return found.filter((place) => place === "host").length;
  };
  assert.equal(await counted(6), 3);
  assert.equal(await counted(20), 0);
  assert.match((runner as Said).reason, /^a call takes [\d.]+ ms on the host and [\d.]+ ms in the page$/);
  assert.equal(runner.where, "webgpu");
  [here, there] = [5, 2]; // the host was slow when it was tried last
  await counted(5);
  assert.equal(runner.where, "webgpu");
  assert.ok((await counted(40)) > 0); // at the 65th call it is tried again
  [here, there] = [60, 2];
  await counted(5);
  assert.ok((await counted(5)) >= 4);
  assert.equal((runner as Said).where, "host");
});

test("the page goes on where the host is gone, and arguments that do not fit are the caller's", async () => {
  const page = Object.assign(async (x: unknown) => ["page", x], { backend: "wasm" as const });
  let error: Error = new TypeError("x must be a number");
  const runner = new Runner(page as never, () => Promise.reject(error), "");
  await runner.call([1]);
  await assert.rejects(runner.call([2]), TypeError);
  error = new WeftConnectionLost("it is gone");
  await runner.call([3]);
  assert.deepEqual(await runner.call([4]), ["page", 4]);
  assert.deepEqual([runner.where, runner.reason], ["wasm", "the host does not run it: it is gone"]);
  assert.deepEqual(await runner.call([5]), ["page", 5]);
  const alone = new Runner(null, () => Promise.reject(error), "");
  await assert.rejects(alone.call([1]), WeftConnectionLost);
});
