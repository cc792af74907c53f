/** `<weft-cell>`: a live Python cell in any page. README.md is its documentation. */
import { WeftCell } from "./element.js";

export { WeftCell } from "./element.js";
export type { RunEvent, Status } from "./contract.js";

declare global {
  interface HTMLElementTagNameMap {
    "weft-cell": WeftCell;
  }
}

// A page may load the script twice, by an import and by a tag.
if (!customElements.get("weft-cell")) customElements.define("weft-cell", WeftCell);
