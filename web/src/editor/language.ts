/** The build's index of modules, as the editor queries it (tools/web/make_index.py, index_names.py). */

export interface Entry {
  kind: "function" | "class" | "value" | "property" | "method";
  name: string;
  signature?: string;
  doc?: string;
  /** Where it is defined, if its source is here. */
  module?: string;
  line?: number;
  /** Of a class. */
  members?: Record<string, number>;
  /** Of a class: signatures of `__call__`, `__getitem__`, `__enter__`, where they have types. */
  special?: Record<string, string>;
  /** Of a class of named tuples. */
  fields?: string[];
  /** Of a property: its annotation. */
  returns?: string;
  /** For a value: the name of its class, and its kind. */
  type?: string;
  value?: string;
}

export interface IndexData {
  entries: Entry[];
  modules: Record<string, { doc?: string; names: Record<string, number | string> }>;
  types?: Record<string, number>;
  aliases?: Record<string, string>;
  builtins?: Record<string, number>;
}

export type Item = { kind: "module"; name: string } | { kind: "entry"; entry: Entry };

export class LanguageIndex {
  private readonly parts = new Map<Entry, IndexData>();
  private readonly modules = new Map<
    string,
    { part: IndexData; doc: string; names: Record<string, number | string> }
  >();
  private readonly types = new Map<string, Entry>();
  private readonly builtinEntries = new Map<string, Entry>();
  private readonly aliases = new Map<string, string>();
  private places: Map<string, Entry> | null = null;
  private sources: Promise<Record<string, string>> | null = null;

  constructor(
    parts: IndexData[],
    private readonly fetchSources: () => Promise<Record<string, string>>,
  ) {
    for (const part of parts) {
      for (const entry of part.entries) this.parts.set(entry, part);
      for (const [name, { doc = "", names }] of Object.entries(part.modules))
        this.modules.set(name, { part, doc, names });
      for (const [name, number] of Object.entries(part.types ?? {})) this.types.set(name, part.entries[number]!);
      for (const [name, number] of Object.entries(part.builtins ?? {}))
        this.builtinEntries.set(name, part.entries[number]!);
      for (const [name, module] of Object.entries(part.aliases ?? {})) this.aliases.set(name, module);
    }
  }

  /** The module that a dotted name means: `jax.numpy` is `weft.numpy`. Null where it is not known. */
  moduleCalled(dotted: string): string | null {
    if (this.modules.has(dotted)) return dotted;
    const exact = this.aliases.get(dotted);
    if (exact !== undefined) return exact;
    const own = dotted.replace(/^jax(?=\.|$)/, "weft");
    return this.modules.has(own) ? own : null;
  }

  docOf(module: string): string {
    return this.modules.get(module)?.doc ?? "";
  }

  /** A name of a module. */
  find(module: string, name: string): Item | null {
    const found = this.modules.get(module);
    if (!found) return null;
    const item = Object.hasOwn(found.names, name) ? found.names[name] : undefined;
    if (typeof item === "number") return { kind: "entry", entry: found.part.entries[item]! };
    if (typeof item === "string" && this.modules.has(item)) return { kind: "module", name: item };
    const inside = this.moduleCalled(`${module.replace(/^weft(?=\.|$)/, "jax")}.${name}`);
    return inside === null ? null : { kind: "module", name: inside };
  }

  namesOf(module: string): [string, Item][] {
    const names = new Set(Object.keys(this.modules.get(module)?.names ?? {}));
    const prefix = `${module}.`;
    for (const name of this.modules.keys())
      if (name.startsWith(prefix) && !name.slice(prefix.length).includes(".")) names.add(name.slice(prefix.length));
    return [...names].flatMap((name) => {
      const item = this.find(module, name);
      return item ? [[name, item] as [string, Item]] : [];
    });
  }

  /** The modules that an import may name after a prefix that ends with a dot, or at the start. */
  modulesAfter(prefix: string): string[] {
    const found = new Set<string>();
    const of = (names: Iterable<string>) => {
      for (const name of names) if (name.startsWith(prefix)) found.add(name.slice(prefix.length).split(".")[0]!);
    };
    of(this.modules.keys());
    of(this.aliases.keys());
    of([...this.modules.keys()].filter((name) => /^weft(\.|$)/.test(name)).map((name) => name.replace("weft", "jax")));
    // The internal modules of jax's stand-in have a separate place, which users do not import.
    found.delete("");
    return [...found].filter((name) => prefix + name !== "weft.compat").sort();
  }

  /** The entry of the object that a module of the language defines under a name. */
  entryAt(module: string, qualified: string): Entry | null {
    const name = qualified.split(".").pop()!;
    if (this.places === null) {
      this.places = new Map();
      for (const entry of this.parts.keys()) {
        const key = `${entry.module ?? ""}:${entry.name}`;
        if (!this.places.has(key)) this.places.set(key, entry);
      }
    }
    return this.places.get(`${module}:${name}`) ?? null;
  }

  /** The class that an annotation means by a name. */
  typeCalled(name: string): Entry | null {
    return this.types.get(name) ?? (this.builtinEntries.get(name)?.kind === "class" ? this.builtin(name) : null);
  }

  member(entry: Entry, name: string): Entry | null {
    const number = entry.members && Object.hasOwn(entry.members, name) ? entry.members[name] : undefined;
    return number === undefined ? null : (this.parts.get(entry)!.entries[number] ?? null);
  }

  membersOf(entry: Entry): [string, Entry][] {
    const part = this.parts.get(entry)!;
    return Object.entries(entry.members ?? {}).map(([name, number]) => [name, part.entries[number]!]);
  }

  builtin(name: string): Entry | null {
    return this.builtinEntries.get(name) ?? null;
  }

  builtins(): Iterable<[string, Entry]> {
    return this.builtinEntries;
  }

  /** The source of a module of the language; null if it is not stored. Rejects if it can't be fetched. */
  async source(module: string): Promise<string | null> {
    this.sources ??= this.fetchSources();
    try {
      return (await this.sources)[module] ?? null;
    } catch (error) {
      this.sources = null; // asked for again, it is fetched again
      throw error;
    }
  }
}

/** Fetches an index from the site. */
export async function loadIndex(urls: string[], sources: string): Promise<LanguageIndex> {
  const get = async (url: string) => {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status}`);
    return response.json();
  };
  const parts = (await Promise.all(urls.map(get))) as IndexData[];
  return new LanguageIndex(parts, () => get(sources) as Promise<Record<string, string>>);
}
