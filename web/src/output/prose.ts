/** Markdown on the page: the parts that it needs are loaded with the first text. */

let styled = false;

/** Shows a text in an element; as it was typed, with the reason, if the parts can't be loaded. */
export async function showMarkdown(element: HTMLElement, source: string): Promise<void> {
  try {
    const { mathStyles, renderMarkdown } = await import("../documents/markdown.js");
    const html = await renderMarkdown(source);
    if (!styled && html.includes("<math")) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(await mathStyles());
      document.adoptedStyleSheets.push(sheet);
      styled = true;
    }
    element.innerHTML = html; // made safe by renderMarkdown: no HTML of the source comes through
  } catch (error) {
    const text = document.createElement("pre");
    text.textContent = source;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = `Markdown can't be shown: ${(error as Error).message}`;
    element.replaceChildren(text, note);
  }
}
