// weft without Python: a function that weft.export.web wrote, called as the peers are, from JavaScript.
import { at, serve } from "./worker.mjs";

serve({
  async init() {},
  workloads: {
    async exported(inputs) {
      const { data } = at(inputs, 0);
      const { load } = await import(new URL("exported/successor.js", self.location.href).href);
      const successor = await load();
      return { call: () => successor(data), read: (/** @type {Float32Array} */ out) => [out] };
    },
  },
});
