/** Widgets, functions that follow them, and animations. */
import { expect, test } from "../fixtures/site.js";

test("a function follows sliders, choices, fields and boxes", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "from weft_widgets import interact, text",
    "@interact(x=(0, 10), scale=(0.0, 1.0, 0.25), kind=['plain', 'double'], shout=False, name=text('Ada'))",
    "def show(x, scale, kind, shout, name):",
    "    print(f'{name}: {x} {scale} {kind}')",
    "    return 'LOUD' if shout else 'quiet'",
  ];
  await playground.runToEnd(program.join("\n"));
  await expect(playground.output).toContainText("Ada: 5 0.5 plain");
  await expect(playground.output).toContainText("'quiet'");
  await page.getByRole("slider", { name: "x" }).fill("7");
  await expect(playground.output).toContainText("Ada: 7 0.5 plain");
  await expect(playground.output).not.toContainText("Ada: 5");
  await page.getByRole("combobox", { name: "kind" }).selectOption("double");
  await page.getByRole("checkbox", { name: "shout" }).check();
  await page.getByRole("textbox", { name: "name" }).fill("Bo");
  await expect(playground.output).toContainText("Bo: 7 0.5 double");
  await expect(playground.output).toContainText("'LOUD'");
  await expect(playground.output.locator(".shown", { hasText: "LOUD" })).toHaveCount(1);
});

test("buttons, observers and values set by the program", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "from weft_display import display",
    "from weft_widgets import button, colour, number, slider",
    "level = slider(0, 100, 20, label='level')",
    "def press(count):",
    "    level.value = 20 + count",
    "    print('pressed', count)",
    "tint = colour('#102030', label='tint')",
    "tint.observe(lambda value: print('tint', value))",
    "display(level, button('More', press), tint, number(1.5, label='n'))",
  ];
  await playground.runToEnd(program.join("\n"));
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("button", { name: "More", exact: true }).click();
  await expect(playground.output).toContainText("pressed 2");
  await expect(page.getByRole("slider", { name: "level" })).toHaveValue("22");
  await page.getByLabel("tint").fill("#ff0000");
  await expect(playground.output).toContainText("tint #ff0000");
});

test("an error in a handler is printed, and the widget goes on", async ({ playground, page }) => {
  await playground.open();
  const program = ["from weft_widgets import interact", "@interact(x=(0, 4))", "def inverse(x):", "    return 12 / x"];
  await playground.runToEnd(program.join("\n"));
  const slider = page.getByRole("slider", { name: "x" });
  await slider.fill("0");
  await expect(playground.output.locator(".stderr")).toContainText("ZeroDivisionError");
  await slider.fill("3");
  await expect(playground.output).toContainText("4.0");
});

test("a file and what is drawn reach the program", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "from weft_widgets import file",
    "from weft_display import display",
    "given = file('data')",
    "given.observe(lambda f: print(f.name, f.data.decode()))",
    "display(given)",
  ];
  await playground.runToEnd(program.join("\n"));
  await page
    .getByLabel("data")
    .setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("forty-two") });
  await expect(playground.output).toContainText("a.txt forty-two");
});

test("an animation shows one picture after the other in one place, and Stop ends it", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "from weft_widgets import animate",
    "def frames():",
    "    i = 0",
    "    while True:",
    "        yield f'frame {i}'",
    "        i += 1",
    "animate(frames)",
  ];
  await playground.run(program.join("\n"));
  await expect(playground.output).toContainText(/'frame \d\d'/);
  await page.locator("#stop").click();
  await expect(page.locator("#state")).toHaveText("Stopped");
  await expect(page.locator(".output .shown")).toHaveCount(1);
});

test("what a function's defaults say is where its widgets begin", async ({ playground, page }) => {
  await playground.open();
  const program = [
    "from weft.widgets import interact",
    "@interact(x=(0, 10), kind=['a', 'b'])",
    "def show(x=7, kind='b'):",
    "    print(x, kind)",
  ];
  await playground.runToEnd(program.join("\n"));
  await expect(playground.output).toContainText("7 b");
  await expect(page.getByRole("slider", { name: "x" })).toHaveValue("7");
  await expect(page.getByRole("combobox", { name: "kind" })).toHaveValue("1");
});

test("an animation that ends leaves its last picture", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("from weft.widgets import animate\nanimate(['one', 'two', 'three'])");
  await expect(page.locator(".output .shown")).toHaveText("'three'");
});

test("bad ranges are refused by name", async ({ playground, page }) => {
  await playground.open();
  await playground.runToEnd("from weft_widgets import interact\ninteract(lambda x: x)", "Failed");
  await expect(page.locator(".failure")).toContainText("say what x ranges over");
  await playground.runToEnd("from weft_widgets import slider\nslider(2, 1)", "Failed");
  await expect(page.locator(".failure")).toContainText("low must be less than high");
});
