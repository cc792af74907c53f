/** The declarations say of the bundles what their sources offer, no more and no less: checked, never run. */
import type * as declared from "../../src/weft_wasm/page/weft.js";
import type * as declaredWithGpu from "../../src/weft_wasm/page/weft-gpu.js";
import * as own from "../src/exported.js";
import * as ownWithGpu from "../src/exported_async.js";

export const offered: typeof declared = own;
export const offeredWithGpu: typeof declaredWithGpu = ownWithGpu;
type Same<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? true : false;
export const sameNames: Same<typeof declared, typeof own> = true;
export const sameNamesWithGpu: Same<typeof declaredWithGpu, typeof ownWithGpu> = true;
