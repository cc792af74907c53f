// Runs in the page: one worker for each peer, Python in the playground's own, all measured in turn.

const ROUND_MS = 10; // short, because a host that others use too leaves a machine to itself for moments
const MOST_CALLS = 20_000;
const SURE_ROUNDS = 5;
const FAR_BEHIND = 2; // times the best peer's time

class Peer {
  constructor(name, url) {
    this.name = name;
    this.worker = new Worker(url, { type: "module", name });
    this.pending = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, value, error } }) => {
      const [resolve, reject] = this.pending.get(id);
      this.pending.delete(id);
      if (error === undefined) resolve(value);
      else reject(new Error(error));
    };
    this.worker.onerror = (event) => {
      for (const [, reject] of this.pending.values()) reject(new Error(event.message || `${name} did not start`));
    };
  }

  ask(op, more = {}) {
    return new Promise((resolve, reject) => {
      this.pending.set(++this.count, [resolve, reject]);
      this.worker.postMessage({ id: this.count, op, ...more });
    });
  }

  async init(threads) {
    this.workloads = new Set(await this.ask("init", { threads }));
  }
  prepare(name, inputs) {
    return this.ask("prepare", { name, inputs: inputs.map(({ file, shape }) => ({ file: `data/${file}`, shape })) });
  }
  measure(name, calls) {
    return this.ask("measure", { name, calls });
  }
  forget(name) {
    return this.ask("forget", { name });
  }
}

/** weft as a person runs it: programs sent to the playground's worker, which fetches the files that they name. */
class Weft {
  name = "weft";
  workloads = { has: (name) => name !== "exported" };

  constructor({ site, worker, base, modules, assets }, threads) {
    this.modules = modules;
    this.worker = new Worker(new URL(worker, base), { type: "module", name: "weft-python" });
    this.printed = "";
    this.booted = new Promise((resolve, reject) => {
      this.settle = { ready: resolve, failed: reject };
    });
    this.worker.onmessage = ({ data }) => this.heard(data);
    this.worker.onerror = (event) => this.settle.failed(new Error(event.message));
    const interrupt = new SharedArrayBuffer(1);
    this.worker.postMessage({ type: "boot", site: { ...site, assets }, base, interrupt, threads });
  }

  heard(data) {
    if (data.type === "ready") this.settle.ready(data);
    else if (data.type === "failed") this.settle.failed(new Error(data.message));
    else if (data.type === "output") this.printed += data.text;
    else if (data.type === "bench") this.value = data.value;
    else if (data.type === "done") {
      const { status, error } = data.outcome;
      if (status === "ok") this.done.resolve(this.value);
      else this.done.reject(new Error(error ? `${error.type}: ${error.message}\n${error.full ?? error.short ?? ""}` : status));
    }
  }

  run(source) {
    return new Promise((resolve, reject) => {
      this.done = { resolve, reject };
      this.value = undefined;
      this.worker.postMessage({ type: "run", source, backend: "wasm", url: "", token: "" });
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
  ask(call) {
    return this.run(`import page_side\npage_side.${call}`);
  }
  prepare(name, inputs) {
    return this.ask(`prepare(${JSON.stringify(name)}, ${JSON.stringify(inputs)})`); // JSON of these is Python too
  }
  measure(name, calls) {
    return this.ask(`measure(${JSON.stringify(name)}, ${calls})`);
  }
  forget(name) {
    return this.ask(`forget(${JSON.stringify(name)})`);
  }
}

async function floats(file) {
  const response = await fetch(`data/${file}`);
  return new Float32Array(await response.arrayBuffer());
}

/** What is wrong with `results`, or null: the largest difference is allowed `tolerance` of the largest value. */
export function difference(results, expected, tolerance) {
  if (results.length !== expected.length) return `${results.length} results instead of ${expected.length}`;
  for (const [k, want] of expected.entries()) {
    const got = results[k];
    if (got.length !== want.length) return `result ${k} has ${got.length} values instead of ${want.length}`;
    let largest = 0;
    let worst = 0;
    for (let i = 0; i < want.length; i++) {
      const off = Math.abs(got[i] - want[i]);
      if (off > worst || Number.isNaN(off)) worst = off; // NaN stays: nothing is larger
      if (Math.abs(want[i]) > largest) largest = Math.abs(want[i]);
    }
    if (!(worst <= tolerance * largest)) return `result ${k} is off by ${worst.toExponential(2)} of ${largest.toPrecision(3)}`;
  }
  return null;
}

export const least = (values) => Math.min(...values);

let peers;

/** Starts the workers; resolves to what could not start, {peer: message}. */
export async function start({ urls, threads, weft }) {
  const ours = weft ? [new Weft(weft, threads), new Peer("weft", weft.exported)] : [];
  const all = [...Object.entries(urls).map(([name, url]) => new Peer(name, url)), ...ours];
  const failures = {};
  for (const peer of all) {
    await peer.init(threads).catch((error) => (failures[peer.name] = error.message));
  }
  peers = all.filter(({ name }) => !(name in failures));
  return failures;
}

/**
 * One workload: {times: {peer: ms}, problems: {peer: message}}. Each peer is measured once in a round, for as many seconds as given; a
 * time is the least. Peers far behind the best sit out after a few rounds.
 */
export async function measure(name, { inputs, outputs, tolerance }, seconds) {
  const expected = await Promise.all(outputs.map(({ file }) => floats(file)));
  const problems = {};
  const running = [];
  for (const peer of peers.filter(({ workloads }) => workloads.has(name))) {
    try {
      const wrong = difference(await peer.prepare(name, inputs), expected, tolerance);
      if (wrong) problems[peer.name] = wrong;
      const once = await peer.measure(name, 1);
      running.push({ peer, once, samples: [] });
    } catch (error) {
      problems[peer.name] = error.message;
    }
  }
  if (running.length === 0) return { times: {}, problems };
  // as many calls for everyone: after a pause memory is slow for some milliseconds, and the mean over more calls is less
  const calls = Math.max(1, Math.min(MOST_CALLS, Math.ceil(ROUND_MS / Math.max(Math.min(...running.map(({ once }) => once)), 1e-4))));
  const end = performance.now() + 1e3 * seconds;
  for (let round = 0; round < SURE_ROUNDS || performance.now() < end; round++) {
    const best = Math.min(...running.filter(({ peer }) => peer.name !== "weft").map(({ samples }) => least(samples)));
    const [one, ...others] = running.filter(({ samples }) => round < SURE_ROUNDS || least(samples) < FAR_BEHIND * best);
    // each after each other, since threads of some wait busily for a while after a call; nobody after itself, with its arrays still in the caches
    for (const { peer, samples } of [one, ...(round % 2 ? others.reverse() : others)]) {
      samples.push(await peer.measure(name, calls));
    }
  }
  for (const { peer } of running) await peer.forget(name);
  return { times: Object.fromEntries(running.map(({ peer, samples }) => [peer.name, least(samples)])), problems };
}

/** An empty call from Python, in ms. */
export async function emptyCall() {
  const weft = peers.find(({ name }) => name === "weft");
  const samples = [];
  for (let i = 0; weft && i < 7; i++) samples.push(await weft.ask("empty_call(20000)"));
  return samples.length ? least(samples) : null;
}
