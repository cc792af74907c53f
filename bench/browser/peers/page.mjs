// Runs in the page: one worker for each peer, Python in the playground's own, all measured in turn.

const ROUND_MS = 10; // short, because a host that others use too leaves a machine to itself for moments
const MOST_CALLS = 20_000;
const SURE_ROUNDS = 5;
const FAR_BEHIND = 2; // times the best peer's time
const PATIENCE_MS = 60_000; // with a peer that does not answer

/**
 * @typedef {{ file: string, shape: number[] }} FileOf
 * @typedef {{ inputs: FileOf[], outputs: FileOf[], tolerance: number }} Manifest
 * @typedef {{ resolve: (value: any) => void, reject: (error: Error) => void }} Waiting
 * @typedef {import("../../../web/src/kernel/protocol.js").SiteConfig} SiteConfig
 * @typedef {import("../../../web/src/kernel/protocol.js").FromWorker} FromWorker
 * @typedef {import("../../../web/src/kernel/protocol.js").Outcome} Outcome
 * @typedef {object} Playground
 * @property {Omit<SiteConfig, "assets">} site
 * @property {string} exported
 * @property {string} worker
 * @property {string} base
 * @property {Record<string, string>} modules
 * @property {SiteConfig["assets"]} assets
 */

class Peer {
  /** @type {Set<string>} */
  workloads = new Set();
  /** @type {Map<number, Waiting>} */
  pending = new Map();
  count = 0;
  /** @type {object} */
  settings = {};
  /** @type {Promise<unknown>} of a worker that was started again */
  ready = Promise.resolve();

  /**
   * @param {string} name
   * @param {string} url
   */
  constructor(name, url) {
    this.name = name;
    this.url = url;
    this.worker = this.start();
  }

  start() {
    const { name } = this;
    const worker = new Worker(this.url, { type: "module", name });
    worker.onmessage = ({ data: { id, value, error } }) => {
      const waiting = this.pending.get(id);
      this.pending.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(error));
    };
    worker.onerror = (event) => this.fail(event.message || `${name} did not start`);
    return worker;
  }

  /** @param {string} message */
  fail(message) {
    for (const { reject } of this.pending.values()) reject(new Error(message));
    this.pending.clear();
  }

  /** Ends a worker that does not answer, and starts another one. */
  restart() {
    this.worker.terminate();
    this.fail(`no answer in ${PATIENCE_MS / 1000} s`);
    this.worker = this.start();
    this.ready = this.ask("init", this.settings).catch(() => {}); // then the next question fails
  }

  /**
   * @param {string} op
   * @param {object} more
   * @returns {Promise<any>}
   */
  ask(op, more = {}) {
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    return new Promise((resolve, reject) => {
      this.pending.set(++this.count, { resolve, reject });
      this.worker.postMessage({ id: this.count, op, ...more });
      timer = setTimeout(() => this.restart(), PATIENCE_MS);
    }).finally(() => clearTimeout(timer));
  }

  /**
   * @param {number} threads
   * @param {import("./worker.mjs").Backend} backend
   */
  async init(threads, backend) {
    this.settings = { threads, backend };
    this.workloads = new Set(await this.ask("init", this.settings));
  }
  /**
   * @param {string} name
   * @param {FileOf[]} inputs
   * @returns {Promise<Float32Array[]>}
   */
  async prepare(name, inputs) {
    await this.ready;
    return this.ask("prepare", { name, inputs: inputs.map(({ file, shape }) => ({ file: `data/${file}`, shape })) });
  }
  /**
   * @param {string} name
   * @param {number} calls
   * @returns {Promise<number>}
   */
  measure(name, calls) {
    return this.ask("measure", { name, calls });
  }
  /** @param {string} name */
  forget(name) {
    return this.ask("forget", { name });
  }
}

/** weft as a person runs it: programs sent to the playground's worker, which fetches the files that they name. */
class Weft {
  name = "weft";
  workloads = { has: (/** @type {string} */ name) => name !== "exported" };
  printed = "";
  /** @type {any} */
  value = undefined;
  /** @type {Waiting | null} */
  booting = null;
  /** @type {Waiting | null} */
  running = null;
  runs = 0;

  /**
   * @param {Playground} playground
   * @param {number} threads
   * @param {import("./worker.mjs").Backend} backend
   */
  constructor({ site, worker, base, modules, assets }, threads, backend) {
    this.modules = modules;
    this.backend = backend;
    this.worker = new Worker(new URL(worker, base), { type: "module", name: "weft-python" });
    this.booted = new Promise((resolve, reject) => {
      this.booting = { resolve, reject };
    });
    this.worker.onmessage = ({ data }) => this.heard(data);
    this.worker.onerror = (event) => this.booting?.reject(new Error(event.message));
    /** @type {import("../../../web/src/kernel/protocol.js").BootMessage} */
    const boot = { type: "boot", site: { ...site, assets }, base, signals: null, threads };
    this.worker.postMessage(boot);
  }

  /** @param {FromWorker | { type: "bench", value: unknown }} data */
  heard(data) {
    if (data.type === "ready") this.booting?.resolve(data);
    else if (data.type === "failed") this.booting?.reject(new Error(data.message));
    else if (data.type === "output") this.printed += data.text;
    else if (data.type === "bench") this.value = data.value;
    else if (data.type === "done") {
      const { status, error } = data.outcome;
      if (status === "ok") this.running?.resolve(this.value);
      else
        this.running?.reject(
          new Error(error ? `${error.type}: ${error.message}\n${error.full ?? error.short ?? ""}` : status),
        );
    }
  }

  /**
   * @param {string} source
   * @returns {Promise<any>}
   */
  run(source) {
    return new Promise((resolve, reject) => {
      this.running = { resolve, reject };
      this.value = undefined;
      const options = { backend: this.backend, url: "", token: "", x64: false };
      /** @type {import("../../../web/src/kernel/protocol.js").ExecuteMessage} */
      const message = {
        type: "execute",
        run: ++this.runs,
        filename: "program.py",
        source,
        fresh: false,
        session: "",
        results: "text",
        options,
      };
      this.worker.postMessage(message);
    });
  }

  async init() {
    await this.booted;
    for (const [name, source] of Object.entries(this.modules)) {
      await this.run(`import sys, types
module = sys.modules[${JSON.stringify(name)}] = types.ModuleType(${JSON.stringify(name)})
exec(compile(${JSON.stringify(source)}, ${JSON.stringify(`${name}.py`)}, "exec"), module.__dict__)`);
    }
  }
  /** @param {string} call */
  ask(call) {
    return this.run(`import page_side\npage_side.${call}`);
  }
  /**
   * @param {string} name
   * @param {FileOf[]} inputs
   * @returns {Promise<Float32Array[]>}
   */
  prepare(name, inputs) {
    return this.ask(`prepare(${JSON.stringify(name)}, ${JSON.stringify(inputs)})`); // JSON of these is Python too
  }
  /**
   * @param {string} name
   * @param {number} calls
   * @returns {Promise<number>}
   */
  measure(name, calls) {
    return this.ask(`measure(${JSON.stringify(name)}, ${calls})`);
  }
  /** @param {string} name */
  forget(name) {
    return this.ask(`forget(${JSON.stringify(name)})`);
  }
}

/** @param {string} file */
async function floats(file) {
  const response = await fetch(`data/${file}`);
  return new Float32Array(await response.arrayBuffer());
}

/**
 * What is wrong with `results`, or null: the largest difference is allowed `tolerance` of the largest value.
 * @param {Float32Array[]} results
 * @param {Float32Array[]} expected
 * @param {number} tolerance
 */
export function difference(results, expected, tolerance) {
  if (results.length !== expected.length) return `${results.length} results instead of ${expected.length}`;
  for (const [k, want] of expected.entries()) {
    const got = results[k] ?? new Float32Array();
    if (got.length !== want.length) return `result ${k} has ${got.length} values instead of ${want.length}`;
    let largest = 0;
    let worst = 0;
    for (const [i, value] of want.entries()) {
      const off = Math.abs((got[i] ?? NaN) - value);
      if (off > worst || Number.isNaN(off)) worst = off; // NaN stays: nothing is larger
      if (Math.abs(value) > largest) largest = Math.abs(value);
    }
    if (!(worst <= tolerance * largest))
      return `result ${k} is off by ${worst.toExponential(2)} of ${largest.toPrecision(3)}`;
  }
  return null;
}

/** @param {number[]} values */
export const least = (values) => Math.min(...values);

/** @type {(Peer | Weft)[]} */
let peers = [];

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * Starts the workers; resolves to what could not start, {peer: message}.
 * @param {{ urls: Record<string, string>, threads: number, backend: import("./worker.mjs").Backend,
 *   weft: Playground | null }} settings
 */
export async function start({ urls, threads, backend, weft }) {
  const ours = weft ? [new Weft(weft, threads, backend), new Peer("weft", weft.exported)] : [];
  const all = [...Object.entries(urls).map(([name, url]) => new Peer(name, url)), ...ours];
  /** @type {Record<string, string>} */
  const failures = {};
  for (const peer of all) {
    await peer.init(threads, backend).catch((error) => (failures[peer.name] = messageOf(error)));
  }
  peers = all.filter(({ name }) => !(name in failures));
  return failures;
}

/**
 * One workload: {times: {peer: ms}, problems: {peer: message}}. Each peer is measured once in a round, for as many
 * seconds as given; a time is the least. Peers far behind the best sit out after a few rounds.
 * @param {string} name
 * @param {Manifest} manifest
 * @param {number} seconds
 */
export async function measure(name, { inputs, outputs, tolerance }, seconds) {
  const expected = await Promise.all(outputs.map(({ file }) => floats(file)));
  /** @type {Record<string, string>} */
  const problems = {};
  /** @type {{ peer: Peer | Weft, once: number, samples: number[] }[]} */
  const running = [];
  for (const peer of peers.filter(({ workloads }) => workloads.has(name))) {
    try {
      const wrong = difference(await peer.prepare(name, inputs), expected, tolerance);
      if (wrong) problems[peer.name] = wrong;
      const once = await peer.measure(name, 1);
      running.push({ peer, once, samples: [] });
    } catch (error) {
      problems[peer.name] = messageOf(error);
    }
  }
  if (running.length === 0) return { times: {}, problems };
  // as many calls for everyone: after a pause memory is slow for some milliseconds, and the mean over more calls is
  // less
  const calls = Math.max(
    1,
    Math.min(MOST_CALLS, Math.ceil(ROUND_MS / Math.max(Math.min(...running.map(({ once }) => once)), 1e-4))),
  );
  const end = performance.now() + 1e3 * seconds;
  for (let round = 0; round < SURE_ROUNDS || performance.now() < end; round++) {
    const best = Math.min(...running.filter(({ peer }) => peer.name !== "weft").map(({ samples }) => least(samples)));
    const [one, ...others] = running.filter(({ samples }) => round < SURE_ROUNDS || least(samples) < FAR_BEHIND * best);
    // each after each other, since threads of some wait busily for a while after a call; nobody after itself, with its
    // arrays still in the caches
    for (const { peer, samples } of [...(one ? [one] : []), ...(round % 2 ? others.reverse() : others)]) {
      samples.push(await peer.measure(name, calls));
    }
  }
  for (const { peer } of running) await peer.forget(name);
  return { times: Object.fromEntries(running.map(({ peer, samples }) => [peer.name, least(samples)])), problems };
}

/** An empty call from Python, in ms. */
export async function emptyCall() {
  const weft = peers.find((peer) => peer instanceof Weft);
  /** @type {number[]} */
  const samples = [];
  for (let i = 0; weft && i < 7; i++) samples.push(await weft.ask("empty_call(20000)"));
  return samples.length ? least(samples) : null;
}
