/** Completion: from the program's own names, the index of modules, and the values in Python after a run. */
import {
  autocompletion,
  closeCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  selectedCompletion,
} from "@codemirror/autocomplete";
import { Prec, type Extension } from "@codemirror/state";
import { keymap, type EditorView, type Rect } from "@codemirror/view";
import type { SyntaxNode } from "@lezer/common";
import { descriptionElement, type Description } from "./describe.js";
import { attributesOf, definitionAt, elements, type Inference, type Value } from "./infer.js";
import {
  describe,
  describeEntry,
  dotted,
  isGlobal,
  knowledge,
  pathOf,
  placeAt,
  type Knowledge,
  type Step,
} from "./knowledge.js";
import type { Entry, Item } from "./language.js";
import { visibleAt } from "./scopes.js";
import { parseSignature } from "./signature.js";
import { RESERVED } from "./words.js";
import { calleeOf, callAround, signatureOf } from "./calls.js";

const WORD = /[\p{L}_][\p{L}\p{N}_]*$/u;
const VALID = /^[\p{L}\p{N}_]*$/u;

/** The words of the language, of which three are words in some places alone. */
const KEYWORDS = [...RESERVED, "match", "case", "type"];

/** A name that Python itself reported. */
interface Live {
  name: string;
  kind: string;
  signature?: string;
  value?: string;
}

const ICONS: Record<string, string> = {
  module: "namespace",
  function: "function",
  method: "method",
  class: "class",
  property: "property",
  value: "constant",
  variable: "variable",
  parameter: "variable",
};

function option(name: string, kind: string, detail: string, more: Partial<Completion>): Completion {
  return { label: name, type: ICONS[kind] ?? "variable", ...(detail ? { detail } : {}), ...more };
}

const shown = (description: Description | null) => (description ? descriptionElement(description) : null);

function entryOption(name: string, entry: Entry, boost = 0): Completion {
  const detail = entry.signature ? shorten(entry.signature) : (entry.value ?? entry.returns ?? entry.type ?? "");
  return option(name, entry.kind, detail, { boost, info: () => shown(describeEntry(entry, name)) });
}

function itemOption([name, item]: [string, Item], inference: Inference): Completion {
  if (item.kind === "entry") return entryOption(name, item.entry);
  const value: Value = { kind: "module", name: item.name, known: true };
  return option(name, "module", "", { info: () => shown(describe(value, name, inference)) });
}

/** The parameters only, without types: short enough to be shown beside a name. */
function shorten(signature: string): string {
  const names = parseSignature(signature).parameters.map(
    ({ name, star, optional }) => star + name + (optional && !star ? "=" : ""),
  );
  const text = names.join(", ");
  return `(${text.length > 44 ? `${text.slice(0, 42).replace(/,[^,]*$/, "")}, …` : text})`;
}

function liveOption(live: Live, path: Step[], of: Knowledge, boost: number): Completion {
  const detail = live.signature ? shorten(live.signature) : (live.value ?? "");
  const step: Step = path.length ? { attr: live.name } : { name: live.name };
  const info = async () => shown(await of.ask<Description>("hover", { path: [...path, step] }));
  return option(live.name, live.kind, detail, { boost, info });
}

async function liveNames(of: Knowledge, path: Step[]): Promise<Live[]> {
  return (await of.ask<{ names: Live[] }>("complete", { path }))?.names ?? [];
}

/** Names after a dot. */
async function members(
  value: Value | null,
  path: Step[] | null,
  of: Knowledge,
  inference: Inference,
): Promise<Completion[]> {
  const index = inference.index;
  const entries = (entry: Entry) => index!.membersOf(entry).map(([name, inner]) => entryOption(name, inner));
  switch (value?.kind) {
    case "module":
      if (value.known) return index!.namesOf(value.name).map((item) => itemOption(item, inference));
      break;
    case "instance":
      return entries(value.of);
    case "entry": {
      const type = value.entry.type ? index?.typeCalled(value.entry.type) : null;
      if (value.entry.kind === "class") return entries(value.entry);
      if (type) return entries(type);
      break;
    }
    case "class":
    case "object":
      return [...attributesOf(value)].map(([name, definition]) => {
        const found = inference.defined(definition, value.program);
        const described = describe(found, name, inference);
        const kind = found?.kind === "function" ? "method" : "property";
        return option(name, kind, described?.signature || described?.value || "", { info: () => shown(described) });
      });
  }
  return path ? (await liveNames(of, path)).map((live) => liveOption(live, path, of, 0)) : [];
}

/** Names without a dot before them. */
async function names(pos: number, of: Knowledge, inference: Inference): Promise<Completion[]> {
  const { program, index } = inference;
  const found = new Map<string, Completion>();
  const add = (made: Completion) => {
    if (!found.has(made.label)) found.set(made.label, made);
  };
  callOptions(pos, inference).forEach(add);
  const bound = (
    binding: ReturnType<typeof visibleAt> extends Map<string, infer B> ? B : never,
    at: typeof program,
    boost: number,
  ) => {
    const definition = definitionAt(binding, at === program ? pos : Infinity);
    // A name that is only being typed here binds nothing yet.
    if (
      !definition ||
      (at === program && binding.definitions.every(({ to }) => to === pos) && binding.uses.length === 0)
    )
      return;
    const value = inference.defined(definition, at);
    const described = describe(value, binding.name, inference);
    const origin = definition.origin.kind;
    const kind =
      value?.kind === "module" ? "module" : value?.kind === "entry" ? value.entry.kind : (value?.kind ?? origin);
    const detail = described?.signature ? shorten(described.signature) : (described?.value ?? "");
    add(
      option(binding.name, kind === "object" || kind === "instance" ? "variable" : kind, detail, {
        boost,
        info: () => shown(described),
      }),
    );
  };
  for (const binding of visibleAt(program.names, pos).values())
    bound(binding, program, binding.scope.kind === "module" ? 15 : 20);
  for (const earlier of inference.programs.slice(0, -1).reverse())
    for (const binding of earlier.names.module.names.values()) bound(binding, earlier, 10);
  for (const name of of.surroundings.definedElsewhere?.() ?? []) add(option(name, "variable", "", { boost: 10 }));
  for (const star of program.names.stars) {
    const module = index?.moduleCalled(star);
    if (module) index!.namesOf(module).forEach((item) => add(itemOption(item, inference)));
  }
  for (const [name, entry] of index?.builtins() ?? []) add(entryOption(name, entry, -10));
  for (const word of KEYWORDS) add({ label: word, type: "keyword", boost: -5 });
  return [...found.values()];
}

/** Keyword arguments of the call around a place that it does not have yet. */
function callOptions(pos: number, inference: Inference): Completion[] {
  const { program } = inference;
  const call = callAround(program.tree, pos);
  const signature = call ? signatureOf(calleeOf(call, inference), inference) : null;
  if (!call || !signature) return [];
  const here = program.tree.resolveInner(pos, -1);
  if (here.prevSibling?.name === "AssignOp" || here.name === "AssignOp") return [];
  const args = elements(call.getChild("ArgList")!);
  const given = new Set(args.map(({ from, to }) => program.text(from, to)));
  return signature.parsed.parameters
    .filter(({ keyword, name }) => keyword && !given.has(name))
    .map((parameter) =>
      option(`${parameter.name}=`, "property", parameter.text.slice(parameter.name.length).replace(/^:\s*/, ""), {
        boost: 30,
        type: "property",
      }),
    );
}

function importOptions(
  statement: SyntaxNode,
  pos: number,
  inference: Inference,
): { from: number; options: Completion[] } | null {
  const { program, index } = inference;
  const before = program.text(statement.from, pos);
  const word = WORD.exec(before)?.[0] ?? "";
  const at = pos - word.length;
  const modules = (prefix: string) =>
    (index?.modulesAfter(prefix) ?? []).map((name) => {
      const module = index!.moduleCalled(prefix + name);
      const info = () =>
        shown(module ? describe({ kind: "module", name: module, known: true }, name, inference) : null);
      return option(name, "module", "", { info });
    });
  const from = /^from\s+([\w.]+)\s+import\b/.exec(before);
  if (from) {
    const module = index?.moduleCalled(from[1]!);
    return module ? { from: at, options: index!.namesOf(module).map((item) => itemOption(item, inference)) } : null;
  }
  if (/\bas\s+\w*$/.test(before)) return null;
  const path = /(?:^from\s+|^import\s+(?:.*,\s*)?)([\w.]*)$/s.exec(before);
  return path ? { from: at, options: modules(path[1]!.slice(0, path[1]!.length - word.length)) } : null;
}

/** Keys of a dictionary that Python holds. */
async function keys(
  node: SyntaxNode,
  pos: number,
  of: Knowledge,
  inference: Inference,
): Promise<CompletionResult | null> {
  const { program } = inference;
  const object =
    node.parent?.name === "MemberExpression" && node.prevSibling?.name === "[" ? node.parent.firstChild : null;
  const path = object && pathOf(object, program);
  if (!path) return null;
  const found = await of.ask<{ keys?: string[] }>("complete", { path });
  const quote = program.text(node.from, node.from + 1);
  const closed = node.to > node.from + 1 && program.text(node.to - 1, node.to) === quote;
  const options = (found?.keys ?? []).map((key) => ({ label: key, type: "property" }));
  return options.length ? { from: node.from + 1, to: closed ? node.to - 1 : pos, options, validFor: /^[^'"]*$/ } : null;
}

async function source(context: CompletionContext): Promise<CompletionResult | null> {
  const { state, pos } = context;
  const of = state.facet(knowledge);
  await of.indexSoon();
  if (context.aborted) return null;
  const inference = of.inference(state);
  const { program } = inference;
  const node = program.tree.resolveInner(pos, -1);
  if (node.name === "Comment" || node.name === "Number") return null;
  if (node.name === "String") return keys(node, pos, of, inference);
  if (node.name === "FormatString" || node.name === "Escape" || node.name === "FormatConversion") return null;
  const before = program.text(Math.max(0, pos - 200), pos);
  const word = WORD.exec(before)?.[0] ?? "";
  const from = pos - word.length;
  for (let outer: SyntaxNode | null = node; outer; outer = outer.parent)
    if (outer.name === "ImportStatement") {
      const found = importOptions(outer, pos, inference);
      return found && { ...found, validFor: VALID };
    }
  const dot = /\.\s*$/.test(program.text(Math.max(0, from - 20), from));
  if (dot) {
    const options = await afterDot(from, of, inference);
    return options.length ? { from, options: tidy(options, word), validFor: VALID } : null;
  }
  if (word === "" && !context.explicit) return null;
  if (defines(node)) return null;
  const options = await names(pos, of, inference);
  if (inference.programs.length > 0 && word.length > 1 && !options.some(({ label }) => label.startsWith(word))) {
    // Names that only a run can know: of `exec`, of files, of star imports.
    const known = new Set(options.map(({ label }) => label));
    for (const live of await liveNames(of, [])) if (!known.has(live.name)) options.push(liveOption(live, [], of, 5));
  }
  return { from, options: tidy(options, word), validFor: VALID };
}

/** Names with a leading underscore are offered only after an underscore was typed. */
function tidy(options: Completion[], word: string): Completion[] {
  return word.startsWith("_") ? options : options.filter(({ label }) => !label.startsWith("_"));
}

/** Whether a name is being given to something new: after `def`, `class`, `as`, and as a parameter. */
function defines(node: SyntaxNode): boolean {
  if (node.name === "ParamList") return true;
  if (node.name !== "VariableName") return false;
  const before = node.prevSibling?.name ?? "";
  if (/^(def|class|as)$/.test(before)) return true;
  return node.parent?.name === "ParamList" && before !== "AssignOp";
}

async function afterDot(from: number, of: Knowledge, inference: Inference): Promise<Completion[]> {
  const { program } = inference;
  const dot = from - 1 - /\s*$/.exec(program.text(0, from))![0].length;
  const node = program.tree.resolveInner(dot + 1, -1);
  const member =
    node.name === "MemberExpression" ? node : node.parent?.name === "MemberExpression" ? node.parent : null;
  if (member?.firstChild && member.firstChild.to <= dot) {
    const object = member.firstChild;
    if (object.name === "Number") return [];
    const place = object.name === "VariableName" ? placeAt(inference, object.from) : null;
    const path = place && !isGlobal(place) ? null : pathOf(object, program);
    return members(inference.valueOf(object), path, of, inference);
  }
  // In decorators, and where the rest of the line confuses the parser.
  const text = /[\p{L}_][\p{L}\p{N}_.]*$/u.exec(program.text(Math.max(0, dot - 200), dot))?.[0] ?? "";
  if (text === "") return [];
  const steps = text.split(".").map((name, i): Step => (i === 0 ? { name } : { attr: name }));
  return members(dotted(text, dot, inference), steps, of, inference);
}

/** Beside the list where there is room, or else below or above it: never over it. */
function placeInfo(_view: EditorView, list: Rect, option: Rect, info: Rect, space: Rect): { style: string } {
  const height = info.bottom - info.top;
  const width = Math.min(560, space.right - space.left - 16);
  const right = space.right - list.right;
  const left = list.left - space.left;
  if (Math.max(left, right) >= 300) {
    const beside = Math.min(width, Math.max(left, right) - 8);
    const top = Math.max(space.top, Math.min(option.top, space.bottom - height)) - list.top;
    return {
      style: `${right >= left ? "left" : "right"}: 100%; top: ${top}px; width: max-content; max-width: ${beside}px`,
    };
  }
  const shift = Math.min(0, space.right - 8 - (list.left + width));
  const below = space.bottom - list.bottom >= Math.min(height, list.top - space.top);
  return { style: `left: ${shift}px; ${below ? "top" : "bottom"}: 100%; width: ${width}px; max-width: none` };
}

/** Enter after a word that is whole already ends the line. */
function endLine(view: EditorView): boolean {
  const label = selectedCompletion(view.state)?.label;
  const { head } = view.state.selection.main;
  const before = view.state.sliceDoc(Math.max(0, head - 200), head);
  if (label !== undefined && WORD.exec(before)?.[0] === label) closeCompletion(view);
  return false;
}

export function completion(): Extension {
  const list = autocompletion({
    // At the end of a line, Enter would accept a name that merely contains the typed letters.
    filterStrict: true,
    override: [source],
    interactionDelay: 40,
    maxRenderedOptions: 80,
    positionInfo: placeInfo,
  });
  return [Prec.highest(keymap.of([{ key: "Enter", run: endLine }])), list];
}
