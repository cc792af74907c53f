/** The types of expressions, as far as they follow without running them: modules, functions, arrays, own classes. */
import type { SyntaxNode, Tree } from "@lezer/common";
import type { Entry, LanguageIndex } from "./language.js";
import { lookUp, scopeAt, type Binding, type Definition, type Names, type Scope } from "./scopes.js";
import { parseSignature } from "./signature.js";

/** One cell, or a script. */
export interface Program {
  tree: Tree;
  names: Names;
  text(from: number, to: number): string;
}

export type Value =
  | { kind: "module"; name: string; known: boolean }
  | { kind: "entry"; entry: Entry }
  | { kind: "instance"; of: Entry }
  | { kind: "function"; node: SyntaxNode; program: Program }
  | { kind: "class"; node: SyntaxNode; program: Program }
  | { kind: "object"; node: SyntaxNode; program: Program }
  | { kind: "tuple"; items: (Value | null)[] }
  /** The results of functions on functions: `jit(f)`, `vmap(f)`, `grad(f)`. */
  | { kind: "wrapped"; by: Entry; of: Value };

/** Transformations whose results have the signature of the given function. */
const WRAPPERS = new Set([
  ...["jit", "vmap", "pmap", "grad", "value_and_grad", "checkpoint", "remat", "custom_jvp", "custom_vjp"],
  ...["jacfwd", "jacrev", "jacobian", "hessian", "named_call", "shard_map", "vectorize", "lru_cache", "cache", "wraps"],
]);
/** How deep a chain of definitions is followed. */
const DEPTH = 24;

export class Inference {
  /** @param programs the cells before this one, in order, and this one */
  constructor(
    readonly index: LanguageIndex | null,
    readonly programs: Program[],
  ) {}

  get program(): Program {
    return this.programs[this.programs.length - 1]!;
  }

  valueOf(node: SyntaxNode | null, program = this.program, depth = 0): Value | null {
    if (!node || depth > DEPTH) return null;
    const value = (inner: SyntaxNode | null) => this.valueOf(inner, program, depth + 1);
    switch (node.name) {
      case "VariableName":
        return this.named(program.text(node.from, node.to), node.from, program, depth);
      case "MemberExpression":
        return this.access(node, program, depth);
      case "CallExpression":
        return this.result(value(node.firstChild), node.getChild("ArgList"), program, depth);
      case "ParenthesizedExpression":
        return value(node.firstChild?.nextSibling ?? null);
      case "NamedExpression":
        return value(node.lastChild);
      case "AwaitExpression":
        return null;
      case "ConditionalExpression":
        return value(node.firstChild) ?? value(node.lastChild);
      case "UnaryExpression":
        return node.firstChild?.name === "not" ? this.instance("bool") : value(node.lastChild);
      case "BinaryExpression":
        return this.operation(node, program, depth);
      case "TupleExpression": {
        const items = elements(node);
        return { kind: "tuple", items: items.map(value) };
      }
      case "LambdaExpression":
        return { kind: "function", node, program };
      case "Number": {
        const text = program.text(node.from, node.to);
        return this.instance(/j$/i.test(text) ? "complex" : /^0[xob]|^[\d_]+$/i.test(text) ? "int" : "float");
      }
      default: {
        const name = LITERALS[node.name];
        return name ? this.instance(name) : null;
      }
    }
  }

  /** The meaning of a name at a position: in this program, in the cells before it, or in Python. */
  named(name: string, pos: number, program = this.program, depth = 0): Value | null {
    const found = this.bindingFor(name, scopeAt(program.names, pos), program);
    if (found) {
      const definition = definitionAt(found.binding, found.program === program ? pos : Infinity);
      return definition && this.defined(definition, found.program, depth + 1);
    }
    const entry = this.index?.builtin(name) ?? null;
    if (entry) return { kind: "entry", entry };
    for (const { names } of this.programs)
      for (const star of names.stars) {
        const module = this.index?.moduleCalled(star);
        const item = module ? this.index!.find(module, name) : null;
        if (item) return item.kind === "module" ? { kind: "module", name: item.name, known: true } : item;
      }
    return null;
  }

  /** The binding of a name, in its own program or the last earlier one that has it. */
  bindingFor(name: string, scope: Scope, program = this.program): { binding: Binding; program: Program } | null {
    const own = lookUp(name, scope);
    if (own && own.definitions.length > 0) return { binding: own, program };
    for (let i = this.programs.indexOf(program) - 1; i >= 0; i--) {
      const binding = this.programs[i]!.names.module.names.get(name);
      if (binding && binding.definitions.length > 0) return { binding, program: this.programs[i]! };
    }
    return null;
  }

  /** The value that a definition gives to its name. */
  defined({ origin }: Definition, program: Program, depth = 0): Value | null {
    if (depth > DEPTH) return null;
    switch (origin.kind) {
      case "import":
        return this.module(origin.module);
      case "from": {
        const module = this.index?.moduleCalled(origin.module);
        const item = module ? this.index!.find(module, origin.name) : null;
        if (!item)
          return this.index?.moduleCalled(`${origin.module}.${origin.name}`)
            ? this.module(`${origin.module}.${origin.name}`)
            : null;
        return item.kind === "module" ? { kind: "module", name: item.name, known: true } : item;
      }
      case "function":
      case "class":
        return { kind: origin.kind, node: origin.node, program };
      case "parameter":
        if (origin.annotation && origin.star === "") return this.annotated(origin.annotation, program, depth);
        return origin.index === 0 ? this.self(origin.node, program) : null;
      case "annotated":
        return this.annotated(origin.annotation, program, depth) ?? this.valueOf(origin.node, program, depth + 1);
      case "value":
        return this.inside(this.valueOf(origin.node, program, depth + 1), origin.path);
      case "item": {
        const value = this.valueOf(origin.node, program, depth + 1);
        if (value?.kind === "instance" && value.of.name === "range") return this.instance("int");
        const each = value?.kind === "tuple" ? (value.items[0] ?? null) : this.isArray(value) ? value : null;
        return this.inside(each, origin.path);
      }
      case "context":
        return this.special(this.valueOf(origin.node, program, depth + 1), "__enter__");
      case "exception": {
        const type = this.valueOf(origin.node, program, depth + 1);
        return type?.kind === "entry" && type.entry.kind === "class" ? { kind: "instance", of: type.entry } : null;
      }
      default:
        return null;
    }
  }

  /** An attribute of a value. */
  member(value: Value | null, name: string, depth = 0): Value | null {
    if (!value || !this.index) return null;
    switch (value.kind) {
      case "module": {
        const item = this.index.find(value.name, name);
        if (!item) return null;
        return item.kind === "module" ? { kind: "module", name: item.name, known: true } : item;
      }
      case "entry": {
        const found = this.index.member(value.entry, name);
        if (found) return { kind: "entry", entry: found };
        const of = value.entry.type ? this.index.typeCalled(value.entry.type) : null;
        return of ? this.member({ kind: "instance", of }, name, depth) : null;
      }
      case "instance": {
        const found = this.index.member(value.of, name);
        if (!found) return null;
        return found.kind === "property"
          ? (this.annotation(found.returns ?? "") ?? { kind: "entry", entry: found })
          : { kind: "entry", entry: found };
      }
      case "class":
      case "object": {
        const definition = attributesOf(value).get(name);
        return definition ? this.defined(definition, value.program, depth + 1) : null;
      }
      default:
        return null;
    }
  }

  /** The entry of a name after a dot: for a property the property, not its value. */
  memberEntry(value: Value | null, name: string): Entry | null {
    if (!value || !this.index) return null;
    if (value.kind === "instance") return this.index.member(value.of, name);
    const found = this.member(value, name);
    return found?.kind === "entry" ? found.entry : null;
  }

  private access(node: SyntaxNode, program: Program, depth: number): Value | null {
    const object = this.valueOf(node.firstChild, program, depth + 1);
    const property = node.getChild("PropertyName");
    if (property) return this.member(object, program.text(property.from, property.to), depth);
    if (this.isArray(object)) return object;
    if (object?.kind === "tuple") {
      const at = node.getChild("Number");
      return at ? (object.items[Number(program.text(at.from, at.to))] ?? null) : null;
    }
    return this.special(object, "__getitem__");
  }

  private result(callee: Value | null, args: SyntaxNode | null, program: Program, depth: number): Value | null {
    if (!callee || !args || depth > DEPTH) return null;
    const first = elements(args)[0] ?? null;
    switch (callee.kind) {
      case "entry": {
        const { entry } = callee;
        if (entry.name === "partial") return this.valueOf(first, program, depth + 1);
        if (entry.kind === "class") return { kind: "instance", of: entry };
        if (entry.kind === "value") {
          const of = entry.type ? this.index?.typeCalled(entry.type) : null;
          return of ? this.special({ kind: "instance", of }, "__call__") : null;
        }
        const inner = WRAPPERS.has(entry.name) ? this.valueOf(first, program, depth + 1) : null;
        if (inner) return { kind: "wrapped", by: entry, of: inner };
        return this.annotation(parseSignature(entry.signature ?? "()").returns);
      }
      case "instance":
        return this.special(callee, "__call__");
      case "wrapped": {
        const argument = () => this.valueOf(first, program, depth + 1);
        const name = callee.by.name;
        if (name === "grad") return argument();
        if (/^(jac|hess)/.test(name)) return this.isArray(argument()) ? argument() : null;
        const result = this.result(callee.of, args, program, depth + 1);
        return name === "value_and_grad" ? { kind: "tuple", items: [result, argument()] } : result;
      }
      case "class":
        return { kind: "object", node: callee.node, program: callee.program };
      case "function":
        return this.returned(callee.node, callee.program, depth + 1);
      case "object": {
        const call = this.member(callee, "__call__", depth + 1);
        return call?.kind === "function" ? this.returned(call.node, call.program, depth + 1) : null;
      }
      default:
        return null;
    }
  }

  /** The result of a function of the program: by its annotation, or its first return whose type is known. */
  private returned(node: SyntaxNode, program: Program, depth: number): Value | null {
    if (node.name === "LambdaExpression") return this.valueOf(node.lastChild, program, depth + 1);
    const type = node.getChild("TypeDef");
    if (type) return this.annotated(type, program, depth);
    const body = node.getChild("Body");
    let found: Value | null = null;
    const look = (inner: SyntaxNode) => {
      for (let child = inner.firstChild; child && !found; child = child.nextSibling) {
        if (
          child.name === "FunctionDefinition" ||
          child.name === "ClassDefinition" ||
          child.name === "LambdaExpression"
        )
          continue;
        if (child.name === "ReturnStatement") {
          const items = elements(child);
          const comma = child.getChild(",") !== null;
          found = comma
            ? { kind: "tuple", items: items.map((item) => this.valueOf(item, program, depth + 1)) }
            : this.valueOf(items[0] ?? null, program, depth + 1);
        } else look(child);
      }
    };
    if (body) look(body);
    return found;
  }

  private operation(node: SyntaxNode, program: Program, depth: number): Value | null {
    const operator = node.firstChild?.nextSibling?.name ?? "";
    if (/^(and|or)$/.test(operator)) return this.valueOf(node.lastChild, program, depth + 1);
    if (/^(in|not|is)$/.test(operator)) return this.instance("bool");
    const left = this.valueOf(node.firstChild, program, depth + 1);
    const right = this.valueOf(node.lastChild, program, depth + 1);
    if (this.isArray(left)) return left;
    if (this.isArray(right)) return right;
    if (operator === "CompareOp") return this.instance("bool");
    if (left?.kind !== "instance" || right?.kind !== "instance") return null;
    if (left.of.name === right.of.name) return left;
    return /^(int|float)$/.test(left.of.name) && /^(int|float)$/.test(right.of.name) ? this.instance("float") : left;
  }

  isArray(value: Value | null): boolean {
    return value?.kind === "instance" && value.of.name === "Array";
  }

  private instance(name: string): Value | null {
    const of = this.index?.typeCalled(name);
    return of ? { kind: "instance", of } : null;
  }

  private module(dotted: string): Value {
    const name = this.index?.moduleCalled(dotted) ?? null;
    return name === null ? { kind: "module", name: dotted, known: false } : { kind: "module", name, known: true };
  }

  private inside(value: Value | null, path: number[]): Value | null {
    let found = value;
    for (const step of path) {
      if (this.isArray(found)) continue; // the rows of an array are arrays
      const of: Entry | null = found?.kind === "instance" ? found.of : null;
      if (found?.kind === "tuple") found = found.items[step] ?? null;
      else if (of?.fields?.[step] !== undefined) found = this.member(found, of.fields[step]!);
      else return null;
    }
    return found;
  }

  private special(value: Value | null, name: string): Value | null {
    if (value?.kind !== "instance") return null;
    const signature = value.of.special?.[name];
    return signature ? this.annotation(parseSignature(signature).returns, value.of) : null;
  }

  /** The value that an annotation of the index describes. */
  annotation(text: string, self: Entry | null = null): Value | null {
    for (const choice of choices(text)) {
      const [, name = "", inside] = /^([\w.]+)(?:\[(.*)\])?$/s.exec(choice) ?? [];
      if (name === "tuple" && inside !== undefined && !inside.includes("..."))
        return { kind: "tuple", items: choices(inside, ",").map((item) => this.annotation(item, self)) };
      if (name === "Self" && self) return { kind: "instance", of: self };
      const of = this.index?.typeCalled(name.split(".").pop()!);
      if (of && name !== "Any") return { kind: "instance", of };
    }
    return null;
  }

  /** The value that an annotation of the program describes. */
  private annotated(node: SyntaxNode, program: Program, depth: number): Value | null {
    const inner = elements(node)[0] ?? null;
    const type = this.valueOf(inner, program, depth + 1);
    if (type?.kind === "entry" && type.entry.kind === "class") return { kind: "instance", of: type.entry };
    if (type?.kind === "class") return { kind: "object", node: type.node, program: type.program };
    const text = inner ? program.text(inner.from, inner.to) : "";
    return /\b(Array|ArrayLike)\b/.test(text) && !/^\w*(dict|list|Callable)\b/i.test(text)
      ? this.instance("Array")
      : null;
  }

  /** The object whose method has these parameters. */
  private self(parameters: SyntaxNode, program: Program): Value | null {
    const method = parameters.parent;
    let outer = method?.parent ?? null;
    if (outer?.name === "DecoratedStatement") {
      const decorators = program.text(outer.from, method!.from);
      if (/@(staticmethod|classmethod)\b/.test(decorators)) return null;
      outer = outer.parent;
    }
    const node = outer?.name === "Body" && outer.parent?.name === "ClassDefinition" ? outer.parent : null;
    return node ? { kind: "object", node, program } : null;
  }
}

const LITERALS: Record<string, string> = {
  String: "str",
  FormatString: "str",
  ContinuedString: "str",
  Boolean: "bool",
  ArrayExpression: "list",
  ArrayComprehensionExpression: "list",
  DictionaryExpression: "dict",
  DictionaryComprehensionExpression: "dict",
  SetExpression: "set",
  SetComprehensionExpression: "set",
};

/** The definition in effect at a position: the last one before it, or else the last of all. */
export function definitionAt({ definitions }: Binding, pos: number): Definition | null {
  const before = definitions.filter(({ from }) => from <= pos);
  return before[before.length - 1] ?? definitions[definitions.length - 1] ?? null;
}

/** The names bound in the body of a class, and those that its methods assign to attributes of their object. */
export function attributesOf({ node, program }: { node: SyntaxNode; program: Program }): Map<string, Definition> {
  const found = new Map<string, Definition>();
  const body = node.getChild("Body");
  const scope = program.names.scopes.find(({ kind, from }) => kind === "class" && from === body?.from);
  for (const [name, binding] of scope?.names ?? []) {
    const definition = definitionAt(binding, Infinity);
    if (definition) found.set(name, definition);
  }
  body?.cursor().iterate((inner) => {
    if (inner.name !== "AssignStatement") return;
    const { node: statement } = inner;
    const target = statement.firstChild;
    const property = target?.name === "MemberExpression" ? target.getChild("PropertyName") : null;
    if (!property || target!.firstChild?.name !== "VariableName") return;
    if (program.text(target!.firstChild.from, target!.firstChild.to) !== "self") return;
    const name = program.text(property.from, property.to);
    const value = statement.lastChild!;
    if (!found.has(name))
      found.set(name, { from: property.from, to: property.to, origin: { kind: "value", node: value, path: [] } });
  });
  return found;
}

/** The parts of a list, without commas and brackets. */
export function elements(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling)
    if (!/^([()[\]{},:]|Comment|return|->)$/.test(child.name)) found.push(child);
  return found;
}

/** The alternatives of an annotation, or other parts that `sign` divides at the outermost level. */
function choices(text: string, sign = "|"): string[] {
  const found = [""];
  let depth = 0;
  for (const char of text) {
    if ("([{".includes(char)) depth++;
    else if (")]}".includes(char)) depth--;
    if (char === sign && depth === 0) found.push("");
    else found[found.length - 1] += char;
  }
  return found.map((part) => part.trim().replace(/^['"]|['"]$/g, ""));
}
