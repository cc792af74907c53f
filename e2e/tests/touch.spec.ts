/** Figures under fingers, on a phone. */
import type { Page } from "@playwright/test";
import { expect, inPage, test } from "../fixtures/figures.js";

test.use({ hasTouch: true, isMobile: true, viewport: { width: 375, height: 667 }, colorScheme: "light" });

type Finger = [x: number, y: number];

/** Fingers that move along lines, from places to others in shares of the plot, and are lifted at the end. */
async function drag(page: Page, from: Finger[], to: Finger[], steps = 8): Promise<void> {
  const box = (await page.locator(".figure-plot").first().boundingBox())!;
  const session = await page.context().newCDPSession(page);
  const points = (share: number) =>
    from.map(([x, y], id) => {
      const [toX, toY] = to[id]!;
      return {
        id,
        x: box.x + box.width * (x + share * (toX - x)),
        y: box.y + box.height * (y + share * (toY - y)),
      };
    });
  await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: points(0) });
  for (let step = 1; step <= steps; step++) {
    await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: points(step / steps) });
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await session.detach();
  await page.waitForTimeout(100); // a scroll that goes on
}

async function tap(page: Page, [x, y]: Finger): Promise<void> {
  const box = (await page.locator(".figure-plot").first().boundingBox())!;
  await page.touchscreen.tap(box.x + box.width * x, box.y + box.height * y);
}

/** The ticks along x, as numbers. */
const ticks = (page: Page): Promise<number[]> =>
  inPage(
    page,
    async (figures) => {
      await figures.mounted!.view.drawn();
      const { texts } = await figures.mounted!.file();
      return texts.map((text) => Number(text.replace("−", "-"))).filter((value) => !Number.isNaN(value));
    },
    null,
  );

const scrolled = (page: Page): Promise<number> => page.evaluate(() => scrollY);

test.beforeEach(async ({ page, cases }) => {
  await inPage(
    page,
    async (figures, each) => {
      const mounted = figures.mount(351);
      await mounted.draw(each!);
      document.body.style.paddingBottom = "2000px";
    },
    cases["counted"]!,
  );
});

test("two fingers zoom, one moves the zoomed figure, two taps show it whole", async ({ page }) => {
  const reset = page.getByRole("button", { name: "Show the whole figure again" });
  const whole = await ticks(page);
  await drag(
    page,
    [
      [0.5, 0.5],
      [0.6, 0.5],
    ],
    [
      [0.3, 0.5],
      [0.8, 0.5],
    ],
  );
  await expect(reset).toBeVisible();
  const near = await ticks(page);
  expect(near).not.toEqual(whole);
  expect(await scrolled(page)).toBe(0);

  await drag(page, [[0.3, 0.5]], [[0.8, 0.5]]);
  const left = await ticks(page);
  expect(Math.min(...left)).toBeLessThan(Math.min(...near)); // what lies to the left has come into view
  expect(await scrolled(page)).toBe(0);

  await tap(page, [0.5, 0.5]);
  await tap(page, [0.5, 0.5]);
  await expect(reset).toBeHidden();
  expect(await ticks(page)).toEqual(whole);
});

test("the values under two fingers stay under them", async ({ page, cases }) => {
  // A picture of 8 by 8 cells, read by taps: what is in the middle of the fingers is there after they have parted.
  await inPage(page, (figures, each) => figures.mount(351).draw(each!), cases["decision"]!);
  const tip = page.locator(".figure-tip");
  await tap(page, [0.4, 0.3]);
  const before = await tip.textContent();
  await page.waitForTimeout(400); // the next is not the second of a double tap
  await drag(
    page,
    [
      [0.35, 0.3],
      [0.45, 0.3],
    ],
    [
      [0.15, 0.3],
      [0.65, 0.3],
    ],
    16,
  );
  await tap(page, [0.4, 0.3]);
  await expect(tip).toHaveText(before!);
});

test("two fingers move the zoomed figure too, and together they show it whole again", async ({ page }) => {
  const reset = page.getByRole("button", { name: "Show the whole figure again" });
  const apart: Finger[] = [
    [0.3, 0.4],
    [0.8, 0.4],
  ];
  const together: Finger[] = [
    [0.5, 0.4],
    [0.6, 0.4],
  ];
  await drag(page, together, apart);
  const near = await ticks(page);
  await drag(page, together, [
    [0.8, 0.4],
    [0.9, 0.4],
  ]);
  expect(Math.min(...(await ticks(page)))).toBeLessThan(Math.min(...near));
  await drag(page, apart, [
    [0.53, 0.4],
    [0.57, 0.4],
  ]);
  await expect(reset).toBeHidden();
  // never further than the whole
  await drag(page, apart, together);
  await expect(reset).toBeHidden();
  expect(await scrolled(page)).toBe(0);
});

test("one finger scrolls the page while the figure is whole", async ({ page }) => {
  const whole = await ticks(page);
  await drag(page, [[0.5, 0.9]], [[0.5, 0.1]]);
  expect(await scrolled(page)).toBeGreaterThan(100);
  await page.evaluate(() => scrollTo(0, 0));
  await expect(page.getByRole("button", { name: "Show the whole figure again" })).toBeHidden();
  expect(await ticks(page)).toEqual(whole);
  await expect(page.locator(".figure-tip")).toBeHidden();
});

test("a tap shows the value, above the finger, until the next", async ({ page }) => {
  const tip = page.locator(".figure-tip");
  await tap(page, [0.5, 0.8]);
  await expect(tip).toBeVisible();
  await expect(tip).toContainText("count");
  const [box, plot] = [(await tip.boundingBox())!, (await page.locator(".figure-plot").boundingBox())!];
  expect(box.y + box.height).toBeLessThan(plot.y + 0.8 * plot.height - 20);
  await page.waitForTimeout(400);
  await tap(page, [0.02, 0.98]); // beside the axes
  await expect(tip).toBeHidden();
});

test("on a phone labels are whole or end in an ellipsis, and none covers another", async ({ page, cases }) => {
  const texts = await inPage(
    page,
    async (figures, each) => {
      const mounted = figures.mount(351);
      await mounted.draw(each!);
      const parsed = new DOMParser().parseFromString(await mounted.view.svg(), "image/svg+xml");
      // laid out on the page, where their boxes can be measured
      const svg = document.body.appendChild(document.importNode(parsed.documentElement, true)) as unknown as SVGElement;
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].map((text) => {
        const { left, top, width, height } = text.getBoundingClientRect();
        return { text: text.textContent!, box: [left - frame.left, top - frame.top, width, height], wide: frame.width };
      });
    },
    cases["crowded"]!,
  );
  expect(texts.length).toBeGreaterThan(10);
  for (const { text, box, wide } of texts) {
    expect(box[0], text).toBeGreaterThanOrEqual(-1);
    expect(box[0]! + box[2]!, text).toBeLessThanOrEqual(wide + 1);
    for (const other of texts) {
      if (other.text === text && other.box[0] === box[0] && other.box[1] === box[1]) continue;
      const apart = [0, 1].some(
        (axis) =>
          box[axis]! + box[axis + 2]! <= other.box[axis]! + 3 ||
          other.box[axis]! + other.box[axis + 2]! <= box[axis]! + 3,
      );
      expect(apart, `${text} and ${other.text}`).toBe(true);
    }
  }
});
