import assert from "node:assert/strict";
import { test } from "node:test";
import zlib from "node:zlib";
import fc from "fast-check";
import { compress } from "../../src/documents/compression.js";
import { newCell, newDocument } from "../../src/documents/model.js";
import { fromFragment, LinkError, toFragment } from "../../src/documents/share.js";
import { documents, said } from "./arbitrary.js";

const document = newDocument({
  title: "Digits 🧵",
  form: "notebook",
  cells: [newCell("markdown", "# Grüße"), newCell("code", "import jax\n")],
  options: { backend: "webgpu", x64: true },
});

async function packed(value: unknown, version = 1): Promise<string> {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `#doc=${version}.${Buffer.from(await compress(text, "deflate")).toString("base64url")}`;
}

function refuses(fragment: string, kind: LinkError["kind"], message: RegExp): Promise<void> {
  return assert.rejects(fromFragment(fragment), (error: unknown) => {
    assert.ok(error instanceof LinkError, String(error));
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    return true;
  });
}

test("every document comes back from its link, with a new id and the link as its origin", async () => {
  await fc.assert(
    fc.asyncProperty(documents, async (each) => {
      const opened = await fromFragment(await toFragment(each));
      assert.deepEqual(said(opened!), said(each));
      assert.notEqual(opened!.id, each.id);
      assert.match(opened!.origin!, /^link:[0-9a-f]{16}$/);
    }),
    { numRuns: 300 },
  );
});

test("equal links have equal origins, others have others", async () => {
  const fragment = await toFragment(document);
  const origin = async (link: string) => (await fromFragment(link))!.origin;
  assert.equal(await origin(fragment), await origin(fragment));
  assert.notEqual(await origin(fragment), await origin(await toFragment({ ...document, title: "Digit" })));
});

test("a link can be taken out of a sentence, with its full stop", async () => {
  assert.deepEqual(said((await fromFragment(`${await toFragment(document)}).`))!), said(document));
});

test("links of earlier versions open", async () => {
  const old = zlib.deflateRawSync("print('é')\n").toString("base64url");
  const opened = await fromFragment(`#code=${old}`);
  assert.equal(opened!.form, "script");
  assert.deepEqual(said(opened!).cells, [{ kind: "code", source: "print('é')\n" }]);
});

test("a fragment without a document is none", async () => {
  for (const fragment of ["", "#", "#usage", "#host=ws://127.0.0.1:8765&token=x", "#docs"]) {
    assert.equal(await fromFragment(fragment), null);
  }
});

test("a link with any one letter changed, or cut anywhere, is damaged", async () => {
  const fragment = await toFragment(document);
  const start = fragment.indexOf(".") + 1;
  for (let index = start; index < fragment.length; index++) {
    await refuses(fragment.slice(0, index), "damaged", /This link is damaged: .* Ask for the link again/);
    // The last letter of base64 has bits that mean nothing.
    const letter = fragment[index] === "A" ? "Z" : "A";
    const changed = fragment.slice(0, index) + letter + fragment.slice(index + 1);
    const opened = await fromFragment(changed).catch((error: unknown) => error);
    if (opened instanceof Error) assert.ok(opened instanceof LinkError && opened.kind === "damaged");
    else assert.ok(index === fragment.length - 1, `letter ${index} can change without notice`);
  }
});

test("links that hold something else are damaged, and say where", async () => {
  const sound = { title: "x", form: "notebook", options: { backend: "wasm", x64: false }, cells: [["code", "x"]] };
  await refuses(await packed("not JSON"), "damaged", /damaged/);
  await refuses(await packed(null), "damaged", /damaged/);
  await refuses(await packed([]), "damaged", /damaged/);
  await refuses(await packed({ ...sound, form: "poem" }), "damaged", /document\.form must be one of/);
  await refuses(
    await packed({ ...sound, cells: [["code", 7]] }),
    "damaged",
    /document\.cells\[0\]\.source must be text/,
  );
  await refuses(await packed({ ...sound, cells: [["raw", ""]] }), "damaged", /document\.cells\[0\]\.kind must be/);
  await refuses(await packed({ ...sound, cells: "x" }), "damaged", /damaged/);
  await refuses(await packed({ ...sound, options: {} }), "damaged", /document\.options\.backend/);
  await refuses(await packed({ ...sound, form: "script", cells: [] }), "damaged", /must be one cell of code/);
  for (const fragment of [
    "#doc=",
    "#doc=1",
    "#doc=1.",
    "#doc=x.abc",
    "#doc=0.abc",
    "#doc=1.%%%",
    "#code=",
    "#code=!",
  ]) {
    await refuses(fragment, "damaged", /damaged/);
  }
  await refuses(`#code=${zlib.deflateRawSync(Buffer.from([0xff, 0xfe])).toString("base64url")}`, "damaged", /damaged/);
});

test("a link of a newer version says so", async () => {
  await refuses(await packed({}, 2), "newer", /made by a newer version of this page\. Reload/);
});

test("a link that unfolds without end is refused before it has", async () => {
  const bomb = zlib.deflateSync(Buffer.alloc(200 * 2 ** 20, "x")).toString("base64url");
  await refuses(`#doc=1.${bomb}`, "too-large", /unfolds to more than 16777216 bytes/);
  await refuses(`#doc=1.${"A".repeat(5_000_000)}`, "too-large", /too long/);
});

test("no link is made that browsers would refuse", async () => {
  const noise = Buffer.from(Uint8Array.from({ length: 1_000_000 }, () => Math.random() * 256)).toString("base64");
  const large = newDocument({ cells: [newCell("code", noise)] });
  await assert.rejects(toFragment(large), { name: "LinkError", kind: "too-large", message: /Send it as a file/ });
});
