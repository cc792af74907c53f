// Navigation to the first result of `weft.numpy.arange(3) + 1` in Chromium, and the bytes transferred.
//
//   node bench/browser/boot.mjs [--site build/site] [--runs 5]
//
// Cold: a new profile. Warm: the next navigations of the same profile. The page is used as a person uses it: Run is
// pressed at once and waits for Python.
import { parseArgs } from "node:util";
import { countSent } from "../../tools/web/serve.mjs";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

const PROGRAM = "import weft.numpy\nweft.numpy.arange(3) + 1";

/**
 * @param {import("../../tools/web/visit.mjs").BrowserContext} context
 * @param {string} url
 */
async function visit(context, url) {
  const { page, text } = await visitToEnd(context, url);
  if (!text.includes("[1, 2, 3]")) throw new Error(`unexpected output: ${text}`);
  const result = await page.evaluate(() => {
    /** @param {string} name */
    const at = (name) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
    return { ready: at("weft:ready"), first: at("weft:first-output") };
  });
  await page.close();
  return result;
}

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/**
 * What a first visit and later ones take: milliseconds, and megabytes for each.
 * @param {string} site
 * @param {number} runs
 */
export function boots(site, runs) {
  return withSite(site, async ({ server, context, url }) => {
    const sent = countSent(server); // what caches answer costs nothing
    await runAtOnce(context, PROGRAM);
    const first = await visit(context, url);
    const transferred = sent.bytes();
    await visit(context, url); // the engine caches compiled code on the second use
    const before = sent.bytes();
    const later = [];
    for (let i = 0; i < runs; i++) later.push(await visit(context, url));
    return {
      cold: { ...first, megabytes: transferred / 1e6 },
      warm: {
        first: median(later.map((v) => v.first)),
        ready: median(later.map((v) => v.ready)),
        megabytes: (sent.bytes() - before) / runs / 1e6,
      },
      later: later.map((v) => v.first),
    };
  });
}

/**
 * @param {string} name
 * @param {{ first: number, ready: number, megabytes: number }} figures
 */
function row(name, { first, ready, megabytes }) {
  const [shown, known] = [first, ready].map((ms) => ms.toFixed(0).padStart(5));
  const size = megabytes.toFixed(2);
  console.log(`${name.padEnd(6)} first result ${shown} ms   Python ready ${known} ms   transferred ${size} MB`);
}

if (import.meta.filename === process.argv[1]) {
  const { values: options } = parseArgs({
    options: { site: { type: "string", default: "build/site" }, runs: { type: "string", default: "5" } },
  });
  const { cold, warm, later } = await boots(options.site, Number(options.runs));
  row("cold", cold);
  row("warm", warm);
  console.log(`       ${later.map((ms) => ms.toFixed(0)).join(" ")} ms`);
}
