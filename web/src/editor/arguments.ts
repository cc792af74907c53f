/** Signature help: while arguments are typed, the signature of the called function, with the next parameter. */
import { StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, showTooltip, ViewPlugin, type Tooltip, type ViewUpdate } from "@codemirror/view";
import { argumentAt, called, calleeOf, callAround, signatureOf, type Called } from "./calls.js";
import { create } from "../elements.js";
import { inline, signatureElement } from "./describe.js";
import { parameterDoc, summaryOf } from "./docstring.js";
import { completed, type Live } from "./hover.js";
import { knowledge, pathOf, programOf } from "./knowledge.js";
import { currentParameter } from "./signature.js";

interface Help {
  /** The position of the call that this help is for. */
  from: number;
  called: Called;
}

const setHelp = StateEffect.define<Help | null>();

const help = StateField.define<Help | null>({
  create: () => null,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setHelp)) return effect.value;
    return value && transaction.docChanged ? { ...value, from: transaction.changes.mapPos(value.from) } : value;
  },
  provide: (field) => showTooltip.compute([field, "selection", "doc"], tooltip),
});

function tooltip(state: EditorState): Tooltip | null {
  const value = state.field(help);
  if (!value) return null;
  const program = programOf(state);
  const call = callAround(program.tree, state.selection.main.head);
  if (!call || call.from !== value.from) return null;
  const { position, keyword } = argumentAt(call, state.selection.main.head, program);
  const { name, parsed, doc } = value.called;
  const current = currentParameter(parsed, position, keyword);
  return {
    pos: call.getChild("ArgList")!.from,
    above: true,
    create() {
      const dom = create("div", "weft-description weft-help", signatureElement(name, parsed.text, current));
      dom.setAttribute("role", "status");
      const about = (current && parameterDoc(doc, current.name)) || summaryOf(doc);
      if (about) dom.append(create("p", "", inline(about)));
      return { dom: create("div", "", dom) };
    },
  };
}

/** Looks for the call around the cursor, and shows its function; with `always`, also if nothing was shown. */
async function look(view: EditorView, always: boolean): Promise<void> {
  const { state } = view;
  const call = callAround(programOf(state).tree, state.selection.main.head);
  const shown = state.field(help);
  if (!call) {
    if (shown) view.dispatch({ effects: setHelp.of(null) });
    return;
  }
  if (!always && shown?.from === call.from) return;
  if (!always && !shown) return;
  const found = await find(view, call.from);
  if (view.state.doc !== state.doc) return;
  view.dispatch({ effects: setHelp.of(found && { from: call.from, called: found }) });
}

async function find(view: EditorView, from: number): Promise<Called | null> {
  const { state } = view;
  const of = state.facet(knowledge);
  await of.indexSoon();
  if (view.state.doc !== state.doc) return null;
  const inference = of.inference(state);
  const call = callAround(inference.program.tree, state.selection.main.head);
  if (!call || call.from !== from) return null;
  const still = signatureOf(calleeOf(call, inference), inference);
  const callee = call.firstChild!;
  const name = inference.program.text(callee.from, callee.to).replace(/\s+/g, "");
  if (still) return { ...still, name: name.length < 40 ? name : still.name };
  const path = pathOf(callee, inference.program);
  const live = path && (await of.ask<Live>("signature", { path }));
  return live ? called({ ...completed(live, inference), name }) : null;
}

const watcher = ViewPlugin.define((view) => ({
  update(update: ViewUpdate) {
    if (!update.docChanged && !update.selectionSet) return;
    let opened = false;
    if (update.transactions.some((transaction) => transaction.isUserEvent("input")))
      update.changes.iterChanges((_a, _b, _c, _d, inserted) => {
        opened ||= /[(,]/.test(inserted.sliceString(0, Math.min(inserted.length, 80)));
      });
    const shown = update.state.field(help) !== null;
    if (opened || shown) queueMicrotask(() => void look(view, opened));
  },
}));

export function signatureHelp(): Extension {
  const ask = (view: EditorView) => {
    void look(view, true);
    return true;
  };
  const hide = (view: EditorView) => {
    if (!view.state.field(help)) return false;
    view.dispatch({ effects: setHelp.of(null) });
    return true;
  };
  return [
    help,
    watcher,
    EditorView.domEventHandlers({ blur: (_event, view) => void setTimeout(() => hide(view)) }),
    keymap.of([
      { key: "Mod-Shift-Space", run: ask },
      { key: "Escape", run: hide },
    ]),
  ];
}
