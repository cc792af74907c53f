/** Asks the reader whether to install packages that the site does not keep. */
import { button, create } from "../elements.js";
import type { Wanted } from "../kernel/protocol.js";

/** "a", "a and b", "a, b and c", each emphasised. */
function listed(names: readonly string[]): (Node | string)[] {
  return names.flatMap((name, k) => {
    const before = k === 0 ? "" : k === names.length - 1 ? " and " : ", ";
    return [before, create("strong", { textContent: name })];
  });
}

export function offer(wanted: readonly Wanted[], answer: (install: boolean) => void): HTMLElement {
  const places = [...new Set(wanted.map(({ from }) => from))];
  const parts = places.flatMap((place, k) => {
    const names = wanted.filter(({ from }) => from === place).map(({ name }) => name);
    return [k ? "; " : "", ...listed(names), " from ", create("strong", { textContent: place })];
  });
  const them = wanted.length > 1 ? "them" : "it";
  const after = `. This site does not keep ${them}; installed code runs in this page, as the program does.`;
  const choice = (text: string, install: boolean, className: string): HTMLButtonElement => {
    const press = (): void => {
      box.remove();
      answer(install);
    };
    return button(text, press, className);
  };
  const choices = create("div", {}, choice("Install", true, "primary"), choice("Don’t", false, ""));
  const text = create("p", {}, "This program asks for ", ...parts, after);
  const box = create("div", "offer", text, choices);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Packages to install");
  return box;
}
