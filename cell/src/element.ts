/** The element: shows code at once, and becomes an editor with the first click or Run. */
import type { CellHost, LiveCell, RunEvent, State, Status } from "./contract.js";
import { siteAt } from "./sites.js";
import { dedent, pieces } from "./source.js";
import { styles } from "./styles.js";

/** How many cells there have been: their names differ, since readers of a screen choose among them by name. */
let made = 0;

/** All cells of the page, in no order. */
const cells = new Set<WeftCell>();

const own = new URL("./", import.meta.url).href;

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function button(text: string, className: string, press: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", textContent: text, className });
  element.part.add(className);
  element.addEventListener("click", press);
  return element;
}

const TRIANGLE = '<svg viewBox="0 0 9 10" aria-hidden="true"><path d="M0 0l9 5-9 5z"/></svg>';

export class WeftCell extends HTMLElement {
  static readonly observedAttributes = ["height", "hidden-code", "readonly", "autorun"];

  readonly #root: ShadowRoot;
  readonly #name = `Python cell ${++made}`;
  readonly #frame = make("section", { className: "cell", ariaLabel: this.#name });
  readonly #source = make("div", { className: "source" });
  readonly #output = make("div", { className: "output" });
  readonly #state = make("span", { className: "state" });
  readonly #run = button("", "run", () => void this.run());
  readonly #stop = button("Stop", "stop", () => this.stop());
  readonly #show = button("Show code", "show", () => this.#toggle());
  readonly #reset = button("Reset", "reset", () => this.#write(this.#original));
  readonly #open = button("Playground", "open", () => void this.#openElsewhere());
  #original = "";
  #code = "";
  #shownByReader = false;
  #live: Promise<LiveCell> | null = null;
  #ready: LiveCell | null = null;
  #ran = false;
  #runs = 0;
  #watch: MutationObserver | null = null;
  #seen: IntersectionObserver | null = null;

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    this.#root.adoptedStyleSheets = [sheet];
    for (const [name, part] of [
      ["cell", this.#frame],
      ["source", this.#source],
      ["output", this.#output],
      ["state", this.#state],
    ] as const)
      part.part.add(name);
    this.#run.innerHTML = `${TRIANGLE}<span>Run</span>`;
    this.#run.title = "Run this cell (Shift+Enter)";
    this.#run.setAttribute("aria-keyshortcuts", "Shift+Enter");
    this.#state.setAttribute("role", "status");
    this.#output.setAttribute("role", "log");
    this.#output.ariaLabel = "Output";
    this.#output.ariaLive = "polite";
    this.#open.title = "Open a copy of this program in the playground";
    this.#reset.title = "Show the program as the page has it";
    this.#stop.hidden = this.#reset.hidden = this.#open.hidden = true;
    const bar = make("div", { className: "bar" });
    bar.part.add("bar");
    bar.append(this.#run, this.#stop, this.#state, this.#show, this.#reset, this.#open);
    this.#frame.append(this.#source, bar, this.#output);
    this.#root.append(this.#frame);
    this.#source.addEventListener("pointerdown", () => void this.#enliven(true));
    this.#source.addEventListener("keydown", (event) => this.#key(event));
  }

  connectedCallback(): void {
    cells.add(this);
    this.#watch ??= new MutationObserver(() => this.#read());
    this.#watch.observe(this, { childList: true, characterData: true, subtree: true });
    this.#read();
    this.#layOut();
    this.#mayAutorun();
  }

  disconnectedCallback(): void {
    this.#watch?.disconnect();
    this.#seen?.disconnect();
    this.#seen = null;
    // An element that is only moved is back at once.
    queueMicrotask(() => {
      if (this.isConnected) return;
      cells.delete(this);
      this.#ready?.dispose();
      this.#ready = this.#live = null;
    });
  }

  attributeChangedCallback(name: string): void {
    if (name === "autorun") this.#mayAutorun();
    if (name === "readonly" && this.#ready) this.#remake();
    this.#layOut();
  }

  /** The program, as the reader has it now. */
  get code(): string {
    return this.#code;
  }

  set code(text: string) {
    this.#original = text;
    this.#write(text);
  }

  /**
   * Runs this cell after those before it of its session that have not run yet, without those that are meant to raise,
   * and returns how it ended: "ok", "stopped" or "error".
   */
  async run(): Promise<Status> {
    for (const cell of this.#session()) {
      if (cell === this) break;
      if (cell.#ran || cell.hasAttribute("raises")) continue;
      const status = await cell.#runAlone();
      if (status === "ok") continue;
      this.#say(status === "stopped" ? "Stopped" : "A cell before this one failed", "error");
      return status;
    }
    return this.#runAlone();
  }

  /** Ends the programs that run in any cell of the page. */
  stop(): void {
    void siteAt(this.#site, forget).then(({ cells }) => cells.stop());
  }

  /** Starts Python again. Everything that cells of the page defined is lost. */
  async restart(): Promise<void> {
    (await siteAt(this.#site, forget)).cells.restart();
  }

  get #site(): string {
    return new URL(this.getAttribute("site")?.replace(/\/?$/, "/") ?? own, document.baseURI).href;
  }

  /** The cells of this session, in the order of the page. */
  #session(): WeftCell[] {
    const name = this.getAttribute("session") ?? "";
    return [...cells]
      .filter((cell) => (cell.getAttribute("session") ?? "") === name && cell.#site === this.#site)
      .sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  }

  /** Takes the text from the page, unless there is an editor with it already. */
  #read(): void {
    if (this.#live) return;
    // Indentation around a <pre> is the page's, not the code's.
    const text = dedent((this.querySelector("pre, script") ?? this).textContent ?? "");
    if (text === this.#original && this.#source.firstChild) return;
    this.#original = this.#code = text;
    this.#paint();
  }

  /** The code without an editor. */
  #paint(): void {
    const pre = make("pre", { tabIndex: 0, ariaLabel: `Code of ${this.#name}. Enter edits it, Shift+Enter runs it.` });
    pre.setAttribute("role", "region");
    const code = make("code");
    for (const { kind, text } of pieces(this.#code))
      code.append(kind ? make("span", { className: kind, textContent: text }) : text);
    pre.append(code);
    this.#source.replaceChildren(pre);
  }

  #layOut(): void {
    const hidden = this.hasAttribute("hidden-code");
    this.#source.hidden = hidden && !this.#shownByReader;
    this.#show.hidden = !hidden;
    this.#show.textContent = this.#source.hidden ? "Show code" : "Hide code";
    this.#show.ariaExpanded = String(!this.#source.hidden);
    const height = this.getAttribute("height");
    if (height) this.#source.style.setProperty("--cell-height", /^\d+$/.test(height) ? `${height}px` : height);
    else this.#source.style.removeProperty("--cell-height");
  }

  #toggle(): void {
    this.#shownByReader = !this.#shownByReader;
    this.#layOut();
  }

  #mayAutorun(): void {
    if (!this.hasAttribute("autorun") || this.#seen || !this.isConnected) return;
    this.#seen = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      this.#seen?.disconnect();
      if (!this.#ran && this.#runs === 0) void this.run();
    });
    this.#seen.observe(this);
  }

  #key(event: KeyboardEvent): void {
    if (this.#ready || event.key !== "Enter") return;
    event.preventDefault();
    if (event.shiftKey || event.ctrlKey || event.metaKey) void this.run();
    else void this.#enliven(true);
  }

  #say(text: string, state: State): void {
    this.#state.textContent = text;
    this.#state.dataset["state"] = state;
  }

  #write(text: string): void {
    this.#code = text;
    if (this.#ready) this.#ready.write(text);
    else this.#paint();
    this.#changed(text);
  }

  #changed(text: string): void {
    this.#code = text;
    this.#reset.hidden = text === this.#original;
  }

  /** This cell as the site's script sees it. */
  #host(): CellHost {
    return {
      root: this.#root,
      source: this.#source,
      output: this.#output,
      code: this.#code,
      readonly: this.hasAttribute("readonly"),
      session: this.getAttribute("session") ?? "",
      backend: this.getAttribute("backend") === "webgpu" ? "webgpu" : "wasm",
      x64: this.hasAttribute("x64"),
      changed: (text) => this.#changed(text),
      run: () => void this.run(),
      say: (text, state) => this.#say(text, state),
      neighbours: () => this.#session().map((cell) => cell.#host()),
    };
  }

  /** Puts an editor in the place of the code. */
  async #enliven(focus: boolean): Promise<LiveCell | null> {
    if (this.#ready) return this.#ready;
    try {
      this.#live ??= this.#attach();
      const live = await this.#live;
      if (focus) live.focus();
      return live;
    } catch (error) {
      this.#live = null;
      this.#fail(error);
      return null;
    }
  }

  async #attach(): Promise<LiveCell> {
    const { cells, styles } = await siteAt(this.#site, forget);
    if (!this.#root.adoptedStyleSheets.includes(styles)) this.#root.adoptedStyleSheets.push(styles);
    this.#source.replaceChildren();
    this.#ready = cells.attach(this.#host());
    this.#open.hidden = false;
    return this.#ready;
  }

  #remake(): void {
    this.#ready!.dispose();
    this.#ready = this.#live = null;
    this.#paint();
    void this.#enliven(false);
  }

  #fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#say("Not started", "error");
    this.#output.replaceChildren(make("div", { className: "failure", textContent: message }));
    this.#emit("weft-error", { type: "SiteError", message, line: null });
  }

  async #runAlone(): Promise<Status> {
    this.#runs++;
    this.#emit("weft-run", { code: this.#code });
    this.#stop.hidden = false;
    if (!this.#ready) this.#say("Loading", "busy");
    try {
      const live = await this.#enliven(false);
      if (!live) return "error";
      const result = await live.run();
      this.#ran = result.status !== "stopped";
      this.#tell(result);
      return result.status;
    } finally {
      if (--this.#runs === 0) this.#stop.hidden = true;
    }
  }

  #tell({ error, ...result }: RunEvent): void {
    if (error) this.#emit("weft-error", error);
    else this.#emit("weft-result", result);
  }

  #emit(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  async #openElsewhere(): Promise<void> {
    const live = await this.#enliven(false);
    if (live) window.open(await live.link(), "_blank", "noopener");
  }

  /** Python was started again. */
  static forgotten(): void {
    for (const cell of cells) cell.#ran = false;
  }
}

const forget = (): void => WeftCell.forgotten();
