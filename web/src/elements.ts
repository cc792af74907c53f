/** New elements. */

/** An element with properties, or a class alone, and children. */
export function create<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> | string = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (typeof properties !== "string") Object.assign(made, properties);
  else if (properties) made.className = properties;
  made.append(...children.filter((child) => child !== ""));
  return made;
}

export function button(
  text: string,
  press: () => void,
  properties: Partial<HTMLButtonElement> | string = "",
): HTMLButtonElement {
  const made = create("button", properties, text);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}
