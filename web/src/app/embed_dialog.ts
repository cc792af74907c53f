/** The dialog that gives the HTML for another page. */
import type { Document } from "../documents/model.js";
import { button, create } from "../elements.js";
import { cellsOf, frameOf, type EmbedOptions } from "./embedding.js";

function checkbox(text: string, changed: () => void): { element: HTMLElement; input: HTMLInputElement } {
  const input = create("input", { type: "checkbox" });
  input.addEventListener("change", changed);
  return { element: create("label", {}, input, text), input };
}

export class EmbedDialog {
  private readonly run = checkbox("Run when it is in sight", () => void this.fill());
  private readonly hide = checkbox("Output alone", () => void this.fill());
  private readonly theme = create("select", { ariaLabel: "Colours" });
  private readonly frame = new Snippet("A frame", "Works in every page that takes HTML.");
  private readonly cells = new Snippet("Cells", "Parts of the page, which share one Python.");
  private document: Document | null = null;

  constructor(private readonly dialog: HTMLDialogElement) {
    for (const [value, text] of [
      ["auto", "Colours of the page"],
      ["light", "Light"],
      ["dark", "Dark"],
    ] as const)
      this.theme.append(new Option(text, value));
    this.theme.addEventListener("change", () => void this.fill());
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // beside it
    });
    const title = create("h2", { id: "embed-title", textContent: "Embed in a page" });
    const close = button("×", () => dialog.close(), { className: "icon", ariaLabel: "Close" });
    const picker = create("div", { className: "picker" }, this.theme);
    dialog.replaceChildren(
      create("header", {}, title, close),
      create("div", { className: "embed-options" }, this.run.element, this.hide.element, picker),
      this.frame.element,
      this.cells.element,
    );
  }

  /** @throws LinkError if the document is too large for an address. */
  async show(document: Document): Promise<void> {
    this.document = document;
    await this.fill();
    this.dialog.showModal();
  }

  private async fill(): Promise<void> {
    const site = new URL("./", location.href).href;
    const options: EmbedOptions = {
      run: this.run.input.checked,
      hideCode: this.hide.input.checked,
      theme: this.theme.value as EmbedOptions["theme"],
    };
    this.frame.text = await frameOf(this.document!, site, options);
    this.cells.text = await cellsOf(this.document!, site, options);
  }
}

/** Text to copy. */
class Snippet {
  readonly element: HTMLElement;
  private readonly area = create("textarea", { readOnly: true, rows: 5, spellcheck: false });
  private readonly copy = button("Copy", () => void this.copyText());

  constructor(title: string, about: string) {
    this.area.setAttribute("aria-label", `HTML: ${title.toLowerCase()}`);
    this.area.addEventListener("focus", () => this.area.select());
    this.element = create(
      "section",
      { className: "snippet", ariaLabel: title },
      create(
        "header",
        {},
        create("h3", { textContent: title }),
        create("span", { className: "dim" }, about),
        this.copy,
      ),
      this.area,
    );
  }

  set text(text: string) {
    this.area.value = text;
  }

  private async copyText(): Promise<void> {
    const copied = await navigator.clipboard?.writeText(this.area.value).then(
      () => true,
      () => false,
    );
    if (!copied) this.area.focus(); // selected, to be copied by keys
    this.copy.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => (this.copy.textContent = "Copy"), 1600);
  }
}
