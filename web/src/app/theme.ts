/** Light and dark colours: those of the system, or the reader's choice. */
import { settings } from "./settings.js";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** Called when colours have changed, by parts that draw with them. */
const listeners = new Set<() => void>();

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function set(theme: Theme, button: HTMLElement): void {
  document.documentElement.dataset["theme"] = theme;
  const label = `Colours: ${theme === "system" ? "as the system" : theme}`;
  button.setAttribute("aria-label", label);
  button.title = label;
  settings.set("theme", theme);
  for (const listener of listeners) listener();
}

export function useTheme(button: HTMLElement): void {
  const kept = settings.get("theme") as Theme | null;
  let theme: Theme = kept && THEMES.includes(kept) ? kept : "system";
  set(theme, button);
  button.addEventListener("click", () => {
    // The first click always changes the visible colours; the second keeps the choice whatever the system does.
    const opposite = prefersDark.matches ? "light" : "dark";
    const same = prefersDark.matches ? "dark" : "light";
    theme = theme === "system" ? opposite : theme === opposite ? same : "system";
    set(theme, button);
  });
  prefersDark.addEventListener("change", () => listeners.forEach((listener) => listener()));
}
