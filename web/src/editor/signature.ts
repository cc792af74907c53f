/** Signatures as text, taken apart: `(x: ArrayLike, /, *, axis: int = 0) -> Array`. */

export interface Parameter {
  name: string;
  /** Its text in the signature, with annotation and default. */
  text: string;
  star: "" | "*" | "**";
  positional: boolean;
  keyword: boolean;
  optional: boolean;
  /** Its position in the signature. */
  from: number;
  to: number;
}

export interface Signature {
  text: string;
  parameters: Parameter[];
  returns: string;
}

/** Where each part between commas at the outermost level starts and ends. */
function parts(text: string, from: number, to: number): [number, number][] {
  const found: [number, number][] = [];
  let depth = 0;
  let quote = "";
  let start = from;
  for (let i = from; i < to; i++) {
    const char = text[i]!;
    if (quote) {
      if (char === "\\") i++;
      else if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if ("([{".includes(char)) depth++;
    else if (")]}".includes(char)) depth--;
    else if (char === "," && depth === 0) {
      found.push([start, i]);
      start = i + 1;
    }
  }
  found.push([start, to]);
  return found;
}

/** The end of the parenthesis that opens the text. */
function closing(text: string): number {
  let depth = 0;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (quote) {
      if (char === "\\") i++;
      else if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if ("([{".includes(char)) depth++;
    else if (")]}".includes(char) && --depth === 0) return i;
  }
  return text.length;
}

export function parseSignature(text: string): Signature {
  const end = closing(text);
  const parameters: Parameter[] = [];
  let keywordOnly = false;
  for (let [from, to] of parts(text, 1, end)) {
    while (from < to && /\s/.test(text[from]!)) from++;
    while (to > from && /\s/.test(text[to - 1]!)) to--;
    const part = text.slice(from, to);
    if (part === "") continue;
    if (part === "/") {
      for (const parameter of parameters) parameter.keyword = false;
      continue;
    }
    if (part === "*") {
      keywordOnly = true;
      continue;
    }
    const star = part.startsWith("**") ? "**" : part.startsWith("*") ? "*" : "";
    const name = /^\**([\p{L}_][\p{L}\p{N}_]*)/u.exec(part)?.[1] ?? part;
    parameters.push({
      name,
      text: part,
      star,
      positional: !keywordOnly && star !== "**",
      keyword: star === "",
      optional: star !== "" || hasDefault(part),
      from,
      to,
    });
    if (star === "*") keywordOnly = true;
  }
  const returns = /^\s*->\s*(.*)$/s.exec(text.slice(end + 1))?.[1] ?? "";
  return { text, parameters, returns };
}

function hasDefault(part: string): boolean {
  let depth = 0;
  for (const char of part) {
    if ("([{".includes(char)) depth++;
    else if (")]}".includes(char)) depth--;
    else if (char === "=" && depth === 0) return true;
  }
  return false;
}

/**
 * The parameter that the next argument goes to.
 * @param position how many arguments stand before it
 * @param keyword the name that it is given by, if any
 */
export function currentParameter(signature: Signature, position: number, keyword: string | null): Parameter | null {
  const { parameters } = signature;
  if (keyword !== null) {
    const named = parameters.find((parameter) => parameter.keyword && parameter.name === keyword);
    return named ?? parameters.find((parameter) => parameter.star === "**") ?? null;
  }
  const positional = parameters.filter((parameter) => parameter.positional);
  const last = positional[positional.length - 1];
  return positional[position] ?? (last?.star === "*" ? last : null);
}
