/** The page of a host's administrators. */
import { spawn } from "node:child_process";
import { expect } from "@playwright/test";
import { python, test, withHost } from "../fixtures/weft.js";

const client = `
import sys, weft.remote
session = weft.remote.connect(sys.argv[1], token=sys.argv[2], name="<img src=x onerror=document.title=1>")
print("connected", flush=True)
sys.stdin.readline()
try:
    session.ping()
except Exception as e:
    print(type(e).__name__, e, flush=True)
`;

test("an administrator sees sessions and ends one, on a wide screen and on a phone", async ({ page }) => {
  await withHost(
    async (host) => {
      const child = spawn(python, ["-c", client, host.url, host.token]);
      let said = "";
      child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
      await expect.poll(() => said).toBe("connected\n");
      const refused: string[] = [];
      page.on("console", (message) => {
        if (message.text().includes("Content Security Policy")) refused.push(message.text());
      });
      await page.goto(host.admin);
      await page.getByLabel("Token").fill("a guess");
      await page.getByRole("button", { name: "Show" }).click();
      await expect(page.getByRole("status")).toContainText("does not know this token");
      await page.getByLabel("Token").fill(host.token);
      await page.getByRole("button", { name: "Show" }).click();
      await expect(page.getByRole("status")).toBeEmpty();
      await page.reload(); // the tab knows the token
      const rows = page.locator("#sessions tbody tr");
      await expect(rows).toHaveCount(1);
      await expect(rows).toContainText("<img src=x onerror=document.title=1>"); // what clients say is text
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      }
      await rows.getByRole("button", { name: /^End </ }).click();
      await expect(rows).toHaveCount(1);
      await rows.getByRole("button", { name: /^End it\?/ }).click();
      await expect(page.getByText("No sessions.")).toBeVisible();
      child.stdin.write("\n");
      await expect.poll(() => said).toContain("ConnectionLost the host's operator has ended the session");
      expect(await page.title()).toBe("weft-host");
      expect(refused).toEqual([]);
    },
    "--admin",
    "0",
  );
});
