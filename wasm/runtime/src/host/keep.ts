/** Arrays and programs of a session that outlives its page. */
import { layout } from "../exported_values.js";
import type { Signature } from "../../../src/weft_wasm/page/weft.js";
import { WeftFormatError } from "./bytes.js";
import { HostArray, HostProgram, type HostDevice } from "./program.js";
import type { Ticket } from "./session.js";

const KIND = "weft session 1";

type Plain =
  | { array: { handle: number; device: number; dtype: string; shape: readonly number[] } }
  | { program: { handle: number; device: number; constants: readonly number[]; signature: Signature } }
  | { list: Plain[] }
  | { object: Record<string, Plain> }
  | { value: null | boolean | number | string };

/** A tree of arrays, programs and plain values as text; `programOf` gives the program behind a function. */
export function pack(ticket: Ticket, tree: unknown, programOf: (value: unknown) => HostProgram | undefined): string {
  const plain = (value: unknown): Plain => {
    if (value instanceof HostArray) {
      const { id } = value.device;
      return { array: { handle: value.at("a kept array"), device: id, dtype: value.dtype, shape: value.shape } };
    }
    const program = programOf(value);
    if (program) {
      const { handle, constants, signature, device } = program;
      return { program: { handle, device: device.id, constants, signature } };
    }
    if (Array.isArray(value)) return { list: value.map(plain) };
    if (value === null || ["boolean", "number", "string"].includes(typeof value)) return { value: value as null };
    if (typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype)
      return { object: Object.fromEntries(Object.entries(value).map(([key, branch]) => [key, plain(branch)])) };
    throw new TypeError(`a session keeps arrays and programs on the host, and plain values; got ${typeof value}`);
  };
  return JSON.stringify({ kind: KIND, ticket, tree: plain(tree) });
}

/** The ticket in a text, and what makes the tree once there is a session. */
export function unpack(
  text: string,
): [Ticket, (devices: readonly HostDevice[], callable: (program: HostProgram) => unknown) => unknown] {
  let found: { kind?: unknown; ticket?: Ticket; tree?: Plain };
  try {
    found = JSON.parse(text) as typeof found;
  } catch {
    throw new WeftFormatError("this is no kept session", 0);
  }
  const { kind, ticket, tree } = found;
  if (kind !== KIND || !ticket || !tree) throw new WeftFormatError("this is no kept session", 0);
  return [
    ticket,
    (devices, callable) => {
      const made = (node: Plain): unknown => {
        if ("array" in node) {
          const { handle, device, dtype, shape } = node.array;
          return new HostArray(devices[device]!, handle, layout({ dtype, shape }));
        }
        if ("program" in node) {
          const { handle, device, constants, signature } = node.program;
          return callable(new HostProgram(devices[device]!, signature, handle, constants));
        }
        if ("list" in node) return node.list.map(made);
        if ("object" in node) return Object.fromEntries(Object.entries(node.object).map(([k, v]) => [k, made(v)]));
        return node.value;
      };
      return made(tree);
    },
  ];
}
