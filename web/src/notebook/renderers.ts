/** Renderers of other folders for values: figures, Markdown, formulas. */
import { FigureView, type FigureSpec } from "../figures/index.js";
import { FIGURE, WIDGET } from "../kernel/protocol.js";
import type { Python } from "../kernel/python.js";
import { showMarkdown } from "../output/prose.js";
import { register, text, type Make } from "../output/values.js";
import { widgets } from "../widgets/index.js";

/** Calls a listener when the colours around an element have changed; returns a function that ends that. */
export type OnTheme = (listener: () => void, element: HTMLElement) => () => void;

const figures =
  (onTheme: OnTheme): Make =>
  () => {
    const element = document.createElement("div");
    const view = new FigureView(element);
    const forget = onTheme(() => view.recolour(), element);
    return {
      element,
      show: (spec, buffers) => view.update(spec as FigureSpec, buffers),
      async svg(dark) {
        // A figure is drawn in the colours of the surrounding element.
        element.style.colorScheme = dark ? "dark" : "light";
        view.recolour();
        try {
          return await view.svg();
        } finally {
          element.style.colorScheme = "";
          view.recolour();
        }
      },
      dispose() {
        forget();
        view.dispose();
      },
    };
  };

function prose(source: (data: unknown) => string): Make {
  return () => {
    const element = document.createElement("div");
    element.className = "prose";
    return { element, show: (data) => showMarkdown(element, source(data)) };
  };
}

const formula = (data: unknown): string => `$$\n${text(data).replace(/^\s*\$+|\$+\s*$/g, "")}\n$$`;

/** @param python is asked for when a widget is used: a page may start it with the first run. */
export function useRenderers(python: () => Python, onTheme: OnTheme): void {
  register(
    WIDGET,
    widgets((run, name, event, buffers) => python().tellWidget(run, name, event, buffers)),
  );
  register(FIGURE, figures(onTheme));
  register("text/markdown", prose(text));
  register("text/latex", prose(formula));
}
