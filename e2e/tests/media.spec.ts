/** Widgets whose value is an array: what is drawn, chosen, seen and heard. Chromium makes pictures and sound itself. */
import { FLAGS } from "../launch.mjs";
import { expect } from "../fixtures/site.js";
import { root, test } from "../fixtures/weft.js";
import { findBrowser } from "../../tools/find-browser.mjs";

test.use({
  launchOptions: { executablePath: await findBrowser(), args: [...FLAGS, "--use-fake-device-for-media-stream"] },
});
test.afterEach(({ visitor }) => visitor.clearPermissions());

const GIVEN = [
  "from weft import widgets",
  "from weft_display import display",
  "def told(name, widget, see):",
  "    def changed(value):",
  "        print(name, value.shape, value.dtype, see(value))",
  "    widget.observe(changed)",
  "    display(widget)",
];
const program = (...lines: string[]): string => [...GIVEN, ...lines].join("\n");

test("what is drawn on a canvas is an array, and Clear empties it", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd(program("told('drawn', widgets.canvas(28, 14, 'digit'), lambda a: float(a.sum()) > 0)"));
  const field = page.getByRole("img", { name: "digit to draw on with a pointer" });
  const box = (await field.boundingBox())!;
  await page.mouse.move(box.x + 20, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 120, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await expect(playground.output).toContainText("drawn (14, 28) float32 True");
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await expect(playground.output).toContainText("drawn (14, 28) float32 False");
});

test("a picture that is chosen is an array of the size asked for; what is none is named", async ({
  playground,
  page,
}) => {
  await playground.open();
  await playground.runToEnd(
    program("told('chosen', widgets.image('photo', width=21, height=16), lambda a: int(a.max()) > int(a.min()))"),
  );
  const input = page.locator(".widget.picture input[type=file]");
  await input.setInputFiles({ name: "notes.png", mimeType: "image/png", buffer: Buffer.from("not a picture") });
  await expect(page.locator(".widget .note")).toHaveText("notes.png is no picture that this browser can read.");
  await input.setInputFiles(`${root}/examples/gallery/nbody.png`);
  await expect(playground.output).toContainText("chosen (16, 21, 3) uint8 True");
  await expect(page.locator(".widget .note")).toHaveText("");
});

test("the camera gives pictures until it is stopped, once the reader has allowed it", async ({
  playground,
  page,
  visitor,
}) => {
  await playground.open();
  const seen = program(
    "count = 0",
    "def see(a):",
    "    global count",
    "    count += 1",
    "    return f'{count} {int(a.max()) > int(a.min())}'",
    "told('seen', widgets.camera(32, 24, 'eye'), see)",
  );
  await playground.runToEnd(seen);
  const start = page.locator(".widget").getByRole("button", { name: "Start" });
  await start.click();
  await expect(page.locator(".widget .note")).toContainText("There is none to be had: Permission denied");
  await visitor.grantPermissions(["camera"]);
  await start.click();
  await expect(playground.output).toContainText(/seen \(24, 32, 3\) uint8 3 True/);
  await page.locator(".widget").getByRole("button", { name: "Stop" }).click();
  await expect(start).toBeVisible();
  const text = await playground.output.textContent();
  await page.waitForTimeout(300);
  expect((await playground.output.textContent())!.length - text!.length).toBeLessThan(200); // what was on its way
});

test("the microphone gives its last samples and their rate", async ({ playground, page, visitor }) => {
  await playground.open();
  await visitor.grantPermissions(["microphone"]);
  await playground.runToEnd(
    program(
      "ear = widgets.microphone(700, 'ear')",
      "told('heard', ear, lambda a: (float(abs(a).max()) > 0, ear.rate))",
    ),
  );
  await page.locator(".widget").getByRole("button", { name: "Start" }).click();
  await expect(playground.output).toContainText(/heard \(700,\) float32 \(True, \d{4,6}(\.0)?\)/);
  await page.locator(".widget").getByRole("button", { name: "Stop" }).click();
  await playground.runToEnd("from weft import widgets\nwidgets.microphone(40_000)", "Failed");
  await expect(page.locator(".failure")).toContainText("samples must be from 1 to 32768");
});
