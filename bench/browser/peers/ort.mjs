// onnxruntime-web on its Wasm backend. It copies inputs and outputs at each call; weights are constants of the models,
// as where models are deployed, so that it can pack them once.
import * as ort from "onnxruntime-web/wasm";
import { graph, model, scalar, types, whole } from "./onnx.mjs";
import { STEPS, at, serve, transposed } from "./worker.mjs";

/**
 * @typedef {import("./worker.mjs").Input} Input
 * @typedef {import("./worker.mjs").Workload} Workload
 * @typedef {import("./onnx.mjs").Node} Node
 * @typedef {import("./onnx.mjs").Constant} Constant
 * @typedef {object} Options
 * @property {string} [results]
 * @property {string} [weights]
 * @property {(inputs: Input[]) => Input[]} [prepare]
 * @property {(out: Input) => Float32Array} [finish]
 */

/**
 * A workload of a model: `build` gives the nodes (and constants) that compute `results` from the inputs "a", "b", …;
 * the inputs that `weights` names are constants.
 * @param {(inputs: Record<string, Input>) => { nodes: Node[], constants?: Record<string, Constant> }} build
 * @param {Options} options
 * @returns {Workload}
 */
const session =
  (build, { results = "out", weights = "", prepare = (inputs) => inputs, finish = ({ data }) => data } = {}) =>
  async (given) => {
    const inputs = Object.fromEntries(prepare(given).map((value, i) => [String.fromCharCode(97 + i), value]));
    const { nodes, constants = {} } = build(inputs);
    /** @param {[string, Input]} entry */
    const fixed = ([name]) => weights.includes(name);
    const fed = Object.entries(inputs).filter((entry) => !fixed(entry));
    const names = results.split(" ");
    const bytes = model({
      inputs: Object.fromEntries(fed.map(([name, { shape }]) => [name, shape])),
      outputs: Object.fromEntries(names.map((name) => [name, null])),
      nodes,
      constants: { ...constants, ...Object.fromEntries(Object.entries(inputs).filter(fixed)) },
    });
    /** @type {{ executionProviders: ["wasm"], graphOptimizationLevel: "all" }} */
    const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
    const running = await ort.InferenceSession.create(bytes, options);
    const feeds = Object.fromEntries(
      fed.map(([name, { data, shape }]) => [name, new ort.Tensor("float32", data, shape)]),
    );
    return {
      call: () => running.run(feeds),
      read: (out) => names.map((name) => finish({ data: out[name].data, shape: out[name].dims })),
      forget: () => void running.release(),
    };
  };

const matmul = session(() => ({ nodes: [["MatMul", "a b", "out"]] }));

const chain = session(() => ({
  nodes: [
    ["Tanh", "a", "tanh"],
    ["Mul", "tanh half", "left"],
    ["Sin", "a", "sin"],
    ["Mul", "sin a", "middle"],
    ["Mul", "a a", "square"],
    ["Neg", "square", "negated"],
    ["Exp", "negated", "right"],
    ["Add", "left middle", "sum"],
    ["Add", "sum right", "out"],
  ],
  constants: { half: scalar(0.5) },
}));

/**
 * @param {Record<string, Input>} inputs
 * @param {string} name
 */
function input(inputs, name) {
  const found = inputs[name];
  if (!found) throw new Error(`the model has no input ${name}`);
  return found;
}

const layerNorm = session((inputs) => {
  const n = at(input(inputs, "a").shape, 1);
  return {
    nodes: [["LayerNormalization", "a scale", "out", { axis: -1, epsilon: { float: 1e-5 } }]],
    constants: { scale: { data: new Float32Array(n).fill(1), shape: [n] } },
  };
});

/** @param {number} axis */
const sum = (axis) =>
  session(() => ({ nodes: [["ReduceSum", "a axes", "out", { keepdims: 0 }]], constants: { axes: whole(axis) } }));

const mlp = session(
  () => ({
    nodes: [
      ["Gemm", "g a b", "s1"],
      ["Relu", "s1", "h1"],
      ["Gemm", "h1 c d", "s2"],
      ["Relu", "s2", "h2"],
      ["Gemm", "h2 e f", "out"],
    ],
  }),
  { weights: "abcdef" },
);

const conv = session(() => ({ nodes: [["Conv", "a b", "out", { pads: [1, 1, 1, 1], kernel_shape: [3, 3] }]] }), {
  weights: "b",
  prepare: (inputs) => [transposed(at(inputs, 0), [0, 3, 1, 2]), transposed(at(inputs, 1), [3, 2, 0, 1])],
  finish: (out) => transposed(out, [0, 2, 3, 1]).data,
});

const attention = session(() => ({
  nodes: [
    ["Transpose", "b", "kt", { perm: [0, 2, 1] }],
    ["MatMul", "a kt", "products"],
    ["Mul", "products scale", "scores"],
    ["Softmax", "scores", "weights", { axis: -1 }],
    ["MatMul", "weights c", "out"],
  ],
  constants: { scale: scalar(0.125) },
}));

const scan = session(
  () => {
    const body = graph({
      inputs: { i: { shape: [], type: types.INT64 }, going: { shape: [], type: types.BOOL }, x: [1, 64] },
      outputs: { on: { shape: [], type: types.BOOL }, y: [1, 64] },
      nodes: [
        ["Identity", "going", "on"],
        ["MatMul", "x b", "product"],
        ["Tanh", "product", "tanh"],
        ["Mul", "x keep", "kept"],
        ["Mul", "tanh add", "added"],
        ["Add", "kept added", "y"],
      ],
      constants: { keep: scalar(0.99), add: scalar(0.01) },
    });
    return {
      nodes: [["Loop", "steps always a", "out", { body: { graph: body } }]],
      constants: { steps: { ...whole(STEPS), shape: [] }, always: { data: [true], shape: [] } },
    };
  },
  { weights: "b", prepare: (inputs) => [{ ...at(inputs, 0), shape: [1, 64] }, at(inputs, 1)] },
);

const sort = session((inputs) => ({
  nodes: [["TopK", "a k", "out indices", { largest: 0, sorted: 1 }]],
  constants: { k: whole(input(inputs, "a").data.length) },
}));

const cumsum = session(() => ({
  nodes: [["CumSum", "a axis", "out"]],
  constants: { axis: { ...whole(0), shape: [] } },
}));

const sideBySide = session(() => ({ nodes: [["DFT", "a", "out", { axis: 1 }]] }), {
  prepare(inputs) {
    const [real, imag] = [at(inputs, 0).data, at(inputs, 1).data];
    const data = new Float32Array(2 * real.length);
    data.forEach((_, i) => (data[i] = (i % 2 ? imag : real)[i >> 1] ?? NaN));
    return [{ data, shape: [1, real.length, 2] }];
  },
});

/**
 * Real and imaginary parts lie side by side.
 * @type {Workload}
 */
const fft = async (inputs) => ({
  ...(await sideBySide(inputs)),
  /** @param {{ out: Input }} results */
  read: ({ out: { data } }) => [0, 1].map((part) => data.filter((_, i) => i % 2 === part)),
});

/** A call gives its result as an array of JavaScript: it is read already. */
const successor = session(() => ({ nodes: [["Add", "a one", "out"]], constants: { one: scalar(1) } }));

serve({
  async init(threads) {
    ort.env.wasm.numThreads = threads;
    ort.env.wasm.wasmPaths = new URL("ort/", self.location.href).href;
  },
  workloads: {
    matmul_256: matmul,
    matmul_512: matmul,
    matmul_1024: matmul,
    matmul_2048: matmul,
    chain_1m: chain,
    chain_16m: chain,
    softmax: session(() => ({ nodes: [["Softmax", "a", "out", { axis: -1 }]] })),
    layer_norm: layerNorm,
    sum_axis0: sum(0),
    sum_axis1: sum(1),
    mlp_forward: mlp,
    conv_56: conv,
    conv_28: conv,
    attention,
    scan,
    sort,
    cumsum,
    fft,
    eager: successor,
    readback: successor,
    exported: successor,
  },
});
