/** From a name to its definition (F12, Mod-click), and renaming it wherever it has the same meaning (F2). */
import { StateEffect, StateField, type Extension } from "@codemirror/state";
import { EditorView, keymap, showTooltip } from "@codemirror/view";
import { create } from "../elements.js";
import { definitionAt } from "./infer.js";
import { isGlobal, knowledge, placeAt, programOf, type Knowledge, type Place } from "./knowledge.js";
import type { LanguageIndex } from "./language.js";
import { say } from "./notes.js";
import { bindingAt, type Binding, type Range } from "./scopes.js";
import { RESERVED } from "./words.js";

const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u;

// Definitions

interface Source {
  module: string;
  line: number;
  text?: string;
}

/** The view that has a program's text: this one, or that of an earlier cell. */
function viewOf(view: EditorView, of: Knowledge, place: { program: Place["program"] }): EditorView {
  return [view, ...of.cellsBefore(view.state)].find(({ state }) => programOf(state) === place.program) ?? view;
}

function select(view: EditorView, { from, to }: Range): void {
  view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  view.focus();
}

/** Moves to the definition of the name at a position; says so if it is not known. */
async function follow(view: EditorView, pos: number): Promise<void> {
  const of = view.state.facet(knowledge);
  const { doc } = view.state;
  await of.indexSoon();
  if (view.state.doc !== doc) return;
  const inference = of.inference(view.state);
  const place = placeAt(inference, pos);
  if (!place) return;
  const { entry, value, binding, program, path } = place;
  const imported = binding?.definitions.every(({ origin }) => origin.kind === "import" || origin.kind === "from");
  if (binding && program && !imported) {
    const definition = definitionAt(binding, program === inference.program ? pos : Infinity)!;
    return select(viewOf(view, of, { program }), definition);
  }
  if (value?.kind === "function" || value?.kind === "class") {
    const name = value.node.getChild("VariableName") ?? value.node;
    return select(viewOf(view, of, value), name);
  }
  const known =
    entry?.module !== undefined && entry.line !== undefined
      ? { module: entry.module, line: entry.line }
      : value?.kind === "module" && value.known
        ? { module: value.name, line: 1 }
        : null;
  const source = known ?? (path && isGlobal(place) ? await of.ask<Source>("definition", { path }) : null);
  if (source && (await open(source, of, inference.index))) return;
  say(view, place.from, `The source of ${place.name} is not here.`);
}

async function open(source: Source, of: Knowledge, index: LanguageIndex | null): Promise<boolean> {
  const text = source.text ?? (await index?.source(source.module).catch(() => null)) ?? null;
  if (text === null || !of.surroundings.openSource) return false;
  of.surroundings.openSource(source.module, source.line, text);
  return true;
}

// Renaming

interface Renaming {
  pos: number;
  binding: Binding;
  name: string;
}

const setRenaming = StateEffect.define<Renaming | null>();

const renaming = StateField.define<Renaming | null>({
  create: () => null,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setRenaming)) return effect.value;
    return transaction.docChanged ? null : value;
  },
  provide: (field) =>
    showTooltip.compute([field], (state) => {
      const value = state.field(field);
      return (
        value && { pos: value.pos, above: false, create: (view) => ({ dom: question(view, value), mount: focusInput }) }
      );
    }),
});

function focusInput(view: EditorView): void {
  const input =
    view.dom.querySelector<HTMLInputElement>(".weft-rename input") ??
    document.querySelector<HTMLInputElement>(".weft-rename input");
  input?.select();
}

function question(view: EditorView, value: Renaming): HTMLElement {
  const input = document.createElement("input");
  input.value = value.name;
  input.spellcheck = false;
  input.autocapitalize = "off";
  input.setAttribute("aria-label", `New name for ${value.name}`);
  const message = create("span", "weft-rename-message");
  message.setAttribute("role", "status");
  const close = () => {
    view.dispatch({ effects: setRenaming.of(null) });
    view.focus();
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    else if (event.key === "Enter") {
      event.preventDefault();
      const refused = input.value === value.name ? "" : rename(view, value, input.value.trim());
      message.textContent = refused;
      if (!refused) close();
    }
  });
  input.addEventListener("input", () => (message.textContent = ""));
  return create("div", "", create("div", "weft-rename", input, message));
}

/** Renames; returns why not, if it can't be. */
function rename(view: EditorView, { binding, name }: Renaming, next: string): string {
  if (!NAME.test(next)) return "A name has letters, digits and underscores, and starts with no digit.";
  if (RESERVED.includes(next)) return `${next} is a word of the language.`;
  const of = view.state.facet(knowledge);
  const everywhere = binding.scope.kind === "module";
  const others = everywhere ? [...of.cellsBefore(view.state), ...of.cellsAfter(view.state)] : [];
  for (const { state } of [view, ...others]) {
    const { names } = programOf(state);
    const taken = state === view.state ? binding.scope.names.has(next) : names.module.names.has(next);
    if (taken) return `${next} is the name of something else here.`;
  }
  if (!everywhere) apply(view, places(programOf(view.state).text, binding), next);
  else for (const cell of [view, ...others]) apply(cell, globalPlaces(cell, name), next);
  return "";
}

/** Everywhere that a binding is named. `import a as a` and keyword arguments keep theirs: they name other things. */
function places(text: (from: number, to: number) => string, { definitions, uses, name }: Binding): Range[] {
  const all = [...definitions, ...uses].filter(({ from, to }) => text(from, to) === name);
  return [...new Map(all.map((range) => [range.from, range])).values()].sort((a, b) => a.from - b.from);
}

/** All places where a cell names a global of the document. */
function globalPlaces(view: EditorView, name: string): Range[] {
  const { names, text } = programOf(view.state);
  const own = names.module.names.get(name);
  const free = names.free.filter((use) => use.name === name && !own);
  return [...(own ? places(text, own) : []), ...free];
}

function apply(view: EditorView, ranges: readonly Range[], next: string): void {
  if (ranges.length === 0) return;
  const { names } = programOf(view.state);
  const changes = ranges.map(({ from, to }) => {
    const definition = bindingAt(names, from)?.definitions.find((one) => one.from === from);
    const origin = definition?.origin;
    // An imported name keeps its name in the module.
    const own = origin?.kind === "import" || origin?.kind === "from" ? view.state.sliceDoc(from, to) : "";
    const aliased = /\bas\s+$/.test(view.state.sliceDoc(Math.max(0, from - 20), from));
    return { from, to, insert: own && !aliased ? `${own} as ${next}` : next };
  });
  view.dispatch({ changes, userEvent: "rename" });
}

function startRenaming(view: EditorView): boolean {
  const of = view.state.facet(knowledge);
  const pos = view.state.selection.main.head;
  const place = placeAt(of.inference(view.state), pos);
  const { names } = programOf(view.state);
  const own = place && place.node.name === "VariableName" && !place.callee ? bindingAt(names, place.from) : null;
  // A name of an earlier cell is renamed as if it belonged to this one.
  const binding =
    own ??
    (place?.binding?.scope.kind === "module"
      ? { ...place.binding, definitions: [], uses: [], scope: names.module }
      : null);
  if (place && binding && !isImportedPart(place))
    view.dispatch({ effects: setRenaming.of({ pos: place.from, binding, name: place.name }) });
  else if (place) say(view, place.from, `${place.name} is not defined in this document.`);
  return true;
}

/** Parts of a dotted module's name, and names that an import takes from it under another. */
function isImportedPart({ node, from, binding }: Place): boolean {
  return node.parent?.name === "ImportStatement" && !binding?.definitions.some((one) => one.from === from);
}

export function navigation(): Extension {
  return [
    renaming,
    keymap.of([
      {
        key: "F12",
        run(view) {
          void follow(view, view.state.selection.main.head);
          return true;
        },
      },
      { key: "F2", run: startRenaming },
    ]),
    // Mod-click follows; Alt-click adds a cursor.
    EditorView.clickAddsSelectionRange.of((event) => event.altKey),
    EditorView.domEventHandlers({
      mousedown(event, view) {
        const modified = /Mac|iP(hone|ad)/.test(navigator.platform) ? event.metaKey : event.ctrlKey;
        if (!modified || event.button !== 0) return false;
        const pos = view.posAtCoords({ x: event.clientX, y: event.clientY });
        if (pos === null) return false;
        event.preventDefault();
        void follow(view, pos);
        return true;
      },
    }),
  ];
}
