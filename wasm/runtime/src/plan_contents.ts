/** The permitted contents of the plan of a WebGPU artifact (docs/artifact.md); contents.py has the same rules. */
import {
  ARRAYS,
  BOOL,
  brief,
  COUNT,
  Checker,
  ints,
  isObject,
  list,
  NAME,
  orNull,
  SIZE,
  TEXT,
  words,
  type Fields,
} from "./checks.js";
import type { Metadata } from "./contents.js";
import { waits, type Plan, type Step } from "./gpu_plan.js";

const WORD = 4; // bytes of every element
const MOST_STEPS = 1 << 20;
const MOST_NESTING = 128;
const MOST_BOUND = 100;
const MOST_COUNTED = 1 << 24; // iterations of a loop whose counter is asked for: they are written down before it runs
const BINDING = /@binding\([ \t\n]*[0-9]+[ \t\n]*\)/g;
const MOST_BRANCHES = 1 << 16;

const BUFFER: Fields = { bytes: SIZE, role: words("input", "output", "temp", "constant"), index: COUNT };
const PLACE: Fields = { buffer: COUNT, offset: SIZE, bytes: SIZE };
const STEPS: Record<string, Fields> = {
  dispatch: { kernel: COUNT, bind: list(COUNT, MOST_BOUND), groups: list(ints(2 ** 32 - 1), 3) },
  copy: { src: COUNT, dst: COUNT, bytes: SIZE },
  loop: { count: ints(2 ** 31 - 1), body: ARRAYS, counter: orNull(COUNT) },
  while: { cond: ARRAYS, flag: COUNT, body: ARRAYS },
  switch: { index: COUNT, branches: list(ARRAYS, MOST_BRANCHES) },
  call: { number: COUNT, arguments: ARRAYS, results: ARRAYS },
};
const OPTIONAL: Record<string, Fields> = {
  copy: { srcOffset: SIZE, dstOffset: SIZE },
  while: { gated: BOOL },
  switch: { gated: BOOL },
};

const NOT_GATED = "is gated, and has a step that copies, or waits for a value";

/** Whether steps are kernels alone, which can test for themselves whether they shall run. */
function launchable(steps: readonly Step[]): boolean {
  return steps.every((step) => {
    if (step.op === "loop") return launchable(step.body);
    return step.op === "dispatch" || (step.op === "switch" && step.gated === true);
  });
}

/**
 * The plan of an artifact whose metadata is checked. Throws WeftRuntimeError, which names the place, if it is
 * invalid.
 */
export function checkPlan(metadata: Metadata, code: Uint8Array, constants: Uint8Array): Plan {
  return new PlanChecker(metadata, constants.length).read(code);
}

class PlanChecker extends Checker {
  private plan: Plan = { kernels: [], buffers: [], steps: [] };
  private left = MOST_STEPS;
  /** How many buffers each kernel is given. */
  private bindings: number[] = [];

  constructor(
    private readonly metadata: Metadata,
    private readonly constants: number,
  ) {
    super(metadata);
  }

  read(code: Uint8Array): Plan {
    try {
      this.plan = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(code)) as Plan;
    } catch (error) {
      this.fail(`its plan is not JSON: ${(error as Error).message}`);
    }
    const { plan } = this;
    this.fields(plan, "plan", { kernels: ARRAYS, buffers: ARRAYS, steps: ARRAYS });
    plan.kernels.forEach((kernel, k) => this.fields(kernel, `kernels[${k}]`, { wgsl: TEXT, entry: NAME }));
    this.bindings = plan.kernels.map(({ wgsl }) => wgsl.match(BINDING)?.length ?? 0);
    const made = { input: new Set<number>(), output: new Set<number>() };
    plan.buffers.forEach((buffer, k) => this.buffer(buffer, `buffers[${k}]`, made));
    const { inputs, outputs, scratch } = this.metadata;
    for (const [role, specs] of [
      ["input", inputs],
      ["output", outputs],
    ] as const) {
      if (made[role].size !== specs.length) this.fail(`its plan has ${made[role].size} of ${specs.length} ${role}s`);
    }
    const temps = plan.buffers.reduce((sum, { role, bytes }) => (role === "temp" ? sum + bytes : sum), 0);
    if (temps !== scratch) this.fail(`scratch must be ${temps}, the bytes of its plan's temps; got ${scratch}`);
    this.steps(plan.steps, "steps", 0);
    return plan;
  }

  private buffer(buffer: Plan["buffers"][0], place: string, made: Record<"input" | "output", Set<number>>): void {
    this.fields(buffer, place, BUFFER, { offset: SIZE });
    const { role, index, bytes, offset } = buffer;
    if (role === "input" || role === "output") {
      const specs = role === "input" ? this.metadata.inputs : this.metadata.outputs;
      if (specs[index]?.bytes !== bytes)
        this.fail(`${place} is ${role} ${index} of ${bytes} bytes, which the metadata doesn't have`);
      if (made[role].has(index)) this.fail(`${place} is ${role} ${index}, which another buffer is`);
      made[role].add(index);
    }
    if (role === "constant" && (offset === undefined || offset % WORD || offset + bytes > this.constants)) {
      this.fail(`${place} must lie in the ${this.constants} bytes of constants; got ${bytes} at ${brief(offset)}`);
    }
  }

  /** The bytes of a buffer of the plan. */
  private size(k: number, place: string): number {
    return this.plan.buffers[k]?.bytes ?? this.fail(`${place} names buffer ${k} of ${this.plan.buffers.length}`);
  }

  /** A buffer that is read as a number. */
  private word(k: number, place: string): void {
    if (this.size(k, place) < WORD) this.fail(`${place} names buffer ${k}, which holds no number`);
  }

  private steps(steps: readonly Step[], place: string, depth: number): void {
    if (depth > MOST_NESTING) this.fail(`steps of its plan nest more than ${MOST_NESTING} deep`);
    steps.forEach((step, k) => {
      if (--this.left < 0) this.fail(`its plan has more than ${MOST_STEPS} steps`);
      this.step(step, `${place}[${k}]`, depth);
    });
  }

  private step(step: Step, at: string, depth: number): void {
    const op: unknown = isObject(step) ? step.op : undefined;
    if (typeof op !== "string" || !Object.hasOwn(STEPS, op)) {
      this.fail(`${at}.op must be one of ${Object.keys(STEPS).sort().join(", ")}; got ${brief(op)}`);
    }
    this.fields(step, at, { op: TEXT, ...STEPS[op] }, OPTIONAL[op] ?? {});
    switch (step.op) {
      case "dispatch":
        if (step.kernel >= this.plan.kernels.length) {
          this.fail(`${at}.kernel names kernel ${step.kernel} of ${this.plan.kernels.length}`);
        }
        step.bind.forEach((k, j) => this.size(k, `${at}.bind[${j}]`));
        if (step.bind.length !== this.bindings[step.kernel] || new Set(step.bind).size !== step.bind.length) {
          this.fail(
            `${at}.bind must be ${this.bindings[step.kernel]} buffers, each another, ` +
              `as kernel ${step.kernel} has bindings; got ${step.bind.length}`,
          );
        }
        if (step.groups.length !== 3)
          this.fail(`${at}.groups must be three numbers; got ${(step.groups as number[]).length}`);
        break;
      case "copy":
        this.size(step.src, `${at}.src`);
        this.size(step.dst, `${at}.dst`);
        if (step.src === step.dst) this.fail(`${at} copies within buffer ${step.src}, which a device can't`);
        for (const [k, offset] of [
          [step.src, step.srcOffset ?? 0],
          [step.dst, step.dstOffset ?? 0],
        ] as const) {
          const size = this.size(k, at);
          if (offset % WORD || step.bytes % WORD || offset + step.bytes > size) {
            this.fail(`${at} copies ${step.bytes} bytes at ${offset} of buffer ${k}, which has ${size}`);
          }
        }
        break;
      case "loop":
        if (step.counter !== null) {
          this.word(step.counter, `${at}.counter`);
          if (step.count > MOST_COUNTED) {
            this.fail(`${at}.count must be at most ${MOST_COUNTED} where a counter is asked for; got ${step.count}`);
          }
        }
        this.steps(step.body, `${at}.body`, depth + 1);
        break;
      case "while":
        this.word(step.flag, `${at}.flag`);
        this.steps(step.cond, `${at}.cond`, depth + 1);
        this.steps(step.body, `${at}.body`, depth + 1);
        if (step.gated && (waits(step.cond) || !launchable(step.body))) this.fail(`${at} ${NOT_GATED}`);
        break;
      case "switch":
        this.word(step.index, `${at}.index`);
        if (!step.branches.length) this.fail(`${at}.branches must have one`);
        step.branches.forEach((branch, j) => this.steps(branch, `${at}.branches[${j}]`, depth + 1));
        if (step.gated && !step.branches.every(launchable)) this.fail(`${at} ${NOT_GATED}`);
        break;
      case "call": {
        const count = step.arguments.length + step.results.length;
        if (this.metadata.calls?.[step.number] !== count) {
          this.fail(`${at} calls function ${step.number} with ${count} arrays, which the metadata doesn't have`);
        }
        for (const group of ["arguments", "results"] as const) {
          step[group].forEach((place, j) => {
            const where = `${at}.${group}[${j}]`;
            this.fields(place, where, PLACE);
            const { buffer, offset, bytes } = place;
            const size = this.size(buffer, `${where}.buffer`);
            if (offset % WORD || bytes % WORD || offset + bytes > size) {
              this.fail(`${where} is ${bytes} bytes at ${offset} of buffer ${buffer}, which has ${size}`);
            }
          });
        }
      }
    }
  }
}
