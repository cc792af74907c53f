/** Shows widgets of a program and reports the reader's actions to Python. */
import type { Make } from "../output/values.js";
import { FIELDS, type Description, type Field } from "./fields.js";
import { PICTURES } from "./pictures.js";
import { Sender, type Tell } from "./sender.js";

/** The part of the page that shows widgets; `tell` reaches the run that showed one. */
export function widgets(tell: Tell): Make {
  return () => {
    const element = document.createElement("div");
    let field: Field | null = null;
    return {
      element,
      show(data, _, run) {
        const description = data as Description;
        if (field) return field.set?.(description);
        const make = FIELDS[description.kind] ?? PICTURES[description.kind];
        if (!make) {
          element.textContent = `This page has no widget "${description.kind}".`;
          return;
        }
        const sender = new Sender(({ event, buffers }) => tell(run, description.name, event, buffers));
        field = make(description, (event) => sender.send(event));
        element.append(field.element);
      },
      dispose: () => field?.dispose?.(),
    };
  };
}
