/** What one visit compiles, the next one finds in IndexedDB. */
import { test } from "../fixtures/weft.js";
import { expect } from "../fixtures/site.js";
import type { Page } from "@playwright/test";

const PROGRAM = `
import weft, weft.numpy as jnp
from weft import monitoring
seen = []
note = lambda event, **_: seen.append(event.rsplit("/", 1)[1])
monitoring.register_event_listener(note)
f = weft.jit(weft.grad(lambda w: jnp.mean(jnp.tanh(jnp.arange(6.0).reshape(2, 3) @ w) ** 2)))
y = f(jnp.ones((3, 2)))
print(seen.count("cache_hits"), seen.count("cache_misses"), [round(v, 6) for v in y.ravel().tolist()])
monitoring.unregister_event_listener(note)
`;

/** Does something to every kept program; resolves to their sizes. */
function kept(page: Page, damage = false): Promise<number[]> {
  return page.evaluate(
    (damage) =>
      new Promise<number[]>((resolve, reject) => {
        const opening = indexedDB.open("weft-programs");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const store = opening.result.transaction("programs", "readwrite").objectStore("programs");
          const sizes: number[] = [];
          const cursors = store.openCursor();
          cursors.onsuccess = () => {
            const cursor = cursors.result;
            if (!cursor) {
              opening.result.close();
              return resolve(sizes);
            }
            sizes.push((cursor.value as Uint8Array).length);
            if (damage) cursor.update(new Uint8Array([1, 2, 3]));
            cursor.continue();
          };
        };
      }),
    damage,
  );
}

test("a program is compiled at the first visit, and found at the next", async ({ playground, page }) => {
  const count = (text: string) => text.split(" ").slice(0, 2).map(Number);
  const rest = (text: string) => text.split(" ").slice(2);
  await playground.open();
  const first = await playground.runToEnd(PROGRAM);
  const [hits, misses] = count(first);
  expect([hits, misses! > 0]).toEqual([0, true]);
  await expect.poll(async () => (await kept(page)).length).toBeGreaterThanOrEqual(misses!);

  await page.reload();
  await playground.open();
  const second = await playground.runToEnd(PROGRAM);
  expect(count(second)).toEqual([misses, 0]);
  expect(rest(second)).toEqual(rest(first));

  await kept(page, true);
  await page.reload();
  await playground.open();
  const third = await playground.runToEnd(PROGRAM);
  expect(count(third)).toEqual([0, misses]);
  expect(rest(third)).toEqual(rest(first));
  // The damaged one has given way to what was compiled again.
  await page.reload();
  await playground.open();
  expect(count(await playground.runToEnd(PROGRAM))).toEqual([misses, 0]);
});
