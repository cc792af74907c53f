// ONNX models as bytes: protocol buffers of onnx.proto (IR version 8, opset 17), as much of them as the workloads need.

/**
 * @typedef {{ data: Float32Array | bigint[] | boolean[], shape: number[] }} Constant
 * @typedef {number[] | null} Shape null is left open
 * @typedef {Shape | { shape: Shape, type: number }} Spec
 * @typedef {number | string | number[] | { float: number } | { graph: Uint8Array }} Attribute
 * @typedef {[operator: string, inputs: string, outputs: string, attributes?: Record<string, Attribute>]} Node
 * @typedef {{ inputs: Record<string, Spec>, outputs: Record<string, Spec>, nodes: Node[],
 *   constants?: Record<string, Constant> }} Graph
 */

const FLOAT = 1;
const INT64 = 7;
const BOOL = 9;

/** @param {number | bigint} value */
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

/** @param {(Uint8Array | number[])[]} parts */
function concat(parts) {
  const result = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** @type {(field: number, value: number | bigint) => Uint8Array} */
const integer = (field, value) => concat([varint(field << 3), varint(value)]);
/** @type {(field: number, data: Uint8Array) => Uint8Array} */
const bytes = (field, data) => concat([varint((field << 3) | 2), varint(data.length), data]);
/** @type {(field: number, value: string) => Uint8Array} */
const text = (field, value) => bytes(field, new TextEncoder().encode(value));

/**
 * @param {number} field
 * @param {number} value
 */
function float(field, value) {
  return concat([varint((field << 3) | 5), new Uint8Array(Float32Array.of(value).buffer)]);
}

/**
 * The type of a constant, and its elements.
 * @param {Constant["data"]} data
 * @returns {[number, Float32Array | BigInt64Array | Uint8Array]}
 */
function raw(data) {
  if (data instanceof Float32Array) return [FLOAT, data];
  const whole = data.filter((value) => typeof value === "bigint");
  return whole.length ? [INT64, BigInt64Array.from(whole)] : [BOOL, Uint8Array.from(data, Number)];
}

/**
 * TensorProto: float32 of a Float32Array, int64 of bigints, bool of booleans.
 * @param {string} name
 * @param {Constant} constant
 */
function tensor(name, { data, shape }) {
  const [type, elements] = raw(data);
  return concat([
    ...shape.map((n) => integer(1, n)),
    integer(2, type),
    text(8, name),
    bytes(9, new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength)),
  ]);
}

/**
 * ValueInfoProto.
 * @param {string} name
 * @param {Shape} shape
 */
function valueInfo(name, shape, type = FLOAT) {
  const dims = shape && bytes(2, concat(shape.map((n) => bytes(1, integer(1, n)))));
  return concat([text(1, name), bytes(2, bytes(1, concat([integer(1, type), ...(dims ? [dims] : [])])))]);
}

/**
 * AttributeProto: whole numbers are ints (floats are given as {float}), {graph} a graph.
 * @param {string} name
 * @param {Attribute} value
 */
function attribute(name, value) {
  /** @type {(type: number, field: Uint8Array) => Uint8Array} */
  const typed = (type, field) => concat([text(1, name), field, integer(20, type)]);
  if (Array.isArray(value)) return typed(7, concat(value.map((n) => integer(8, n))));
  if (typeof value === "number") return typed(2, integer(3, value));
  if (typeof value === "string") return typed(3, text(4, value));
  if ("float" in value) return typed(1, float(2, value.float));
  return typed(5, bytes(6, value.graph));
}

/**
 * NodeProto of [operator, inputs, outputs, attributes]; the names of values stand apart by blanks.
 * @param {Node} node
 */
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
 * @param {Graph} graph
 */
export function graph({ inputs, outputs, nodes, constants = {} }) {
  /** @type {(field: number, values: Record<string, Spec>) => Uint8Array[]} */
  const infos = (field, values) =>
    Object.entries(values).map(([name, spec]) => {
      const { shape, type } = Array.isArray(spec) || spec === null ? { shape: spec, type: FLOAT } : spec;
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

/**
 * ModelProto.
 * @param {Graph} spec
 */
export function model(spec) {
  const opset = concat([text(1, ""), integer(2, 17)]);
  return concat([integer(1, 8), bytes(7, graph(spec)), bytes(8, opset)]);
}

/** @type {(value: number) => Constant} */
export const scalar = (value) => ({ data: Float32Array.of(value), shape: [] });
/** @type {(...values: number[]) => Constant} */
export const whole = (...values) => ({ data: values.map(BigInt), shape: [values.length] });
export const types = { FLOAT, INT64, BOOL };
