// ONNX models as bytes: protocol buffers of onnx.proto (IR version 8, opset 17), as much of them as the workloads need.

const FLOAT = 1;
const INT64 = 7;
const BOOL = 9;

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest ? low | 0x80 : low);
  } while (rest);
  return bytes;
}

function concat(parts) {
  const result = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

const integer = (field, value) => concat([varint(field << 3), varint(value)]);
const bytes = (field, data) => concat([varint((field << 3) | 2), varint(data.length), data]);
const text = (field, value) => bytes(field, new TextEncoder().encode(value));

function float(field, value) {
  return concat([varint((field << 3) | 5), new Uint8Array(Float32Array.of(value).buffer)]);
}

/** TensorProto: float32 of a Float32Array, int64 of bigints, bool of booleans. */
function tensor(name, { data, shape }) {
  const isFloat = data instanceof Float32Array;
  const type = isFloat ? FLOAT : typeof data[0] === "bigint" ? INT64 : BOOL;
  const raw = isFloat ? data : type === INT64 ? BigInt64Array.from(data) : Uint8Array.from(data.map(Number));
  return concat([
    ...shape.map((n) => integer(1, n)),
    integer(2, type),
    text(8, name),
    bytes(9, new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength)),
  ]);
}

/** ValueInfoProto; a shape of null is left open. */
function valueInfo(name, shape, type = FLOAT) {
  const dims = shape && bytes(2, concat(shape.map((n) => bytes(1, integer(1, n)))));
  return concat([text(1, name), bytes(2, bytes(1, concat([integer(1, type), ...(dims ? [dims] : [])])))]);
}

/** AttributeProto: whole numbers are ints (floats are given as {float}), {graph} a graph. */
function attribute(name, value) {
  const typed = (type, field) => concat([text(1, name), field, integer(20, type)]);
  if (Array.isArray(value)) return typed(7, concat(value.map((n) => integer(8, n))));
  if (typeof value === "number") return typed(2, integer(3, value));
  if (typeof value === "string") return typed(3, text(4, value));
  if ("float" in value) return typed(1, float(2, value.float));
  return typed(5, bytes(6, value.graph));
}

/** NodeProto of [operator, inputs, outputs, attributes]; the names of values stand apart by blanks. */
function node([operator, inputs, outputs, attributes = {}]) {
  return concat([
    ...inputs.split(" ").map((name) => text(1, name)),
    ...outputs.split(" ").map((name) => text(2, name)),
    text(4, operator),
    ...Object.entries(attributes).map(([name, value]) => bytes(5, attribute(name, value))),
  ]);
}

/**
 * GraphProto. inputs and outputs: {name: shape}, or {name: {shape, type}} where they are no floats; constants:
 * {name: {data, shape}}.
 */
export function graph({ inputs, outputs, nodes, constants = {} }) {
  const infos = (field, values) =>
    Object.entries(values).map(([name, spec]) => {
      const { shape, type } = Array.isArray(spec) || spec === null ? { shape: spec } : spec;
      return bytes(field, valueInfo(name, shape, type));
    });
  return concat([
    ...nodes.map((n) => bytes(1, node(n))),
    text(2, "workload"),
    ...Object.entries(constants).map(([name, value]) => bytes(5, tensor(name, value))),
    ...infos(11, inputs),
    ...infos(12, outputs),
  ]);
}

/** ModelProto. */
export function model(spec) {
  const opset = concat([text(1, ""), integer(2, 17)]);
  return concat([integer(1, 8), bytes(7, graph(spec)), bytes(8, opset)]);
}

export const scalar = (value) => ({ data: Float32Array.of(value), shape: [] });
export const whole = (...values) => ({ data: values.map(BigInt), shape: [values.length] });
export const types = { FLOAT, INT64, BOOL };
