/** Marks undefined names while the reader types. */
import { linter, type Action, type Diagnostic } from "@codemirror/lint";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { knowledge, programOf, type Knowledge } from "./knowledge.js";
import type { LanguageIndex } from "./language.js";
import type { Free } from "./scopes.js";

/** Names that every module has, and that the page's Python has beside the builtins. */
const ALWAYS = new Set([
  ...["__name__", "__doc__", "__file__", "__builtins__", "__package__", "__spec__", "__loader__", "__annotations__"],
  ...["__class__", "__debug__", "help", "exit", "quit"],
]);

/** The usual imports under these names. */
const USUAL: Record<string, string> = {
  jax: "import jax",
  jnp: "import jax.numpy as jnp",
  lax: "from jax import lax",
  jit: "from jax import jit",
  grad: "from jax import grad",
  vmap: "from jax import vmap",
  random: "from jax import random",
  weft: "import weft",
  np: "import numpy as np",
  plt: "import matplotlib.pyplot as plt",
  partial: "from functools import partial",
  dataclass: "from dataclasses import dataclass",
  NamedTuple: "from typing import NamedTuple",
  Any: "from typing import Any",
  optax: "import optax",
  eqx: "import equinox as eqx",
  einops: "import einops",
};

async function lint(view: EditorView): Promise<Diagnostic[]> {
  const of = view.state.facet(knowledge);
  const { state } = view;
  // A page that is only looked at fetches no index. Without the builtins nothing can be said.
  const index = of.known ?? (view.hasFocus ? await of.indexSoon() : null);
  if (!index || view.state.doc !== state.doc) return [];
  const { names } = programOf(state);
  const earlier = of.cellsBefore(state).map((cell) => programOf(cell.state));
  const elsewhere = new Set(of.surroundings.definedElsewhere?.() ?? []);
  for (const program of earlier) {
    for (const [name, { definitions }] of program.names.module.names) if (definitions.length) elsewhere.add(name);
    for (const name of program.names.doubtful) elsewhere.add(name);
  }
  for (const star of [names, ...earlier.map((program) => program.names)].flatMap(({ stars }) => stars)) {
    const module = index.moduleCalled(star);
    if (module === null) return []; // it may define any name
    for (const [name] of index.namesOf(module)) elsewhere.add(name);
  }
  const typing = view.hasFocus ? state.selection.main.head : -1;
  const wrong = names.free.filter(
    ({ name, to, early }) =>
      to !== typing &&
      !elsewhere.has(name) &&
      !ALWAYS.has(name) &&
      !index.builtin(name) &&
      (early || !names.doubtful.has(name)) &&
      !isTemplate(name, to, view),
  );
  const live = wrong.length && of.surroundings.asker ? await liveNames(of, wrong) : null;
  if (view.state.doc !== state.doc) return [];
  return wrong.filter(({ name }) => !live?.has(name)).map((use) => diagnostic(use, index, view));
}

/** Names that a run has made in ways that can't be read off the text. */
async function liveNames(of: Knowledge, wrong: Free[]): Promise<Set<string>> {
  const answer = await of.ask<{ names: { name: string }[] }>("complete", { path: [] });
  const held = new Set(answer?.names.map(({ name }) => name));
  // A name that is bound further down may exist from an earlier run, but is still missing in a new one.
  for (const { name, early } of wrong) if (early) held.delete(name);
  return held;
}

/** The prefix of a template string, which the parser does not know. */
function isTemplate(name: string, to: number, { state }: EditorView): boolean {
  return /^(t|T|tr|rt)$/.test(name) && /^['"]/.test(state.sliceDoc(to, to + 1));
}

function diagnostic({ name, from, to, early }: Free, index: LanguageIndex, { state }: EditorView): Diagnostic {
  const line = USUAL[name] ?? (index.moduleCalled(name) ? `import ${name}` : null);
  const actions: Action[] =
    line && !early
      ? [
          {
            name: `Add “${line}”`,
            apply: (view) => view.dispatch({ changes: { from: place(view), insert: `${line}\n` } }),
          },
        ]
      : [];
  const message = early
    ? `${name} is used before line ${state.doc.lineAt(firstDefinition(name, state)).number} defines it`
    : `Nothing defines ${name}`;
  return { from, to, severity: "error", source: "weft", message, actions };
}

function firstDefinition(name: string, state: EditorView["state"]): number {
  return programOf(state).names.module.names.get(name)?.definitions[0]?.from ?? 0;
}

/** The place of a new import: after the existing ones, or after the program's own docstring. */
function place({ state }: EditorView): number {
  const { tree } = programOf(state);
  let after = 0;
  for (let node = tree.topNode.firstChild; node; node = node.nextSibling) {
    if (node.name === "ImportStatement") after = Math.min(state.doc.lineAt(node.to).to + 1, state.doc.length);
    else if (node.name !== "Comment" && !(node.name === "ExpressionStatement" && node.getChild("String"))) break;
    else if (after === 0 && node.name === "ExpressionStatement")
      after = Math.min(state.doc.lineAt(node.to).to + 1, state.doc.length);
  }
  return after;
}

export function undefinedNames(): Extension {
  return linter(lint, { delay: 400, needsRefresh: ({ focusChanged, view }) => focusChanged && view.hasFocus });
}
