/** Small helpers for elements. */

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

export function button(text: string, press: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", textContent: text });
  element.addEventListener("click", press);
  return element;
}

export function context2d(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  return canvas.getContext("2d", { willReadFrequently: true })!;
}

export function download(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Takes files that are dropped on an element. */
export function dropped(element: HTMLElement, take: (file: File) => void): void {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("over");
  });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}

/** A number in at most five digits. */
export function brief(value: number | bigint): string {
  if (typeof value === "bigint" || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}
