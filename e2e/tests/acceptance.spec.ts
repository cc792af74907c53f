/** The programs of tests/acceptance in a page, with their arrays and compiled programs on a host. */
import fs from "node:fs";
import path from "node:path";
import { expect } from "../fixtures/site.js";
import { root, test, withHost } from "../fixtures/weft.js";

const PROGRAMS = 91;
/** What they ask for at their end is XLA's, which a page has not: its text of a program, and the platform "cpu". */
const XLA = [
  "test_001_tutorial::test_minimize_unrolled_fori_and_while",
  "test_002_api::test_xla_computation",
  "test_002_api::test_named_call_keeps_the_name",
];
const folder = path.join(root, "tests/acceptance");

/** The runner with the programs in it, which an editor's reader of imports does not see. */
function runner(): string {
  const files = fs.readdirSync(folder).filter((name) => /^test_\d+_\w+\.py$/.test(name));
  const sources = Object.fromEntries(
    files.map((name) => [name.slice(0, -3), fs.readFileSync(path.join(folder, name), "utf8")]),
  );
  const packed = Buffer.from(JSON.stringify(sources)).toString("base64");
  const source = fs.readFileSync(path.join(root, "e2e/fixtures/acceptance.py"), "utf8");
  return `${source}\n\nimport base64\n\nrun(json.loads(base64.b64decode("${packed}")))\n`;
}

type Line = [title: string, state: string, seconds: number, why: string];

test("the acceptance programs run on a host from a page", async ({ playground, page }) => {
  test.setTimeout(300_000);
  const before = process.env["JAX_NUM_CPU_DEVICES"];
  process.env["JAX_NUM_CPU_DEVICES"] = "8"; // of the host: some programs are spread
  try {
    await withHost(
      async (host) => {
        await playground.open();
        await page.getByRole("radio", { name: "Host" }).check();
        await page.locator("#host-url").fill(host.url);
        await page.locator("#host-token").fill(host.token);
        await playground.run(runner());
        await expect(page.locator("#state")).toHaveText(/^(Done on host|Failed)$/, { timeout: 240_000 });
        expect(await page.locator(".failure").allTextContents()).toEqual([]);
        const text = (await playground.output.textContent()) ?? "";
        const lines = text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as Line);
        expect(lines.pop()?.slice(0, 3)).toEqual(["all", "remote", 8]);
        const others = lines.filter(([, state]) => state !== "passed");
        const wrong = others.filter(([title]) => !XLA.includes(title));
        expect(wrong.map(([title, state, , why]) => `${title} ${state}: ${why}`)).toEqual([]);
        expect(others.map(([title]) => title)).toEqual(XLA);
        expect(lines).toHaveLength(PROGRAMS);
      },
      "--platform",
      "cpu",
      "--session-bytes",
      "2000000000",
    );
  } finally {
    if (before === undefined) delete process.env["JAX_NUM_CPU_DEVICES"];
    else process.env["JAX_NUM_CPU_DEVICES"] = before;
  }
});
