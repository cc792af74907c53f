/**
 * The names of a Python program: what binds each, in which scope, and where it is used. They are read off the syntax
 * tree, so they are known while one types, before anything has run.
 */
import type { SyntaxNode, Tree } from "@lezer/common";

export interface Range {
  from: number;
  to: number;
}

/** The source of a binding's value. `path` is the position in a tuple that is unpacked. */
export type Origin =
  | { kind: "import"; module: string }
  /** `from module import name`; the module of a relative import starts with a dot. */
  | { kind: "from"; module: string; name: string }
  | { kind: "function" | "class"; node: SyntaxNode }
  | { kind: "parameter"; node: SyntaxNode; annotation: SyntaxNode | null; index: number; star: "" | "*" | "**" }
  | { kind: "value"; node: SyntaxNode; path: number[] }
  | { kind: "annotated"; annotation: SyntaxNode; node: SyntaxNode | null }
  | { kind: "item"; node: SyntaxNode; path: number[] }
  | { kind: "context"; node: SyntaxNode }
  | { kind: "exception"; node: SyntaxNode | null }
  | { kind: "other" };

export interface Definition extends Range {
  origin: Origin;
}

export interface Binding {
  name: string;
  scope: Scope;
  /** Where it is bound, in the order of the text. Imports of `a.b` bind `a` at its first part. */
  definitions: Definition[];
  uses: Range[];
}

export interface Scope extends Range {
  kind: "module" | "class" | "function" | "comprehension";
  parent: Scope | null;
  names: Map<string, Binding>;
  /** Names that `global` or `nonlocal` sends elsewhere. */
  elsewhere: Map<string, "global" | "nonlocal">;
}

/** A use of a name that nothing in this program binds. */
export interface Free extends Range {
  name: string;
  /** Bound later in the same body, when this line has run already. */
  early: boolean;
}

export interface Names {
  module: Scope;
  scopes: Scope[];
  free: Free[];
  /** Modules of `from module import *`. */
  stars: string[];
  /** Names in statements that can't be read to their end: they may be bound there. */
  doubtful: Set<string>;
}

interface Use extends Range {
  name: string;
  scope: Scope;
  /** Evaluated only on demand: annotations, as of Python 3.14. */
  deferred: boolean;
}

/** Analyses a program. */
export function namesOf(tree: Tree, text: (from: number, to: number) => string): Names {
  return new Reader(text).read(tree.topNode);
}

class Reader {
  private readonly scopes: Scope[] = [];
  private readonly uses: Use[] = [];
  private readonly broken: Range[] = [];
  private readonly loops: Range[] = [];
  private readonly stars: string[] = [];
  /** Names whose absence the program expects: it catches NameError around them. */
  private expected = 0;
  private readonly forgiven = new Set<number>();
  private deferred = 0;

  constructor(private readonly text: (from: number, to: number) => string) {}

  read(top: SyntaxNode): Names {
    const module = this.enter("module", top, null);
    for (let node = top.firstChild; node; node = node.nextSibling) if (hasError(node)) this.broken.push(node);
    this.children(top, module);
    const free = this.resolve();
    const doubtful = new Set<string>();
    for (const { from, to } of this.broken)
      for (const [name] of this.text(from, to).matchAll(/[\p{L}_][\p{L}\p{N}_]*/gu)) doubtful.add(name);
    return { module, scopes: this.scopes, free, stars: this.stars, doubtful };
  }

  private enter(kind: Scope["kind"], { from, to }: Range, parent: Scope | null): Scope {
    const scope: Scope = { kind, from, to, parent, names: new Map(), elsewhere: new Map() };
    this.scopes.push(scope);
    return scope;
  }

  private at({ from, to }: Range): string {
    return this.text(from, to);
  }

  // What binds names

  private bind(node: Range, origin: Origin, scope: Scope): void {
    const name = this.at(node);
    const place = this.owner(name, scope);
    const definition = { from: node.from, to: node.to, origin };
    const known = place.names.get(name);
    if (known) known.definitions.push(definition);
    else place.names.set(name, { name, scope: place, definitions: [definition], uses: [] });
  }

  /** The scope whose name a binding in `scope` is. */
  private owner(name: string, scope: Scope): Scope {
    const where = scope.elsewhere.get(name);
    if (where === undefined) return scope;
    let outer = scope.parent;
    while (outer?.parent && (where === "global" || outer.kind !== "function" || !outer.names.has(name)))
      outer = outer.parent;
    return outer ?? scope;
  }

  /** Binds the names to the left of `=`, or after `for` or `as`; reads the names inside indices and before dots. */
  private target(node: SyntaxNode, origin: (path: number[]) => Origin, scope: Scope, path: number[] = []): void {
    switch (node.name) {
      case "VariableName":
        return this.bind(node, origin(path), scope);
      case "TupleExpression":
      case "ArrayExpression":
        return this.targets(
          list(node).filter((child) => !/^[([\])]$/.test(child.name)),
          origin,
          scope,
          path,
        );
      case "ParenthesizedExpression":
        for (const child of list(node)) if (!/^[()]$/.test(child.name)) this.target(child, origin, scope, path);
        return;
      case "⚠":
      case "*":
        return;
      default:
        return this.visit(node, scope);
    }
  }

  /** The targets between commas: one alone is bound to the value itself. */
  private targets(nodes: SyntaxNode[], origin: (path: number[]) => Origin, scope: Scope, path: number[]): void {
    let index = 0;
    let starred = false;
    const unpacked = path.length > 0 || nodes.some((node) => node.name === "," || node.name === "*");
    const inside = unpacked || nodes[0]?.parent?.name === "ArrayExpression";
    for (const node of nodes) {
      if (node.name === "*") starred = true;
      else if (node.name === ",") index++;
      else if (!starred) this.target(node, origin, scope, inside ? [...path, index] : path);
      else this.target(node, () => ({ kind: "other" }), scope);
    }
  }

  // The statements and expressions that do more than hold others

  private children(node: SyntaxNode, scope: Scope): void {
    for (let child = node.firstChild; child; child = child.nextSibling) this.visit(child, scope);
  }

  private visit(node: SyntaxNode, scope: Scope): void {
    switch (node.name) {
      case "VariableName":
        this.use(node, scope);
        return;
      case "TypeDef":
        this.deferred++;
        this.children(node, scope);
        this.deferred--;
        return;
      case "AssignStatement":
        return this.assignment(node, scope);
      case "UpdateStatement": {
        const [first, ...rest] = list(node);
        if (first?.name === "VariableName") {
          this.use(first, scope);
          this.bind(first, { kind: "other" }, scope);
        } else if (first) this.visit(first, scope);
        return rest.forEach((child) => this.visit(child, scope));
      }
      case "NamedExpression":
        return this.walrus(list(node), scope);
      case "ArgList":
        return this.callArguments(node, scope);
      case "ImportStatement":
        return this.imports(node, scope);
      case "FunctionDefinition":
        return this.functionDefinition(node, scope);
      case "LambdaExpression":
        return this.lambda(node, scope);
      case "ClassDefinition":
        return this.classDefinition(node, scope);
      case "ForStatement":
        this.loops.push(node);
        return this.loop(list(node), scope, scope);
      case "ComprehensionExpression":
      case "ArrayComprehensionExpression":
      case "SetComprehensionExpression":
      case "DictionaryComprehensionExpression":
        return this.comprehension(node, list(node), scope);
      case "WithStatement":
        return this.contexts(node, scope);
      case "TryStatement":
        return this.attempts(node, scope);
      case "ScopeStatement": {
        const where = node.firstChild?.name === "global" ? "global" : "nonlocal";
        for (const name of node.getChildren("VariableName")) {
          scope.elsewhere.set(this.at(name), where);
          const place = this.owner(this.at(name), scope);
          if (where === "global" && !place.names.has(this.at(name)))
            place.names.set(this.at(name), { name: this.at(name), scope: place, definitions: [], uses: [] });
          this.use(name, scope);
        }
        return;
      }
      case "TypeDefinition": {
        const name = node.getChild("VariableName");
        if (name) this.bind(name, { kind: "other" }, scope);
        const inner = this.enter("function", node, scope);
        for (const child of list(node)) if (child.from !== name?.from) this.typeParameters(child, inner);
        return;
      }
      case "Decorator":
        for (const child of list(node)) if (child.prevSibling?.name !== ".") this.visit(child, scope);
        return;
      case "WhileStatement":
        this.loops.push(node);
        return this.children(node, scope);
      case "CapturePattern":
        return this.bind(node, { kind: "other" }, scope);
      case "AsPattern":
      case "StarPattern":
        for (const child of list(node))
          if (child.name === "VariableName") this.bind(child, { kind: "other" }, scope);
          else this.visit(child, scope);
        return;
      case "KeywordPattern":
        return list(node)
          .slice(1)
          .forEach((child) => this.visit(child, scope));
      default:
        return this.children(node, scope);
    }
  }

  private use(node: Range, scope: Scope): void {
    if (this.expected > 0) this.forgiven.add(node.from);
    this.uses.push({ name: this.at(node), scope, from: node.from, to: node.to, deferred: this.deferred > 0 });
  }

  private assignment(node: SyntaxNode, scope: Scope): void {
    const groups: SyntaxNode[][] = [[]];
    let annotation: SyntaxNode | null = null;
    for (const child of list(node)) {
      if (child.name === "AssignOp") groups.push([]);
      else if (child.name === "TypeDef") annotation = child;
      else groups[groups.length - 1]!.push(child);
    }
    const value = groups.length > 1 ? groups.pop()! : [];
    value.forEach((child) => this.visit(child, scope));
    if (annotation) this.visit(annotation, scope);
    const single = value.length === 1 ? value[0]! : null;
    for (const group of groups)
      this.targets(
        group,
        (path) => {
          if (annotation && path.length === 0) return { kind: "annotated", annotation, node: single };
          if (single) return { kind: "value", node: single, path };
          const item = value.filter((child) => child.name !== ",")[path[0] ?? -1];
          return item ? { kind: "value", node: item, path: path.slice(1) } : { kind: "other" };
        },
        scope,
        [],
      );
  }

  private walrus([name, , value]: SyntaxNode[], scope: Scope): void {
    if (value) this.visit(value, scope);
    let place = scope;
    while (place.kind === "comprehension" && place.parent) place = place.parent;
    if (name?.name === "VariableName")
      this.bind(name, value ? { kind: "value", node: value, path: [] } : { kind: "other" }, place);
  }

  private callArguments(node: SyntaxNode, scope: Scope): void {
    const parts = list(node);
    if (parts.some((part) => part.name === "for")) return this.comprehension(node, parts, scope);
    parts.forEach((part, i) => {
      const sign = parts[i + 1];
      const named = part.name === "VariableName" && sign?.name === "AssignOp";
      if (named && this.at(sign) === ":=") this.walrus(parts.slice(i, i + 3), scope);
      else if (!named && !(parts[i - 1]?.name === "AssignOp" && this.at(parts[i - 1]!) === ":="))
        this.visit(part, scope);
    });
  }

  private imports(node: SyntaxNode, scope: Scope): void {
    const parts = list(node).filter((part) => !/^[(),]$/.test(part.name) || part.name === ",");
    const start = parts.findIndex((part) => part.name === "import");
    if (start < 0) return;
    const from = parts[0]?.name === "from";
    const module = from
      ? parts
          .slice(1, start)
          .map((part) => this.at(part))
          .join("")
      : "";
    if (from && parts[start + 1]?.name === "*") return void this.stars.push(module);
    for (const group of split(parts.slice(start + 1))) {
      const as = group.findIndex((part) => part.name === "as");
      const names = (as < 0 ? group : group.slice(0, as)).filter((part) => part.name === "VariableName");
      const first = names[0];
      const bound = as < 0 ? first : group[as + 1];
      if (!first || bound?.name !== "VariableName") continue;
      const dotted = names.map((part) => this.at(part)).join(".");
      if (from) this.bind(bound, { kind: "from", module, name: dotted }, scope);
      else this.bind(bound, { kind: "import", module: as < 0 ? this.at(first) : dotted }, scope);
    }
  }

  private functionDefinition(node: SyntaxNode, scope: Scope): void {
    const name = node.getChild("VariableName");
    const types = node.getChild("TypeParamList");
    const outer = types ? this.enter("function", node, scope) : scope;
    if (types) this.typeParameters(types, outer);
    const body = node.getChild("Body");
    const parameters = node.getChild("ParamList");
    const inner = this.enter("function", { from: parameters?.from ?? node.from, to: node.to }, outer);
    if (parameters) this.parameters(parameters, outer, inner);
    const returns = node.getChild("TypeDef");
    if (returns) this.visit(returns, outer);
    if (name) this.bind(name, { kind: "function", node }, scope);
    if (body) this.children(body, inner);
  }

  private typeParameters(node: SyntaxNode, scope: Scope): void {
    for (const parameter of node.name === "TypeParamList" ? node.getChildren("TypeParam") : []) {
      const name = parameter.getChild("VariableName");
      if (name) this.bind(name, { kind: "other" }, scope);
      const bound = parameter.getChild("TypeDef");
      if (bound) this.visit(bound, scope);
    }
    if (node.name !== "TypeParamList") this.visit(node, scope);
  }

  /** Binds parameters inside; reads their defaults and annotations outside. */
  private parameters(node: SyntaxNode, outer: Scope, inner: Scope): void {
    split(list(node).filter((part) => !/^[()]$/.test(part.name))).forEach((group, index) => {
      const star = group[0]?.name === "*" || group[0]?.name === "**" ? group[0].name : "";
      const name = group.find((part) => part.name === "VariableName");
      const annotation = group.find((part) => part.name === "TypeDef") ?? null;
      if (name) this.bind(name, { kind: "parameter", node, annotation, index, star }, inner);
      for (const part of group) if (part !== name && part.name !== star) this.visit(part, outer);
    });
  }

  private lambda(node: SyntaxNode, scope: Scope): void {
    const inner = this.enter("function", node, scope);
    for (const child of list(node))
      if (child.name === "ParamList") this.parameters(child, scope, inner);
      else this.visit(child, inner);
  }

  private classDefinition(node: SyntaxNode, scope: Scope): void {
    const name = node.getChild("VariableName");
    const types = node.getChild("TypeParamList");
    const outer = types ? this.enter("function", node, scope) : scope;
    if (types) this.typeParameters(types, outer);
    const bases = node.getChild("ArgList");
    if (bases) this.visit(bases, outer);
    const body = node.getChild("Body");
    if (body) this.children(body, this.enter("class", body, outer));
    if (name) this.bind(name, { kind: "class", node }, scope);
  }

  /** `for targets in values …`: values are read in `outside`, targets bound in `inside`, as is what follows. */
  private loop(parts: SyntaxNode[], outside: Scope, inside: Scope): void {
    const start = parts.findIndex((part) => part.name === "for");
    const end = parts.findIndex((part) => part.name === "in");
    const targets = parts.slice(start + 1, end < 0 ? parts.length : end);
    const values = end < 0 ? [] : parts.slice(end + 1);
    const value = values[0] && values[0].name !== "⚠" ? values[0] : null;
    if (value) this.visit(value, outside);
    this.targets(targets, (path) => (value ? { kind: "item", node: value, path } : { kind: "other" }), inside, []);
    values.slice(1).forEach((part) => this.visit(part, inside));
  }

  private comprehension(node: SyntaxNode, parts: SyntaxNode[], scope: Scope): void {
    const starts = parts.flatMap((part, i) => (part.name === "for" ? [i] : []));
    const inner = this.enter("comprehension", node, scope);
    this.loops.push(node); // its elements are read after its conditions
    starts.forEach((start, i) => {
      this.loop(parts.slice(start, starts[i + 1] ?? parts.length), i === 0 ? scope : inner, inner);
    });
    parts.slice(0, starts[0] ?? parts.length).forEach((part) => this.visit(part, inner));
  }

  private contexts(node: SyntaxNode, scope: Scope): void {
    let value: SyntaxNode | null = null;
    for (let child = node.firstChild; child; child = child.nextSibling) {
      const bound = child.prevSibling?.name === "as";
      if (bound) {
        const origin: Origin = value ? { kind: "context", node: value } : { kind: "other" };
        this.target(child, () => origin, scope);
      } else this.visit(child, scope);
      value = child.name === "as" ? value : child;
    }
  }

  private attempts(node: SyntaxNode, scope: Scope): void {
    const catches = /\bexcept\s*(:|.*\bNameError\b)/.test(this.at(node));
    let first = true;
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (child.prevSibling?.name === "as" && child.name === "VariableName") {
        const type = child.prevSibling.prevSibling;
        this.bind(child, { kind: "exception", node: type?.name === "VariableName" ? type : null }, scope);
      } else if (child.name === "Body" && first) {
        first = false;
        this.expected += catches ? 1 : 0;
        this.visit(child, scope);
        this.expected -= catches ? 1 : 0;
      } else this.visit(child, scope);
    }
  }

  // Uses

  /** Connects each use with its binding; returns the uses without one. */
  private resolve(): Free[] {
    const free: Free[] = [];
    for (const use of this.uses) {
      let found = lookUp(use.name, use.scope);
      let early = !use.deferred && found !== null && this.isEarly(use, found);
      // Until the body of a class binds a name, the name is that of an outer scope.
      const outside = early && found?.scope.kind === "class" ? lookUp(use.name, found.scope.parent!) : null;
      if (outside) [found, early] = [outside, this.isEarly(use, outside)];
      found?.uses.push({ from: use.from, to: use.to });
      if ((found && found.definitions.length > 0 && !early) || this.forgiven.has(use.from)) continue;
      if (this.broken.some(({ from, to }) => from <= use.from && use.to <= to)) continue;
      free.push({ name: use.name, from: use.from, to: use.to, early });
    }
    return free.sort((a, b) => a.from - b.from);
  }

  private isEarly(use: Use, { scope, definitions: [first] }: Binding): boolean {
    return (
      first !== undefined &&
      first.from >= use.from &&
      sameBody(use.scope, scope) &&
      !this.loops.some(({ from, to }) => from <= use.from && first.to <= to)
    );
  }
}

/** The binding that a name in a scope means: classes are seen from their own body alone. */
export function lookUp(name: string, scope: Scope): Binding | null {
  if (scope.elsewhere.get(name) === "global") {
    let top = scope;
    while (top.parent) top = top.parent;
    return top.names.get(name) ?? null;
  }
  for (let place: Scope | null = scope; place; place = place.parent) {
    if (place.kind === "class" && place !== scope) continue;
    const found = place.names.get(name);
    if (found && !place.elsewhere.has(name)) return found;
  }
  return null;
}

/** Whether code of the scope runs as part of the other's body: module and class bodies, and comprehensions in them. */
function sameBody(scope: Scope, body: Scope): boolean {
  if (body.kind !== "module" && body.kind !== "class") return false;
  let place: Scope | null = scope;
  while (place && place !== body && place.kind !== "function") place = place.parent;
  return place === body;
}

/** The innermost scope around a place. */
export function scopeAt(names: Names, pos: number): Scope {
  let found = names.module;
  for (const scope of names.scopes) {
    const around = scope.from <= pos && pos <= scope.to && scope !== names.module;
    if (around && scope.to - scope.from <= found.to - found.from) found = scope;
  }
  return found;
}

/** The binding with a definition or use at a position. */
export function bindingAt(names: Names, pos: number): Binding | null {
  const touches = ({ from, to }: Range) => from <= pos && pos <= to;
  for (const scope of names.scopes)
    for (const binding of scope.names.values())
      if (binding.definitions.some(touches) || binding.uses.some(touches)) return binding;
  return null;
}

/** The bindings that are visible at a position, inner ones first. */
export function visibleAt(names: Names, pos: number): Map<string, Binding> {
  const found = new Map<string, Binding>();
  const start = scopeAt(names, pos);
  for (let scope: Scope | null = start; scope; scope = scope.parent) {
    if (scope.kind === "class" && scope !== start) continue;
    for (const [name, binding] of scope.names) if (!found.has(name)) found.set(name, binding);
  }
  return found;
}

function list(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) if (child.name !== "Comment") found.push(child);
  return found;
}

/** The expressions between commas. */
function split(nodes: SyntaxNode[]): SyntaxNode[][] {
  const groups: SyntaxNode[][] = [[]];
  for (const node of nodes)
    if (node.name === ",") groups.push([]);
    else groups[groups.length - 1]!.push(node);
  return groups.filter((group) => group.length > 0);
}

function hasError(node: SyntaxNode): boolean {
  let found = false;
  node.cursor().iterate((inner) => {
    found ||= inner.type.isError;
    return !found;
  });
  return found;
}
