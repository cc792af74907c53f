// Navigation to the first result of `weft.numpy.arange(3) + 1` in Chromium, and the bytes transferred.
//
//   node bench/browser/boot.mjs [--site build/site] [--runs 5]
//
// Cold: a new profile. Warm: the next navigations of the same profile. The page is used as a person uses it: Run is
// pressed at once and waits for Python.
import { parseArgs } from "node:util";
import { countSent } from "../../tools/web/serve.mjs";
import { runAtOnce, visitToEnd, withSite } from "../../tools/web/visit.mjs";

const { values: options } = parseArgs({
  options: { site: { type: "string", default: "build/site" }, runs: { type: "string", default: "5" } },
});
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
 * @param {string} name
 * @param {{ first: number, ready: number }[]} visits
 * @param {number} bytes
 */
function row(name, visits, bytes) {
  const [first, ready] = [visits.map((v) => v.first), visits.map((v) => v.ready)].map((times) =>
    median(times).toFixed(0).padStart(5),
  );
  const megabytes = (bytes / 1e6).toFixed(2);
  console.log(`${name.padEnd(6)} first result ${first} ms   Python ready ${ready} ms   transferred ${megabytes} MB`);
}

await withSite(options.site, async ({ server, context, url }) => {
  const sent = countSent(server); // what caches answer costs nothing
  await runAtOnce(context, PROGRAM);
  row("cold", [await visit(context, url)], sent.bytes());
  await visit(context, url); // the engine caches compiled code on the second use
  const before = sent.bytes();
  const runs = Number(options.runs);
  const warm = [];
  for (let i = 0; i < runs; i++) warm.push(await visit(context, url));
  row("warm", warm, (sent.bytes() - before) / runs);
  console.log(`       ${warm.map((v) => v.first.toFixed(0)).join(" ")} ms`);
});
