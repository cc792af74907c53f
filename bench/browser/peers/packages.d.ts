// The peers' packages are installed when the benchmark first runs, and not where types are checked: of them nothing is
// known.
declare module "@jax-js/jax";
declare module "@tensorflow/tfjs-core";
declare module "@tensorflow/tfjs-core/dist/register_all_gradients.js";
declare module "@tensorflow/tfjs-backend-wasm";
declare module "@tensorflow/tfjs-backend-webgpu";
declare module "onnxruntime-web/wasm";
