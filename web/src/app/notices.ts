/** Short messages above the document: about errors, saved copies, and actions that can be undone. */
import { button, create } from "../elements.js";

export interface Action {
  text: string;
  run(): void;
}

export class Notices {
  constructor(private readonly element: HTMLElement) {}

  /** Shows a message until it is dismissed, or its action taken; one with the same text replaces it. */
  show(text: string, action?: Action, lastsMs = 0): void {
    for (const other of [...this.element.children]) if (other.firstChild?.textContent === text) other.remove();
    const box = create("div", { className: "notice" }, create("span", { textContent: text }));
    if (action) {
      box.append(
        button(action.text, () => {
          box.remove();
          action.run();
        }),
      );
    }
    box.append(button("×", () => box.remove(), { ariaLabel: "Dismiss", className: "dismiss" }));
    this.element.append(box);
    if (lastsMs) setTimeout(() => box.remove(), lastsMs);
  }
}
