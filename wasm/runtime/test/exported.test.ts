import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { load, WeftRuntimeError } from "../src/exported.js";
import { layout, leavesOf } from "../src/exported_values.js";
import { WasmDevice } from "../src/index.js";
import type { ArraySpec, LoadOptions, Signature } from "../../src/weft_wasm/page/weft.js";
import * as programs from "./programs.js";

/** An exported function with one argument, x. */
async function loaded(artifact: Uint8Array, inputs: ArraySpec[], outputs: ArraySpec[], data?: Uint8Array) {
  const device = await WasmDevice.create();
  const wasm = programs.exported(artifact);
  const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
  const signature: Signature = {
    name: "f",
    id: "1",
    args: [{ name: "x", tree: 0 }],
    result: outputs.map((_, k) => k),
    inputs,
    outputs,
    donated: [],
    constants: data ? [data.length] : [],
    sha256: { wasm: digest(wasm), ...(data && { data: digest(data) }) },
  };
  const files = { wasm: new URL("file:///f.wasm"), ...(data && { data: new URL("file:///f.bin") }) };
  const options = { device, fetch: async (url: URL) => (url.pathname.endsWith(".bin") ? data! : wasm) };
  return { device, f: await load<[unknown], unknown>(signature, files, options as unknown as LoadOptions) };
}

test("a program has its constants until it is unloaded", async () => {
  const vector = { dtype: "float32", shape: [4] };
  const { device, f } = await loaded(
    programs.sumAndProduct,
    [vector],
    [vector, vector],
    new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer),
  );
  assert.deepEqual(f(Float32Array.of(5, 6, 7, 8)), [Float32Array.of(6, 8, 10, 12), Float32Array.of(5, 12, 21, 32)]);
  assert.ok(device.stats().allocated > 0);
  f.unload();
  assert.equal(device.stats().allocated, 0);
  assert.throws(
    () => f(Float32Array.of(5, 6, 7, 8)),
    (error) => error instanceof WeftRuntimeError && /has been unloaded/.test(error.message),
  );
});

test("values without axes are plain, and what they must be is said", async () => {
  const cases = [
    ["bool", "bool", 1, "a boolean, or a Uint8Array"],
    ["int32", "i32", 4, "a number, or an Int32Array"],
    ["int64", "i64", 8, "a bigint, or a BigInt64Array"],
    ["uint64", "u64", 8, "a bigint, or a BigUint64Array"],
    ["float64", "f64", 8, "a number, or a Float64Array"],
  ] as const;
  for (const [dtype, short, bytes, wanted] of cases) {
    const meta = programs.metadata(1, [], { inputs: [{ dtype: short, shape: [], bytes }] });
    const { f } = await loaded(
      programs.artifact(meta, programs.module(programs.i32Const(0))),
      [{ dtype, shape: [] }],
      [],
    );
    assert.throws(() => f("1"), new TypeError(`f: x must be ${wanted} of length 1 for ${dtype}[]; got string 1`));
    assert.deepEqual(f(dtype === "bool" ? true : dtype.endsWith("int64") ? 1n : 1), []);
  }
});

test("where a tree of arguments has null, it takes null or undefined, and nothing else", () => {
  const signature = { name: "f", args: [{ name: "x", tree: [0, null] }] } as unknown as Signature;
  const leaves = (value: unknown) =>
    leavesOf(signature, [layout({ dtype: "int32", shape: [] })], [[5, value]], {} as never).map(([leaf]) => leaf);
  assert.deepEqual(leaves(null), [Int32Array.of(5)]);
  assert.deepEqual(leaves(undefined), [Int32Array.of(5)]);
  for (const value of [0, "", false, []]) assert.throws(() => leaves(value), /^TypeError: f: x\[1\] must be null/);
});
