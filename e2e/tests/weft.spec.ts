/** The real language in the real site, on Wasm and on a host; `make web` builds the site. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { digits, difference, root, test, withHost } from "../fixtures/weft.js";
import { expect, type Playground } from "../fixtures/site.js";
import type { Page } from "@playwright/test";

test("float, print and tolist simply work", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import weft.numpy as jnp",
      "x = jnp.arange(4.0)",
      "print(float(x.sum()), x.tolist(), int(x[2]), bool(x[0]))",
      "print(x * 2)",
      "print(jnp.linspace(0, 1, 6).reshape(2, 3))",
      "print(x.devices(), x.at[1].set(9))",
      "print(f'{x.mean():.3f}', [float(v) for v in x], 2 in x)",
    ].join("\n"),
  );
  expect(text).toBe(
    [
      "6.0 [0.0, 1.0, 2.0, 3.0] 2 False",
      "[0. 2. 4. 6.]",
      "[[0.  0.2 0.4]\n [0.6 0.8 1. ]]",
      "{WasmDevice(id=0)} [0. 9. 2. 3.]",
      "1.500 [0.0, 1.0, 2.0, 3.0] True\n",
    ].join("\n"),
  );
});

test("transformations and control flow run as Wasm", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import weft, weft.numpy as jnp",
      "f = weft.jit(lambda x: weft.lax.scan(lambda c, a: (c * 0.5 + a, c), 0.0, x))",
      "last, carries = f(jnp.arange(5.0))",
      "print(last, carries)",
      "print(weft.jit(weft.grad(lambda x: jnp.sum(x**3)))(jnp.arange(3.0)))",
      "print(weft.vmap(lambda a, b: a @ b)(jnp.ones((2, 3)), jnp.arange(6.0).reshape(2, 3)))",
      "print(weft.lax.while_loop(lambda n: n < 100, lambda n: n * 3, 1))",
      "print(weft.random.normal(weft.random.key(0), (2,)))",
      "print(weft.make_jaxpr(lambda x: x * 2 + 1)(1.0))",
    ].join("\n"),
  );
  // All of it as JAX prints it, the random numbers included.
  expect(text).toBe(
    [
      "6.125 [0.   0.   1.   2.5  4.25]",
      "[ 0.  3. 12.]",
      "[ 3. 12.]",
      "243",
      "[1.6226422 2.0252647]",
      "{ lambda ; a:f32[]. let\n    b:f32[] = mul a 2.0:f32[]\n    c:f32[] = add b 1.0:f32[]\n  in (c,) }\n",
    ].join("\n"),
  );
});

test("threads share long loops, with the results of short ones", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import time, weft, weft.numpy as jnp",
      "from weft import random",
      "device, end = weft.devices()[0], time.time() + 10",
      "while device.threads == 1 and time.time() < end: pass",
      "a = random.normal(random.key(0), (516, 512))",
      "whole, rows = weft.jit(lambda x, y: x @ y), weft.jit(lambda x, y: x @ y)",
      "b = a[:512]",
      "parts = jnp.concatenate([rows(a[k : k + 12], b) for k in range(0, 516, 12)])",
      "print(device.threads > 1, float(jnp.abs(whole(a, b) - parts).max()) < 1e-4)",
      "x = jnp.linspace(-3.0, 3.0, 1_000_003)",
      "f = weft.jit(lambda x: jnp.tanh(x) * 0.5 + jnp.sin(x) * x + jnp.exp(-x * x))",
      "y = f(x)",
      "print(bool((y[500_000:501_000] == f(x[500_000:501_000])).all()), bool((y[-1000:] == f(x[-1000:])).all()))",
      "print(bool((jnp.ones((2048, 2048)).sum(0) == 2048).all()))",
    ].join("\n"),
  );
  expect(text).toBe("True True\nTrue True\nTrue\n");
});

test("a full memory is a MemoryError, keeps every array, and the next call works", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import weft, weft.numpy as jnp",
      "x, kept = jnp.ones((1 << 28,)), []",
      "try:",
      "    while True: kept.append(x + len(kept))",
      "except MemoryError as e:",
      "    print(type(e).__name__, 'out of device memory' in str(e), len(kept) > 0)",
      "print([float(k[-1]) for k in kept[:1]], float(x[7]))",
      "del kept",
      "print(float((x + 1)[-1]), weft.jit(lambda x: x.sum())(x[:8]))",
    ].join("\n"),
  );
  expect(text).toBe("DeviceMemoryError True True\n[1.0] 1.0\n2.0 8.0\n");
});

test("with 64-bit addresses programs run beyond 4 GiB", async ({ playground }) => {
  await playground.open("?memory64=1");
  const text = await playground.runToEnd(
    [
      "import _weft_page, time, weft, weft.numpy as jnp",
      "high = _weft_page.device.alloc(5 << 30)  # reserved, never touched",
      "device, end = weft.devices()[0], time.time() + 10",
      "while device.threads == 1 and time.time() < end: pass",
      "x = jnp.arange(1_000_003.0)",
      "f = weft.jit(lambda x: (jnp.sort(-x), (x % 7).sum(), weft.lax.cond(x[1] > 0, jnp.sin, jnp.cos, x)))",
      "ordered, total, waves = f(x)",
      "print(x.handle > 1 << 32, device.threads > 1, ordered[:2].tolist(), float(total), round(float(waves[2]), 6))",
      "product = jnp.ones((600, 500)) @ jnp.ones((500, 400))",
      "print(float(product.sum()), weft.pure_callback(lambda a: a, x[:2], x[:2]).tolist())",
    ].join("\n"),
  );
  expect(text).toBe("True True [-1000002.0, -1000001.0] 3000003.0 0.909297\n120000000.0 [0.0, 1.0]\n");
});

test("compiled programs call Python", async ({ playground }) => {
  await playground.open();
  const text = await playground.runToEnd(
    [
      "import weft, weft.numpy as jnp",
      "from weft.experimental import io_callback",
      "log = []",
      "def note(k): log.append(int(k))",
      "@weft.jit",
      "def f(x):",
      "    def step(c, k):",
      "        weft.debug.print('step {k}: {c}', k=k, c=c)",
      "        io_callback(note, None, k, ordered=True)",
      "        return c * 2, c",
      "    x, rows = weft.lax.scan(step, x, jnp.arange(3))",
      "    return weft.pure_callback(lambda v: v + 1, x, x), rows",
      "x, rows = f(jnp.float32(1.5))",
      "weft.effects_barrier()",
      "print(x, rows, log)",
      "def fails(v): raise KeyError('not here')",
      "try: weft.jit(lambda x: weft.pure_callback(fails, x, x))(x)",
      "except Exception as e: print(type(e).__name__, 'not here' in str(e))",
      "print(f(x)[0])",
    ].join("\n"),
  );
  expect(text.split("\n").slice(0, 5)).toEqual([
    "step 0: 1.5",
    "step 1: 3.0",
    "step 2: 6.0",
    "13.0 [1.5 3.  6. ] [0, 1, 2]",
    "JaxRuntimeError True",
  ]);
  expect(text).toMatch(/\n105\.0\n$/);
});

test("a shape error names both shapes and marks the user's line", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("import weft.numpy as jnp\nx = jnp.ones(3)\ny = x + jnp.ones(4)\n", "Failed");
  await expect(page.locator(".failure")).toContainText("(3,)");
  await expect(page.locator(".failure")).toContainText("(4,)");
  // What is in view has the place once.
  await expect(page.locator(".failure")).not.toContainText("program.py:3", { useInnerText: true });
  await expect(page.locator(".cm-error-line")).toHaveText("y = x + jnp.ones(4)");
});

test("an error inside a traced function marks the line where it is", async ({ playground, page }) => {
  await playground.open();
  const source = "import weft\n@weft.jit\ndef f(x):\n    if x > 0:\n        return x\n    return -x\n\nf(1.0)\n";
  await playground.runToEnd(source, "Failed");
  await expect(page.locator(".failure")).toContainText("TracerBoolConversionError");
  await expect(page.locator(".cm-error-line")).toHaveText("    if x > 0:");
});

test("every example runs to its end, the digits with 97 % or better and a curve", async ({
  playground,
  page,
  requests,
}) => {
  test.setTimeout(180_000);
  await playground.open();
  const names = await (await playground.documents()).locator("#examples b").allTextContents();
  expect(names).toHaveLength(5);
  await page.keyboard.press("Escape");
  for (const name of names) {
    await (await playground.documents()).locator("#examples").getByText(name, { exact: true }).click();
    await page.locator("#run").click();
    await expect(page.locator("#state")).toHaveText(/^(Done on Wasm|Failed)$/, { timeout: 60_000 });
    expect(await page.locator(".failure").allTextContents(), name).toEqual([]);
    await expect(page.locator("figure").first()).toBeVisible();
    if (!name.includes("digits")) continue;
    await expect(page.locator("figure figcaption b")).toHaveText(["loss"]);
    await expect(page.getByRole("application", { name: /line: 70 points, .* the last .* at 690/ })).toBeVisible();
    const accuracy = /test accuracy ([\d.]+)%/.exec((await playground.output.textContent())!);
    expect(Number(accuracy?.[1])).toBeGreaterThanOrEqual(97);
  }
  expect(requests.filter((url) => /\/later\/.*\.zip/.test(url))).toEqual([]); // they import what a first visit brings
});

test("Stop ends a loop around a compiled step, and the page goes on", async ({ playground, page }) => {
  await playground.open();
  const loop = [
    "import weft, weft.numpy as jnp",
    "step = weft.jit(lambda x: x * 0.5 + 1)",
    "x = jnp.zeros(100)",
    "print('started')",
    "while True:",
    "    x = step(x)",
  ].join("\n");
  await playground.run(loop);
  await expect(playground.output).toContainText("started");
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(playground.output).not.toContainText("Python was started again");
  expect(await playground.runToEnd("import weft.numpy as jnp\nprint(jnp.ones(2) + 1)")).toBe("[2. 2.]\n");
});

test("a page exports programs too", async ({ playground }) => {
  await playground.open();
  const program = [
    "import weft.numpy as jnp",
    "from weft import export",
    "w = jnp.ones(3)",
    "def scale(x): return x * w",
    'files = export.web(scale, w, path="site")',
    "print([p.name for p in files], open('site/scale.wasm', 'rb').read(4), len(open('site/scale.bin', 'rb').read()))",
  ].join("\n");
  const names = [
    "package.json",
    "scale.bin",
    "scale.d.ts",
    "scale.html",
    "scale.js",
    "scale.wasm",
    "weft-page.js",
    "weft.d.ts",
    "weft.js",
  ];
  const listed = `[${names.map((name) => `'${name}'`).join(", ")}] b'\\x00asm' 12\n`;
  expect(await playground.runToEnd(program)).toContain(listed);
  const both = program.replace('path="site")', 'path="both", target="auto")').replace(/site/g, "both");
  const gpu = ["package.json", "scale.bin", "scale.d.ts", "scale.html", "scale.js", "scale.wasm", "scale.webgpu.weft"];
  const runtime = ["weft-gpu.d.ts", "weft-gpu.js", "weft-page.js", "weft.d.ts"];
  const more = `[${[...gpu, ...runtime].map((name) => `'${name}'`).join(", ")}] b'\\x00asm' 12\n`;
  expect(await playground.runToEnd(both)).toContain(more);
});

// ---- A host on loopback ----

async function chooseHost(page: Page, url: string, token: string): Promise<void> {
  await page.getByRole("radio", { name: "Host" }).check();
  await page.locator("#host-url").fill(url);
  await page.locator("#host-token").fill(token);
}

async function onHost(playground: Playground, lines: string[], state = "Done on host"): Promise<string> {
  return playground.runToEnd(lines.join("\n"), state);
}

test("arrays and compiled programs live on a host", async ({ playground, page, host }) => {
  await playground.open();
  const program = [
    "import weft, weft.numpy as jnp",
    "x = jnp.linspace(-1.0, 1.0, 64).reshape(8, 8)",
    "f = weft.jit(weft.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2)))",
    "y = f(x.T)",
    "print([round(v, 5) for v in y.sum(axis=0).tolist()])",
  ];
  const here = await playground.runToEnd(program.join("\n"));
  await chooseHost(page, host.url, host.token);
  expect(await onHost(playground, program)).toBe(here);
});

test("what a page sends to a host that compresses is compressed, and what it gets", async ({ playground, page }) => {
  await withHost(
    async (host) => {
      await playground.open();
      await chooseHost(page, host.url, host.token);
      const program = [
        "import weft, weft.numpy as jnp",
        "host, = weft.devices()[:1]",
        "x = jnp.zeros(200_000, device=weft.devices('wasm')[0])",
        "print(float(jnp.cos(weft.device_put(x, host)).sum()), len((weft.device_put(x, host) + 1).tolist()))",
      ];
      expect(await onHost(playground, program)).toBe("200000.0 200000\n");
      const headers = { Authorization: `Bearer ${host.token}` };
      const count = async (name: string): Promise<number> => {
        const text = await (await fetch(`${host.admin}metrics`, { headers })).text();
        return Number(new RegExp(`^weft_host_${name}_bytes_total (\\S+)$`, "m").exec(text)?.[1]);
      };
      await expect.poll(() => count("sent")).toBeGreaterThan(0); // counted a few times a second
      await expect.poll(() => count("received")).toBeGreaterThan(0);
      await page.waitForTimeout(1000);
      expect(await count("received")).toBeLessThan(100_000); // of 1,600,000 bytes
      expect(await count("sent")).toBeLessThan(100_000); // of 800,000
    },
    "--platform",
    "cpu",
    "--compression",
    "deflate",
    "--admin",
    "0",
  );
});

test("a function is offloaded from a page where that takes less time", async ({ playground, host }) => {
  await playground.open();
  const program = [
    "import weft, weft.numpy as jnp",
    `session = weft.remote.connect('${host.url}', token='${host.token}')`,
    "@weft.remote.offload",
    "def heavy(x):",
    "    return weft.lax.fori_loop(0, 20, lambda i, c: c @ c / 300, x).sum()",
    "light = weft.remote.offload(lambda x: x + 1)",
    "x = jnp.ones((300, 300))",
    "for _ in range(8):",
    "    heavy(x), light(jnp.ones(3))",
    "print(abs(float(heavy(x)) - 90_000) < 1)",
    "for costs in [light.explain(jnp.ones(3)), heavy.explain(x)]:",
    "    sides = {'here': costs.here.together, 'there': costs.there.together}",
    "    print(costs.where == min(sides, key=sides.get))",
    "print(costs)",
    "session.close()",
    "import warnings; warnings.simplefilter('ignore')",
    "print(abs(float(heavy(x)) - 90_000) < 1, heavy.reason)",
  ];
  const text = await playground.runToEnd(program.join("\n"));
  // Which side is faster depends on what else the machine does.
  expect(text).toMatch(/^True\nTrue\nTrue\nheavy\(f32\[300,300\]\) runs t?here: a call takes .* there and .* here\n/);
  expect(text).toMatch(/computing +[\d.]+ (µ|m)?s +[\d.]+ (µ|m)?s +measured\n/);
  expect(text).toMatch(/True the host is lost: the session on .* is closed/);
});

test("a program on a host calls functions of the page", async ({ playground, page, host }) => {
  await playground.open();
  await chooseHost(page, host.url, host.token);
  const program = [
    "import weft, weft.numpy as jnp",
    "from weft.experimental import io_callback",
    "seen = []",
    "def look(v):",
    "    seen.append(float(v))",
    "    if v > 50: raise KeyError('too much')",
    "    return v * 2",
    "step = lambda i, c: io_callback(look, jnp.float32(0), c, ordered=True)",
    "f = weft.jit(lambda x: weft.lax.fori_loop(0, 4, step, x))",
    "print(float(f(1.0)), seen)",
    "try:",
    "    f(10.0)",
    "except KeyError as e:",
    "    print(e, float(f(2.0)))",
  ];
  const text = await playground.runToEnd(program.join("\n"), "Done on host");
  expect(text).toBe("16.0 [1.0, 2.0, 4.0, 8.0]\n'too much' 32.0\n");
});

test("the address that make play prints holds the host, and lets go of the token", async ({
  playground,
  page,
  host,
}) => {
  await playground.open(`#${new URLSearchParams({ host: host.url, token: host.token })}`);
  expect(page.url()).not.toContain(host.token);
  await page.getByRole("radio", { name: "Host" }).check();
  const where = await onHost(playground, ["import weft.numpy as jnp", "print((jnp.ones(3) + 1).devices())"]);
  expect(where).toContain(host.url);
});

test("the digits learn the same on a host as on Wasm", async ({ playground, page, host }) => {
  await playground.open();
  const here = await playground.runToEnd(digits(50));
  await chooseHost(page, host.url, host.token);
  expect(difference(await playground.runToEnd(digits(50), "Done on host"), here)).toBeLessThan(1e-4);
});

test("a host's error comes back with the user's line, and the next program runs", async ({
  playground,
  page,
  host,
}) => {
  await playground.open();
  await chooseHost(page, host.url, host.token);
  const broken = ["import weft.numpy as jnp", "x = jnp.ones((2, 3))", "y = x @ x", "print(y)"];
  await onHost(playground, broken, "Failed");
  await expect(page.locator(".failure")).toContainText("(2, 3)");
  await expect(page.locator(".cm-error-line")).toHaveText("y = x @ x");
  // This one only the host can notice: its sessions have 4 MB.
  const large = ["import weft.numpy as jnp", "x = jnp.ones((800, 800))", "y = x + 1", "print(y[0, 0])"];
  await onHost(playground, large, "Failed");
  await expect(page.locator(".failure")).toContainText("2560000 bytes");
  await expect(page.locator(".cm-error-line")).toHaveText("y = x + 1");
  expect(await onHost(playground, ["import weft.numpy as jnp", "print(jnp.arange(3) + 1)"])).toBe("[1 2 3]\n");
});

test("the place of an error is a link, and stands once in its text", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("import weft.numpy as jnp\nx = jnp.ones((2, 3))\ny = x @ x\n", "Failed");
  const text = await page.locator(".failure").innerText();
  expect(text.match(/program\.py/g)).toHaveLength(1);
  expect(text.match(/line 3/g)).toHaveLength(2); // the link has it too
});

test("a host that is killed is missed within seconds, and another one can be chosen", async ({
  playground,
  page,
  host,
}) => {
  await playground.open();
  await withHost(async (mortal, kill) => {
    await chooseHost(page, mortal.url, mortal.token);
    const endless = [
      "import weft.numpy as jnp",
      "x = jnp.ones(3)",
      "print('begun')",
      "while True:",
      "    x = x + float(x[0]) * 0",
    ];
    await playground.run(endless.join("\n"));
    await expect(page.locator(".output").first()).toContainText("begun");
    kill();
    await expect(page.locator(".failure")).toContainText("nothing answers there any more", { timeout: 8_000 });
    await expect(page.locator("#state")).toHaveText("Failed");
  });
  await chooseHost(page, host.url, host.token);
  expect(await onHost(playground, ["import weft.numpy as jnp", "print(jnp.arange(3) + 1)"])).toBe("[1 2 3]\n");
});

test("programs on a host print in the page, in order, and Stop ends them", async ({ playground, page, host }) => {
  await playground.open();
  await chooseHost(page, host.url, host.token);
  const printing = [
    "import weft, weft.numpy as jnp",
    "@weft.jit",
    "def f(x):",
    "    def body(i, c):",
    "        weft.debug.print('{i}: {c}', i=i, c=c, ordered=True)",
    "        return c * 2",
    "    return weft.lax.fori_loop(0, 3, body, x)",
    "seen = []",
    "y = f(jnp.float32(1.5))",
    "g = weft.jit(lambda x: weft.debug.callback(seen.append, x))",
    "g(y)",
    "print('sum', float(y), [float(v) for v in seen])",
    "z = f(y)",
  ];
  const text = ["0: 1.5", "1: 3.0", "2: 6.0", "sum 12.0 [12.0]", "0: 12.0", "1: 24.0", "2: 48.0"];
  // y is read after g was called, so that its report has come; nobody waits for the last call but the run's end
  expect((await onHost(playground, printing)).split("\n").slice(0, 7)).toEqual(text);
  const endless = [
    "import weft, weft.numpy as jnp",
    "def body(n):",
    "    weft.debug.print('n {}', n)",
    "    return n + 1",
    "weft.jit(lambda: weft.lax.while_loop(lambda n: n >= 0, body, 0))()",
  ];
  await playground.run(endless.join("\n"));
  await expect(playground.output).toContainText("n 5");
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  expect(await onHost(playground, ["import weft.numpy as jnp", "print(jnp.arange(3) + 1)"])).toBe("[1 2 3]\n");
});

test("a wrong token and an absent host are said clearly", async ({ playground, page, host }) => {
  await playground.open();
  await chooseHost(page, host.url, "guess");
  await onHost(playground, ["1 + 1"], "Failed");
  await expect(page.locator(".failure")).toContainText("AuthenticationError");
  await chooseHost(page, "ws://127.0.0.1:1", host.token);
  await onHost(playground, ["1 + 1"], "Failed");
  await expect(page.locator(".failure")).toContainText("no connection to ws://127.0.0.1:1");
});

test("tools/demo-page.mjs prints the row of make demo", async ({ playground }) => {
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["tools/demo-page.mjs", "--steps", "60"], { cwd: root });
  const row = JSON.parse(stdout) as { accuracy: number; first: number; rate: number; losses: number[] };
  expect(Object.keys(row)).toEqual(["accuracy", "first", "rate", "losses"]);
  expect(row.losses).toHaveLength(50);
  await playground.open();
  expect(difference(await playground.runToEnd(digits(50)), JSON.stringify(row.losses))).toBe(0);
  await expect(run(process.execPath, ["tools/demo-page.mjs", "--steps", "many"], { cwd: root })).rejects.toThrow(
    "whole number",
  );
});
