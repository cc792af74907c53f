/** The inspector: what the last run compiled, when, why, and into what. */
import { CompareView } from "./compare.js";
import { button, create } from "../elements.js";
import { seconds, sentence, table } from "./dom.js";
import {
  problemOf,
  type Answer,
  type Details,
  type DeviceFacts,
  type Program,
  type Surroundings,
  type Timeline,
} from "./model.js";
import { kernels, overview, TITLES, textPane, type Pane, type TabId } from "./panes.js";
import { TimelineView } from "./timeline.js";

export type { Choice, Measured, Surroundings } from "./model.js";

export class Inspector {
  private readonly timeline = new TimelineView();
  private readonly devices = create("div", "devices");
  private readonly list = create("div", "programs");
  private readonly tabs = create("div", "tabs");
  private readonly panel = create("div", "panel");
  private pane: Pane | null = null;
  private shown: Program[] = [];
  private details: Details | null = null;
  private tab: TabId = "overview";
  /** Counts what was asked for, so that late answers are dropped. */
  private turn = 0;

  constructor(
    private readonly element: HTMLElement,
    private readonly around: Surroundings,
  ) {
    const close = button("×", () => around.closed(), "icon");
    close.setAttribute("aria-label", "Close the inspector");
    const title = create("h2", "", "See what happens");
    title.id = "inspector-title";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Programs of the last run");
    this.tabs.setAttribute("role", "tablist");
    this.tabs.setAttribute("aria-label", "Forms of the program");
    this.panel.setAttribute("role", "tabpanel");
    this.panel.id = "inspector-panel";
    this.list.addEventListener("keydown", (event) => this.stepProgram(event));
    this.tabs.addEventListener("keydown", (event) => this.stepTab(event));
    const compare = new CompareView(around);
    element.replaceChildren(
      create("header", "", title, close),
      fold("Timeline", this.timeline.element, true),
      fold("Devices", this.devices, false),
      fold("Compare", compare.element, false),
      create("div", "split", this.list, create("div", "program", this.tabs, this.panel)),
    );
    around.onTheme(() => this.timeline.draw());
  }

  /** Asks for what the last run did, and shows it. */
  async refresh(): Promise<void> {
    const turn = ++this.turn;
    const programs = (await this.around.ask("programs")) as Answer<{ programs: Program[] }>;
    if (turn !== this.turn) return;
    const problem = problemOf(programs);
    if (problem !== null) return this.empty(problem);
    this.shown = (programs as { programs: Program[] }).programs;
    const [timeline, devices] = [await this.around.ask("timeline"), await this.around.ask("devices")];
    if (turn !== this.turn) return;
    this.showTimeline(timeline as Answer<Timeline>);
    this.showDevices(devices as Answer<{ devices: DeviceFacts[] }>);
    if (!this.shown.length) {
      return this.empty(
        "No program was compiled yet. Run a document that computes with weft, and its programs are here.",
      );
    }
    const before = this.details;
    const same = this.shown.find(({ name, signature }) => name === before?.name && signature === before.signature);
    const cost = ({ seconds, phases }: Program): number => seconds + (phases["compile"] ?? 0);
    const functions = this.shown.filter(({ kind }) => kind === "function");
    await this.choose(same ?? functions.toSorted((a, b) => cost(b) - cost(a))[0] ?? this.shown[0]!);
  }

  private empty(text: string): void {
    this.shown = [];
    this.details = null;
    this.list.replaceChildren();
    this.tabs.replaceChildren();
    this.put({ element: sentence(text) });
  }

  private showTimeline(answer: Answer<Timeline>): void {
    const problem = problemOf(answer);
    if (problem === null) this.timeline.show(answer as Timeline);
    else this.timeline.element.replaceChildren(sentence(problem));
  }

  private showDevices(answer: Answer<{ devices: DeviceFacts[] }>): void {
    const problem = problemOf(answer);
    const devices = problem === null ? (answer as { devices: DeviceFacts[] }).devices : [];
    this.devices.replaceChildren(
      ...devices.map(({ name, facts }) =>
        create("section", "", create("h3", "", name), table([], facts, `The device ${name}`)),
      ),
    );
    if (!devices.length) this.devices.append(sentence(problem ?? "No device was used yet."));
  }

  private async choose(program: Program, focus = false): Promise<void> {
    const turn = ++this.turn;
    const answer = (await this.around.ask("program", { id: program.id })) as Answer<Details>;
    if (turn !== this.turn) return;
    const problem = problemOf(answer);
    if (problem !== null) return this.empty(problem);
    this.details = answer as Details;
    this.list.replaceChildren(...this.shown.map((each) => this.entry(each)));
    if (focus) this.list.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    const tabs = this.tabIds();
    await this.open(tabs.includes(this.tab) ? this.tab : "overview");
  }

  private entry(program: Program): HTMLElement {
    const isChosen = program.id === this.details?.id;
    const count = program.calls.toLocaleString("en");
    const calls = program.all ? (program.calls === 1 ? "1 call" : `${count} calls`) : `over ${count} calls`;
    const element = create(
      "div",
      program.kind,
      create("strong", "", program.name),
      create("span", "", program.signature),
      create("span", "", `line ${program.line}, ${calls}, ${seconds(program.seconds)}${program.all ? "" : " timed"}`),
    );
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", String(isChosen));
    element.tabIndex = isChosen ? 0 : -1;
    element.addEventListener("click", () => void this.choose(program));
    element.addEventListener("mouseenter", () => this.around.point(program.file, program.line));
    element.addEventListener("mouseleave", () => this.around.point("", null));
    return element;
  }

  private stepProgram(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = this.shown.findIndex(({ id }) => id === this.details?.id);
    const next = this.shown[at + step];
    if (next) void this.choose(next, true);
  }

  private tabIds(): TabId[] {
    return ["overview", ...(this.details?.stages ?? []), "kernels"];
  }

  private async open(tab: TabId, focus = false): Promise<void> {
    const { details } = this;
    if (!details) return;
    this.tab = tab;
    this.tabs.replaceChildren(...this.tabIds().map((each) => this.tabButton(each)));
    if (focus) this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    this.panel.setAttribute("aria-labelledby", `inspector-tab-${tab}`);
    const turn = ++this.turn;
    const made =
      tab === "overview"
        ? overview(details, this.around)
        : tab === "kernels"
          ? kernels(details, this.around)
          : await textPane(details, tab, this.around);
    if (turn === this.turn) this.put(made);
    else made.dispose?.();
  }

  private put(pane: Pane): void {
    this.pane?.dispose?.();
    this.pane = pane;
    this.panel.replaceChildren(pane.element);
  }

  private tabButton(tab: TabId): HTMLElement {
    const element = button(TITLES[tab], () => void this.open(tab, true));
    element.setAttribute("role", "tab");
    element.id = `inspector-tab-${tab}`;
    element.setAttribute("aria-selected", String(tab === this.tab));
    element.setAttribute("aria-controls", this.panel.id);
    element.tabIndex = tab === this.tab ? 0 : -1;
    return element;
  }

  private stepTab(event: KeyboardEvent): void {
    const tabs = this.tabIds();
    const at = tabs.indexOf(this.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    void this.open(tabs[(to + tabs.length) % tabs.length]!, true);
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("header button")?.focus();
  }
}

function fold(title: string, content: HTMLElement, open: boolean): HTMLElement {
  const element = create("details", "", create("summary", "", title), content);
  element.open = open;
  return element;
}
