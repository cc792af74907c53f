/** The menu of the page, for rare actions. */
import { button, create } from "../elements.js";

export interface Entry {
  text: string;
  /** Keys that do the same. */
  keys?: string;
  /** For an entry that is on or off. */
  checked?(): boolean;
  run(): void;
}

/** Fills the popover with groups of entries, each time it opens. Returns what fills it again if it is open. */
export function useMenu(popover: HTMLElement, groups: () => { title: string; entries: Entry[] }[]): () => void {
  const fill = (): void => {
    popover.replaceChildren(
      ...groups().map(({ title, entries }) =>
        create(
          "div",
          { className: "group", role: "group", ariaLabel: title },
          ...entries.map((entry) => item(entry, () => popover.hidePopover())),
        ),
      ),
    );
  };
  popover.addEventListener("beforetoggle", (event) => {
    if ((event as ToggleEvent).newState === "open") fill();
  });
  popover.addEventListener("toggle", (event) => {
    if ((event as ToggleEvent).newState === "open") popover.querySelector("button")?.focus();
  });
  popover.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const items = [...popover.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    items[(at + step + items.length) % items.length]?.focus();
  });
  return () => {
    if (!popover.matches(":popover-open")) return;
    const at = [...popover.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement);
    fill();
    popover.querySelectorAll("button")[at]?.focus();
  };
}

function item(entry: Entry, close: () => void): HTMLButtonElement {
  const element = button("", () => {
    close();
    entry.run();
  });
  element.append(create("span", { textContent: entry.text }));
  if (entry.checked) {
    element.setAttribute("role", "switch");
    element.ariaChecked = String(entry.checked());
  }
  if (entry.keys) element.append(create("kbd", { textContent: entry.keys }));
  return element;
}
