/** Markdown on the page: the parts that it needs are loaded with the first text. */

/** The document and the shadow roots that have the styles of formulas. */
const styled = new WeakSet<Node>();

/** Shows a text in an element; as it was typed, with the reason, if the parts can't be loaded. */
export async function showMarkdown(element: HTMLElement, source: string): Promise<void> {
  try {
    const { mathStyles, renderMarkdown } = await import("../documents/markdown.js");
    const html = await renderMarkdown(source);
    const found = element.getRootNode();
    const root = found instanceof ShadowRoot ? found : document;
    if (!styled.has(root) && html.includes("<math")) {
      styled.add(root);
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(await mathStyles());
      root.adoptedStyleSheets.push(sheet);
    }
    element.innerHTML = html; // renderMarkdown has made it safe: it contains no HTML of the source
  } catch (error) {
    const text = document.createElement("pre");
    text.textContent = source;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = `Markdown can't be shown: ${(error as Error).message}`;
    element.replaceChildren(text, note);
  }
}
