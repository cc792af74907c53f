/** Reads HTML as strictly as it may be written, and says which tags and attributes it has. */
import assert from "node:assert/strict";

export interface Tag {
  name: string;
  attributes: Map<string, string>;
}

/** All start tags of well-formed HTML; fails on anything that a browser would have to guess about. */
export function tagsOf(text: string): Tag[] {
  // Styles are text up to their end tag.
  const html = text.replace(/(<style>)[^]*?(<\/style>)/g, "$1$2");
  const tags: Tag[] = [];
  const open: string[] = [];
  const empty = new Set(["br", "hr", "img", "meta", "link", "source"]);
  const piece = /<(\/?)([A-Za-z][\w-]*)((?:\s+[\w:-]+(?:="[^"<>]*")?)*)\s*(\/?)>|<!doctype html>|([^<]+)|(<)/gi;
  for (const match of html.matchAll(piece)) {
    const [whole, end, name, attributes, closed, , stray] = match;
    assert.ok(!stray, `a stray "<" at ${match.index}: ${html.slice(match.index, match.index + 80)}`);
    if (name === undefined) continue;
    if (end) {
      assert.equal(open.pop(), name, `tags cross at ${match.index}: ${whole}`);
      continue;
    }
    const pairs = [...attributes!.matchAll(/([\w:-]+)(?:="([^"]*)")?/g)];
    tags.push({ name, attributes: new Map(pairs.map(([, key, value]) => [key!.toLowerCase(), value ?? ""])) });
    if (!closed && !empty.has(name)) open.push(name);
  }
  assert.deepEqual(open, [], "tags are not closed");
  return tags;
}
