/** Small helpers for elements. */

/** The element of index.html with this id. */
export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no element #${id}`);
  return element as T;
}

/** A new element with properties and children. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function button(text: string, action: () => void, properties: Partial<HTMLButtonElement> = {}) {
  const element = create("button", { type: "button", textContent: text, ...properties });
  element.addEventListener("click", action);
  return element;
}

/** Gives the reader a file. */
export function download(name: string, data: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([data], { type }));
  create("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
