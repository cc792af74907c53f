/**
 * What IPython adds to Python: magics (`%matplotlib inline`), shell commands (`!pip install x`), help (`x?`).
 *
 * The page runs plain Python, so these lines become comments, but for those that install packages: it knows them.
 */

/** Cell magics whose cell is Python nevertheless. */
const PYTHON_CELLS = new Set(["time", "timeit", "capture", "prun", "debug"]);

const LINE =
  /^([ \t]*)(?:%%?[A-Za-z_]|!|\?|(?:[A-Za-z_][\w., \t]{0,200}=[ \t]*)(?:!|%[A-Za-z_])|[A-Za-z_][\w.]{0,200}\?\??[ \t]*$)/;
/** `web/python/weft_packages.py` runs such lines. */
const PIP = /^[ \t]*[%!][ \t]*(?:python3? -m )?(?:uv )?pip3?[ \t]+install\b.*[^\\\r]\r?$/;
const CELL = /^%%([A-Za-z_]\w*)/;

/** Where a line of Python ends: in which string it is, how deep in brackets, whether a backslash continues it. */
interface Place {
  quotes: string;
  depth: number;
  continued: boolean;
}

const START: Place = { quotes: "", depth: 0, continued: false };

/** Where Python is at the end of a line that begins at a place. */
function after(line: string, { quotes, depth }: Place): Place {
  let index = 0;
  while (index < line.length) {
    const character = line[index]!;
    if (quotes) {
      if (character === "\\") index += 2;
      else if (line.startsWith(quotes, index)) {
        index += quotes.length;
        quotes = "";
      } else index++;
      continue;
    }
    if (character === "#") return { quotes, depth, continued: false };
    if (character === '"' || character === "'") {
      const triple = character.repeat(3);
      quotes = line.startsWith(triple, index) ? triple : character;
      index += quotes.length;
      continue;
    }
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth = Math.max(depth - 1, 0);
    index++;
  }
  const continued = line.replace(/\r$/, "").endsWith("\\");
  // A string in single quotes ends with its line, if no backslash continues it.
  return { quotes: quotes.length === 1 && !continued ? "" : quotes, depth, continued };
}

/** The source with those lines as comments, and the lines. */
export function commentMagics(source: string): { source: string; found: { line: number; text: string }[] } {
  const lines = source.split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  const cell = CELL.exec(lines[first] ?? "");
  if (cell && !PYTHON_CELLS.has(cell[1]!)) {
    const commented = lines.map((line) => (line === "" ? "" : `# ${line}`));
    return { source: commented.join("\n"), found: [{ line: first + 1, text: lines[first]!.trim() }] };
  }
  const found: { line: number; text: string }[] = [];
  let place = START;
  /** A magic continues on the next line. */
  let inside = false;
  const made = lines.map((line, index) => {
    const begins = !place.quotes && place.depth === 0 && !place.continued;
    const match = begins && !inside && !PIP.test(line) ? LINE.exec(line) : null;
    if (!match && !inside) {
      place = after(line, place);
      return line;
    }
    if (match) found.push({ line: index + 1, text: line.trim() });
    const goesOn = line.replace(/\r$/, "").endsWith("\\");
    const indent = match?.[1] ?? "";
    const comment = `# ${line.slice(indent.length)}`;
    inside = goesOn;
    // A block may have no other statement.
    return indent ? `${indent}pass  ${comment}` : comment;
  });
  return { source: made.join("\n"), found };
}
