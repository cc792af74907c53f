/**
 * The plan inside a WebGPU artifact: kernels, buffers, and steps to encode. `contents.ts` checks it, so that running it
 * needs no checks.
 */
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

/** Gated: the kernels of the body test the flag themselves, so that they can be launched before anybody reads it. */
export interface WhileStep {
  op: "while";
  cond: Step[];
  flag: number;
  body: Step[];
  gated?: boolean;
}

/** Gated: the kernels of all branches are launched, and test whether the index is theirs. */
export interface SwitchStep {
  op: "switch";
  index: number;
  branches: Step[][];
  gated?: boolean;
}

/** Part of a buffer of the plan, in bytes. */
export interface Place {
  buffer: number;
  offset: number;
  bytes: number;
}

/** Calls function `number` of the host on the values of the arguments at that time. */
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

/** Whether running these steps requires that a value is read back first. */
export function waits(steps: readonly Step[]): boolean {
  return steps.some(
    (step) =>
      step.op === "while" ||
      step.op === "call" ||
      (step.op === "switch" && (!step.gated || step.branches.some(waits))) ||
      (step.op === "loop" && waits(step.body)),
  );
}

/** About how many kernels steps launch. */
export function launches(steps: readonly Step[]): number {
  let count = 0;
  for (const step of steps) {
    if (step.op === "loop") count += step.count * launches(step.body);
    else if (step.op === "switch") for (const branch of step.branches) count += launches(branch);
    else count++;
  }
  return count;
}

/** All dispatches of a plan. */
export function* dispatches(steps: readonly Step[]): Generator<DispatchStep> {
  for (const step of steps) {
    if (step.op === "dispatch") yield step;
    else if (step.op === "loop") yield* dispatches(step.body);
    else if (step.op === "while") yield* dispatches([...step.cond, ...step.body]);
    else if (step.op === "switch") yield* dispatches(step.branches.flat());
  }
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
