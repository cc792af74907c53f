// TensorFlow.js: eager. On its Wasm backend a call that has returned has computed; on WebGPU the queue tells.
import * as tf from "@tensorflow/tfjs-core";
import { setThreadsCount, setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import "@tensorflow/tfjs-backend-webgpu";
import "@tensorflow/tfjs-core/dist/register_all_gradients.js";
import { STEPS, at, serve } from "./worker.mjs";

/**
 * @typedef {import("./worker.mjs").Input} Input
 * @typedef {import("./worker.mjs").Program} Program
 * @typedef {import("./worker.mjs").Prepared} Prepared
 */

/** @type {(out: any) => void} */
const free = (out) => tf.dispose(out);
/** @type {(out: any) => Promise<Float32Array[]>} */
const read = (out) => Promise.all((Array.isArray(out) ? out : [out]).map((x) => x.data()));
/** @type {() => Promise<void> | undefined} */
const wait = () => {
  if (tf.getBackend() !== "webgpu") return undefined;
  const backend = tf.backend();
  backend.endComputePassEncoder();
  if (backend.commandEncoder) backend.submitQueue();
  return backend.queue.onSubmittedWorkDone();
};

/**
 * A workload that computes f of resident inputs.
 * @type {(f: Program) => (inputs: Input[]) => Prepared}
 */
const eager = (f) => (inputs) => {
  const tensors = inputs.map(({ data, shape }) => tf.tensor(data, shape));
  return { call: () => tf.tidy(() => f(...tensors)), wait, free, read, forget: () => free(tensors) };
};

/** @type {Program} */
function layerNorm(x) {
  const { mean, variance } = tf.moments(x, -1, true);
  return tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
}

/** @type {Program} */
function mlp(w1, b1, w2, b2, w3, b3, x) {
  /** @type {Program} */
  const dense = (a, b, bias, activation) => tf.fused.matMul({ a, b, bias, activation });
  return dense(dense(dense(x, w1, b1, "relu"), w2, b2, "relu"), w3, b3, "linear");
}

/** @type {Program} */
function mlpTrain(w1, b1, w2, b2, w3, b3, x, y) {
  const params = [w1, b1, w2, b2, w3, b3];
  /** @type {Program} */
  const loss = (...params) => tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(mlp(...params, x)), y), -1)));
  const grads = tf.grads(loss)(params);
  return params.map((p, i) => tf.sub(p, tf.mul(grads[i], 0.01)));
}

/** @type {Program} */
const attention = (q, k, v) => tf.matMul(tf.softmax(tf.mul(tf.matMul(q, k, false, true), 0.125)), v);

/** @type {Program} */
function scan(x, w) {
  x = tf.reshape(x, [1, -1]);
  for (let i = 0; i < STEPS; i++) x = tf.tidy(() => tf.add(tf.mul(x, 0.99), tf.mul(tf.tanh(tf.matMul(x, w)), 0.01)));
  return x;
}

/**
 * Ascending: the largest of the negated values, negated.
 * @type {Program}
 */
const sort = (x) => tf.neg(tf.topk(tf.neg(x), x.size, true).values);

/** @type {Program} */
const successor = (x) => tf.add(x, 1);

/**
 * @param {Input[]} inputs
 * @returns {Prepared}
 */
function readback(inputs) {
  const { data, shape } = at(inputs, 0);
  const x = tf.tensor(data, shape);
  const call = async () => {
    const y = successor(x);
    const values = tf.getBackend() === "webgpu" ? await y.data() : y.dataSync();
    y.dispose();
    return values;
  };
  return { call, read: (out) => [out], forget: () => x.dispose() };
}

const matmul = eager((a, b) => tf.matMul(a, b));
const chain = eager((x) => tf.add(tf.add(tf.mul(tf.tanh(x), 0.5), tf.mul(tf.sin(x), x)), tf.exp(tf.neg(tf.mul(x, x)))));
const conv = eager((x, w) => tf.conv2d(x, w, 1, "same"));

serve({
  async init(threads, backend) {
    tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", threads > 1);
    setWasmPaths(new URL("tfjs/", self.location.href).href);
    if (threads > 1) setThreadsCount(threads);
    await tf.setBackend(backend);
    await tf.ready();
  },
  workloads: {
    matmul_256: matmul,
    matmul_512: matmul,
    matmul_1024: matmul,
    matmul_2048: matmul,
    chain_1m: chain,
    chain_16m: chain,
    softmax: eager((x) => tf.softmax(x)),
    layer_norm: eager(layerNorm),
    sum_axis0: eager((x) => tf.sum(x, 0)),
    sum_axis1: eager((x) => tf.sum(x, 1)),
    mlp_forward: eager(mlp),
    mlp_train: eager(mlpTrain),
    conv_56: conv,
    conv_28: conv,
    attention: eager(attention),
    scan: eager(scan),
    sort: eager(sort),
    cumsum: eager((x) => tf.cumsum(x)),
    eager: eager(successor),
    readback,
    exported: readback,
  },
});
