import assert from "node:assert/strict";
import { test } from "node:test";
import { SNAPSHOTS, thin } from "../../src/documents/history.js";
import type { Library, LibraryEvent, Opened, Saved } from "../../src/documents/library.js";
import { DocumentError, newCell, newDocument } from "../../src/documents/model.js";
import type { Document } from "../../src/documents/model.js";
import { said } from "./arbitrary.js";
import { FakeBrowser, FakeStorage, until } from "./browser.js";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

const script = (source: string, parts: Partial<Document> = {}) =>
  newDocument({ title: "Digits", cells: [newCell("code", source)], ...parts });
const edited = (document: Document, source: string): Document => ({
  ...document,
  cells: [{ ...document.cells[0]!, source }],
});
const sourceOf = ({ document }: Opened) => document.cells[0]!.source;
const kinds = (library: Library) => library.notices.map(({ kind }) => kind);
const sources = async (library: Library) =>
  Promise.all((await library.list()).map(async ({ id }) => sourceOf(await library.open(id))));

function saved(result: Saved): number {
  assert.equal(result.outcome, "saved");
  return (result as { revision: number }).revision;
}

test("a document is kept from visit to visit", async (context) => {
  const browser = new FakeBrowser(context);
  const first = await browser.tab();
  const document = newDocument({
    title: "Grüße 🧵",
    form: "notebook",
    cells: [newCell("markdown", "# The title\n\nText"), newCell("code", "import jax")],
    options: { backend: "webgpu", x64: true },
    origin: "example:digits",
  });
  const made = await first.create(document);
  assert.deepEqual(made.document, document);
  saved(await first.save({ ...document, title: "Grüße" }, made.revision));
  first.close();
  const second = await browser.tab();
  assert.deepEqual((await second.open(document.id)).document, { ...document, title: "Grüße" });
  const [entry] = await second.list();
  const { title, form, snippet, origin, changed, damaged } = entry!;
  assert.deepEqual(
    { title, form, snippet, origin, changed, damaged },
    {
      ...{ title: "Grüße", form: "notebook", snippet: "The title Text import jax" },
      ...{ origin: "example:digits", changed: browser.time, damaged: false },
    },
  );
  assert.deepEqual(second.notices, []);
});

test("the list has what changed last first", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const a = await library.create(script("a"));
  browser.time += 1;
  await library.create(script("b"));
  assert.deepEqual(await sources(library), ["b", "a"]);
  browser.time += 1;
  saved(await library.save(edited(a.document, "a2"), a.revision));
  assert.deepEqual(await sources(library), ["a2", "b"]);
});

test("two tabs: the second save over the same text is kept as a copy", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const made = await one.create(script("start"));
  const other = await two.open(made.document.id);
  saved(await one.save(edited(made.document, "from one"), made.revision));
  const result = await two.save(edited(other.document, "from two"), other.revision);
  assert.ok(result.outcome === "conflict");
  assert.equal(sourceOf(result.copy), "from two");
  assert.equal(result.copy.document.title, "Digits (conflicting copy)");
  assert.notEqual(result.copy.document.id, made.document.id);
  assert.deepEqual((await sources(one)).sort(), ["from one", "from two"]);
  // The tab goes on with its copy.
  saved(await two.save(edited(result.copy.document, "on"), result.copy.revision));
  assert.deepEqual((await sources(one)).sort(), ["from one", "on"]);
});

test("two tabs that save at the same moment both keep their text", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  for (let round = 0; round < 10; round++) {
    const made = await one.create(script("start"));
    const results = await Promise.all(
      [one, two].map((tab, index) => tab.save(edited(made.document, `round ${round} of ${index}`), made.revision)),
    );
    assert.deepEqual(results.map(({ outcome }) => outcome).sort(), ["conflict", "saved"]);
    const found = await sources(one);
    for (const index of [0, 1]) assert.ok(found.includes(`round ${round} of ${index}`));
  }
});

test("two tabs with the same text are no conflict", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const made = await one.create(script("start"));
  const revision = saved(await one.save(edited(made.document, "same"), made.revision));
  assert.equal(saved(await two.save(edited(made.document, "same"), made.revision)), revision);
  assert.deepEqual(await sources(one), ["same"]);
});

test("saves of one tab that overlap are no conflict, until another tab comes between", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const { document, revision } = await one.create(script("0"));
  const results = await Promise.all(["1", "2", "3"].map((text) => one.save(edited(document, text), revision)));
  assert.deepEqual(results.map(saved), [2, 3, 4]);
  assert.deepEqual(await sources(one), ["3"]);
  saved(await two.save(edited(document, "from two"), 4));
  assert.equal((await one.save(edited(document, "4"), revision)).outcome, "conflict");
  assert.equal((await one.save(edited(document, "5"), 4)).outcome, "conflict");
  assert.equal(saved(await one.save(edited(document, "6"), 5)), 6);
});

test("tabs are told of each other's changes", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const events: LibraryEvent[] = [];
  const own: LibraryEvent[] = [];
  two.subscribe((event) => events.push(event));
  const stop = one.subscribe((event) => own.push(event));
  const { document, revision } = await one.create(script("a"));
  await until(() => events.length === 1);
  assert.deepEqual(events, [{ type: "changed", id: document.id, revision: 1, byOtherTab: true }]);
  assert.deepEqual(own, [{ type: "changed", id: document.id, revision: 1, byOtherTab: false }]);
  stop();
  saved(await one.save(edited(document, "b"), revision));
  await one.remove(document.id);
  await until(() => events.length === 3);
  assert.equal(own.length, 1);
});

test("the copies of a link are found", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  await library.create(script("mine"));
  const link = () => script("theirs", { origin: "link:1" });
  const first = await library.create(link());
  browser.time += 1;
  const second = await library.create(link());
  assert.deepEqual(
    (await library.copiesOf("link:1")).map(({ id }) => id),
    [second.document.id, first.document.id],
  );
  assert.deepEqual((await sources(library)).sort(), ["mine", "theirs", "theirs"]);
  await library.remove(second.document.id);
  assert.equal((await library.copiesOf("link:1")).length, 1);
});

test("rename, duplicate, delete and its undo", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document } = await library.create(script("a"));
  const { id } = document;
  const renamed = await library.rename(id, "Numbers");
  assert.equal(renamed.document.title, "Numbers");
  const twin = await library.duplicate(id);
  assert.equal(twin.document.title, "Numbers (copy)");
  assert.notEqual(twin.document.id, id);
  await library.remove(id);
  assert.deepEqual(
    (await library.list()).map((entry) => entry.id),
    [twin.document.id],
  );
  await assert.rejects(library.open(id), { name: "DocumentError", message: /it was deleted/ });
  await library.undelete(id);
  assert.equal((await library.open(id)).document.title, "Numbers");
  await library.remove(id);
  library.close();
  browser.time += 8 * DAY;
  const later = await browser.tab();
  await later.undelete(id);
  await assert.rejects(later.open(id), DocumentError);
});

test("a tab that deletes a document, takes that back and goes on has no conflict with itself", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("a"));
  await library.remove(document.id);
  await library.undelete(document.id);
  saved(await library.save(edited(document, "b"), revision));
  assert.deepEqual(await sources(library), ["b"]);
});

test("a document that another tab deleted comes back with the next save", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const { document, revision } = await one.create(script("a"));
  await two.remove(document.id);
  saved(await one.save(edited(document, "b"), revision));
  assert.deepEqual(await sources(two), ["b"]);
});

test("what is deleted with all data of the site comes back with the next save", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("a"));
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase("weft-library");
    request.onsuccess = resolve;
    request.onerror = reject;
  });
  assert.deepEqual(await library.list(), []);
  saved(await library.save(edited(document, "b"), revision));
  assert.deepEqual(await sources(library), ["b"]);
});

test("history: the state before a change, not each letter, and restoring keeps what it replaces", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("0"));
  const { id } = document;
  let current = revision;
  for (let minute = 1; minute <= 30; minute++) {
    browser.time += MINUTE;
    current = saved(await library.save(edited(document, `${minute}`), current));
  }
  const times = await library.history(id);
  assert.ok(times.length >= 5 && times.length <= 8, `${times.length} snapshots in half an hour`);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => b - a),
  );
  const old = await library.snapshot(id, times.at(-1)!);
  assert.deepEqual(said(old), said(document));
  const restored = saved(await library.restore(id, times.at(-1)!, current));
  assert.equal(sourceOf(await library.open(id)), "0");
  const [newest] = await library.history(id);
  assert.equal((await library.snapshot(id, newest!)).cells[0]!.source, "30");
  saved(await library.restore(id, newest!, restored));
  assert.equal(sourceOf(await library.open(id)), "30");
  await assert.rejects(library.snapshot(id, 5), { name: "DocumentError", message: /no longer in the history/ });
});

test("history gets thinner with age, and never long", () => {
  const now = Date.UTC(2026, 5, 1);
  let times: number[] = [];
  for (let time = now - 400 * DAY; time <= now; time += 20 * MINUTE) {
    times.push(time);
    const gone = new Set(thin(times, time));
    times = times.filter((each) => !gone.has(each));
    assert.ok(times.length <= SNAPSHOTS);
    assert.ok(times.includes(time) && times.includes(now - 400 * DAY));
  }
  const within = (age: number) => times.filter((time) => now - time <= age).length;
  assert.ok(within(60 * MINUTE) >= 3, `${within(60 * MINUTE)} of the last hour`);
  assert.ok(within(DAY) >= 25, `${within(DAY)} of the last day`);
  assert.ok(within(30 * DAY) >= 53, `${within(30 * DAY)} of the last month`);
  assert.ok(times.length - within(30 * DAY) > 20);
});

test("all documents go into one file and come back, each once", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  await library.create(script("a", { origin: "link:7" }));
  await library.create(newDocument({ form: "notebook", cells: [newCell("markdown", "# b")] }));
  const file = await library.exportAll();
  assert.deepEqual(await library.importAll(file), { added: [], skipped: 2 });
  library.close();
  const other = await new FakeBrowser(context).tab();
  const { added } = await other.importAll(file);
  assert.equal(added.length, 2);
  assert.equal(await other.exportAll().then((text) => text.length), file.length);
  assert.equal((await other.copiesOf("link:7")).length, 1);
});

test("a file that is no library is refused, and nothing of it is added", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const item = (parts: object) => ({
    ...{ title: "x", form: "notebook", options: { backend: "wasm", x64: false }, cells: [], origin: null },
    ...parts,
  });
  const file = (...documents: unknown[]) => JSON.stringify({ format: "weft-library", version: 1, documents });
  for (const [text, message] of [
    ["", /not JSON/],
    ["[]", /The file must be an object/],
    ["{}", /its format is not "weft-library"/],
    ['{"format": "weft-library", "version": 2}', /has version 2, and this page reads version 1\. Reload/],
    ['{"format": "weft-library", "version": 1}', /documents must be a list/],
    [file(item({}), 7), /documents\[1\] must be an object/],
    [file(item({}), item({ title: 7 })), /documents\[1\]\.title must be text/],
    [file(item({}), item({ cells: [["code", null]] })), /documents\[1\]\.cells\[0\]\.source must be text/],
    [file(item({}), item({ origin: 7 })), /documents\[1\]\.origin must be text/],
    [file(item({}), item({ cells: Array(10_001).fill(["code", ""]) })), /cells has 10001 items; at most 10000/],
  ] as const) {
    await assert.rejects(library.importAll(text), (error: unknown) => {
      assert.ok(error instanceof DocumentError);
      assert.match(error.message, message);
      return true;
    });
  }
  assert.deepEqual(await library.list(), []);
});

// ---- Browsers that refuse ----

test("without a database documents live in memory, and a notice says why", async (context) => {
  for (const [open, why] of [
    [undefined, /it has no database/],
    [
      () => {
        throw new DOMException("no", "SecurityError");
      },
      /doesn't allow storage, as in private windows/,
    ],
    [
      () => {
        throw new DOMException("old", "VersionError");
      },
      /newer version of this page has used it/,
    ],
  ] as const) {
    const browser = new FakeBrowser(context);
    browser.withoutDatabase(open);
    const library = await browser.tab();
    assert.equal(library.persistent, false);
    assert.deepEqual(kinds(library), ["memory"]);
    assert.match(library.notices[0]!.message, why);
    const { document, revision } = await library.create(script("a"));
    browser.time += MINUTE;
    const next = saved(await library.save(edited(document, "b"), revision));
    const [time] = await library.history(document.id);
    saved(await library.restore(document.id, time!, next));
    assert.deepEqual(await sources(library), ["a"]);
    await library.remove(document.id);
    await library.undelete(document.id);
    // What is left of a browser's storage carries the text to the next visit.
    library.hide([]);
    library.close();
    for (let visit = 0; visit < 2; visit++) {
      const again = await browser.tab();
      assert.deepEqual(await sources(again), ["a"]);
      assert.deepEqual(kinds(again), ["memory", "recovered"]);
      again.hide([]);
      again.close();
      assert.equal([...Array(browser.storage.length)].length, 1);
    }
  }
});

test("a full disk: history and deleted documents make room first", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const deleted = await library.create(script("deleted"));
  await library.remove(deleted.document.id);
  const { document, revision } = await library.create(script("0"));
  let current = revision;
  for (let round = 1; round <= 4; round++) {
    browser.time += 6 * MINUTE;
    current = saved(await library.save(edited(document, `${round}`), current));
  }
  const before = (await library.history(document.id)).length;
  let refusals = 1;
  browser.disk(() => refusals-- > 0);
  saved(await library.save(edited(document, "5"), current));
  assert.deepEqual(kinds(library), ["trimmed"]);
  assert.ok((await library.history(document.id)).length < before);
  await library.undelete(deleted.document.id);
  await assert.rejects(library.open(deleted.document.id), DocumentError);
});

test("a full disk: what can't be saved is kept, said once, and saved when there is room", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const events: LibraryEvent[] = [];
  library.subscribe((event) => events.push(event));
  const { document, revision } = await library.create(script("0"));
  let full = true;
  browser.disk(() => full);
  for (const text of ["1", "2"]) {
    assert.deepEqual(await library.save(edited(document, text), revision), { outcome: "kept", revision });
  }
  const added = await library.create(script("new"));
  assert.deepEqual(kinds(library), ["full", "full"]);
  assert.match(library.notices[0]!.message, /“Digits” is not saved: .*storage is full.*download it/);
  assert.equal(events.filter(({ type }) => type === "notice").length, 2);
  assert.deepEqual((await sources(library)).sort(), ["2", "new"]);
  full = false;
  assert.equal(saved(await library.save(edited(document, "3"), revision)), revision + 1);
  saved(await library.save(edited(added.document, "new!"), added.revision));
  library.close();
  assert.deepEqual((await sources(await browser.tab())).sort(), ["3", "new!"]);
});

test("a full disk and a closed page: the text comes through localStorage", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("0"));
  let full = true;
  browser.disk(() => full);
  await library.save(edited(document, "1"), revision);
  await library.create(script("new"));
  library.hide([]);
  library.close();
  full = false;
  const next = await browser.tab();
  assert.deepEqual((await sources(next)).sort(), ["1", "new"]);
  assert.deepEqual(kinds(next), ["recovered", "recovered"]);
});

test("while the disk is full another tab's save is not overwritten later", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const { document, revision } = await one.create(script("0"));
  let full = true;
  browser.disk(() => full);
  await one.save(edited(document, "one"), revision);
  full = false;
  saved(await two.save(edited(document, "two"), revision));
  assert.equal((await one.save(edited(document, "one!"), revision)).outcome, "conflict");
  assert.deepEqual((await sources(one)).sort(), ["one!", "two"]);
});

test("a deleted document that was never stored can come back too", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  browser.disk(() => true);
  const { document } = await library.create(script("0"));
  await library.remove(document.id);
  assert.deepEqual(await library.list(), []);
  await library.undelete(document.id);
  assert.deepEqual(await sources(library), ["0"]);
});

test("a damaged record: its history opens, and the next save mends it", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("0"));
  browser.time += 6 * MINUTE;
  saved(await library.save(edited(document, "1"), revision));
  await browser.raw("readwrite", (records) => records.put({ id: document.id, title: 7, revision: 9 }));
  await library.create(script("sound"));
  const entries = await library.list();
  assert.deepEqual(
    entries.map(({ title, damaged }) => [title, damaged]),
    [
      ["Digits", false],
      ["Damaged document", true],
    ],
  );
  const opened = await library.open(document.id);
  assert.equal(sourceOf(opened), "0");
  assert.equal(typeof opened.repairedFrom, "number");
  assert.deepEqual(kinds(library), ["damaged"]);
  saved(await library.save(opened.document, opened.revision));
  assert.deepEqual((await sources(library)).sort(), ["0", "sound"]);
});

test("damaged beyond repair: said so, listed so, and it can be deleted", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  for (const [index, record] of [
    {},
    { cells: null },
    { title: "x", form: "script", cells: [], options: {} },
  ].entries()) {
    await browser.raw("readwrite", (records, snapshots) => {
      records.put({ id: `bad${index}`, ...record });
      snapshots.put({ id: `bad${index}`, time: 1, content: new Uint8Array([1, 2, 3]) });
    });
    await assert.rejects(library.open(`bad${index}`), { name: "DocumentError", message: /damaged on disk/ });
    await assert.rejects(library.snapshot(`bad${index}`, 1), { name: "DocumentError", message: /Try one beside it/ });
  }
  assert.equal((await library.list()).length, 3);
  assert.match(await library.exportAll(), /"documents": \[\]/);
  for (const { id } of await library.list()) await library.remove(id);
  assert.deepEqual(await library.list(), []);
});

test("a database that stops to answer is opened again", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("0"));
  const real = indexedDB.open.bind(indexedDB);
  const { store } = library as unknown as { store: { close(): void } };
  store.close();
  saved(await library.save(edited(document, "1"), revision));
  store.close();
  // It can't be opened any more.
  indexedDB.open = () => {
    throw new DOMException("gone", "UnknownError");
  };
  context.after(() => (indexedDB.open = real));
  assert.equal((await library.save(edited(document, "2"), 2)).outcome, "kept");
  assert.deepEqual(await sources(library), ["2"]);
  assert.deepEqual(kinds(library), ["refused", "refused"]);
  await assert.rejects(library.open("other"), { name: "DocumentError", message: /can't be read, because gone/ });
  await assert.rejects(library.remove("other"), { name: "DocumentError", message: /refuses the change, because gone/ });
});

// ---- Pages that close ----

test("edits that no save had are there at the next visit", async (context) => {
  const browser = new FakeBrowser(context);
  const first = await browser.tab();
  const { document, revision } = await first.create(script("0"));
  first.hide([{ document: edited(document, "typed"), revision }]);
  first.close();
  const second = await browser.tab();
  assert.deepEqual(await sources(second), ["typed"]);
  assert.deepEqual(kinds(second), ["recovered"]);
  assert.match(second.notices[0]!.message, /Your last edits of “Digits” were recovered\.$/);
  second.close();
  assert.deepEqual((await browser.tab()).notices, []);
});

test("edits that the database had after all are not news", async (context) => {
  const browser = new FakeBrowser(context);
  const first = await browser.tab();
  const { document, revision } = await first.create(script("0"));
  const typed = edited(document, "typed");
  const saving = first.save(typed, revision);
  first.hide([{ document: typed, revision }]);
  saved(await saving);
  first.hide([{ document: typed, revision }]);
  first.close();
  const second = await browser.tab();
  assert.deepEqual(await sources(second), ["typed"]);
  assert.deepEqual(second.notices, []);
});

test("unsaved edits of a document that has changed since become a copy", async (context) => {
  const browser = new FakeBrowser(context);
  const [one, two] = [await browser.tab(), await browser.tab()];
  const { document, revision } = await one.create(script("0"));
  one.hide([{ document: edited(document, "unsaved"), revision }]);
  one.close();
  saved(await two.save(edited(document, "two"), revision));
  const three = await browser.tab();
  assert.deepEqual((await sources(three)).sort(), ["two", "unsaved"]);
  assert.match(three.notices[0]!.message, /recovered, as “Digits \(conflicting copy\)”/);
});

test("a finished save forgets what was kept for it", async (context) => {
  const browser = new FakeBrowser(context);
  const library = await browser.tab();
  const { document, revision } = await library.create(script("0"));
  // The page is hidden and comes back, as on a phone.
  library.hide([{ document: edited(document, "typed"), revision }]);
  saved(await library.save(edited(document, "typed on"), revision));
  library.close();
  const next = await browser.tab();
  assert.deepEqual(await sources(next), ["typed on"]);
  assert.deepEqual(next.notices, []);
});

test("a damaged unsaved edit is said to be one", async (context) => {
  const browser = new FakeBrowser(context);
  for (const value of ["", "{", "{}", '{"document": {"title": 1}}']) {
    browser.storage.setItem("weft:unsaved:x:y", value);
    const library = await browser.tab();
    assert.deepEqual(kinds(library), ["damaged"]);
    assert.deepEqual(await library.list(), []);
    assert.equal(browser.storage.getItem("weft:unsaved:x:y"), null);
  }
});

test("the program of earlier versions becomes a document, once", async (context) => {
  const browser = new FakeBrowser(context);
  browser.storage.setItem("weft:source", "print('mine')\n");
  const library = await browser.tab();
  assert.deepEqual(kinds(library), ["adopted"]);
  const [entry] = await library.list();
  assert.equal(entry!.title, "My program");
  assert.deepEqual(await sources(library), ["print('mine')\n"]);
  assert.equal(browser.storage.getItem("weft:source"), null);
  await library.remove(entry!.id);
  library.close();
  const again = await browser.tab();
  assert.deepEqual(await again.list(), []);
  assert.deepEqual(again.notices, []);
});

test("the program of earlier versions stays where it is while no database takes it", async (context) => {
  const browser = new FakeBrowser(context);
  browser.storage.setItem("weft:source", "mine");
  browser.withoutDatabase(undefined);
  assert.deepEqual(await sources(await browser.tab()), ["mine"]);
  assert.equal(browser.storage.getItem("weft:source"), "mine");
});

test("without localStorage the library works all the same", async (context) => {
  const browser = new FakeBrowser(context);
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get: () => {
      throw new DOMException("blocked", "SecurityError");
    },
  });
  const library = await browser.tab();
  const made = await library.create(script("0"));
  library.hide([{ document: edited(made.document, "1"), revision: made.revision }]);
  assert.deepEqual(await sources(library), ["0"]);
  Object.defineProperty(globalThis, "localStorage", { configurable: true, writable: true, value: new FakeStorage(10) });
  const full = await browser.tab();
  full.hide([{ document: edited(made.document, "1"), revision: made.revision }]);
  assert.deepEqual(await sources(full), ["0"]);
});
