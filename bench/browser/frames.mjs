// What frames of the gallery's animations cost in Chromium, in milliseconds: a frame at 60 a second has 16.7.
//
//   node bench/browser/frames.mjs [--site build/site]
//
// "step": computing a picture, in the worker; "send": describing it and giving it to the page; "draw": the page's
// thread for each picture that it drew, in time of that thread, which others on the machine don't lengthen. Steps and
// sends are the least of five rounds.
import fs from "node:fs";
import { parseArgs } from "node:util";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

const { values: options } = parseArgs({ options: { site: { type: "string", default: "build/site" } } });
const FRAMES = 180;

const CLOCK = `
import time
def least(f, rounds=5, count=20):
    f()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            f()
        times.append((time.perf_counter() - start) / count)
    return 1e3 * min(times)
`;

/** The program of a document up to a line, and what makes and shows its pictures. */
const ANIMATIONS = {
  mandelbrot: {
    until: "def dive",
    make: `
pictures = [picture(X, Y, 3.0 * 0.95**i) for i in range(60)]
def step():
    picture(X, Y, 0.5).block_until_ready()
def show(k):
    plot.figure(height=400).image(pictures[k % 60], origin="lower", colorbar=False)
`,
  },
  reaction_diffusion: {
    until: "def grow",
    make: `
pictures = []
for _ in range(60):
    u, v = advance(u, v, feed, kill)
    pictures.append(v)
def step():
    global u, v
    u, v = advance(u, v, feed, kill)
    v.block_until_ready()
def show(k):
    plot.figure(height=400).image(pictures[k % 60], cmap="magma", vmin=0.0, vmax=0.4, colorbar=False)
`,
  },
};

const MEASURE = `
def send():
    show(0)
    plot.flush()
print("times", least(step), least(send))
`;
const ANIMATE = `
def frames():
    for k in range(${FRAMES}):
        show(k)
        yield
from weft.widgets import animate
animate(frames, fps=60)
print("end")
`;

/** @typedef {{metrics: {name: string, value: number}[]}} Metrics */

/** @param {string} source */
async function drawing(source) {
  return withSite(options.site, async ({ context, url }) => {
    await runAtOnce(context, source);
    const page = await context.newPage();
    await page.addInitScript(() => {
      const put = CanvasRenderingContext2D.prototype.putImageData;
      Object.assign(window, { drawn: 0 });
      CanvasRenderingContext2D.prototype.putImageData = function (/** @type {any[]} */ ...given) {
        /** @type {any} */ (window).drawn++;
        return /** @type {any} */ (put).apply(this, given);
      };
    });
    const session = await context.newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const busy = async () => {
      const { metrics } = /** @type {Metrics} */ (await session.send("Performance.getMetrics"));
      return 1e3 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
    };
    await page.goto(url);
    await page.waitForFunction(() => /** @type {any} */ (window).drawn > 5, null, { timeout: 60_000 });
    const [before, first] = [await busy(), await page.evaluate("drawn")];
    await page.waitForFunction(() => document.querySelector(".output")?.textContent?.includes("end"), null, {
      timeout: 60_000,
    });
    return ((await busy()) - before) / (Number(await page.evaluate("drawn")) - Number(first));
  });
}

console.log("animation             step   send   draw   of 16.7 ms");
for (const [name, { until, make }] of Object.entries(ANIMATIONS)) {
  const text = fs.readFileSync(`examples/gallery/${name}.py`, "utf8").split(until)[0] ?? "";
  const source = `${text.replace(/^cover$/m, "")}${make}`;
  const { text: said } = await withSite(options.site, async ({ context, url }) => {
    await runAtOnce(context, `${CLOCK}${source}${MEASURE}`);
    return visitToEnd(context, url);
  });
  const [step, send] = (/times ([\d.]+) ([\d.]+)/.exec(said) ?? []).slice(1).map(Number);
  const draw = await drawing(`${source}${ANIMATE}`);
  const row = [step, send, draw].map((ms) => (ms ?? NaN).toFixed(1).padStart(6)).join(" ");
  console.log(`${name.padEnd(18)} ${row}`);
}
