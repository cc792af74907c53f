/** The information of one editor: its program and those of the cells before, the index, and Python's answers. */
import { ensureSyntaxTree } from "@codemirror/language";
import { pythonLanguage } from "@codemirror/lang-python";
import { Facet, type EditorState, type Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import type { SyntaxNode } from "@lezer/common";
import type { Description } from "./describe.js";
import { definitionAt, elements, Inference, type Program, type Value } from "./infer.js";
import type { Entry, LanguageIndex } from "./language.js";
import { bindingAt, lookUp, namesOf, scopeAt, type Binding } from "./scopes.js";

export type Topic = "complete" | "hover" | "signature" | "definition" | "shapes";

export interface Asker {
  /** Null where Python is busy or not ready. */
  ask(topic: Topic, about: unknown): Promise<unknown | null>;
}

export type IndexSource = () => Promise<LanguageIndex>;

/** The parts of the page that the extensions of an editor use. */
export interface Surroundings {
  asker: Asker | null;
  index: IndexSource;
  /** Names that earlier cells define. */
  definedElsewhere?: () => Iterable<string>;
  /** The editors of the document's code cells, in order, for questions across cells. */
  cells?: () => readonly { view: EditorView }[];
  openSource?(module: string, line: number, text: string): void;
}

/** How Python finds a value: a name, then attributes and constant keys. */
export type Step = { name: string } | { attr: string } | { item: string | number };

/** The name at a position. */
export interface Place {
  name: string;
  from: number;
  to: number;
  node: SyntaxNode;
  value: Value | null;
  entry: Entry | null;
  /** For a name: its binding, and the program that has it. */
  binding: Binding | null;
  program: Program | null;
  path: Step[] | null;
  /** The function that a keyword argument's name belongs to. */
  callee: Value | null;
}

const programs = new WeakMap<Text, Program>();

/** The program that an editor holds, analysed once for each text. */
export function programOf(state: EditorState): Program {
  const known = programs.get(state.doc);
  if (known) return known;
  const text = state.doc.toString();
  const tree = ensureSyntaxTree(state, text.length, 50) ?? pythonLanguage.parser.parse(text);
  const slice = (from: number, to: number) => text.slice(from, to);
  const program = { tree, names: namesOf(tree, slice), text: slice };
  programs.set(state.doc, program);
  return program;
}

export class Knowledge {
  /** The index once it is here. */
  known: LanguageIndex | null = null;
  private loading: Promise<LanguageIndex | null> | null = null;

  constructor(readonly surroundings: Surroundings) {}

  /**
   * The index; null if it is not available now: the editor works without it, and the next question requests it
   * again.
   */
  index(): Promise<LanguageIndex | null> {
    this.loading ??= this.surroundings.index().then(
      (index) => (this.known = index),
      () => (this.loading = null),
    );
    return this.loading;
  }

  /** As `index`, but without waiting long for a slow network. */
  indexSoon(): Promise<LanguageIndex | null> {
    const patience = new Promise<null>((resolve) => setTimeout(resolve, 1500, null));
    return this.known ? Promise.resolve(this.known) : Promise.race([this.index(), patience]);
  }

  async ask<T>(topic: Topic, about: unknown): Promise<T | null> {
    try {
      return ((await this.surroundings.asker?.ask(topic, about)) as T | null | undefined) ?? null;
    } catch {
      return null; // Python was replaced while it was asked
    }
  }

  /** The editors before the one with this state, in order. */
  cellsBefore(state: EditorState): EditorView[] {
    const views = (this.surroundings.cells?.() ?? []).map(({ view }) => view);
    const own = views.findIndex((view) => view.state.doc === state.doc);
    return own < 0 ? [] : views.slice(0, own);
  }

  cellsAfter(state: EditorState): EditorView[] {
    const views = (this.surroundings.cells?.() ?? []).map(({ view }) => view);
    const own = views.findIndex((view) => view.state.doc === state.doc);
    return own < 0 ? [] : views.slice(own + 1);
  }

  inference(state: EditorState): Inference {
    const before = this.cellsBefore(state).map((view) => programOf(view.state));
    return new Inference(this.known, [...before, programOf(state)]);
  }
}

export const knowledge = Facet.define<Knowledge, Knowledge>({ combine: ([first]) => first! });

/** The name at a position, and its meaning. */
export function placeAt(inference: Inference, pos: number): Place | null {
  const { program } = inference;
  const node = [1, -1]
    .map((side) => program.tree.resolveInner(pos, side as 1 | -1))
    .find(({ name }) => name === "VariableName" || name === "PropertyName");
  if (!node) return null;
  const name = program.text(node.from, node.to);
  const place = { name, from: node.from, to: node.to, node, entry: null, binding: null, program: null, callee: null };
  const of = (value: Value | null, more: Partial<Place> = {}): Place => ({
    ...place,
    value,
    entry: value?.kind === "entry" ? value.entry : null,
    path: pathOf(node, program),
    ...more,
  });
  const parent = node.parent;
  if (node.name === "PropertyName") {
    const object = inference.valueOf(parent?.firstChild ?? null);
    const value = inference.member(object, name);
    return of(value, { entry: inference.memberEntry(object, name), ...attribute(object, name, inference) });
  }
  if (parent?.name === "ImportStatement") return of(imported(node, parent, inference), { path: null });
  if (parent?.name === "ArgList" && node.nextSibling?.name === "AssignOp" && text(node.nextSibling, program) === "=") {
    const callee = inference.valueOf(parent.parent?.firstChild ?? null);
    return of(null, { callee, path: null });
  }
  if (parent?.name === "Decorator" && node.prevSibling?.name === ".")
    return of(dotted(program.text(node.parent!.firstChild!.to, node.to), node.from, inference));
  const own = bindingAt(program.names, node.from);
  const found = own?.definitions.length
    ? { binding: own, program }
    : inference.bindingFor(name, scopeAt(program.names, node.from));
  const definition = found && definitionAt(found.binding, found.program === program ? node.from : Infinity);
  const value = definition ? inference.defined(definition, found!.program) : inference.named(name, node.from);
  return of(value, { binding: found?.binding ?? own, program: found?.program ?? (own && program) });
}

/** The definition of an attribute of one's own class. */
function attribute(object: Value | null, name: string, inference: Inference): Partial<Place> {
  if (object?.kind !== "object" && object?.kind !== "class") return {};
  const value = inference.member(object, name);
  return value ? { value } : {};
}

const text = ({ from, to }: { from: number; to: number }, program: Program) => program.text(from, to);

/** The value of dotted names, as in decorators. */
export function dotted(names: string, pos: number, inference: Inference): Value | null {
  const [first = "", ...rest] = names.trim().split(".");
  let value = inference.named(first, pos);
  for (const name of rest) value = inference.member(value, name.trim());
  return value;
}

/** The meaning of a name in an import statement. */
function imported(node: SyntaxNode, statement: SyntaxNode, inference: Inference): Value | null {
  const { program, index } = inference;
  const before = program.text(statement.from, node.to);
  const path = /([\w.]+)$/.exec(before)?.[1] ?? "";
  const from = /^from\s+([\w.]+)\s+import\b/.exec(before)?.[1];
  const binding = bindingAt(program.names, node.from);
  const alias =
    node.prevSibling?.name === "as" && binding?.definitions.find((definition) => definition.from === node.from);
  if (alias) return inference.defined(alias, program);
  const known = (name: string): Value | null => {
    const module = index?.moduleCalled(name);
    return module ? { kind: "module", name: module, known: true } : null;
  };
  if (from === undefined) return known(path);
  const module = index?.moduleCalled(from);
  const item = module ? index!.find(module, path) : null;
  if (item?.kind === "entry") return item;
  return item ? { kind: "module", name: item.name, known: true } : known(`${from}.${path}`);
}

/** The steps to a value, if it can be found without calling anything. */
export function pathOf(node: SyntaxNode, program: Program): Step[] | null {
  if (node.name === "PropertyName") return node.parent ? pathOf(node.parent, program) : null;
  if (node.name === "VariableName") return [{ name: text(node, program) }];
  if (node.name !== "MemberExpression" || !node.firstChild) return null;
  const path = pathOf(node.firstChild, program);
  if (!path) return null;
  const property = node.getChild("PropertyName");
  if (property) return [...path, { attr: text(property, program) }];
  const keys = elements(node).slice(1);
  const key = keys.length === 1 ? keys[0]! : null;
  if (key?.name === "Number" && /^\d+$/.test(text(key, program)))
    return [...path, { item: Number(text(key, program)) }];
  const string = key?.name === "String" ? /^(['"])([^\\]*)\1$/.exec(text(key, program)) : null;
  if (string) return [...path, { item: string[2]! }];
  // A member that is being typed: the expression before the dot.
  return node.lastChild?.type.isError || node.lastChild?.name === "." ? path : null;
}

/** The information about a value under a name. */
export function describe(value: Value | null, name: string, inference: Inference): Description | null {
  switch (value?.kind) {
    case "module":
      return { name: value.name, kind: "module", signature: "", doc: inference.index?.docOf(value.name) ?? "" };
    case "entry":
      return describeEntry(value.entry, name);
    case "instance":
      return { name, kind: "", signature: "", doc: "", value: value.of.name };
    case "object": {
      const inner = describe({ ...value, kind: "class" }, name, inference);
      return { name, kind: "", signature: "", doc: "", value: inner?.name ?? "" };
    }
    case "function":
    case "class":
      return describeDefinition(value);
    case "wrapped": {
      const inner = describe(value.of, name, inference);
      return inner && { ...inner, name, kind: value.by.name };
    }
    case "tuple":
      return { name, kind: "", signature: "", doc: "", value: "tuple" };
    default:
      return null;
  }
}

export function describeEntry(entry: Entry, name: string): Description {
  const { kind, signature = "", doc = "", type, value, returns } = entry;
  const shown = value ?? type ?? returns;
  return { name, kind: kind === "value" ? "" : kind, signature, doc, ...(shown && !signature ? { value: shown } : {}) };
}

/** A function or class of the program. */
function describeDefinition({ node, program, kind }: Extract<Value, { kind: "function" | "class" }>): Description {
  const named = node.getChild("VariableName");
  const name = named ? text(named, program) : "lambda";
  const body = node.getChild("Body");
  const doc = docstringOf(body, program);
  if (kind === "class") {
    const init = body?.getChildren("FunctionDefinition").find((method) => {
      const called = method.getChild("VariableName");
      return called !== null && text(called, program) === "__init__";
    });
    const signature = init ? signatureText(init, program).replace(/^\(self(,\s*)?/, "(") : "";
    return { name, kind: "class", signature, doc };
  }
  return { name, kind: "function", signature: signatureText(node, program), doc };
}

function signatureText(node: SyntaxNode, program: Program): string {
  const parameters = node.getChild("ParamList");
  const inside = parameters ? text(parameters, program).replace(/\s*\n\s*/g, " ") : "";
  if (node.name === "LambdaExpression") return `(${inside})`;
  const returns = node.getChild("TypeDef");
  return (inside || "()") + (returns ? ` ${text(returns, program)}` : "");
}

function docstringOf(body: SyntaxNode | null, program: Program): string {
  const first = body?.getChild("ExpressionStatement");
  if (!first || first.prevSibling?.name !== ":") return "";
  const string = first.getChild("String");
  const raw = string ? /^[rRuU]?("""|'''|"|')([^]*)\1$/.exec(text(string, program))?.[2] : undefined;
  if (raw === undefined) return "";
  const lines = raw.split("\n");
  const margins = lines
    .slice(1)
    .filter((line) => line.trim())
    .map((line) => line.length - line.trimStart().length);
  const margin = margins.length ? Math.min(...margins) : 0;
  return [lines[0]!.trim(), ...lines.slice(1).map((line) => line.slice(margin))].join("\n").trim();
}

/** Whether the value that Python has under a name is the one meant here: not for a local name of a function. */
export function isGlobal({ binding }: Place): boolean {
  return binding === null || binding.scope.kind === "module" || lookUp(binding.name, binding.scope) === null;
}
