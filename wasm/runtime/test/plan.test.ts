import assert from "node:assert/strict";
import { test } from "node:test";
import { bindings } from "../src/gpu_device.js";
import type { Metadata } from "../src/contents.js";
import { dispatches, largestCounter, launches, waits, type Plan, type Step } from "../src/gpu_plan.js";
import { checkPlan } from "../src/plan_contents.js";
import * as programs from "./programs.js";
import { detectFeatures } from "../src/index.js";

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const dispatch: Step = { op: "dispatch", kernel: 0, bind: [0, 1], groups: [1, 1, 1] };
const plan = (more: Partial<Plan> = {}): Plan => ({
  kernels: [
    {
      wgsl:
        "@group(0) @binding(0) var<storage, read> x: array<f32>; " +
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;",
      entry: "main",
    },
  ],
  buffers: [
    { bytes: 16, role: "input", index: 0 },
    { bytes: 16, role: "output", index: 0 },
  ],
  steps: [dispatch],
  ...more,
});
const metadata = (more: object = {}) => programs.metadata(1, [null], { kind: "webgpu", ...more });
const parse = (value: unknown, more: object = {}) =>
  checkPlan(metadata(more) as Metadata, encode(value), new Uint8Array());

test("a sound plan is read as it is", () => assert.deepEqual(parse(plan()), plan()));

test("plans with dangling indices are refused", () => {
  assert.throws(() => parse({}), /artifact test: plan.kernels is missing/);
  assert.throws(() => parse(plan({ steps: [{ ...dispatch, kernel: 1 }] })), /steps\[0\].kernel names kernel 1 of 1/);
  assert.throws(
    () => parse(plan({ steps: [{ ...dispatch, bind: [0, 9] }] })),
    /steps\[0\].bind\[1\] names buffer 9 of 2/,
  );
  assert.throws(
    () => parse(plan({ steps: [{ ...dispatch, bind: [0] }] })),
    /steps\[0\].bind must be 2 buffers, each another, as kernel 0 has bindings; got 1/,
  );
  assert.throws(() => parse(plan({ steps: [{ ...dispatch, bind: [1, 1] }] })), /must be 2 buffers, each another/);
  assert.throws(
    () => parse(plan({ steps: [{ op: "loop", count: 2 ** 25, body: [], counter: 1 }] })),
    /count must be at most 16777216 where a counter/,
  );
  assert.throws(
    () => parse(plan({ steps: [{ op: "dance" } as unknown as Step] })),
    /steps\[0\].op must be one of .*; got "dance"/,
  );
  assert.throws(
    () => parse(plan({ buffers: [{ bytes: 16, role: "input", index: 0 }] })),
    /its plan has 0 of 1 outputs/,
  );
  assert.throws(
    () => parse(plan({ buffers: [{ bytes: 4, role: "input", index: 0 }] })),
    /buffers\[0\] is input 0 of 4 bytes/,
  );
  const constant = { bytes: 4, role: "constant" as const, index: 0, offset: 0 };
  assert.throws(
    () => parse(plan({ buffers: [...plan().buffers, constant] })),
    /buffers\[2\] must lie in the 0 bytes of constants; got 4 at 0/,
  );
});

test("calls of the host are within its functions and the plan's buffers", () => {
  const place = { buffer: 0, offset: 0, bytes: 16 };
  const call = (more: object): Step => ({ op: "call", number: 0, arguments: [place], results: [], ...more });
  const parseCall = (more: object) => parse(plan({ steps: [call(more)] }), { calls: [1] });
  assert.deepEqual(parseCall({}).steps, [call({})]);
  assert.equal(waits(parseCall({}).steps), true);
  assert.throws(() => parse(plan({ steps: [call({})] })), /steps\[0\] calls function 0 with 1 arrays/);
  assert.throws(() => parseCall({ number: -1 }), /steps\[0\].number must be an int from 0/);
  assert.throws(
    () => parseCall({ arguments: [], results: [{ ...place, buffer: 7 }] }),
    /results\[0\].buffer names buffer 7 of 2/,
  );
  for (const wrong of [{ offset: 4 }, { offset: -4 }, { bytes: 20 }, { bytes: 2 }, { offset: 1e300 }, { bytes: null }])
    assert.throws(
      () => parseCall({ arguments: [{ ...place, ...wrong }] }),
      /steps\[0\].arguments\[0\](.\w+ must be an int| is \d+ bytes at)/,
    );
});

test("waiting and counters are found in nested steps", () => {
  const loop = (body: Step[], counter: number | null = null): Step => ({ op: "loop", count: 5, body, counter });
  assert.equal(waits([loop([dispatch])]), false);
  assert.equal(waits([loop([loop([{ op: "while", cond: [], flag: 0, body: [] }])])]), true);
  assert.equal(largestCounter([loop([dispatch])]), 0);
  assert.equal(largestCounter([{ op: "switch", index: 0, branches: [[], [loop([], 0)]] }]), 5);
});

test("all dispatches of a plan are found, those of loops and branches too", () => {
  const of = (kernel: number): Step => ({ ...dispatch, kernel }) as Step;
  const steps: Step[] = [
    of(0),
    { op: "loop", count: 5, counter: null, body: [of(1)] },
    { op: "while", cond: [of(2)], flag: 0, body: [of(3)] },
    { op: "switch", index: 0, branches: [[of(4)], [], [of(5)]] },
  ];
  assert.deepEqual(
    [...dispatches(steps)].map((step) => step.kernel),
    [0, 1, 2, 3, 4, 5],
  );
});

test("gated steps are kernels alone, and a gated branch does not wait", () => {
  const branch = (inner: Step[], gated: boolean): Step => ({ op: "switch", index: 1, branches: [[], inner], gated });
  const loop = (body: Step[]): Step => ({ op: "while", cond: [dispatch], flag: 1, body, gated: true });
  const sound = [loop([dispatch, branch([dispatch], true), { op: "loop", count: 3, body: [dispatch], counter: null }])];
  assert.deepEqual(parse(plan({ steps: sound })).steps, sound);
  assert.equal(waits([branch([dispatch], true)]), false);
  assert.equal(waits([branch([dispatch], false)]), true);
  assert.equal(waits(sound), true);
  assert.equal(launches([dispatch, branch([dispatch], true), { op: "loop", count: 3, body: sound, counter: null }]), 5);
  const copy: Step = { op: "copy", src: 0, dst: 1, bytes: 4 };
  const refused = /steps\[0\](.branches\[1\]\[0\])? is gated, and has a step that copies, or waits for a value/;
  for (const wrong of [copy, loop([]), branch([], false)]) {
    assert.throws(() => parse(plan({ steps: [loop([wrong])] })), refused);
    assert.throws(() => parse(plan({ steps: [branch([wrong], true)] })), refused);
  }
  assert.throws(() => parse(plan({ steps: [{ ...loop([]), cond: [branch([], false)] } as Step] })), refused);
  assert.throws(
    () => parse(plan({ steps: [{ ...loop([]), gated: 1 } as unknown as Step] })),
    /steps\[0\].gated must be true or false; got 1/,
  );
});

test("bindings are read from the text, used or not", () => {
  const wgsl = `
    @group(0) @binding(0) var<storage, read> x : array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @binding(2) @group(0) var<uniform> n: u32;
    @group(0) @binding(3) var<storage> z: array<f32>;`;
  assert.deepEqual(
    bindings(wgsl).map((entry) => [entry.binding, entry.buffer?.type]),
    [
      [0, "read-only-storage"],
      [1, "storage"],
      [2, "uniform"],
      [3, "read-only-storage"],
    ],
  );
});

test("this engine has SIMD, and features come in the artifact's words", () => {
  const features = detectFeatures();
  assert.ok(features.includes("simd128"));
  const relaxed =
    process.execArgv.includes("--experimental-wasm-relaxed-simd") || Number(process.versions.node.split(".")[0]) >= 22;
  assert.equal(features.includes("relaxed-simd"), relaxed);
});
