// weft without Python: a function that weft.export.web wrote, called as the peers are, from JavaScript.
import { serve } from "./worker.mjs";

serve({
  async init() {},
  workloads: {
    async exported([{ data }]) {
      const { load } = await import(new URL("exported/successor.js", self.location.href).href);
      const successor = await load();
      return { call: () => successor(data), read: (out) => [out] };
    },
  },
});
