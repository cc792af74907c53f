import { expect, inPage, test } from "../fixtures/figures.js";
import type { Api, Case } from "../fixtures/figures_page.js";
import { toLab } from "../../web/src/figures/colours.js";

/** The points of the lines of an SVG path, and where one line ends and another begins. */
function lines(d: string): [number, number][][] {
  return d
    .split("M")
    .filter(Boolean)
    .map((line) => {
      const numbers = line.match(/-?\d+(\.\d+)?(e-?\d+)?/g)!.map(Number);
      return Array.from({ length: numbers.length / 2 }, (_, k): [number, number] => [
        numbers[2 * k]!,
        numbers[2 * k + 1]!,
      ]);
    });
}

/** The parts of rgb(…). */
const bytes = (colour: string): number[] => colour.match(/\d+/g)!.map(Number);

/** The contrast of two colours, as WCAG has it. */
function contrast(a: string, b: string): number {
  const luminance = (colour: string) => {
    const [red, green, blue] = bytes(colour).map((byte) => {
      const v = byte / 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! + 0.05;
  };
  const [x, y] = [luminance(a), luminance(b)];
  return Math.max(x, y) / Math.min(x, y);
}

/** How far apart two colours look. */
function distance(a: string, b: string): number {
  const [from, to] = [a, b].map((colour) => {
    const digits = bytes(colour).map((byte) => byte.toString(16).padStart(2, "0"));
    return toLab(`#${digits.join("")}`);
  });
  return Math.hypot(...from!.map((value, k) => value - to![k]!));
}

const file = (figures: Api, each: Case) => {
  const mounted = figures.mount();
  return mounted.draw(each).then(() => mounted.file());
};

/** The stroke of a series in the light theme. */
const FIRST = "rgb(60, 80, 189)";
const SECOND = "rgb(194, 87, 31)";

test.beforeEach(async ({ page }) => page.emulateMedia({ colorScheme: "light" }));

test.describe("figures do not lie", () => {
  test("points that share an x are all drawn", async ({ page, cases }) => {
    const { paths } = await inPage(page, file, cases["equal_x"]!);
    const dots = paths.find(({ fill }) => fill === FIRST)!;
    expect(lines(dots.d).filter((dot) => dot.length).length).toBe(4);
  });

  test("the y axis covers all series over the same x", async ({ page, cases }) => {
    const { paths, texts } = await inPage(page, file, cases["several"]!);
    const [low, high] = [FIRST, SECOND].map((colour) => paths.find(({ stroke }) => stroke === colour)!);
    const tops = [low, high].map((path) => Math.min(...lines(path!.d)[0]!.map(([, y]) => y)));
    expect(tops[1]).toBeGreaterThan(20); // inside of the panel
    expect(tops[0]! - tops[1]!).toBeGreaterThan(150);
    expect(texts).toEqual(
      expect.arrayContaining(["100", "0", "Two heights", "time in s", "height in m", "low", "high"]),
    );
  });

  test("a line runs through its points in the order given", async ({ page, cases }) => {
    const { paths } = await inPage(page, file, cases["circle"]!);
    const [points] = lines(paths.find(({ stroke }) => stroke === FIRST)!.d);
    expect(points!.length).toBe(60);
    const xs = points!.map(([x]) => x);
    const ys = points!.map(([, y]) => y);
    const [cx, cy] = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
    const radii = points!.map(([x, y]) => Math.hypot(x - cx, y - cy));
    expect(Math.max(...radii) - Math.min(...radii)).toBeLessThan(2); // pixels: round, and no zigzag
    const turns = points!.slice(1).map(([x, y], k) => Math.hypot(x - points![k]![0], y - points![k]![1]));
    expect(Math.max(...turns)).toBeLessThan(2 * Math.min(...turns));
  });

  test("what is not finite leaves a gap, and a point between two gaps is seen", async ({ page, cases }) => {
    const { paths } = await inPage(page, file, cases["gaps"]!);
    const parts = lines(paths.find(({ stroke }) => stroke === FIRST)!.d);
    expect(parts.map((part) => part.length)).toEqual([2, 2, 2]);
    expect(paths.filter(({ fill }) => fill === FIRST).length).toBe(1);
  });

  test("colours of a picture are where they belong: row 0 on top", async ({ page, cases }) => {
    const colours = await inPage(
      page,
      async (figures, each) => {
        const mounted = figures.mount(324); // so that the square picture fills most of the panel
        await mounted.draw(each!);
        return [0.35, 0.65].map((down) => [0.35, 0.65].map((across) => mounted.pixel(0, across, down)));
      },
      cases["corners"]!,
    );
    expect(colours).toEqual([
      [
        [255, 0, 0, 255],
        [0, 255, 0, 255],
      ],
      [
        [0, 0, 255, 255],
        [255, 255, 255, 255],
      ],
    ]);
  });

  test("opacity of a picture is drawn", async ({ page, cases }) => {
    const colours = await inPage(
      page,
      async (figures, each) => {
        const mounted = figures.mount();
        await mounted.draw(each!);
        return [0.2, 0.5, 0.8].map((across) => mounted.pixel(0, across, 0.5));
      },
      cases["opacity"]!,
    );
    expect(colours[0]).toEqual([255, 0, 0, 255]);
    expect(colours[1]![1]).toBe(255);
    expect([127, 128]).toContain(colours[1]![3]);
    expect(colours[2]![3]).toBe(0);
  });

  test("the origin of a picture may lie below", async ({ page, cases }) => {
    const greys = await inPage(
      page,
      async (figures, given) => {
        const found = [];
        for (const each of given) {
          const mounted = figures.mount();
          await mounted.draw(each!);
          // at the left of the picture, which is wider than high
          found.push([0.15, 0.5, 0.8].map((down) => mounted.pixel(0, 0.25, down)[0]));
        }
        return found;
      },
      [cases["grey"]!, cases["lower"]!],
    );
    const byte = (value: number) => Math.round((255 * value) / 11);
    expect(greys[0]).toEqual([byte(0), byte(4), byte(8)]);
    expect(greys[1]).toEqual([byte(8), byte(4), byte(0)]);
  });

  test("in a picture of numbers NaN is clear, and infinity is at the end of the map", async ({ page, cases }) => {
    const [number, nan, infinite, less] = await inPage(
      page,
      async (figures, each) => {
        const mounted = figures.mount(324);
        await mounted.draw(each!);
        return [0.35, 0.65].flatMap((down) => [0.35, 0.65].map((across) => mounted.pixel(0, across, down)));
      },
      cases["holes"]!,
    );
    expect(nan![3]).toBe(0);
    expect(number).toEqual([68, 1, 84, 255]);
    expect(less).toEqual(number);
    expect(infinite).toEqual([253, 231, 37, 255]);
  });

  test("what a log axis does not have is left out, and the figure says so", async ({ page, cases }) => {
    const { paths, texts } = await inPage(page, file, cases["logs"]!);
    expect(lines(paths.find(({ fill }) => fill === FIRST)!.d).filter((dot) => dot.length).length).toBe(3);
    expect(texts).toContain("2 points are not above 0, and not on a log axis");
    await expect(page.locator(".figure-note")).toHaveText("2 points are not above 0, and not on a log axis");
  });
});

test("pixels of an enlarged picture are squares of one whole size", async ({ page, cases }) => {
  const runs = await inPage(
    page,
    async (figures, each) => {
      const mounted = figures.mount();
      await mounted.draw(each!);
      const { data, width, height } = mounted.pixels();
      const from = 4 * width * Math.round(height * 0.48);
      const row = data.slice(from, from + 4 * width);
      const words = new Uint32Array(row.buffer);
      const found: [number, number][] = [];
      for (const word of words) {
        if (found.at(-1)?.[0] === word) found.at(-1)![1]++;
        else found.push([word, 1]);
      }
      return found.filter(([word]) => word !== 0).map(([, length]) => length);
    },
    cases["digit"]!,
  );
  expect(runs.slice(0, 8)).toEqual(Array(8).fill(runs[0]));
});

test("a level of a contour plot lies where the function reaches it", async ({ page, cases }) => {
  const { paths } = await inPage(page, file, cases["ring"]!);
  const points = lines(paths.find(({ stroke }) => stroke === "#ff0000")!.d).flat();
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [cx, cy] = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
  const radii = points.map(([x, y]) => Math.hypot(x - cx, y - cy));
  expect(Math.max(...radii) - Math.min(...radii)).toBeLessThan(0.5);
  expect(points.length).toBeGreaterThan(100);
});

test("an arrow points from its place along its vector", async ({ page, cases }) => {
  const { paths } = await inPage(page, file, cases["one_arrow"]!);
  const [[tail]] = lines(paths.find(({ stroke }) => stroke === FIRST)!.d) as [[[number, number]]];
  const [[tip]] = lines(paths.find(({ fill }) => fill === FIRST)!.d) as [[[number, number]]];
  const grid = paths.filter(({ stroke }) => stroke === "rgb(226, 222, 211)").flatMap(({ d }) => lines(d));
  const upright = grid.filter(([a, b]) => a![0] === b![0]).map(([a]) => a![0]);
  const unit = (Math.max(...upright) - Math.min(...upright)) / 4; // x runs from -1 to 3
  expect(tip[0] - tail[0]).toBeCloseTo(unit, 0);
  expect(tip[1]).toBeLessThan(tail[1]);
});

test("every kind of figure is drawn, says what it is, and is saved as PNG and SVG", async ({ page, cases }) => {
  for (const [name, each] of Object.entries(cases)) {
    const found = await inPage(
      page,
      async (figures, [given]) => {
        const mounted = figures.mount();
        await mounted.draw(given!);
        const { paths, images, size } = await mounted.file();
        const png = await createImageBitmap(await mounted.view.png());
        const labels = [...mounted.host.querySelectorAll(".figure-plot")].map((plot) =>
          plot.getAttribute("aria-label"),
        );
        const failure = mounted.host.querySelector<HTMLElement>(".figure-failure")!;
        return { shapes: paths.length + images, size, png: [png.width, png.height], labels, failed: !failure.hidden };
      },
      [each] as const,
    );
    expect(found.failed, name).toBe(false);
    expect(found.shapes, name).toBeGreaterThan(0);
    expect(found.png, name).toEqual(found.size.map((side) => 2 * side));
    expect(found.labels.every(Boolean), name).toBe(true);
  }
});

test("the reader switches series off and on", async ({ page, cases }) => {
  await inPage(page, (figures, each) => figures.mount().draw(each!), cases["several"]!);
  const low = page.getByRole("button", { name: "Show or hide low" });
  const high = page.getByRole("button", { name: "Show or hide high" });
  await expect(low).toHaveAttribute("aria-pressed", "true");
  const labels = () => inPage(page, async (figures) => (await figures.mounted!.file()).texts, null);
  expect(await labels()).toContain("100");
  await high.click();
  await expect(high).toHaveAttribute("aria-pressed", "false");
  expect(await labels()).not.toContain("100"); // the axis is for what is shown
  await high.press("Enter");
  await expect(high).toHaveAttribute("aria-pressed", "true");
  expect(await labels()).toContain("100");
});

test("the pointer reads values, a drag zooms, and a button shows everything again", async ({ page, cases }) => {
  await inPage(page, (figures, each) => figures.mount().draw(each!), cases["several"]!);
  const plot = page.locator(".figure-plot");
  const box = (await plot.boundingBox())!;
  await plot.hover({ position: { x: box.width * 0.55, y: 20 } });
  await expect(page.locator(".figure-tip")).toContainText("high");
  await expect(page.locator(".figure-tip")).toContainText("y100");
  const ticks = () => inPage(page, async (figures) => (await figures.mounted!.file()).texts, null);
  const before = await ticks();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 120, { steps: 4 });
  await page.mouse.up();
  const reset = page.getByRole("button", { name: "Show the whole figure again" });
  await expect(reset).toBeVisible();
  expect(await ticks()).not.toEqual(before);
  await reset.click();
  await expect(reset).toBeHidden();
  expect(await ticks()).toEqual(before);
  await plot.focus();
  await page.keyboard.press("+");
  await expect(reset).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(reset).toBeHidden();
  await plot.click();
  await page.mouse.wheel(0, -200);
  await expect(reset).toBeVisible();
  await plot.dblclick();
  await expect(reset).toBeHidden();
});

test("the pointer reads the pixels of a picture", async ({ page, cases }) => {
  await inPage(page, (figures, each) => figures.mount(324).draw(each!), cases["corners"]!);
  const plot = page.locator(".figure-plot");
  const box = (await plot.boundingBox())!;
  await plot.hover({ position: { x: box.width * 0.35, y: box.height * 0.65 } });
  await expect(page.locator(".figure-tip")).toHaveText("row1column0RGB(0, 0, 255)");
});

test("a theme that changes recolours a figure", async ({ page, cases }) => {
  await inPage(page, (figures, each) => figures.mount().draw(each!), cases["several"]!);
  const strokes = () =>
    inPage(page, async (figures) => (await figures.mounted!.file()).paths.map(({ stroke }) => stroke), null);
  expect(await strokes()).toContain(FIRST);
  await page.emulateMedia({ colorScheme: "dark" });
  await inPage(page, (figures) => (figures.mounted!.view.recolour(), figures.mounted!.view.drawn()), null);
  expect(await strokes()).toContain("rgb(151, 167, 255)");
  const pixels = await inPage(page, (figures) => figures.mounted!.count(0, [151, 167, 255]), null);
  expect(pixels).toBeGreaterThan(50);
});

for (const colorScheme of ["light", "dark"] as const)
  test(`sixteen series have colours that can be told apart, and seen on the page (${colorScheme})`, async ({
    page,
    cases,
  }) => {
    await page.emulateMedia({ colorScheme });
    const found = await inPage(
      page,
      async (figures, each) => {
        const mounted = figures.mount();
        await mounted.draw(each!);
        const { paths } = await mounted.file();
        const buttons = [...mounted.host.querySelectorAll<HTMLElement>(".figure-legend button")];
        const keys = buttons.map((each) => each.style.getPropertyValue("--key"));
        return {
          strokes: paths.map(({ stroke }) => stroke),
          keys,
          page: getComputedStyle(document.body).backgroundColor,
        };
      },
      cases["many"]!,
    );
    expect(found.strokes).toEqual(expect.arrayContaining(found.keys));
    expect(found.keys).toHaveLength(16);
    found.keys.forEach((key, k) => {
      expect(contrast(key, found.page), key).toBeGreaterThan(3);
      const others = found.keys.slice(k + 1).map((other) => distance(key, other));
      expect(Math.min(1, ...others), key).toBeGreaterThan(0.08);
    });
  });

test("a live curve grows by its new points alone", async ({ page, cases }) => {
  const spread = await inPage(
    page,
    async (figures, each) => {
      const mounted = figures.mount();
      await mounted.draw(each!);
      const more = (values: number[]) => new Float64Array(values).buffer;
      for (let step = 300; step < 600; step += 10) {
        const x = Array.from({ length: 10 }, (_, k) => step + k);
        const points = { dtype: "float64", shape: [10] };
        mounted.view.append(
          { version: 1, append: [{ panel: 0, mark: 0, x: { buffer: 0, ...points }, y: { buffer: 1, ...points } }] },
          [more(x), more(x.map(() => 1))],
        );
      }
      await mounted.view.drawn();
      return { texts: (await mounted.file()).texts, said: mounted.view.describe() };
    },
    cases["training"]!,
  );
  expect(spread.texts).toContain("600");
  expect(spread.said).toContain("600 points");
  await expect(page.locator(".figure-plot")).toHaveAttribute("aria-label", /600 points/);
});

test("a million points are drawn", async ({ page }) => {
  const found = await inPage(
    page,
    async (figures, _) => {
      const count = 1_000_000;
      const x = Float64Array.from({ length: count }, (_, k) => k);
      const y = Float64Array.from({ length: count }, (_, k) => Math.sin(k / 50_000) + (k === 654_321 ? 9 : 0));
      y[500_000] = NaN;
      const array = (buffer: number) => ({ buffer, dtype: "float64", shape: [count] });
      const axis = { label: "", scale: "linear", limits: null };
      const common = { label: "", x: array(0), y: array(1), color: null };
      const spec = (mark: object) => ({
        version: 1,
        title: "",
        columns: null,
        height: 300,
        panels: [{ title: "", x: axis, y: axis, aspect: "auto", marks: [{ ...common, ...mark }] }],
      });
      const line = figures.mount();
      line.view.update(spec({ kind: "line", width: 2, style: "solid", markers: false }), [x.buffer, y.buffer]);
      await line.view.drawn();
      const drawn = await line.file();
      const points = figures.mount();
      const random = Float64Array.from({ length: count }, () => Math.random());
      points.view.update(spec({ kind: "scatter", size: 2 }), [random.buffer, y.buffer]);
      await points.view.drawn();
      return { path: drawn.paths.map(({ d }) => d.length), texts: drawn.texts, blue: points.count(0, [60, 80, 189]) };
    },
    null,
  );
  expect(found.texts).toContain("8"); // the one point that stands out is not lost
  expect(Math.max(...found.path)).toBeLessThan(100_000);
  expect(found.blue).toBeGreaterThan(2_000);
});

test("zooming into many points shows each of them", async ({ page }) => {
  const counts = await inPage(
    page,
    async (figures, _) => {
      const count = 100_000;
      const x = Float64Array.from({ length: count }, (_, k) => k);
      const array = (buffer: number) => ({ buffer, dtype: "float64", shape: [count] });
      const axis = { label: "", scale: "linear", limits: null };
      const mark = { kind: "line", label: "", x: array(0), y: array(1), color: null, width: 2, style: "solid" };
      const draw = async (limits: number[] | null) => {
        const mounted = figures.mount();
        const panel = {
          title: "",
          x: { ...axis, limits },
          y: axis,
          aspect: "auto",
          marks: [{ ...mark, markers: false }],
        };
        mounted.view.update({ version: 1, title: "", columns: null, height: 300, panels: [panel] }, [
          x.buffer,
          x.map((k) => k % 7).buffer,
        ]);
        await mounted.view.drawn();
        const { paths } = await mounted.file();
        return Math.max(...paths.map(({ d }) => (d.match(/[ML]/g) ?? []).length));
      };
      return [await draw(null), await draw([1000, 1050])];
    },
    null,
  );
  expect(counts[0]).toBeLessThan(4 * 560);
  expect(counts[1]).toBeGreaterThanOrEqual(51);
  expect(counts[1]).toBeLessThanOrEqual(56);
});

const plain = { version: 1, title: "", columns: null, height: 300, panels: [] as unknown[] };
const axis = { label: "", scale: "linear", limits: null };
const panel = (...marks: unknown[]) => ({ ...plain, panels: [{ title: "", x: axis, y: axis, aspect: "auto", marks }] });
const array = (count: number, dtype = "float64", buffer = 0) => ({ buffer, dtype, shape: [count] });
const line = {
  kind: "line",
  label: "",
  x: array(2),
  y: array(2),
  color: null,
  width: 2,
  style: "solid",
  markers: false,
};

const HOSTILE: [what: string, spec: unknown, message: RegExp][] = [
  ["no object", [1, 2], /no description/],
  ["another version", { ...plain, version: 2 }, /another version/],
  ["too many panels", { ...plain, panels: Array(100).fill(0) }, /at most 64/],
  ["a panel that is no object", { ...plain, panels: [3] }, /panels.*no object/],
  ["an unknown kind", panel({ ...line, kind: "pie" }), /panels 1, marks 1 has another "kind"/],
  ["a shape that the bytes do not fill", panel({ ...line, y: array(3) }), /16 bytes of "y" where its shape takes 24/],
  ["a shape of billions", panel({ ...line, y: { ...array(1), shape: [2 ** 40] } }), /bytes of "y"/],
  ["a negative size", panel({ ...line, y: { ...array(1), shape: [-2] } }), /no shape of "y"/],
  ["a buffer that is not there", panel({ ...line, y: array(2, "float64", 7) }), /number "buffer"/],
  ["an unknown dtype", panel({ ...line, y: array(2, "object") }), /another "dtype"/],
  ["a name of the prototype", panel({ ...line, y: array(2, "constructor") }), /another "dtype"/],
  ["lengths that differ", panel({ ...line, x: array(4, "float32") }), /not as many numbers of x, y/],
  ["a colour with a url", panel({ ...line, color: "url(//a.b)" }), /no colour/],
  ["a colour that is none", panel({ ...line, color: "fuchsiaish" }), /no colour/],
  ["a label that is no text", panel({ ...line, label: {} }), /no text "label"/],
  ["a width without end", panel({ ...line, width: Infinity }), /no number "width"/],
  ["points for no curve", { version: 1, append: [{ panel: 0, mark: 5, x: array(2), y: array(2) }] }, /no curve/],
];

for (const [what, spec, message] of HOSTILE) {
  test(`a description with ${what} is refused with a message`, async ({ page }) => {
    await inPage(
      page,
      (figures, given) => figures.mount().view.update(given as Record<string, unknown>, [new Float64Array(2).buffer]),
      spec,
    );
    await expect(page.locator(".figure-failure")).toHaveText(message);
  });
}

test("labels are text, never markup", async ({ page, cases }) => {
  const text = '<img src=x onerror="document.title = 1">';
  const each = structuredClone(cases["several"]!) as Case & { spec: { title: string; panels: any[] } };
  each.spec.title = text;
  each.spec.panels[0].title = text;
  each.spec.panels[0].marks[0].label = text;
  const { texts } = await inPage(page, file, each);
  expect(texts.filter((found) => found === text).length).toBe(3);
  await expect(page.locator(".weft-figure img")).toHaveCount(0);
  await expect(page.locator(".figure-legend button").first()).toHaveText(text);
});

test("the library for drawing is loaded with the first figure, not before", async ({ page, cases }) => {
  const scripts = () =>
    page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("charts")).length);
  expect(await scripts()).toBe(0);
  await inPage(page, (figures, each) => figures.mount().draw(each!), cases["several"]!);
  expect(await scripts()).toBe(1);
});

test("two colour bars leave a narrow figure room for what it shows", async ({ page, cases }) => {
  const [narrow, wide] = await inPage(
    page,
    async (figures, each) => {
      const shares: number[] = [];
      for (const width of [340, 900]) {
        const mounted = figures.mount(width);
        await mounted.draw(each!);
        const pixels = mounted.pixels();
        const row = Math.round(0.08 * pixels.height) * pixels.width; // where the lowest level fills the area
        let filled = 0;
        for (let k = row; k < row + pixels.width; k++)
          if (Math.abs(pixels.data[4 * k]! - 68) + Math.abs(pixels.data[4 * k + 2]! - 84) < 12) filled++;
        shares.push(filled / pixels.width);
      }
      return shares;
    },
    cases["two_maps"]!,
  );
  expect(narrow).toBeGreaterThan(0.55);
  expect(wide).toBeGreaterThan(0.75);
});

test("a figure keeps its room, and fits a narrow page", async ({ page, cases }) => {
  await page.setViewportSize({ width: 375, height: 700 });
  const heights = await inPage(
    page,
    async (figures, each) => {
      const mounted = figures.mount(351);
      mounted.host.style.width = "auto";
      mounted.view.update(
        each!.spec,
        each!.buffers.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer),
      );
      const before = mounted.host.clientHeight;
      await mounted.view.drawn();
      return [before, mounted.host.clientHeight, document.documentElement.scrollWidth];
    },
    cases["decision"]!,
  );
  expect(heights[1]).toBe(heights[0]);
  expect(heights[2]).toBeLessThanOrEqual(375);
});
