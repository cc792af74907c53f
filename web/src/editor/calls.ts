/** Calls: which call encloses a position, which function it calls, and which argument comes next. */
import type { SyntaxNode, Tree } from "@lezer/common";
import type { Description } from "./describe.js";
import { elements, type Inference, type Program, type Value } from "./infer.js";
import { describe } from "./knowledge.js";
import { parseSignature, type Signature } from "./signature.js";

export interface Called {
  name: string;
  doc: string;
  parsed: Signature;
}

/** The call, or the class statement's or decorator's, whose parentheses enclose a position. */
export function callAround(tree: Tree, pos: number): SyntaxNode | null {
  for (let node: SyntaxNode | null = tree.resolveInner(pos, -1); node; node = node.parent) {
    if (node.name === "Body" || node.name === "LambdaExpression") return null;
    if (node.name !== "ArgList") continue;
    const open = node.from + 1 <= pos;
    const closed = node.lastChild?.name === ")" && node.lastChild.to <= pos;
    if (open && !closed && node.parent?.name === "CallExpression") return node.parent;
  }
  return null;
}

export function calleeOf(call: SyntaxNode, inference: Inference): Value | null {
  return inference.valueOf(call.firstChild);
}

/** How a value is called. */
export function signatureOf(value: Value | null, inference: Inference): Called | null {
  const described = describe(callable(value, inference), nameOf(value), inference);
  return described?.signature ? called(described) : null;
}

export function called({ name, signature, doc }: Pick<Description, "name" | "signature" | "doc">): Called {
  return { name, doc, parsed: parseSignature(signature) };
}

function nameOf(value: Value | null): string {
  return value?.kind === "entry" ? value.entry.name : value?.kind === "wrapped" ? nameOf(value.of) : "";
}

/** The function that runs when a value is called: the `__call__` of an object. */
function callable(value: Value | null, inference: Inference): Value | null {
  if (value?.kind === "object") return inference.member(value, "__call__");
  return value;
}

/** The position among the arguments: how many come before it, and the name by which it is given. */
export function argumentAt(
  call: SyntaxNode,
  pos: number,
  program: Program,
): { position: number; keyword: string | null } {
  const list = call.getChild("ArgList")!;
  let position = 0;
  let last: SyntaxNode | null = null;
  let keyword: string | null = null;
  for (let child = list.firstChild; child && child.from < pos; child = child.nextSibling) {
    if (child.name === "," && child.to <= pos) {
      position++;
      keyword = null;
      last = null;
    } else if (child.name === "AssignOp" && last?.name === "VariableName" && program.text(child.from, child.to) === "=")
      keyword = program.text(last.from, last.to);
    else last = child;
  }
  return { position, keyword };
}

/** The arguments of a call in the order of the source. */
export function argumentsOf(call: SyntaxNode): SyntaxNode[] {
  return elements(call.getChild("ArgList")!);
}
