// Written by weft.export.web. scaled.d.ts has the types, weft.js runs the program.
import { load as loadProgram } from "./weft.js";

export { Device } from "./weft.js";

export const signature = {
  name: "scaled",
  id: "cdd8e2aa7b1c041c",
  args: [{"name": "x", "tree": 0}],
  result: 0,
  inputs: [{"dtype": "float32", "shape": [3, 4]}],
  outputs: [{"dtype": "float32", "shape": [3, 4]}],
  donated: [],
  constants: [],
  sha256: {"wasm": "7ea75730a4be0e3a3754e80aeb065f689c0712dd239950e2b4789f8f5875f089", "relaxed": "740757537f45135a1574dac01e03bb7cf5a8b0d13b04cbf7651cca193325bc5f"},
};

const files = {
  wasm: new URL("./scaled.wasm", import.meta.url),
  relaxed: new URL("./scaled.relaxed.wasm", import.meta.url),
};

/** Fetches and compiles the program: `const scaled = await load();` */
export const load = (options) => loadProgram(signature, files, options);
export default load;
