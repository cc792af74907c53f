/** What a run inherits, prints, waits for, and how it is stopped. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { expect, Playground, test } from "../fixtures/site.js";

test("a run starts in the state of a new interpreter", async ({ playground }) => {
  await playground.open();
  const changes = [
    "import builtins, json, os, random, sys, warnings, weft, weft.numpy",
    "weft.config.update('jax_enable_x64', True)",
    "weft.numpy.arange = None; json.dumps = len; builtins.answer = 42; os.environ['ANSWER'] = '42'",
    "weft.numpy.Array.__add__ = lambda self, other: 'patched'",
    "sys.path.append('/nowhere'); sys.setrecursionlimit(77); warnings.simplefilter('error')",
    "open('left.txt', 'w').write('x'); os.mkdir('sub'); os.chdir('sub'); sys.stdout.write('changed\\n')",
    "open('/home/pyodide/mine.py', 'w').write('value = 1'); sys.path.insert(0, '/home/pyodide')",
    "import mine",
  ];
  await playground.runToEnd(changes.join("\n"));
  const look = [
    "import builtins, json, os, sys, warnings, weft, weft.numpy",
    "print(weft.config.values.get('jax_enable_x64'), weft.numpy.arange(2) + 1, json.dumps([1]))",
    "print(hasattr(builtins, 'answer'), os.environ.get('ANSWER'), end=' ')",
    "print('/nowhere' in sys.path, sys.getrecursionlimit() > 77)",
    "print(os.listdir('.'), os.getcwd(), warnings.filters[0][0] == 'error', 'mine' in sys.modules)",
  ];
  expect(await playground.runToEnd(look.join("\n"))).toBe(
    "False Array([1, 2], dtype=int32) [1]\nFalse None False True\n[] /home/pyodide False False\n",
  );
});

test("a program that prints without end keeps the page awake, and Stop ends it", async ({ playground, page }) => {
  await playground.open();
  await playground.run("i = 0\nwhile True:\n    print(i)\n    i += 1");
  await expect(playground.output).toContainText("earlier output is not kept");
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  const text = (await playground.output.textContent())!;
  expect(text.length).toBeLessThan(400_000);
  const numbers = /(\d+)\n(\d+)\n\d*\n?Stopped\.$/.exec(text)!.slice(1).map(Number);
  expect(numbers[1]).toBe(numbers[0]! + 1);
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

for (const [what, program] of [
  ["sleeps", "import time\nprint('started')\ntime.sleep(1000)"],
  ["awaits", "import asyncio\nprint('started')\nawait asyncio.sleep(1000)"],
  ["sleeps again and again", "import time\nprint('started')\nwhile True: time.sleep(0.01)"],
  [
    "waits for promises again and again",
    "import js\nfrom pyodide.ffi import run_sync\nprint('started')\n" +
      "while True: run_sync(js.eval('new Promise((done) => setTimeout(done, 5))'))",
  ],
  ["waits for a line", "print('started')\ninput('name? ')"],
  [
    "swallows one interrupt",
    "print('started')\ntry:\n    while True: pass\nexcept KeyboardInterrupt:\n    pass\nwhile True: pass",
  ],
] as const) {
  test(`Stop ends a program that ${what}, and Python goes on`, async ({ playground, page }) => {
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    await playground.open();
    await page.evaluate(() => performance.clearMarks("weft:ready"));
    await playground.run(program);
    await expect(playground.output).toContainText("started");
    await page.locator("#stop").click();
    await expect(page.locator("#state")).toHaveText("Stopped");
    await expect(page.locator("form.ask")).toHaveCount(0);
    expect(await playground.runToEnd("1 + 1")).toBe("2\n");
    // The same worker answered: no second boot.
    expect(await page.evaluate(() => performance.getEntriesByName("weft:ready").length)).toBe(0);
    expect(problems).toEqual([]);
  });
}

for (const [what, program, message] of [
  ["leaves Python", "import os\nos._exit(3)", "SystemExit: 3: the program left Python altogether"],
  ["goes too deep in C", "import json\njson.loads('[' * 10**6)", "RecursionError: calls, or data in data, go deeper"],
  ["breaks off", "import os\nos.abort()", "SystemError: Python broke off"],
] as const) {
  test(`a program that ${what} ends Python, which says so and starts again`, async ({ playground, page }) => {
    await playground.open();
    await playground.run(`print("before")\n${program}`);
    await expect(page.locator(".failure")).toContainText(message);
    await expect(page.locator(".failure")).toContainText("was started again");
    await expect(playground.output).toContainText("before");
    await expect(page.locator("#state")).toHaveText("Ready");
    await expect(playground.notices).not.toContainText("did not react");
    expect(await playground.runToEnd("1 + 1")).toBe("2\n");
  });
}

test("a program that calls itself without end is told so at its line", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("def f(n):\n    return f(n + 1)\n\nf(0)", "Failed");
  await expect(page.locator(".failure")).toContainText("RecursionError: maximum recursion depth exceeded");
  await expect(page.locator(".cm-error-line")).toHaveText("    return f(n + 1)");
  await playground.runToEnd("x = []\nwhile True:\n    x.append(bytearray(1 << 24))", "Failed");
  await expect(page.locator(".failure")).toContainText("MemoryError");
  await expect(page.locator(".cm-error-line")).toHaveText("    x.append(bytearray(1 << 24))");
  expect(await playground.runToEnd("1 + 1")).toBe("2\n");
});

test("input() asks below the output", async ({ playground, page }) => {
  await playground.open();
  await playground.run("name = input('Who? ')\nprint(f'Hello, {name}!', len(name))");
  await page.locator("form.ask input").fill("Zoë");
  await page.keyboard.press("Enter");
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await expect(playground.output).toHaveText("Who? Zoë\nHello, Zoë! 3\n");
});

test("carriage returns write over a line, and ANSI sequences colour it", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "for i in range(11): print(f'\\r{10 * i:3d} %', end='')",
    "print()",
    "print('\\x1b[1;31mred\\x1b[0m and \\x1b[38;5;27mblue\\x1b[0m \\x1b[2Kend')",
  ];
  expect(await playground.runToEnd(program.join("\n"))).toBe("100 %\nred and blue end\n");
  const red = page.locator(".output span", { hasText: /^red$/ });
  await expect(red).toHaveCSS("font-weight", "650");
  const blue = page.locator(".output span", { hasText: /^blue$/ });
  await expect(blue).toHaveCSS("color", "rgb(0, 95, 255)");
});

test("values are shown by their best form; HTML can't act as the page", async ({ playground, page }) => {
  await playground.open();
  const title = await page.title();
  const program = [
    "from weft_display import clear_output, display",
    "class Table:",
    "    def _repr_html_(self):",
    "        return '<table><tr><td>cell</td></tr></table><script>parent.document.title = 1</script>'",
    "class Picture:",
    '    def _repr_svg_(self): return \'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"/>\'',
    "display('gone')",
    "clear_output(wait=True)",
    "display(Table())",
    "display(Picture(), name='picture')",
    "shown = display({'a': 1}, name='value')",
    "shown.update('second')",
  ];
  await playground.runToEnd(program.join("\n"));
  await expect(page.frameLocator(".html iframe").locator("td")).toHaveText("cell");
  await expect(page.frameLocator(".html iframe").locator("script")).toHaveCount(0);
  await expect(page.locator(".figures img")).toBeVisible();
  await expect(playground.output).toContainText("'second'");
  await expect(playground.output).not.toContainText("gone");
  expect(await page.title()).toBe(title);
});

for (const name of ["pyodide.asm.wasm", "python_stdlib"]) {
  test(`a server that stops in the middle of ${name} is named, and what was typed is there`, async ({
    browser,
    site,
  }) => {
    let stops = true;
    const server = http.createServer(async (request, response) => {
      const whole = await fetch(new URL(request.url!, site));
      const [body, headers] = [Buffer.from(await whole.arrayBuffer()), Object.fromEntries(whole.headers)];
      for (const each of ["content-encoding", "transfer-encoding"]) delete headers[each];
      response.writeHead(whole.status, { ...headers, "content-length": body.length });
      if (!stops || !request.url!.includes(name)) return void response.end(body);
      response.write(body.subarray(0, body.length / 2), () => setTimeout(() => response.destroy(), 100));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const context = await browser.newContext();
    const page = await context.newPage();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const playground = new Playground(page, url);
    await page.goto(url);
    await playground.write("print('typed')");
    await expect(page.locator("#state")).toHaveText("Python did not start");
    await expect(playground.notices).toContainText(name);
    await expect(playground.notices).toContainText("could not be loaded");
    stops = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await expect(page.locator("#state")).toHaveText("Ready");
    await expect(playground.notices).not.toContainText("did not react");
    await page.locator("#run").click();
    await expect(playground.output).toHaveText("typed\n");
    await context.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
}

test("a first visit says how far it has come, and a boot that fails says so and can be tried again", async ({
  browser,
  site,
}) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const file = "**/pyodide.asm.wasm";
  await page.route(file, (route) => route.abort());
  await page.goto(site);
  await expect(page.locator("#state")).toHaveText("Python did not start");
  await expect(page.locator("#notices")).toContainText("Your document is safe");
  await page.unroute(file);
  await page.route(file, async (route) => {
    const response = await route.fetch();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await route.fulfill({ response });
  });
  const states = page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const seen: string[] = [];
        const state = document.getElementById("state")!;
        new MutationObserver(() => {
          seen.push(state.textContent!);
          if (state.textContent === "Ready") resolve(seen);
        }).observe(state, { childList: true });
      }),
  );
  await page.getByRole("button", { name: "Try again" }).click();
  expect((await states).some((text) => /^Loading Python \d+ %$/.test(text))).toBe(true);
  await context.close();
});
