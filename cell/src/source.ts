/** The text of a cell as the page has it, and its colours until there is an editor. */

/** The text without the empty lines around it, and without the indentation that all of its lines share. */
export function dedent(text: string): string {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  while (lines.length && !lines[0]!.trim()) lines.shift();
  while (lines.length && !lines.at(-1)!.trim()) lines.pop();
  const indents = lines.filter((line) => line.trim()).map((line) => /^[ \t]*/.exec(line)![0]);
  const shared = indents.reduce((left, right) => {
    let same = 0;
    while (same < left.length && left[same] === right[same]) same++;
    return left.slice(0, same);
  }, indents[0] ?? "");
  return lines.map((line) => line.slice(shared.length).replace(/[ \t]+$/, "")).join("\n");
}

const KEYWORDS =
  "False None True and as assert async await break class continue def del elif else except finally for from global " +
  "if import in is lambda match nonlocal not or pass raise return try while with yield";

const PATTERN = new RegExp(
  [
    String.raw`(?<comment>#.*)`,
    String.raw`(?<string>\b[rbfu]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))`,
    String.raw`(?<string2>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)`,
    String.raw`(?<keyword>\b(?:${KEYWORDS.replaceAll(" ", "|")})\b)`,
    String.raw`(?<definition>(?<=\b(?:def|class)\s+)\w+)`,
    String.raw`(?<name>\b[A-Za-z_]\w*(?=\())`,
    String.raw`(?<number>\b\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?j?\b)`,
  ].join("|"),
  "gi",
);

/** Pieces of Python with the kind of each: enough for colours, no parser. */
export function pieces(code: string): { kind: string; text: string }[] {
  const found: { kind: string; text: string }[] = [];
  let at = 0;
  const plain = (to: number): void => {
    if (to > at) found.push({ kind: "", text: code.slice(at, to) });
  };
  for (const match of code.matchAll(PATTERN)) {
    plain(match.index);
    const kind = Object.entries(match.groups!)
      .find(([, text]) => text !== undefined)![0]
      .replace("2", "");
    found.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  plain(code.length);
  return found;
}
