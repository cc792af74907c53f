// What every peer's worker does: inputs in, results out, calls timed.
//
// A peer is {init(threads), workloads}, and a workload a function from inputs, [{data: Float32Array, shape}], to
//   call()     one call: its output, or a promise of it
//   wait(out)  resolves when the output is computed; left out where call() has computed it
//   read(out)  the output as [Float32Array]
//   free(out)  gives its memory back; left out where nothing is to be done
//   forget()   gives the inputs' memory back

/** Answers the page's messages: {id, op, …} with {id, value} or {id, error}. */
export function serve(peer) {
  const ready = new Map();
  const fetched = async ({ file, shape }) => {
    const response = await fetch(file);
    if (!response.ok) throw new Error(`${file}: ${response.status}`);
    return { data: new Float32Array(await response.arrayBuffer()), shape };
  };
  const answers = {
    async init({ threads }) {
      await peer.init(threads);
      return Object.keys(peer.workloads);
    },
    async prepare({ name, inputs }) {
      const workload = await peer.workloads[name](await Promise.all(inputs.map(fetched)));
      ready.set(name, workload);
      const out = await workload.call();
      await workload.wait?.(out);
      const results = (await workload.read(out)).map((data) => Float32Array.from(data));
      workload.free?.(out);
      return results;
    },
    /** Time of one call in ms, the mean over `calls`, each waited for, after one that is not counted: the caches are full of what others have left. */
    async measure({ name, calls }) {
      const { call, wait, free } = ready.get(name);
      let start;
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
      ready.get(name)?.forget?.();
      ready.delete(name);
    },
  };
  self.onmessage = async ({ data }) => {
    try {
      postMessage({ id: data.id, value: await answers[data.op](data) });
    } catch (error) {
      postMessage({ id: data.id, error: String(error?.message ?? error) });
    }
  };
}

/** A copy of row-major `data` of `shape` with its axes in the order of `axes`. */
export function transposed({ data, shape }, axes) {
  const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
  const result = { data: new Float32Array(data.length), shape: axes.map((axis) => shape[axis]) };
  let to = 0;
  const walk = (depth, from) => {
    if (depth === axes.length) return void (result.data[to++] = data[from]);
    for (let i = 0; i < result.shape[depth]; i++) walk(depth + 1, from + i * strides[axes[depth]]);
  };
  walk(0, 0);
  return result;
}

export const STEPS = 10_000;
