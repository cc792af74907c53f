// What every peer's worker does: inputs in, results out, calls timed.
//
// A peer is {init(threads, backend), workloads}, and a workload a function from inputs, [{data: Float32Array, shape}], to
//   call()     one call: its output, or a promise of it
//   wait(out)  resolves when the output is computed; left out where call() has computed it
//   read(out)  the output as [Float32Array]
//   free(out)  gives its memory back; left out where nothing is to be done
//   forget()   gives the inputs' memory back

/**
 * @typedef {{ data: Float32Array, shape: number[] }} Input
 * @typedef {"wasm" | "webgpu"} Backend
 * @typedef {object} Prepared
 * @property {() => any} call
 * @property {(out: any) => unknown} [wait]
 * @property {(out: any) => Float32Array[] | Promise<Float32Array[]>} read
 * @property {(out: any) => void} [free]
 * @property {() => void} [forget]
 * @typedef {(inputs: Input[]) => Prepared | Promise<Prepared>} Workload
 * @typedef {{ init(threads: number, backend: Backend): Promise<void>, workloads: Record<string, Workload> }} PeerSide
 * @typedef {(...arrays: any[]) => any} Program what a peer's library computes; its types are not known here
 */

/**
 * One of several, which must be there.
 * @template T
 * @param {readonly T[]} values
 * @param {number} i
 */
export function at(values, i) {
  const value = values[i];
  if (value === undefined) throw new Error(`there is no number ${i} of ${values.length}`);
  return value;
}

/**
 * Answers the page's messages: {id, op, …} with {id, value} or {id, error}.
 * @param {PeerSide} peer
 */
export function serve(peer) {
  /** @type {Map<string, Prepared>} */
  const ready = new Map();
  /** @param {string} name */
  const prepared = (name) => {
    const workload = ready.get(name);
    if (!workload) throw new Error(`${name} is not prepared`);
    return workload;
  };
  /** @param {{ file: string, shape: number[] }} input */
  const fetched = async ({ file, shape }) => {
    const response = await fetch(file);
    if (!response.ok) throw new Error(`${file}: ${response.status}`);
    return { data: new Float32Array(await response.arrayBuffer()), shape };
  };
  /** @type {Record<string, (message: any) => Promise<unknown>>} */
  const answers = {
    async init({ threads, backend }) {
      await peer.init(threads, backend);
      return Object.keys(peer.workloads);
    },
    async prepare({ name, inputs }) {
      const prepare = peer.workloads[name];
      if (!prepare) throw new Error(`there is no workload ${name}`);
      const workload = await prepare(await Promise.all(inputs.map(fetched)));
      ready.set(name, workload);
      const out = await workload.call();
      await workload.wait?.(out);
      const results = (await workload.read(out)).map((data) => Float32Array.from(data));
      workload.free?.(out);
      return results;
    },
    /**
     * Time of one call in ms, the mean over `calls`, each waited for, after one that is not counted: the caches are
     * full of what others have left.
     */
    async measure({ name, calls }) {
      const { call, wait, free } = prepared(name);
      let start = NaN;
      for (let i = -1; i < calls; i++) {
        if (i === 0) start = performance.now();
        let out = call();
        if (out instanceof Promise) out = await out;
        if (wait) await wait(out);
        free?.(out);
      }
      return (performance.now() - start) / calls;
    },
    async forget({ name }) {
      prepared(name).forget?.();
      ready.delete(name);
    },
  };
  self.onmessage = async ({ data }) => {
    try {
      const answer = answers[data.op];
      if (!answer) throw new Error(`there is no answer to ${data.op}`);
      postMessage({ id: data.id, value: await answer(data) });
    } catch (error) {
      postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) });
    }
  };
}

/**
 * A copy of row-major `data` of `shape` with its axes in the order of `axes`.
 * @param {Input} input
 * @param {number[]} axes
 * @returns {Input}
 */
export function transposed({ data, shape }, axes) {
  const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
  const result = { data: new Float32Array(data.length), shape: axes.map((axis) => at(shape, axis)) };
  let to = 0;
  /**
   * @param {number} depth
   * @param {number} from
   */
  const walk = (depth, from) => {
    if (depth === axes.length) return void (result.data[to++] = data[from] ?? NaN);
    const stride = at(strides, at(axes, depth));
    for (let i = 0; i < at(result.shape, depth); i++) walk(depth + 1, from + i * stride);
  };
  walk(0, 0);
  return result;
}

export const STEPS = 10_000;
