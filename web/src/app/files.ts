/** Files of the reader: opened as documents, given to Python, or written. */
import { fromPercent, percentName, toPercent } from "../documents/percent.js";
import type { Python } from "../kernel/python.js";
import type { Desk } from "./desk.js";
import { download } from "./dom.js";
import type { Notices } from "./notices.js";
import type { Shelf } from "./shelf.js";

/** A file that a program reads must fit into Python's memory beside everything else. */
const MOST_BYTES = 512 * 2 ** 20;

export class Files {
  constructor(
    private readonly shelf: Shelf,
    private readonly desk: Desk,
    private readonly python: Python,
    private readonly notices: Notices,
  ) {}

  /** Opens documents; gives wheels and every other file to Python. */
  async take(files: File[]): Promise<void> {
    for (const file of files) {
      try {
        await this.takeOne(file);
      } catch (error) {
        this.notices.show(`${file.name}: ${(error as Error).message}`);
      }
    }
  }

  /** Downloads the open document; "all" is the whole library. */
  async save(form: "py" | "ipynb" | "html" | "all"): Promise<void> {
    try {
      await this.write(form);
    } catch (error) {
      this.notices.show(`The file could not be made: ${(error as Error).message}`);
    }
  }

  private async write(form: "py" | "ipynb" | "html" | "all"): Promise<void> {
    const document = this.desk.open;
    if (form === "all") {
      await this.shelf.save();
      download("weft-documents.json", await this.shelf.exportAll(), "application/json");
    } else if (!document) {
      return;
    } else if (form === "py") {
      download(percentName(document), toPercent(document), "text/x-python");
    } else if (form === "ipynb") {
      const { ipynbName, toIpynb } = await import("../documents/ipynb.js");
      download(ipynbName(document), toIpynb(document, await this.desk.outputs()), "application/x-ipynb+json");
    } else {
      const { htmlName, toHtml } = await import("../documents/html.js");
      const address = location.origin + location.pathname;
      download(htmlName(document), await toHtml(document, await this.desk.outputs(), address), "text/html");
    }
  }

  private async takeOne(file: File): Promise<void> {
    if (file.size > MOST_BYTES) throw new Error(`it has ${file.size} bytes; at most ${MOST_BYTES} can be taken`);
    if (file.name.endsWith(".py")) {
      const text = await file.text();
      await this.show(fromPercent(text, file.name), []);
      const data = new TextEncoder().encode(text).buffer;
      const action = { text: "Give it to Python as a module", run: () => this.python.giveFile(file.name, data) };
      return this.notices.show(`${file.name} was opened as a document.`, action, 20_000);
    }
    if (file.name.endsWith(".ipynb")) {
      const { fromIpynb } = await import("../documents/ipynb.js");
      const { document, notices } = fromIpynb(await file.text(), file.name);
      return this.show(document, notices);
    }
    if (file.name.endsWith(".html")) {
      const { fromHtml } = await import("../documents/html.js");
      const document = fromHtml(await file.text(), file.name);
      if (document) return this.show(document, []);
    }
    if (file.name.endsWith(".json") && (await file.slice(0, 100).text()).includes('"weft-library"')) {
      const { added, skipped } = await this.shelf.importAll(await file.text());
      const there = skipped ? `; ${skipped} were there already` : "";
      this.notices.show(`Documents added from ${file.name}: ${added}${there}.`, undefined, 8000);
      return;
    }
    this.python.giveFile(file.name, await file.arrayBuffer());
  }

  /** Says that Python has a file, or why not. */
  given(name: string, problem: string): void {
    if (problem) return this.notices.show(`Python can't take ${name}: ${problem}.`);
    const use = /\.(whl|py)$/.test(name)
      ? "Programs can import it from now on."
      : `Programs can open("${name}") from now on.`;
    this.notices.show(`${name} was given to Python. ${use}`, undefined, 8000);
  }

  private async show(document: Parameters<Shelf["adopt"]>[0], notices: string[]): Promise<void> {
    this.desk.show(await this.shelf.adopt(document), true);
    for (const notice of notices) this.notices.show(notice);
  }
}

/** Files dropped anywhere on the page. */
export function dropFiles(target: HTMLElement, take: (files: File[]) => void): void {
  target.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    target.classList.add("dropping");
  });
  target.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) target.classList.remove("dropping");
  });
  target.addEventListener("drop", (event) => {
    target.classList.remove("dropping");
    const files = [...(event.dataTransfer?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    take(files);
  });
}
