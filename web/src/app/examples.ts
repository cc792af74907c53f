/** The examples: short programs that come with the page, and documents of the gallery, fetched when one is opened. */
import { newCell, newDocument, type Document } from "../documents/model.js";
import { fromPercent } from "../documents/percent.js";
import type { SiteData } from "../kernel/protocol.js";

export class Examples {
  constructor(
    private readonly site: Pick<SiteData, "examples" | "gallery">,
    /** The address of the site. */
    private readonly base: string,
  ) {}

  get programs(): SiteData["examples"] {
    return this.site.examples;
  }

  get gallery(): SiteData["gallery"] {
    return this.site.gallery;
  }

  /** The document that a new reader sees. */
  first(): Document {
    const [first] = this.site.examples;
    return first ? this.program(first) : newDocument();
  }

  /**
   * A copy of an example; null if there is none of this name.
   *
   * @throws Error if it can't be fetched.
   */
  async open(id: string): Promise<Document | null> {
    const program = this.site.examples.find((each) => each.id === id);
    if (program) return this.program(program);
    const entry = this.site.gallery.find((each) => each.id === id);
    if (!entry) return null;
    const response = await fetch(new URL(entry.url, this.base)).catch(() => null);
    if (!response?.ok) {
      const why = response ? `the server answered ${response.status}` : "the server can't be reached";
      throw new Error(`“${entry.title}” could not be opened: ${why}. Try again later.`);
    }
    const document = fromPercent(await response.text(), `${entry.id}.py`);
    return { ...document, title: entry.title, origin: `example:${id}` };
  }

  private program({ id, title, source }: SiteData["examples"][number]): Document {
    return newDocument({ title, cells: [newCell("code", source)], origin: `example:${id}` });
  }
}
