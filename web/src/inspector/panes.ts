/** The tabs of one program: what it is in each form. */
import { createReader, type Reader } from "../editor/reader.js";
import { button, create } from "../elements.js";
import { bytes, seconds, sentence, table, whileBusy } from "./dom.js";
import {
  problemOf,
  type Answer,
  type Details,
  type KernelTimes,
  type Slot,
  type Stage,
  type Surroundings,
  type Text,
} from "./model.js";

export type TabId = "overview" | Stage | "kernels";

export const TITLES: Record<TabId, string> = {
  overview: "Overview",
  jaxpr: "Jaxpr",
  groups: "Groups",
  ir: "IR",
  wat: "Wasm",
  wgsl: "WGSL",
  stablehlo: "StableHLO",
  hlo: "HLO",
  plan: "Memory",
  kernels: "Kernels",
};

const LABELS: Record<string, string> = {
  argument_size_in_bytes: "Arguments",
  output_size_in_bytes: "Results",
  alias_size_in_bytes: "Results in the place of arguments",
  temp_size_in_bytes: "Temporary memory",
  generated_code_size_in_bytes: "Code",
};
const PHASES: Record<string, string> = {
  trace: "Tracing",
  lower: "Lowering",
  compile: "Compiling",
  host: "Compiling on the host",
  load: "of which loading",
};

/** What a tab shows; `dispose` ends it. */
export interface Pane {
  element: HTMLElement;
  dispose?(): void;
}

export function overview(details: Details, around: Surroundings): Pane {
  const where = button(`${details.file}, line ${details.line}`, () => around.goto(details.file, details.line), "link");
  const facts: (Node | string)[][] = [
    ["Called at", where],
    ["Types", create("code", "", details.signature)],
    ["Backend", details.backend],
    ["Calls", details.all ? details.calls.toLocaleString("en") : `more than the ${details.calls} that were timed`],
  ];
  if (details.calls) {
    facts.push(
      [details.all ? "Time of all calls" : "Time of these", seconds(details.seconds)],
      ["Time of one", seconds(details.seconds / details.calls)],
    );
  }
  for (const [phase, title] of Object.entries(PHASES)) {
    const spent = details.phases[phase];
    if (spent) facts.push([title, seconds(spent)]);
  }
  for (const [name, value] of Object.entries(details.memory)) facts.push([LABELS[name] ?? name, bytes(value)]);
  const reasons = details.why.map(({ phase, where, why }) =>
    create("li", "", `${capital(phase)} at ${where}: ${why}.`),
  );
  const element = create("div", "overview", table([], facts, "The program"), create("h3", "", "Why it was compiled"));
  element.append(
    reasons.length ? create("ul", "", ...reasons) : sentence("It is a single operation, compiled when it first ran."),
  );
  if (!details.all) element.append(sentence("Run it again with the inspector open, and every call is timed."));
  if (details.backend === "webgpu") {
    element.append(sentence("On WebGPU the time of a call is that of submitting it. The tab Kernels has the GPU's."));
  }
  return { element };
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export async function textPane(details: Details, stage: Stage, around: Surroundings): Promise<Pane> {
  const answer = (await around.ask("text", { id: details.id, stage })) as Answer<Text>;
  const problem = problemOf(answer);
  if (problem !== null) return { element: sentence(problem) };
  const { text, lines, slots } = answer as Text;
  if (!text.trim() && stage === "plan") return { element: sentence("The program needs no temporary memory.") };
  const where = create("p", "where", lines ? "Point at an equation to see the line that it comes from." : "");
  const parent = create("div", "reader");
  const name = `${TITLES[stage]} of ${details.name}`;
  const reader: Reader = createReader({
    parent,
    text,
    label: `${name}, to read`,
    ...(lines && {
      onLine: (line) => pointOut(line === null ? null : (lines[line - 1] ?? null), where, around),
      onChoose: (line) => {
        const place = lines[line - 1];
        if (place) around.goto(...place);
      },
    }),
  });
  const copy = button("Copy", () => {
    void navigator.clipboard?.writeText(text).then(
      () => flash(copy, "Copied"),
      () => flash(copy, "Not allowed"),
    );
  });
  const tools = create(
    "div",
    "tools",
    where,
    button("Search", () => reader.search()),
    copy,
  );
  const element = create("div", "text", tools, ...(slots?.length ? [memoryMap(slots)] : []), parent);
  return { element, dispose: () => reader.destroy() };
}

function flash(element: HTMLElement, text: string): void {
  const before = element.textContent;
  element.textContent = text;
  setTimeout(() => (element.textContent = before), 1500);
}

function pointOut(place: [string, number] | null, where: HTMLElement, around: Surroundings): void {
  if (!place) {
    around.point("", null);
    where.textContent = "Point at an equation to see the line that it comes from.";
    return;
  }
  const [file, line] = place;
  around.point(file, line);
  where.replaceChildren(`${file}, line ${line} `, create("code", "", around.lineOf(file, line).trim()));
}

/** Buffers as boxes: to the right the steps of the program, downwards the addresses. */
function memoryMap(slots: Slot[]): HTMLElement {
  const steps = Math.max(...slots.map(({ last }) => last)) + 1;
  const size = Math.max(...slots.map(({ offset, nbytes }) => offset + nbytes), 1);
  const map = create("div", "map");
  map.setAttribute("role", "img");
  map.setAttribute("aria-label", `${slots.length} buffers in ${bytes(size)}; the list below has their places.`);
  for (const { name, type, nbytes, offset, first, last } of slots) {
    const box = create("span", "", name);
    box.title = `${name}: ${type}, ${bytes(nbytes)} at ${offset}, steps ${first} to ${last}`;
    box.style.left = `${(100 * first) / steps}%`;
    box.style.width = `${(100 * (last + 1 - first)) / steps}%`;
    box.style.top = `${(100 * offset) / size}%`;
    box.style.height = `${Math.max((100 * nbytes) / size, 1)}%`;
    map.append(box);
  }
  return map;
}

/** Times of kernels, measured when they are asked for: the program runs for it. */
export function kernels(details: Details, around: Surroundings): Pane {
  const result = create("div", "");
  result.setAttribute("aria-live", "polite");
  const start = button("Time kernels", () => void whileBusy(start, measure));
  const element = create(
    "div",
    "kernels",
    start,
    sentence("Runs the program again, with a clock around each kernel, on the arguments of its last call."),
    result,
  );
  async function measure(): Promise<void> {
    result.replaceChildren(sentence("Measuring …"));
    const answer = (await around.ask("kernels", { id: details.id })) as Answer<KernelTimes>;
    const problem = problemOf(answer);
    if (problem !== null) return result.replaceChildren(sentence(problem));
    const { kernels: rows, arguments: used } = answer as KernelTimes;
    result.replaceChildren(bars(rows), sentence(used));
  }
  return { element };
}

function bars(rows: KernelTimes["kernels"]): HTMLElement {
  if (!rows.length) return sentence("The program has no kernels: it only passes its arguments on.");
  const total = rows.reduce((sum, [, spent]) => sum + spent, 0);
  return table(
    ["Kernel", "Share", "Time", "Runs"],
    rows.map(([name, spent, calls]) => {
      const share = total > 0 ? spent / total : 0;
      const bar = create("span", "bar-of");
      bar.style.setProperty("--share", `${100 * share}%`);
      bar.append(`${(100 * share).toFixed(1)} %`);
      return [name, bar, seconds(spent), String(calls)];
    }),
    "Time of each kernel",
  );
}
