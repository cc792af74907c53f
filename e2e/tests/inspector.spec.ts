/** The inspector: what the last run compiled, when, why, and into what. */
import type { Page } from "@playwright/test";
import { violations } from "../fixtures/axe.js";
import { expect } from "../fixtures/site.js";
import { test } from "../fixtures/weft.js";

const SOURCE = [
  "import jax, jax.numpy as jnp",
  "",
  "def softmax(x):",
  "    z = jnp.exp(x - x.max())",
  "    return z / z.sum()",
  "",
  "f = jax.jit(softmax)",
  "f(jnp.ones(4))",
  "print(f(jnp.arange(6.0)).tolist())",
  "print(jax.make_jaxpr(softmax)(jnp.ones(4)))",
].join("\n");

const drawer = (page: Page) => page.locator("#inspector");
const tab = (page: Page, name: string) => drawer(page).getByRole("tab", { name, exact: true });
const text = async (page: Page): Promise<string> =>
  (await drawer(page).locator(".cm-line").allTextContents()).join("\n");

async function open(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Inspect" }).click();
  await expect(drawer(page).getByRole("heading", { name: "See what happens" })).toBeVisible();
}

test("each tab shows what the program became", async ({ playground, page }) => {
  const problems: string[] = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  await playground.open();
  await open(page);
  await expect(drawer(page)).toContainText("No program was compiled yet");
  const output = await playground.runToEnd(SOURCE);
  const programs = drawer(page).getByRole("option");
  await expect(programs.first()).toContainText("(f32[4]) → f32[4]");
  await expect(programs.first()).toContainText("line 8, 1 call");
  await programs.first().click();

  await tab(page, "Jaxpr").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("reduce_max");
  expect(await text(page)).toBe(output.slice(output.indexOf("{")).trimEnd());

  await tab(page, "Groups").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("group 0: reduce");
  await tab(page, "IR").click();
  await expect(drawer(page).locator(".cm-content")).toContainText("program softmax(in0: f32[4])");
  await tab(page, "Wasm").click();
  await expect(drawer(page).locator(".cm-content")).toContainText('(import "weft" "memory"');
  await tab(page, "StableHLO").click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText("StableHLO is the form that XLA compiles");
  await tab(page, "Memory").click();
  await expect(drawer(page).locator(".map span").first()).toHaveAttribute("title", /bytes at/);
  await tab(page, "Kernels").click();
  await drawer(page).getByRole("button", { name: "Time kernels" }).click();
  await expect(drawer(page).getByRole("table", { name: "Time of each kernel" })).toContainText("%");
  await expect(drawer(page)).toContainText("The arguments of its calls are no longer there: ones stood for them.");
  expect(problems).toEqual([]);
});

test("a line of the jaxpr shows the program's line, and leads there", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  await tab(page, "Jaxpr").click();
  await drawer(page).locator(".cm-line", { hasText: "exp" }).hover();
  await expect(page.locator("#document .cm-pointed-line")).toHaveText("    z = jnp.exp(x - x.max())");
  await expect(drawer(page).locator(".where")).toHaveText("program.py, line 4 z = jnp.exp(x - x.max())");
  await drawer(page).locator(".cm-line", { hasText: "div" }).click();
  await expect(page.locator("#document .cm-activeLine")).toHaveText("    return z / z.sum()");
});

test("why a function was compiled again", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  await drawer(page).getByRole("option").first().click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText("Traced at program.py:8 (<module>): the first call.");
  await drawer(page).getByRole("option", { name: "f32[6]" }).first().click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText(
    "the shape of x changed: it is f32[6] and was f32[4].",
  );
});

test("timeline and devices", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await open(page);
  const timeline = drawer(page).getByRole("application", { name: /^Timeline of/ });
  await expect(timeline).toHaveAttribute(
    "aria-label",
    /Trace [1-9]\d*, Compile [1-9]\d*, Run [1-9]\d*, Transfer [1-9]/,
  );
  await timeline.focus();
  await page.keyboard.press("ArrowRight");
  await expect(drawer(page).locator(".detail")).toContainText("after the start");
  await timeline.hover();
  await page.mouse.wheel(0, -400);
  await drawer(page).getByText("Devices", { exact: true }).click();
  const facts = drawer(page).getByRole("table", { name: "The device wasm" });
  await expect(facts).toContainText(/Memory in use\s*[\d,]+ bytes/);
  await expect(facts).toContainText(/Threads\s*[1-9]/);
  await expect(facts).toContainText(/Arrays alive\s*\d+ of [\d,]+ bytes/);
});

test("backends are compared", async ({ playground, page }) => {
  await playground.open();
  await playground.write(SOURCE);
  await open(page);
  await drawer(page).getByText("Compare", { exact: true }).click();
  await drawer(page).getByRole("button", { name: "Compare backends" }).click();
  const table = drawer(page).getByRole("table", { name: "The document on each backend" });
  await expect(table.getByRole("rowheader")).toHaveText(["Wasm", "WebGPU", "Host"], { timeout: 60_000 });
  await expect(table.getByRole("row", { name: /^Wasm/ })).toContainText("it is the reference");
  await expect(table.getByRole("row", { name: /^Host/ })).toContainText("address and token");
  await expect(drawer(page).getByRole("button", { name: "Compare backends" })).toBeEnabled({ timeout: 60_000 });
});

test("a program that fails shows what it did; keys open and close the drawer", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(`${SOURCE}\n1 / 0`, "Failed");
  await page.keyboard.press("Alt+i");
  await expect(drawer(page).getByRole("option").first()).toContainText("softmax");
  await tab(page, "Overview").focus();
  await page.keyboard.press("ArrowRight");
  await expect(tab(page, "Jaxpr")).toBeFocused();
  await expect(tab(page, "Jaxpr")).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Escape");
  await expect(drawer(page)).toBeHidden();
});

test("a cell of a notebook is pointed at; the drawer fits a narrow window", async ({ playground, page }) => {
  await playground.open();
  await playground.write(SOURCE);
  await playground.menu("Notebook of cells");
  await page.locator("#run").click();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await page.setViewportSize({ width: 375, height: 740 });
  await open(page);
  await tab(page, "Jaxpr").click();
  // The drawer scrolls to the line, which may move under the pointer meanwhile.
  await expect(async () => {
    await drawer(page).locator(".cm-line", { hasText: "exp" }).hover();
    const pointed = page.locator("#document .cm-pointed-line");
    await expect(pointed).toHaveText("    z = jnp.exp(x - x.max())", { timeout: 1000 });
  }).toPass();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});

test("calls after the first of a program are timed while the inspector is open", async ({ playground, page }) => {
  const often =
    "import weft, weft.numpy as jnp\nf = weft.jit(lambda x: x + 1)\nx = jnp.ones(3)\nfor k in range(500): x = f(x)";
  await playground.open();
  await playground.runToEnd(often);
  await open(page);
  const program = drawer(page).getByRole("option", { name: "<lambda>" });
  await expect(program).toContainText("over 64 calls");
  await expect(drawer(page).getByRole("tabpanel")).toContainText("more than the 64 that were timed");
  await expect(drawer(page).locator(".detail")).toContainText("it has all if the inspector is open");
  await page.locator("#run").click();
  await expect(program).toContainText("500 calls");
  await tab(page, "Kernels").click();
  await drawer(page).getByRole("button", { name: "Time kernels" }).click();
  await expect(drawer(page).getByRole("table", { name: "Time of each kernel" })).toBeVisible();
});

test("axe finds nothing in any pane", async ({ playground, page }) => {
  test.setTimeout(180_000);
  await playground.open();
  await open(page);
  expect(await violations(page, "the drawer before a run")).toEqual([]);
  await playground.runToEnd(SOURCE);
  for (const name of ["Devices", "Compare"]) await drawer(page).getByText(name, { exact: true }).click();
  for (const name of ["Overview", "Jaxpr", "Groups", "IR", "Wasm", "StableHLO", "Memory", "Kernels"]) {
    await tab(page, name).click();
    if (name === "Kernels") {
      await drawer(page).getByRole("button", { name: "Time kernels" }).click();
      await expect(drawer(page).getByRole("table", { name: "Time of each kernel" })).toBeVisible();
    }
    await expect(tab(page, name)).toHaveAttribute("aria-selected", "true");
    expect(await violations(page, name)).toEqual([]);
  }
  await tab(page, "IR").click();
  await drawer(page).getByRole("button", { name: "Search" }).click();
  expect(await violations(page, "a search")).toEqual([]);
});

test("the keyboard alone reads everything", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(SOURCE);
  await page.keyboard.press("Alt+i");
  await expect(drawer(page).getByRole("button", { name: "Close the inspector" })).toBeFocused();
  /** Tab until something in the drawer has the focus. */
  const tabTo = async (what: import("@playwright/test").Locator): Promise<void> => {
    for (let presses = 0; presses < 30; presses++) {
      if (await what.evaluate((each) => each === document.activeElement)) return;
      await page.keyboard.press("Tab");
      expect(await drawer(page).evaluate((each) => each.contains(document.activeElement))).toBe(true);
    }
    throw new Error(`Tab never comes to ${String(what)}`);
  };
  await tabTo(drawer(page).getByRole("application", { name: /^Timeline/ }));
  await page.keyboard.press("ArrowRight");
  await expect(drawer(page).locator(".detail")).toContainText("after the start");
  await tabTo(drawer(page).locator("summary", { hasText: "Devices" }));
  await page.keyboard.press("Enter");
  await expect(drawer(page).getByRole("table", { name: "The device wasm" })).toBeVisible();
  const [first, second] = [drawer(page).getByRole("option").nth(0), drawer(page).getByRole("option").nth(1)];
  await tabTo(drawer(page).locator("[role=option][aria-selected=true]"));
  await page.keyboard.press("ArrowUp");
  await expect(first).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(second).toBeFocused();
  await expect(second).toHaveAttribute("aria-selected", "true");
  await tabTo(tab(page, "Overview"));
  await page.keyboard.press("ArrowRight");
  await expect(tab(page, "Jaxpr")).toBeFocused();
  await tabTo(drawer(page).getByRole("textbox", { name: /^Jaxpr of softmax/ }));
  for (let line = 0; line < 12 && !/line 4/.test((await drawer(page).locator(".where").textContent())!); line++) {
    await page.keyboard.press("ArrowDown");
  }
  await expect(page.locator("#document .cm-pointed-line")).toHaveText("    z = jnp.exp(x - x.max())");
  await page.keyboard.press("Enter"); // leads to the line
  await expect(page.locator("#document .cm-activeLine")).toHaveText("    z = jnp.exp(x - x.max())");
  await page.keyboard.press("Alt+i");
  await expect(drawer(page)).toBeHidden();
  await page.keyboard.press("Alt+i");
  const within = () => drawer(page).evaluate((each) => each.contains(document.activeElement));
  await expect.poll(within).toBe(true);
  await tabTo(tab(page, "Jaxpr"));
  await page.keyboard.press("End");
  await tabTo(drawer(page).getByRole("button", { name: "Time kernels" }));
  await page.keyboard.press("Enter");
  await expect(drawer(page).getByRole("table", { name: "Time of each kernel" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.locator("#inspect")).toBeFocused();
});

test("each pane of a program on a host", async ({ playground, page, host }) => {
  await playground.open();
  await page.getByRole("radio", { name: "Host" }).check();
  await page.locator("#host-url").fill(host.url);
  await page.locator("#host-token").fill(host.token);
  await playground.runToEnd(`${SOURCE}\nheld = jnp.ones(1000)`, "Done on host");
  await open(page);
  await drawer(page).getByRole("option", { name: "softmax" }).first().click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText(/Backend\s*remote/);
  const holds: [name: string, text: string | RegExp][] = [
    ["Jaxpr", "reduce_max"],
    ["StableHLO", "stablehlo.exponential"],
    ["HLO", "HloModule"],
    ["Kernels", "Time kernels"],
  ];
  expect(await drawer(page).getByRole("tab").allTextContents()).toEqual(["Overview", ...holds.map(([name]) => name)]);
  for (const [name, what] of holds) {
    await tab(page, name).click();
    await expect(drawer(page).getByRole("tabpanel")).toContainText(what);
  }
  await drawer(page).getByRole("button", { name: "Time kernels" }).click();
  await expect(drawer(page).getByRole("tabpanel")).toContainText("does not time kernels");
  await drawer(page).getByText("Devices", { exact: true }).click();
  const facts = drawer(page).getByRole("table", { name: "The device remote" });
  await expect(facts).toContainText(/Latency\s*[\d.]+ ms there and back/);
  await expect(facts).toContainText(host.url);
  await expect(facts).toContainText(/Arrays alive\s*\d+ of [\d,]+ bytes/);
  await expect(facts).toContainText(/Platform\s*cpu/);
  // What the page makes for the host has another name than what the host takes to compile it.
  await expect(page.locator("#timings")).toContainText(/lower\s*[\d.]+\s*m?s/);
  await expect(page.locator("#timings")).toContainText(/compile\s*[\d.]+\s*m?s/);
  await drawer(page).getByText("Compare", { exact: true }).click();
  await drawer(page).getByRole("button", { name: "Compare backends" }).click();
  const row = drawer(page)
    .getByRole("table", { name: "The document on each backend" })
    .getByRole("row", { name: /^Host/ });
  await expect(row.getByRole("cell").nth(2)).toHaveText(/^[\d.]+ m?s$/, { timeout: 60_000 }); // compiling
  await expect(row.getByRole("cell").last()).toHaveText(/^(none|\d\S*)$/);
});

test("on a phone a tap tells of an event, and two fingers zoom the timeline", async ({ browser, weftSite }) => {
  const phone = await browser.newContext({ viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true });
  const page = await phone.newPage();
  await page.goto(weftSite);
  await expect(page.locator("#state")).toHaveText("Ready");
  await page
    .locator("#open-file")
    .setInputFiles({ name: "touch.py", mimeType: "text/plain", buffer: Buffer.from(SOURCE) });
  await page.locator("#run").tap();
  await expect(page.locator("#state")).toHaveText("Done on Wasm");
  await page.locator("#inspect").tap();
  const timeline = drawer(page).getByRole("application", { name: /^Timeline/ });
  await expect(drawer(page).locator(".detail")).toContainText("Tap an event. Two fingers zoom.");
  const box = (await timeline.boundingBox())!;
  // The lane of compilations is full of them.
  for (let share = 0.25; share < 1; share += 0.02) {
    await page.touchscreen.tap(box.x + share * box.width, box.y + 33);
    if ((await drawer(page).locator(".detail").textContent())!.includes("after the start")) break;
  }
  await expect(drawer(page).locator(".detail")).toContainText("after the start");
  const picture = () => timeline.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const session = await phone.newCDPSession(page);
  const fingers = (...shares: number[]) =>
    shares.map((share, id) => ({ id, x: box.x + share * box.width, y: box.y + 33 }));
  await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: fingers(0.5, 0.6) });
  const whole = await picture(); // with the event under the fingers marked
  for (let step = 1; step <= 5; step++) {
    const touchPoints = fingers(0.5 - 0.04 * step, 0.6 + 0.04 * step);
    await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints });
  }
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await expect.poll(picture).not.toBe(whole);
  await phone.close();
});
