/** Runs WebGPU artifacts. Work is queued in order; only loading and reading wait. */
import type { MemoryStats } from "./allocator.js";
import { parseArtifact } from "./container.js";
import type { Metadata } from "./contents.js";
import { WeftInterrupted, WeftRuntimeError } from "./errors.js";
import { checkPlan } from "./plan_contents.js";
import { GpuBuffers } from "./gpu_buffers.js";
import {
  dispatches,
  largestCounter,
  launches,
  waits,
  type CallStep,
  type DispatchStep,
  type Kernel,
  type Plan,
  type Step,
  type WhileStep,
} from "./gpu_plan.js";

const WANTED_FEATURES = ["shader-f16", "subgroups"] as const;
const WANTED_LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupsPerDimension",
  "maxStorageBuffersPerShaderStage",
] as const;

export type GpuLimits = Record<(typeof WANTED_LIMITS)[number], number>;
export type GpuEntry = (...inputs: number[]) => number | Promise<number>;

/**
 * The functions of the host that programs call, by number: from the bytes of the arguments to those of the results. A
 * Python function is called through `callPromising`, so that it may wait, for an array of this device for example.
 */
export interface GpuHostCall {
  (number: number, args: Uint8Array[]): Uint8Array[];
  callPromising?(number: number, args: Uint8Array[]): Promise<Uint8Array[]>;
}

interface Pipeline {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
}

interface Program {
  metadata: Metadata;
  plan: Plan;
  pipelines: Pipeline[];
  /** Handles of the constants, by buffer id of the plan. */
  constants: Map<number, number>;
  async: boolean;
  results: Uint32Array;
  host: GpuHostCall | undefined;
  /** Bind groups by kernel and buffers: the buffers of small arrays come round again soon. */
  groups: Map<string, GPUBindGroup>;
}

/** One run: the buffers of the plan's ids, and the commands encoded since the last submit. */
interface Run {
  program: Program;
  buffers: GPUBuffer[];
  /** By steps that this run has encoded. */
  groups: Map<DispatchStep, GPUBindGroup>;
  encoder: GPUCommandEncoder;
  pass: GPUComputePassEncoder | null;
}

/** The interface by which a page stops a wait for the GPU: `WasmDevice` implements it. */
export interface Stops {
  readonly interrupted: boolean;
  clearInterrupt(): void;
}

const LOOK = 50; // ms between two looks whether to stop
const GROUPS = 1024; // bind groups of a program that are kept
const FIRST_BATCH = 4; // iterations of a loop until its flag is read for the first time
const MOST_LAUNCHES = 512; // kernels, until it is read again
const BATCH_MS = 20; // a batch that takes so long grows no further: whoever stops the program waits for its end

export class GpuDevice {
  readonly features: readonly string[];
  readonly limits: GpuLimits;
  /** Why the device is lost: from then on every call throws. */
  lost: string | null = null;
  private readonly buffers: GpuBuffers;
  private readonly programs = new Map<number, Program>();
  /** Pipelines by the data from which they are made, and how many loaded programs use each. */
  private readonly pipelines = new Map<string, { made: Promise<Pipeline>; programs: number }>();
  private nextId = 1;
  private failure: string | null = null;
  /** 0, 1, 2 … as i32: loop counters are copied from it. */
  private iota: GPUBuffer | null = null;

  private constructor(
    readonly device: GPUDevice,
    private readonly stops: Stops | null,
    before: GpuDevice | null,
  ) {
    this.features = [...device.features].sort();
    this.limits = Object.fromEntries(WANTED_LIMITS.map((name) => [name, device.limits[name]])) as GpuLimits;
    this.buffers = new GpuBuffers(device, before?.buffers.next);
    device.addEventListener("uncapturederror", (event) => {
      this.failure ??= (event as GPUUncapturedErrorEvent).error.message;
      event.preventDefault();
    });
    void device.lost.then((info) => {
      this.lost = info.message || info.reason || "no reason given";
    });
  }

  /** The adapter as the browser names it: its vendor and architecture; "" if it keeps them to itself. */
  get adapter(): string {
    const { vendor, architecture } = this.device.adapterInfo ?? {};
    return [vendor, architecture].filter(Boolean).join(" ");
  }

  /** The first handle of this device. */
  get first(): number {
    return this.buffers.first;
  }

  /**
   * The device of the best adapter, or null if there is none (the API may exist without an adapter). Its handles are
   * none of those of the device before.
   */
  static async create(stops: Stops | null = null, before: GpuDevice | null = null): Promise<GpuDevice | null> {
    const gpu = (globalThis.navigator as Navigator | undefined)?.gpu;
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
    if (!adapter) return null;
    const requiredFeatures = WANTED_FEATURES.filter((name) => adapter.features.has(name)) as GPUFeatureName[];
    const requiredLimits = Object.fromEntries(WANTED_LIMITS.map((name) => [name, adapter.limits[name]]));
    const device = await adapter.requestDevice({ requiredFeatures, requiredLimits }).catch(() => null);
    return device && new GpuDevice(device, stops, before);
  }

  alloc(bytes: number): number {
    this.checkAlive();
    return this.buffers.alloc(bytes);
  }

  free(handle: number): void {
    this.buffers.free(handle);
  }

  write(handle: number, data: Uint8Array): void {
    this.checkAlive();
    if (data.length > this.buffers.size(handle)) {
      throw new WeftRuntimeError(
        `write(${handle}): ${data.length} bytes into a buffer of ${this.buffers.size(handle)}`,
      );
    }
    this.upload(this.buffers.get(handle), data);
  }

  async read(handle: number, bytes: number): Promise<Uint8Array> {
    this.checkAlive();
    if (bytes > this.buffers.size(handle)) {
      throw new WeftRuntimeError(`read(${handle}, ${bytes}): the buffer has ${this.buffers.size(handle)} bytes`);
    }
    return this.orStopped(this.readback(this.buffers.get(handle), bytes));
  }

  /** `host` is called by programs whose metadata has `calls`. */
  async load(bytes: Uint8Array, host?: GpuHostCall): Promise<number> {
    this.checkAlive();
    const { metadata, code, constants } = parseArtifact(bytes);
    if (metadata.kind !== "webgpu") {
      throw new WeftRuntimeError(`program ${metadata.name} was compiled for ${metadata.kind}; load it on that device`);
    }
    const plan = checkPlan(metadata, code, constants);
    const most = this.limits.maxComputeWorkgroupsPerDimension;
    for (const { groups } of dispatches(plan.steps)) {
      if (groups.some((count) => count > most)) {
        throw new WeftRuntimeError(
          `program ${metadata.name} runs ${groups.join(" x ")} workgroups, ` +
            `this WebGPU device at most ${most} in a row; compile it for this device`,
        );
      }
    }
    const missing = metadata.features.filter((feature) => !this.features.includes(feature));
    if (missing.length) {
      throw new WeftRuntimeError(`program ${metadata.name} uses ${missing.join(", ")}, which this WebGPU device lacks`);
    }
    const calls = metadata.calls?.length ?? 0;
    if (calls && !host) {
      throw new WeftRuntimeError(
        `program ${metadata.name} calls functions of its host; load it with a host, from Python`,
      );
    }
    let pipelines: Pipeline[];
    try {
      pipelines = await Promise.all(plan.kernels.map((kernel) => this.pipeline(metadata.name, kernel)));
    } catch (error) {
      this.releasePipelines(plan.kernels);
      throw error;
    }
    const uploaded = new Map<number, number>();
    plan.buffers.forEach(({ role, bytes: size, offset = 0 }, i) => {
      if (role !== "constant") return;
      const handle = this.alloc(size);
      this.write(handle, constants.subarray(offset, offset + size));
      uploaded.set(i, handle);
    });
    this.growIota(largestCounter(plan.steps));
    const id = this.nextId++;
    const results = new Uint32Array(metadata.outputs.length);
    this.programs.set(id, {
      metadata,
      plan,
      pipelines,
      constants: uploaded,
      async: waits(plan.steps),
      results,
      host,
      groups: new Map(),
    });
    return id;
  }

  unload(id: number): void {
    const program = this.program(id);
    this.programs.delete(id);
    this.releasePipelines(program.plan.kernels);
    for (const handle of program.constants.values()) this.free(handle);
  }

  metadata(id: number): Metadata {
    return this.program(id).metadata;
  }

  /** Whether runs of this program read values back, so that they return promises. */
  isAsync(id: number): boolean {
    return this.program(id).async;
  }

  results(id: number): Uint32Array {
    return this.program(id).results;
  }

  /** Runs program `id`: handles of its inputs to handles of its outputs; a promise if the program is asynchronous. */
  run(id: number, inputs: readonly number[], donated: readonly number[] = []): number[] | Promise<number[]> {
    return this.start(this.program(id), inputs, donated);
  }

  /** The call as one function of input handles that returns (a promise of) the handle of output 0. */
  entry(id: number, ...donated: number[]): GpuEntry {
    const program = this.program(id);
    const first = (outputs: number[]): number => {
      program.results.set(outputs);
      return outputs[0] ?? 0;
    };
    return (...inputs) => {
      const outputs = this.start(program, inputs, donated);
      return outputs instanceof Promise ? outputs.then(first) : first(outputs);
    };
  }

  async synchronize(): Promise<void> {
    this.checkAlive();
    await this.orStopped(this.device.queue.onSubmittedWorkDone());
    this.checkAlive();
  }

  stats(): MemoryStats {
    return this.buffers.stats();
  }

  private start(program: Program, inputs: readonly number[], donated: readonly number[]): number[] | Promise<number[]> {
    this.checkAlive();
    const { metadata, plan } = program;
    if (inputs.length !== metadata.inputs.length) {
      throw new WeftRuntimeError(
        `program ${metadata.name} takes ${metadata.inputs.length} inputs, ${inputs.length} given`,
      );
    }
    inputs.forEach((handle, i) => {
      if (this.buffers.size(handle) < metadata.inputs[i]!.bytes) {
        throw new WeftRuntimeError(
          `program ${metadata.name}: input ${i} has fewer than ${metadata.inputs[i]!.bytes} bytes`,
        );
      }
    });
    const outputs = metadata.outputs.map((spec) => this.alloc(spec.bytes));
    const temps: number[] = [];
    const buffers = plan.buffers.map(({ role, index, bytes }, i) => {
      if (role === "input") return this.buffers.get(inputs[index]!);
      if (role === "output") return this.buffers.get(outputs[index]!);
      if (role === "constant") return this.buffers.get(program.constants.get(i)!);
      temps.push(this.alloc(bytes));
      return this.buffers.get(temps.at(-1)!);
    });
    const run: Run = { program, buffers, groups: new Map(), encoder: this.device.createCommandEncoder(), pass: null };
    const finish = (): number[] => {
      this.submit(run);
      temps.forEach((handle) => this.free(handle));
      new Set(donated).forEach((index) => this.free(inputs[index]!));
      return outputs;
    };
    if (!program.async) {
      this.encode(run, plan.steps);
      return finish();
    }
    inputs.forEach((handle) => this.buffers.hold(handle));
    return this.encodeWaiting(run, plan.steps)
      .then(finish, (error: unknown) => {
        [...temps, ...outputs].forEach((handle) => this.free(handle));
        throw error;
      })
      .finally(() => inputs.forEach((handle) => this.buffers.unhold(handle)));
  }

  /** Encodes steps that need no value back. */
  private encode(run: Run, steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.op === "dispatch") this.dispatch(run, step);
      else if (step.op === "copy") {
        this.copy(
          run,
          run.buffers[step.src]!,
          step.srcOffset ?? 0,
          run.buffers[step.dst]!,
          step.dstOffset ?? 0,
          step.bytes,
        );
      } else if (step.op === "loop") {
        for (let i = 0; i < step.count; i++) {
          if (step.counter !== null) this.copy(run, this.iota!, 4 * i, run.buffers[step.counter]!, 0, 4);
          this.encode(run, step.body);
        }
      } else if (step.op === "switch" && step.gated) step.branches.forEach((branch) => this.encode(run, branch));
      else throw new WeftRuntimeError(`step ${step.op} reads a value back`);
    }
  }

  /** Encodes any steps; submits and waits wherever a value must be read back first. */
  private async encodeWaiting(run: Run, steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      if (!waits([step])) this.encode(run, [step]);
      else if (step.op === "loop") {
        for (let i = 0; i < step.count; i++) {
          if (step.counter !== null) this.copy(run, this.iota!, 4 * i, run.buffers[step.counter]!, 0, 4);
          await this.encodeWaiting(run, step.body);
        }
      } else if (step.op === "while" && step.gated) await this.encodeGated(run, step);
      else if (step.op === "while") {
        for (;;) {
          await this.encodeWaiting(run, step.cond);
          if ((await this.word(run, step.flag)) === 0) break;
          await this.encodeWaiting(run, step.body);
        }
      } else if (step.op === "switch") {
        const index = (await this.word(run, step.index)) | 0;
        const branch = Math.min(Math.max(index, 0), step.branches.length - 1);
        await this.encodeWaiting(run, step.branches[branch]!);
      } else if (step.op === "call") await this.call(run, step);
    }
  }

  /** Launches several iterations before it reads the flag: once that is 0, kernels of the body do nothing. */
  private async encodeGated(run: Run, step: WhileStep): Promise<void> {
    const most = Math.max(1, Math.floor(MOST_LAUNCHES / (1 + launches(step.cond) + launches(step.body))));
    let batch = Math.min(FIRST_BATCH, most);
    for (;;) {
      const before = performance.now();
      for (let i = 0; i < batch; i++) {
        this.encode(run, step.cond);
        this.encode(run, step.body);
      }
      if ((await this.word(run, step.flag)) === 0) return;
      if (performance.now() - before < BATCH_MS) batch = Math.min(2 * batch, most);
    }
  }

  private dispatch(run: Run, step: DispatchStep): void {
    if (step.groups.includes(0)) return;
    let group = run.groups.get(step);
    if (!group) {
      group = this.group(
        run.program,
        step.kernel,
        step.bind.map((id) => run.buffers[id]!),
      );
      run.groups.set(step, group);
    }
    run.pass ??= run.encoder.beginComputePass();
    run.pass.setPipeline(run.program.pipelines[step.kernel]!.pipeline);
    run.pass.setBindGroup(0, group);
    run.pass.dispatchWorkgroups(...step.groups);
  }

  private group({ groups, pipelines }: Program, kernel: number, buffers: readonly GPUBuffer[]): GPUBindGroup {
    const key = `${kernel}: ${buffers.map((buffer) => this.buffers.number(buffer)).join()}`;
    let group = groups.get(key);
    if (!group) {
      if (groups.size === GROUPS) groups.clear();
      const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
      group = this.device.createBindGroup({ layout: pipelines[kernel]!.layout, entries });
      groups.set(key, group);
    }
    return group;
  }

  private copy(run: Run, src: GPUBuffer, srcOffset: number, dst: GPUBuffer, dstOffset: number, bytes: number): void {
    run.pass?.end();
    run.pass = null;
    // Copies are in words; the padding of a buffer may be written.
    run.encoder.copyBufferToBuffer(src, srcOffset, dst, dstOffset, Math.ceil(bytes / 4) * 4);
  }

  private submit(run: Run): void {
    run.pass?.end();
    run.pass = null;
    this.device.queue.submit([run.encoder.finish()]);
  }

  /** Submits the encoded commands, and begins a new encoder. */
  private flush(run: Run): void {
    this.submit(run);
    run.encoder = this.device.createCommandEncoder();
  }

  /**
   * Calls a function of the host on the current values of its arguments; its results are written before the steps
   * that follow.
   */
  private async call(run: Run, step: CallStep): Promise<void> {
    this.flush(run);
    const { host, metadata } = run.program;
    const args = step.arguments.map(({ buffer, bytes, offset }) => this.readback(run.buffers[buffer]!, bytes, offset));
    const values = await Promise.all(args);
    const results = await (host!.callPromising?.(step.number, values) ?? host!(step.number, values));
    step.results.forEach(({ buffer, bytes, offset }, i) => {
      const data = results[i];
      if (data?.length !== bytes) {
        throw new WeftRuntimeError(
          `program ${metadata.name}: function ${step.number} gave ${data?.length} bytes for ${bytes}`,
        );
      }
      if (bytes) this.device.queue.writeBuffer(run.buffers[buffer]!, offset, data as Uint8Array<ArrayBuffer>);
    });
  }

  /** Submits the encoded commands and reads the first u32 of a buffer of the plan. */
  private async word(run: Run, id: number): Promise<number> {
    run.pass?.end();
    run.pass = null;
    const staging = this.stage(run.encoder, run.buffers[id]!, 4, 0);
    this.flush(run);
    const bytes = await this.orStopped(this.mapped(staging, 4));
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  }

  /**
   * The value of a promise, or WeftInterrupted once a stop is requested. The GPU still runs the submitted commands;
   * their results are not awaited, and later commands are queued behind them.
   */
  private async orStopped<T>(work: Promise<T>): Promise<T> {
    const { stops } = this;
    if (!stops) return work;
    let timer: ReturnType<typeof setInterval> | undefined;
    const stop = new Promise<never>((_, reject) => {
      const look = (): void => {
        if (!stops.interrupted) return;
        stops.clearInterrupt();
        reject(new WeftInterrupted("stopped while the GPU computes; what it has begun, it ends"));
      };
      timer = setInterval(look, LOOK);
      look();
    });
    work.catch(() => {}); // where the stop came first
    return Promise.race([stop, work]).finally(() => clearInterval(timer));
  }

  private async readback(buffer: GPUBuffer, bytes: number, offset = 0): Promise<Uint8Array> {
    if (!bytes) return new Uint8Array(0);
    const encoder = this.device.createCommandEncoder();
    const staging = this.stage(encoder, buffer, Math.ceil(bytes / 4) * 4, offset);
    this.device.queue.submit([encoder.finish()]);
    return this.mapped(staging, bytes);
  }

  /** A buffer of the page's, into which the encoder copies words of a buffer. */
  private stage(encoder: GPUCommandEncoder, buffer: GPUBuffer, size: number, offset: number): GPUBuffer {
    const staging = this.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
    return staging;
  }

  private async mapped(staging: GPUBuffer, bytes: number): Promise<Uint8Array> {
    try {
      await staging.mapAsync(GPUMapMode.READ).catch((error: unknown) => {
        this.checkAlive();
        throw error;
      });
      this.checkAlive();
      return new Uint8Array(staging.getMappedRange().slice(0, bytes));
    } finally {
      staging.destroy();
    }
  }

  private upload(buffer: GPUBuffer, data: Uint8Array): void {
    let source = data;
    if (data.length % 4) {
      source = new Uint8Array(Math.ceil(data.length / 4) * 4);
      source.set(data);
    }
    this.device.queue.writeBuffer(buffer, 0, source as Uint8Array<ArrayBuffer>);
  }

  private growIota(count: number): void {
    if (!count || (this.iota && this.iota.size >= 4 * count)) return;
    const values = Int32Array.from({ length: Math.max(256, 2 ** Math.ceil(Math.log2(count))) }, (_, i) => i);
    const usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.iota = this.device.createBuffer({ size: values.byteLength, usage });
    this.device.queue.writeBuffer(this.iota, 0, values);
  }

  /** The compiled kernel, made asynchronously once for each text. */
  private pipeline(name: string, kernel: Kernel): Promise<Pipeline> {
    let kept = this.pipelines.get(pipelineKey(kernel));
    if (!kept) {
      kept = { made: this.makePipeline(name, kernel), programs: 0 };
      this.pipelines.set(pipelineKey(kernel), kept);
    }
    kept.programs++;
    return kept.made;
  }

  private releasePipelines(kernels: readonly Kernel[]): void {
    for (const kernel of kernels) {
      const kept = this.pipelines.get(pipelineKey(kernel));
      if (kept && --kept.programs === 0) this.pipelines.delete(pipelineKey(kernel));
    }
  }

  private async makePipeline(name: string, kernel: Kernel): Promise<Pipeline> {
    const layout = this.device.createBindGroupLayout({ entries: bindings(kernel.wgsl) });
    this.device.pushErrorScope("validation");
    const module = this.device.createShaderModule({ code: kernel.wgsl });
    const scope = this.device.popErrorScope();
    const messages = (await module.getCompilationInfo()).messages.filter((message) => message.type === "error");
    await scope;
    if (messages.length) {
      const text = messages.map((message) => `line ${message.lineNum}: ${message.message}`).join("\n");
      throw new WeftRuntimeError(`program ${name}: kernel ${kernel.entry} is not valid WGSL\n${text}`);
    }
    try {
      const pipelineLayout = this.device.createPipelineLayout({ bindGroupLayouts: [layout] });
      const compute = { module, entryPoint: kernel.entry };
      return { layout, pipeline: await this.device.createComputePipelineAsync({ layout: pipelineLayout, compute }) };
    } catch (error) {
      throw new WeftRuntimeError(`program ${name}: kernel ${kernel.entry} was refused: ${(error as Error).message}`);
    }
  }

  private program(id: number): Program {
    const program = this.programs.get(id);
    if (!program) throw new WeftRuntimeError(`no program ${id} is loaded; was it unloaded?`);
    return program;
  }

  private checkAlive(): void {
    if (this.lost !== null) {
      throw new WeftRuntimeError(`the WebGPU device was lost (${this.lost})`);
    }
    if (this.failure !== null) {
      const message = this.failure;
      this.failure = null;
      throw new WeftRuntimeError(`WebGPU refused an earlier command: ${message}`);
    }
  }
}

/** A key that is equal for kernels that share a pipeline. */
function pipelineKey(kernel: Kernel): string {
  return `${kernel.entry}\n${kernel.wgsl}`;
}

const BINDING = /@binding\(\s*(\d+)\s*\)[^;{}]*?\bvar\s*<\s*(\w+)\s*(?:,\s*(\w+)\s*)?>/g;

/** The layout of group 0, read from the text, so that a binding a kernel declares but does not use is in it as well. */
export function bindings(wgsl: string): GPUBindGroupLayoutEntry[] {
  return [...wgsl.matchAll(BINDING)].map(([, binding, space, access]) => {
    const type = space === "uniform" ? "uniform" : access === "read_write" ? "storage" : "read-only-storage";
    return { binding: Number(binding), visibility: 4 /* GPUShaderStage.COMPUTE */, buffer: { type } };
  });
}
