import { expect, Playground, test } from "../fixtures/site.js";

type RuntimePage = typeof import("../fixtures/runtime_page.js");

/** Plans of one kernel kind each, over i32[4] buffers. */
const ADD_ONE = `
  @group(0) @binding(0) var<storage, read> x: array<i32>;
  @group(0) @binding(1) var<storage, read_write> y: array<i32>;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x] + 1; }`;
// y += counter
const ADD_COUNTER = `
  @group(0) @binding(0) var<storage, read> counter: array<i32>;
  @group(0) @binding(1) var<storage, read_write> y: array<i32>;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] += counter[0]; }`;
// flag = y[0] < 100
const BELOW_100 = `
  @group(0) @binding(0) var<storage, read> y: array<i32>;
  @group(0) @binding(1) var<storage, read_write> flag: array<u32>;
  @compute @workgroup_size(1) fn main() { flag[0] = select(0u, 1u, y[0] < 100); }`;
const DOUBLE = `
  @group(0) @binding(0) var<storage, read_write> y: array<i32>;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = y[id.x] * 2; }`;
// y += 1, if the flag says so
const ADD_ONE_IF = `
  @group(0) @binding(0) var<storage, read_write> y: array<i32>;
  @group(0) @binding(1) var<storage, read> flag: array<u32>;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
    if (flag[0] == 0u) { return; }
    y[id.x] += 1;
  }`;
// y *= 2, if the index says so
const DOUBLE_IF = `
  @group(0) @binding(0) var<storage, read_write> y: array<i32>;
  @group(0) @binding(1) var<storage, read> index: array<i32>;
  @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
    if (clamp(index[0], 0i, 1i) != 1i) { return; }
    y[id.x] *= 2;
  }`;

const i32x4 = { dtype: "i32", shape: [4], bytes: 16 };
const metadata = (inputs: number, outputs: number) => ({
  abi: 1,
  kind: "webgpu",
  name: "test",
  scratch: 0,
  features: [],
  errors: {},
  inputs: Array(inputs).fill(i32x4),
  outputs: Array(outputs).fill({ ...i32x4, alias: null }),
});
const kernels = (...texts: string[]) => texts.map((wgsl) => ({ wgsl, entry: "main" }));
const groups = [1, 1, 1];
const input = { bytes: 16, role: "input", index: 0 };
const output = { bytes: 16, role: "output", index: 0 };
const temp = (bytes: number) => ({ bytes, role: "temp", index: 0 });
const copyIn = { op: "copy", src: 0, dst: 1, bytes: 16 };

const plans = {
  addOne: {
    kernels: kernels(ADD_ONE),
    buffers: [input, output],
    steps: [{ op: "dispatch", kernel: 0, bind: [0, 1], groups }],
  },
  // y = x + 0 + 1 + … + 4, in one submit
  loop: {
    kernels: kernels(ADD_COUNTER),
    buffers: [input, output, temp(4)],
    steps: [copyIn, { op: "loop", count: 5, counter: 2, body: [{ op: "dispatch", kernel: 0, bind: [2, 1], groups }] }],
  },
  // double until the first element is 100 or more
  whileLoop: {
    kernels: kernels(BELOW_100, DOUBLE),
    buffers: [input, output, temp(4)],
    steps: [
      copyIn,
      {
        op: "while",
        flag: 2,
        cond: [{ op: "dispatch", kernel: 0, bind: [1, 2], groups }],
        body: [{ op: "dispatch", kernel: 1, bind: [1], groups }],
      },
    ],
  },
  // y = x + 0, doubled until the first element is 100 or more; then y + 1, and so on: each iteration waits
  waitingLoop: {
    kernels: kernels(ADD_COUNTER, BELOW_100, DOUBLE),
    buffers: [input, output, temp(4), temp(4)],
    steps: [
      copyIn,
      {
        op: "loop",
        count: 3,
        counter: 2,
        body: [
          { op: "dispatch", kernel: 0, bind: [2, 1], groups },
          {
            op: "while",
            flag: 3,
            cond: [{ op: "dispatch", kernel: 1, bind: [1, 3], groups }],
            body: [{ op: "dispatch", kernel: 2, bind: [1], groups }],
          },
        ],
      },
    ],
  },
  // branch x[0], clamped to the branches there are: nothing, double, double twice
  switchStep: {
    kernels: kernels(DOUBLE),
    buffers: [input, output],
    steps: [
      copyIn,
      {
        op: "switch",
        index: 0,
        branches: [
          [],
          [{ op: "dispatch", kernel: 0, bind: [1], groups }],
          [1, 2].map(() => ({ op: "dispatch", kernel: 0, bind: [1], groups })),
        ],
      },
    ],
  },
  constants: {
    kernels: kernels(ADD_COUNTER),
    buffers: [input, output, { bytes: 4, role: "constant", index: 0, offset: 4 }],
    steps: [copyIn, { op: "dispatch", kernel: 0, bind: [2, 1], groups }],
  },
  // count to 100, with few looks at the flag
  gatedLoop: {
    kernels: kernels(BELOW_100, ADD_ONE_IF),
    buffers: [input, output, temp(4)],
    steps: [
      copyIn,
      {
        op: "while",
        cond: [{ op: "dispatch", kernel: 0, bind: [1, 2], groups }],
        flag: 2,
        body: [{ op: "dispatch", kernel: 1, bind: [1, 2], groups }],
        gated: true,
      },
    ],
  },
  gatedSwitch: {
    kernels: kernels(DOUBLE_IF),
    buffers: [input, output],
    steps: [
      copyIn,
      { op: "switch", index: 0, branches: [[], [{ op: "dispatch", kernel: 0, bind: [1, 0], groups }]], gated: true },
    ],
  },
  invalid: { kernels: kernels("fn main( {"), buffers: [input, output], steps: [] },
};

test("GpuDevice runs plans: kernels, loops, waits, constants", async ({ page, runtime }) => {
  await page.goto(runtime);
  const result = await page.evaluate(
    async ({ url, plans, meta }) => {
      const { GpuDevice, packArtifact } = (await import(url)) as RuntimePage;
      const device = await GpuDevice.create();
      if (!device) return null;
      const submits = { count: 0 };
      const submit = device.device.queue.submit.bind(device.device.queue);
      device.device.queue.submit = (...args) => (submits.count++, submit(...args));
      const put = (...values: number[]) => {
        const handle = device.alloc(16);
        device.write(handle, new Uint8Array(Int32Array.from(values).buffer));
        return handle;
      };
      const get = async (handle: number) => Array.from(new Int32Array((await device.read(handle, 16)).buffer));
      const temps = (buffers: { role: string; bytes: number }[]) =>
        buffers.reduce((sum, { role, bytes }) => (role === "temp" ? sum + bytes : sum), 0);
      const artifact = (name: keyof typeof plans) =>
        packArtifact(
          { ...meta, scratch: temps(plans[name].buffers) },
          new TextEncoder().encode(JSON.stringify(plans[name])),
          new Uint8Array(Int32Array.of(7, 1000).buffer),
        );
      const run = async (name: keyof typeof plans, ...values: number[]) => {
        const id = await device.load(artifact(name));
        const x = put(...values);
        submits.count = 0;
        const running = device.run(id, [x]);
        const sync = !(running instanceof Promise);
        const count = submits.count;
        const [y] = await running;
        const value = await get(y!);
        device.free(x);
        device.free(y!);
        return { value, sync, submits: sync ? count : null, results: device.results(id).length };
      };
      const outcome = {
        addOne: await run("addOne", 1, 2, 3, 4),
        loop: await run("loop", 1, 2, 3, 4),
        whileLoop: await run("whileLoop", 3, 1, 2, 4),
        waitingLoop: await run("waitingLoop", 3, 1, 2, 4),
        switch0: await run("switchStep", 0, 5, 6, 7),
        switch1: await run("switchStep", 1, 5, 6, 7),
        switch9: await run("switchStep", 9, 5, 6, 7),
        constants: await run("constants", 1, 2, 3, 4),
        gatedSwitch0: await run("gatedSwitch", 0, 5, 6, 7),
        gatedSwitch9: await run("gatedSwitch", 9, 5, 6, 7),
        gatedLoop: await run("gatedLoop", -10, 1, 2, 4),
      };
      const looks = submits.count;
      const error = await device.load(artifact("invalid")).then(
        () => "",
        (reason: Error) => reason.message,
      );
      return { ...outcome, few: looks < 60, error, allocated: device.stats().allocated };
    },
    { url: `${runtime}runtime.js`, plans, meta: metadata(1, 1) },
  );
  const once = { sync: true, submits: 1, results: 1 };
  const waiting = { sync: false, submits: null, results: 1 };
  expect(result).toEqual({
    addOne: { value: [2, 3, 4, 5], ...once },
    loop: { value: [11, 12, 13, 14], ...once },
    whileLoop: { value: [192, 64, 128, 256], ...waiting },
    waitingLoop: { value: [195, 67, 131, 259], ...waiting },
    switch0: { value: [0, 5, 6, 7], ...waiting },
    switch1: { value: [2, 10, 12, 14], ...waiting },
    switch9: { value: [36, 20, 24, 28], ...waiting },
    constants: { value: [1001, 1002, 1003, 1004], ...once },
    gatedSwitch0: { value: [0, 5, 6, 7], ...once },
    gatedSwitch9: { value: [18, 10, 12, 14], ...once },
    gatedLoop: { value: [100, 111, 112, 114], ...waiting },
    few: true,
    error: expect.stringContaining("is not valid WGSL"),
    allocated: 64, // the constant of the last program
  });
});

test("a page goes on with a new device where its own is lost, and keeps one that is not", async ({ page, runtime }) => {
  await page.goto(runtime);
  const result = await page.evaluate(async (url) => {
    const { createPage } = (await import(url)) as RuntimePage;
    const made = await createPage();
    const first = made.gpu;
    if (!first) return null;
    const kept = [await made.renewGpu(), made.gpu === first];
    first.device.destroy();
    await first.device.lost;
    const told = typeof first.lost;
    return { kept, told, renewed: [await made.renewGpu(), made.gpu !== first, made.gpu?.lost] };
  }, `${runtime}runtime.js`);
  expect(result).toEqual({ kept: [true, true], told: "string", renewed: [true, true, null] });
});

test("buffers: donated ones return to the pool, and so do bind groups; dead ones are refused", async ({
  page,
  runtime,
}) => {
  await page.goto(runtime);
  const result = await page.evaluate(
    async ({ url, plan, meta }) => {
      const { GpuDevice, packArtifact } = (await import(url)) as RuntimePage;
      const device = (await GpuDevice.create())!;
      const id = await device.load(packArtifact(meta, new TextEncoder().encode(JSON.stringify(plan))));
      const entry = device.entry(id, 0);
      let groups = 0;
      const createBindGroup = device.device.createBindGroup.bind(device.device);
      device.device.createBindGroup = (descriptor) => (groups++, createBindGroup(descriptor));
      let x = device.alloc(16);
      device.write(x, new Uint8Array(16));
      for (let i = 0; i < 100; i++) x = entry(x) as number;
      const value = Array.from(new Int32Array((await device.read(x, 16)).buffer));
      const { allocated, peak } = device.stats();
      const refused = (call: () => unknown) => {
        try {
          call();
        } catch (error) {
          return (error as Error).message;
        }
        return "";
      };
      device.free(x);
      return {
        value,
        allocated,
        peak,
        groups,
        dead: refused(() => entry(x)),
        huge: refused(() => device.alloc(2 ** 40)),
        none: refused(() => entry()),
      };
    },
    { url: `${runtime}runtime.js`, plan: plans.addOne, meta: metadata(1, 1) },
  );
  expect(result.value).toEqual([100, 100, 100, 100]);
  expect(result.allocated).toBe(64);
  expect(result.peak).toBeLessThanOrEqual(192);
  expect(result.groups).toBeLessThanOrEqual(6); // of three buffers
  expect(result.dead).toContain("deleted or donated");
  expect(result.huge).toContain("larger than this WebGPU device allows");
  expect(result.none).toContain("takes 1 inputs, 0 given");
});

test("the playground offers WebGPU where there is an adapter, and tells Python", async ({ page, site }) => {
  const playground = new Playground(page, site);
  await playground.open();
  await page.getByRole("radio", { name: "WebGPU" }).check();
  const text = await playground.runToEnd(
    "import weft, _weft_page\nprint(weft.config.values, bool(_weft_page.gpu))",
    "Done on WebGPU",
  );
  expect(text).toBe("{'jax_platforms': 'webgpu'} True\n");
});
