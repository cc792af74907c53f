/**
 * Information about a name when the pointer rests on it or Mod-K I is pressed: its documentation, and its shape
 * after a run.
 */
import { StateEffect, StateField, type Extension } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, showTooltip, type Tooltip } from "@codemirror/view";
import { create } from "../elements.js";
import { descriptionElement, type Description } from "./describe.js";
import type { Inference } from "./infer.js";
import { describe, isGlobal, knowledge, placeAt, type Knowledge, type Place } from "./knowledge.js";
import { signatureOf } from "./calls.js";
import { parameterDoc } from "./docstring.js";

/** Python's description of a value; `origin` is its place in the language's index. */
export interface Live extends Description {
  origin?: { module: string; name: string };
}

/** Python's answer, with the docstring that its bytecode leaves out. */
export function completed(live: Live, inference: Inference): Description {
  const entry = live.origin ? inference.index?.entryAt(live.origin.module, live.origin.name) : null;
  return entry ? { ...live, doc: live.doc || (entry.doc ?? ""), signature: entry.signature ?? live.signature } : live;
}

/** All known information about the name at a position. */
export async function descriptionAt(of: Knowledge, inference: Inference, place: Place): Promise<Description | null> {
  const { name, value, entry, path, callee } = place;
  if (callee) return parameterDescription(name, place, inference);
  const still =
    entry && entry.kind !== "value"
      ? describe({ kind: "entry", entry }, name, inference)
      : describe(value, name, inference);
  const plain = path?.length === 1;
  if (path && isGlobal(place) && (!still || !still.signature) && value?.kind !== "module") {
    if (plain) {
      const shapes = await of.ask<Record<string, string>>("shapes", { names: [name] });
      if (shapes?.[name]) return { name, kind: "", signature: "", doc: still?.doc ?? "", value: shapes[name] };
    }
    const live = await of.ask<Live>("hover", { path });
    if (live) return { ...completed(live, inference), doc: live.doc || (still?.doc ?? "") };
  }
  if (still) return still;
  const origin = place.binding?.definitions[0]?.origin.kind;
  return origin === "parameter" ? { name, kind: "parameter", signature: "", doc: "" } : null;
}

/** A keyword argument's name: its parameter in the signature, and the docstring's text about it. */
function parameterDescription(name: string, { callee }: Place, inference: Inference): Description | null {
  const called = signatureOf(callee, inference);
  const parameter = called?.parsed.parameters.find((one) => one.keyword && one.name === name);
  return parameter
    ? { name: parameter.text, kind: "parameter", signature: "", doc: parameterDoc(called!.doc, name) }
    : null;
}

async function tooltipAt(view: EditorView, pos: number): Promise<Tooltip | null> {
  const of = view.state.facet(knowledge);
  await of.indexSoon();
  const inference = of.inference(view.state);
  const place = placeAt(inference, pos);
  const description = place && (await descriptionAt(of, inference, place));
  if (!description) return null;
  const dom = descriptionElement(description);
  dom.setAttribute("role", "tooltip");
  return { pos: place.from, end: place.to, above: true, create: () => ({ dom: create("div", "", dom) }) };
}

const show = StateEffect.define<Tooltip | null>();

/** The information requested by the keyboard, until the next key. */
const asked = StateField.define<Tooltip | null>({
  create: () => null,
  update(tooltip, transaction) {
    for (const effect of transaction.effects) if (effect.is(show)) return effect.value;
    return transaction.docChanged || transaction.selection ? null : tooltip;
  },
  provide: (field) => showTooltip.from(field),
});

function showHere(view: EditorView): boolean {
  const { doc, selection } = view.state;
  void tooltipAt(view, selection.main.head).then((tooltip) => {
    if (view.state.doc === doc) view.dispatch({ effects: show.of(tooltip) });
  });
  return true;
}

function hide(view: EditorView): boolean {
  if (!view.state.field(asked)) return false;
  view.dispatch({ effects: show.of(null) });
  return true;
}

export function hover(): Extension {
  return [
    hoverTooltip((view, pos) => tooltipAt(view, pos), { hoverTime: 350 }),
    asked,
    keymap.of([
      { key: "Mod-k Mod-i", run: showHere },
      { key: "Escape", run: hide },
    ]),
  ];
}
