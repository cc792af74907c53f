/** The plan inside a WebGPU artifact: kernels, buffers, and steps to encode. */
import { WeftRuntimeError } from "./errors.js";

export interface Kernel {
  wgsl: string;
  entry: string;
}

export interface PlanBuffer {
  bytes: number;
  role: "input" | "output" | "temp" | "constant";
  /** Which input or output this is. */
  index: number;
  /** Where a constant begins in the container's constants. */
  offset?: number;
}

export interface DispatchStep {
  op: "dispatch";
  kernel: number;
  bind: number[];
  groups: [number, number, number];
}

export interface CopyStep {
  op: "copy";
  src: number;
  dst: number;
  bytes: number;
  srcOffset?: number;
  dstOffset?: number;
}

/** A known trip count: encoded that many times into the same submit. `counter` holds the iteration's number. */
export interface LoopStep {
  op: "loop";
  count: number;
  body: Step[];
  counter: number | null;
}

export interface WhileStep {
  op: "while";
  cond: Step[];
  flag: number;
  body: Step[];
}

export interface SwitchStep {
  op: "switch";
  index: number;
  branches: Step[][];
}

/** Part of a buffer of the plan, in bytes. */
export interface Place {
  buffer: number;
  offset: number;
  bytes: number;
}

/** Calls function `number` of the host on what the arguments hold then. */
export interface CallStep {
  op: "call";
  number: number;
  arguments: Place[];
  results: Place[];
}

export type Step = DispatchStep | CopyStep | LoopStep | WhileStep | SwitchStep | CallStep;

export interface Plan {
  kernels: Kernel[];
  buffers: PlanBuffer[];
  steps: Step[];
}

/** Whether running these steps has to read a value back before it can go on. */
export function waits(steps: readonly Step[]): boolean {
  return steps.some(
    (step) => step.op === "while" || step.op === "switch" || step.op === "call" || (step.op === "loop" && waits(step.body)),
  );
}

/** The largest trip count whose counter is asked for. */
export function largestCounter(steps: readonly Step[]): number {
  let largest = 0;
  for (const step of steps) {
    if (step.op === "loop") {
      if (step.counter !== null) largest = Math.max(largest, step.count);
      largest = Math.max(largest, largestCounter(step.body));
    } else if (step.op === "while") largest = Math.max(largest, largestCounter(step.cond), largestCounter(step.body));
    else if (step.op === "switch") largest = Math.max(largest, ...step.branches.map(largestCounter));
  }
  return largest;
}

/** Reads a plan and checks every index in it, so that running it needs no checks. `calls`: how many functions of the host it may call. */
export function parsePlan(
  name: string,
  code: Uint8Array,
  inputs: number,
  outputs: number,
  constants: number,
  calls = 0,
): Plan {
  const fail = (what: string) => new WeftRuntimeError(`program ${name}: its plan ${what}; compile it again`);
  let plan: Plan;
  try {
    plan = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(code)) as Plan;
  } catch (error) {
    throw fail(`is not JSON (${(error as Error).message})`);
  }
  if (![plan?.kernels, plan?.buffers, plan?.steps].every(Array.isArray)) throw fail("has no kernels, buffers or steps");
  const seen = new Set<number>();
  for (const [i, buffer] of plan.buffers.entries()) {
    if (!Number.isSafeInteger(buffer.bytes) || buffer.bytes < 0) throw fail(`gives buffer ${i} no size`);
    if (buffer.role === "input" && !(buffer.index < inputs)) throw fail(`has an input ${buffer.index} too many`);
    if (buffer.role === "output") {
      if (!(buffer.index < outputs) || seen.has(buffer.index))
        throw fail(`has output ${buffer.index} twice or too many`);
      seen.add(buffer.index);
    }
    if (buffer.role === "constant" && (buffer.offset ?? 0) + buffer.bytes > constants)
      throw fail(`has constant ${i} outside`);
  }
  if (seen.size !== outputs) throw fail(`makes ${seen.size} of ${outputs} outputs`);

  const buffer = (id: number | null) => {
    if (id === null || !(id in plan.buffers)) throw fail(`names a buffer ${id} that does not exist`);
  };
  const place = ({ buffer: id, offset, bytes }: Place) => {
    buffer(id);
    const sound = [offset, bytes].every((n) => Number.isSafeInteger(n) && n >= 0 && n % 4 === 0);
    if (!sound || offset + bytes > plan.buffers[id]!.bytes) throw fail(`names bytes outside of buffer ${id}`);
  };
  const check = (steps: Step[]): void => {
    for (const step of steps) {
      switch (step.op) {
        case "dispatch":
          if (!(step.kernel in plan.kernels)) throw fail(`names a kernel ${step.kernel} that does not exist`);
          step.bind.forEach(buffer);
          if (step.groups.length !== 3) throw fail("dispatches without three group counts");
          break;
        case "copy":
          buffer(step.src);
          buffer(step.dst);
          break;
        case "loop":
          if (!Number.isSafeInteger(step.count) || step.count < 0) throw fail("has a loop without a count");
          step.counter ??= null;
          if (step.counter !== null) buffer(step.counter);
          check(step.body);
          break;
        case "while":
          buffer(step.flag);
          check(step.cond);
          check(step.body);
          break;
        case "switch":
          buffer(step.index);
          if (!step.branches.length) throw fail("has a switch without branches");
          step.branches.forEach(check);
          break;
        case "call":
          if (!(Number.isInteger(step.number) && step.number >= 0 && step.number < calls))
            throw fail(`calls a function ${step.number} that does not exist`);
          [...step.arguments, ...step.results].forEach(place);
          break;
        default:
          throw fail(`has an unknown step ${String((step as { op: unknown }).op)}`);
      }
    }
  };
  check(plan.steps);
  return plan;
}
