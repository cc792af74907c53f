// jax-js on its Wasm or WebGPU backend. With one thread it must not see SharedArrayBuffer, which makes it start a worker for each
// core.
import { STEPS, at, serve, transposed } from "./worker.mjs";

/**
 * @typedef {import("./worker.mjs").Input} Input
 * @typedef {import("./worker.mjs").Program} Program
 * @typedef {import("./worker.mjs").Prepared} Prepared
 */

/** @type {any} */
let jax;
/** @type {any} */
let np;

/**
 * Arrays of the device. jax-js consumes its arguments: what is used again is passed as `.ref`.
 * @param {Input[]} inputs
 * @returns {any[]}
 */
const resident = (inputs) => inputs.map(({ data, shape }) => np.array(data, { dtype: np.float32 }).reshape(shape));

/** @type {Program} */
const wait = (out) => jax.blockUntilReady(out);
/** @type {(out: any) => any[]} */
const leaves = (out) => jax.tree.leaves(out);
/** @type {(out: any) => void} */
const free = (out) => leaves(out).forEach((x) => x.dispose());
/** @type {(out: any) => Promise<Float32Array[]>} */
const read = (out) => Promise.all(leaves(out).map((x) => x.ref.data()));

/**
 * Calls of `f` on resident inputs.
 * @param {Program} f
 * @param {Input[]} inputs
 * @param {Partial<Prepared>} more
 * @returns {Prepared}
 */
function calls(f, inputs, more = {}) {
  const arrays = resident(inputs);
  return { call: () => f(...arrays.map((x) => x.ref)), wait, free, read, forget: () => free(arrays), ...more };
}

/** @type {(f: Program) => (inputs: Input[]) => Prepared} */
const jitted = (f) => (inputs) => calls(jax.jit(f), inputs);
/** @type {(f: Program) => (inputs: Input[]) => Prepared} */
const eager = (f) => (inputs) => calls(f, inputs);

/** @type {Program} */
const matmul = (a, b) => np.matmul(a, b);
/** @type {Program} */
const chain = (x) =>
  np
    .tanh(x.ref)
    .mul(0.5)
    .add(np.sin(x.ref).mul(x.ref))
    .add(np.exp(x.ref.mul(x).neg()));

/** @type {Program} */
function layerNorm(x) {
  const options = { keepdims: true };
  const centred = x.ref.sub(np.mean(x, -1, options));
  const variance = np.mean(np.square(centred.ref), -1, options);
  return centred.div(np.sqrt(variance.add(1e-5)));
}

/** @type {Program} */
const relu = (x) => np.maximum(x, 0);

/** @type {Program} */
function mlp(w1, b1, w2, b2, w3, b3, x) {
  x = relu(np.matmul(x, w1).add(b1));
  x = relu(np.matmul(x, w2).add(b2));
  return np.matmul(x, w3).add(b3);
}

/** @type {Program} */
function mlpTrain(w1, b1, w2, b2, w3, b3, x, y) {
  const params = [w1, b1, w2, b2, w3, b3];
  /** @type {Program} */
  const loss = (params) => np.mean(np.sum(jax.nn.logSoftmax(mlp(...params, x), -1).mul(y), -1)).neg();
  const grads = jax.grad(loss)(params.map((p) => p.ref));
  return params.map((p, i) => p.sub(grads[i].mul(0.01)));
}

/** @param {Input[]} inputs */
function conv(inputs) {
  const nchw = [transposed(at(inputs, 0), [0, 3, 1, 2]), transposed(at(inputs, 1), [3, 2, 0, 1])];
  // not under jit: fusing the padding into the product makes it 15 times slower
  /** @type {Program} */
  const f = (x, w) => jax.lax.convGeneralDilated(x, w, [1, 1], "SAME");
  return calls(f, nchw, {
    read: async (out) => [transposed({ data: await out.ref.data(), shape: out.shape }, [0, 2, 3, 1]).data],
  });
}

/** @type {Program} */
const attention = (q, k, v) => np.matmul(jax.nn.softmax(np.matmul(q, np.swapaxes(k, -1, -2)).mul(0.125), -1), v);

/**
 * There is no loop within a program: each step is a call. Left to queue up, 10,000 of them take 25 times as long.
 * @param {Input[]} inputs
 */
function scan(inputs) {
  /** @type {Program} */
  const forward = (x, w) => x.ref.mul(0.99).add(np.tanh(np.matmul(x, w)).mul(0.01));
  const step = jax.jit(forward);
  return calls(async (x, w) => {
    for (let i = 0; i < STEPS; i++) {
      x = step(x, w.ref);
      if (i % 100 === 99) await jax.blockUntilReady(x);
    }
    w.dispose();
    return x;
  }, inputs);
}

/** @param {Input[]} inputs */
const fft = (inputs) => {
  const [real, imag] = resident(inputs);
  return {
    call: () => np.fft.fft({ real: real.ref, imag: imag.ref }),
    wait,
    free,
    /** @type {(out: any) => Promise<Float32Array[]>} */
    read: (out) => Promise.all([out.real.ref.data(), out.imag.ref.data()]),
    forget: () => free([real, imag]),
  };
};

/** @param {Input[]} inputs */
function svd(inputs) {
  return calls((a) => np.linalg.svd(a, { fullMatrices: false }), inputs, {
    read: async ([u, s, vt]) => [await s.ref.data(), await np.matmul(u.ref.mul(s.ref), vt.ref).data()],
  });
}

/** @type {Program} */
const successor = (x) => x.add(1);

/**
 * A call and the numbers it gives: without threads they are there at once.
 * @param {Input[]} inputs
 * @returns {Prepared}
 */
function readback(inputs) {
  const f = jax.jit(successor);
  const [x] = resident(inputs);
  return { call: () => f(x.ref).data(), read: (out) => [out], forget: () => x.dispose() };
}

serve({
  async init(threads, backend) {
    if (threads === 1) Reflect.deleteProperty(globalThis, "SharedArrayBuffer");
    jax = await import("@jax-js/jax");
    np = jax.numpy;
    await jax.init(backend);
    jax.defaultDevice(backend);
  },
  workloads: {
    matmul_256: jitted(matmul),
    matmul_512: jitted(matmul),
    matmul_1024: jitted(matmul),
    matmul_2048: jitted(matmul),
    chain_1m: jitted(chain),
    chain_16m: jitted(chain),
    softmax: jitted((x) => jax.nn.softmax(x, -1)),
    layer_norm: jitted(layerNorm),
    sum_axis0: jitted((x) => np.sum(x, 0)),
    sum_axis1: jitted((x) => np.sum(x, 1)),
    mlp_forward: jitted(mlp),
    mlp_train: jitted(mlpTrain),
    conv_56: conv,
    conv_28: conv,
    attention: jitted(attention),
    scan,
    sort: jitted((x) => np.sort(x)),
    cumsum: jitted((x) => np.cumsum(x)),
    fft,
    cholesky: jitted((a) => np.linalg.cholesky(a)),
    svd,
    eager: eager(successor),
    jit: jitted(successor),
    readback,
    exported: readback,
  },
});
