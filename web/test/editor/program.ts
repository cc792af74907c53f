/** Programs as the editor reads them, and a small index. */
import { parser } from "@lezer/python";
import { Inference, type Program } from "../../src/editor/infer.js";
import { LanguageIndex, type IndexData } from "../../src/editor/language.js";
import { namesOf } from "../../src/editor/scopes.js";

export function program(text: string): Program {
  const tree = parser.parse(text);
  const slice = (from: number, to: number) => text.slice(from, to);
  return { tree, names: namesOf(tree, slice), text: slice };
}

const data: IndexData = {
  entries: [
    { kind: "class", name: "Array", members: { T: 1, sum: 2, at: 3 } },
    { kind: "property", name: "T", returns: "Array" },
    { kind: "method", name: "sum", signature: "(axis: Axis = None) -> Array" },
    { kind: "property", name: "at", returns: "Helper" },
    { kind: "class", name: "Helper", members: {}, special: { __getitem__: "(index: Any) -> Update" } },
    { kind: "class", name: "Update", members: { set: 6 } },
    { kind: "method", name: "set", signature: "(values: ArrayLike) -> Array" },
    { kind: "function", name: "ones", signature: "(shape: Shape, dtype: DTypeLike | None = None) -> Array" },
    { kind: "function", name: "jit", signature: "(fun: Callable[..., Any] | None = None) -> Any" },
    { kind: "function", name: "value_and_grad", signature: "(fun: Callable[Args, Result]) -> Function[Args, Any]" },
    { kind: "function", name: "qr", signature: "(a: ArrayLike) -> Array | QRResult" },
    { kind: "class", name: "Pair", members: { first: 12, second: 13 }, fields: ["first", "second"] },
    { kind: "property", name: "first", returns: "Array" },
    { kind: "property", name: "second", returns: "int" },
    { kind: "function", name: "pair", signature: "() -> Pair" },
    { kind: "class", name: "int", members: {} },
    { kind: "class", name: "float", members: {} },
    { kind: "class", name: "str", members: {} },
    { kind: "class", name: "list", members: {} },
    { kind: "class", name: "bool", members: {} },
  ],
  modules: {
    weft: { names: { jit: 8, value_and_grad: 9, numpy: "weft.numpy", Array: 0 } },
    "weft.numpy": { names: { ones: 7, linalg: "weft.numpy.linalg", pair: 14 } },
    "weft.numpy.linalg": { names: { qr: 10 } },
    "weft.compat.core": { names: {} },
  },
  types: { Array: 0, Helper: 4, Update: 5, Pair: 11 },
  aliases: { jax: "weft", "jax.core": "weft.compat.core" },
  builtins: { int: 15, float: 16, str: 17, list: 18, bool: 19 },
};

export const index = new LanguageIndex([data], () => Promise.resolve({ "weft.numpy": "source" }));

/** What the last expression of a program is; earlier cells come first. */
export function inferred(...cells: string[]): string {
  const inference = new Inference(index, cells.map(program));
  const value = inference.valueOf(inference.program.tree.topNode.lastChild!.firstChild);
  switch (value?.kind) {
    case "instance":
      return value.of.name;
    case "entry":
      return `entry ${value.entry.name}`;
    case "module":
      return `module ${value.name}`;
    case undefined:
      return "unknown";
    default:
      return value!.kind;
  }
}
