/** The parts of an exported program's page that need no page. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNumbers, readNpy, readNumbers, writeNpy } from "../src/demo/files.js";
import { formOf } from "../src/demo/inputs.js";
import { arrayOf, fill, frameOf, leafOf, leavesOf, picture, type Slot } from "../src/demo/tree.js";

const slot = (dtype: string, shape: number[]): Slot => ({
  path: "x",
  spec: { dtype, shape },
  length: shape.reduce((a, b) => a * b, dtype.startsWith("complex") ? 2 : 1),
});

test("arrays survive a file of NumPy", async () => {
  for (const [dtype, shape] of [
    ["float32", [2, 3]],
    ["float64", [6]],
    ["int8", [6, 1]],
    ["uint16", [6]],
    ["int64", [1, 6]],
    ["bool", [6]],
  ] as const) {
    const given = slot(dtype, [...shape]);
    const numbers = dtype === "bool" ? [0, 1, 1, 0, 1, 0] : [1, 2, 3, 4, 5, 6];
    const bytes = new Uint8Array(await writeNpy(given, arrayOf(given, numbers)).arrayBuffer());
    assert.equal(
      (bytes.length - 6 * arrayOf(given, numbers).BYTES_PER_ELEMENT) % 64,
      0,
      "NumPy aligns the data to 64 bytes",
    );
    assert.deepEqual(readNpy("x.npy", bytes), numbers, dtype);
    assert.deepEqual(await readNumbers(new File([bytes], "x.npy")), numbers);
  }
});

test("numbers are read from JSON, CSV and what people type; what is none is named", async () => {
  assert.deepEqual(parseNumbers("[[1, 2.5], [-3e2, 0]]\n"), [1, 2.5, -300, 0]);
  assert.deepEqual(parseNumbers("1;2\t3\r\n4, true"), [1, 2, 3, 4, 1]);
  assert.throws(() => parseNumbers("1, two"), /“two” is no number/);
  const text = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n";
  const header = new Uint8Array([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length, 0, ...Buffer.from(text)]);
  assert.throws(() => readNpy("f.npy", header), /f\.npy is in Fortran order/);
});

test("numbers that a type does not have are refused by name", () => {
  assert.throws(() => arrayOf(slot("uint8", [2]), [1, 256]), /x holds uint8, which has no 256/);
  assert.throws(() => arrayOf(slot("int32", [1]), [1.5]), /x takes whole numbers; 1.5 is none/);
  assert.throws(() => arrayOf(slot("float32", [2]), [1]), /x takes 2 numbers; 1 are given/);
  assert.throws(() => arrayOf(slot("int32", [1]), [NaN]), /whole numbers; NaN/);
  assert.deepEqual(leafOf(slot("int64", []), arrayOf(slot("int64", []), [7])), 7n);
  assert.deepEqual(leafOf(slot("bool", []), arrayOf(slot("bool", []), [1])), true);
});

test("trees are filled and read by the numbers of their leaves", () => {
  const tree = { a: [1, null], b: { c: 0 } };
  const value = fill(tree, ["zero", "one"]);
  assert.deepEqual(value, { a: ["one", null], b: { c: "zero" } });
  assert.deepEqual(leavesOf(tree, value), ["zero", "one"]);
});

test("pictures are told by their shape", () => {
  assert.deepEqual(picture({ dtype: "float32", shape: [24, 32, 3] }), {
    height: 24,
    width: 32,
    channels: 3,
    first: false,
  });
  assert.deepEqual(picture({ dtype: "uint8", shape: [1, 3, 24, 32] }), {
    height: 24,
    width: 32,
    channels: 3,
    first: true,
  });
  assert.deepEqual(picture({ dtype: "float32", shape: [28, 28] }), {
    height: 28,
    width: 28,
    channels: 1,
    first: false,
  });
  for (const shape of [[5, 5], [24, 32, 2], [64], []]) assert.equal(picture({ dtype: "float32", shape }), null);
  assert.deepEqual(frameOf({ dtype: "float32", shape: [1, 64] }), { height: 8, width: 8, channels: 1, first: false });
  assert.equal(frameOf({ dtype: "float32", shape: [65] }), null);
});

test("what is no picture is no canvas", () => {
  const forms = { drawing: [28, 28], image: [480, 640, 3], numbers: [64, 8] };
  for (const [form, shape] of Object.entries(forms)) assert.equal(formOf(slot("float32", shape)), form);
  assert.equal(formOf({ ...slot("float32", [64, 8]), form: "drawing" }), "drawing"); // as its exporter says
  assert.equal(formOf(slot("float32", [400, 400])), "image");
});
