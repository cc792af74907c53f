/** weft.d.ts says of weft.js what its sources offer, no more and no less: checked by the compiler, never run. */
import type * as declared from "../../src/weft_wasm/page/weft.js";
import * as own from "../src/exported.js";

export const offered: typeof declared = own;
type Same<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? true : false;
export const sameNames: Same<typeof declared, typeof own> = true;
