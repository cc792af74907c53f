/**
 * Packages that a program imports, loaded before it runs: by the site's lock file, dependencies included, and what the
 * lock file does not name from the package index.
 */
import type { PyodideAPI } from "pyodide";
import type { Wanted } from "./protocol.js";

/** Python's side: the functions of web/python/weft_packages.py. */
interface Finder {
  install(inLock: string[]): void;
  examine(source: string): string;
  explain(name: string, reason: string): void;
  /** The package of the index that has a module. */
  distribution(name: string): string;
  decline(names: string, requirements: string, source: string): void;
  install_from_index: { callPromising(names: string, requirements: string, index: string): Promise<void> };
  install_wheel: { callPromising(name: string, data: unknown): Promise<string> };
}

type Progress = (what: string, loaded: number, total: number) => void;
/** Asks the reader whether to install packages that no lock file has. */
type Ask = (wanted: Wanted[]) => Promise<boolean>;

const INSTALLER = "micropip";
/** Where micropip looks, unless the site names an index. */
const INDEX = "pypi.org";

/** A name as lock files have it. */
const normal = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, "-");

export class Packages {
  private readonly finder: Finder;
  /** The package of each module, by its name. */
  private readonly byImport = new Map<string, string>();
  /** The current loading: packages are loaded one set after the other. */
  private loading: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly pyodide: PyodideAPI,
    /** The address to which the lock file's names are relative. */
    private readonly base: string,
    private readonly index: string,
    private readonly progress: Progress,
    private readonly ask: Ask,
  ) {
    for (const [name, { imports }] of Object.entries(this.lock)) {
      for (const each of imports) this.byImport.set(each, name);
    }
    this.finder = pyodide.pyimport("weft_packages") as Finder;
    this.finder.install([...this.byImport.keys()]);
  }

  /** Loads the missing packages of a program. Errors are raised where the program imports them. */
  async prepare(source: string): Promise<void> {
    const { missing, requirements } = JSON.parse(this.finder.examine(source)) as Record<string, string[]>;
    if (!missing?.length && !requirements?.length) return;
    this.loading = this.loading.then(() => this.get(missing ?? [], requirements ?? []));
    this.loading = this.loading.catch((error: unknown) => console.error(error));
    await this.loading;
  }

  /** Installs a wheel that the reader gave; resolves to why that failed, or to nothing. */
  async takeWheel(name: string, data: ArrayBuffer): Promise<string> {
    await this.loading;
    const done = this.load([INSTALLER]).then(async () => {
      const proxy = this.pyodide.toPy(new Uint8Array(data));
      try {
        return await this.finder.install_wheel.callPromising(name, proxy.tobytes());
      } finally {
        proxy.destroy();
      }
    });
    this.loading = done.catch(() => undefined);
    return done;
  }

  private get lock() {
    return this.pyodide.lockfile.packages;
  }

  private async get(missing: string[], requirements: string[]): Promise<void> {
    const listed = missing.filter((name) => this.byImport.has(name));
    let others = missing.filter((name) => !this.byImport.has(name));
    await this.load(listed.map((name) => this.byImport.get(name)!));
    const foreign = requirements.filter((each) => !(normal(each) in this.lock));
    const wanted = [...others.map((name) => this.finder.distribution(name)), ...foreign].map((each) =>
      this.place(each),
    );
    if (wanted.length && !(await this.ask(wanted))) {
      this.finder.decline(
        JSON.stringify(others),
        JSON.stringify(foreign),
        [...new Set(wanted.map(({ from }) => from))].join(", "),
      );
      others = [];
      requirements = requirements.filter((each) => !foreign.includes(each));
    }
    if (!others.length && !requirements.length) return;
    await this.load([INSTALLER]);
    this.progress(`Asking the package index for ${[...requirements, ...others].join(", ")}`, 0, 0);
    await this.finder.install_from_index.callPromising(
      JSON.stringify(others),
      JSON.stringify(requirements),
      this.index,
    );
  }

  /** Where a requirement comes from: an address, or the index. */
  private place(requirement: string): Wanted {
    const address = /(?:^|@\s*)(https?:\/\/\S+)$/.exec(requirement)?.[1];
    const url = URL.parse(address ?? this.index);
    return { name: requirement, from: url?.host ?? INDEX };
  }

  /** Packages with all their missing dependencies, each with the package that requires it. */
  private lacking(names: string[]): Map<string, string | null> {
    const found = new Map<string, string | null>();
    const visit = (name: string, asker: string | null): void => {
      if (found.has(name) || name in this.pyodide.loadedPackages || !this.lock[name]) return;
      found.set(name, asker);
      for (const other of this.lock[name].depends) visit(other, name);
    };
    for (const name of names) visit(name, null);
    return found;
  }

  private async load(names: string[]): Promise<void> {
    const wanted = this.lacking(names);
    if (!wanted.size) return;
    const what = `Loading ${names.join(", ")}`;
    this.progress(what, 0, wanted.size);
    const addresses = new Set([...wanted.keys()].map((name) => this.address(name)));
    let arrived = 0;
    const observer = new PerformanceObserver((list) => {
      for (const { name } of list.getEntries()) if (addresses.delete(name)) this.progress(what, ++arrived, wanted.size);
    });
    observer.observe({ type: "resource" });
    const silent = { messageCallback: () => undefined, errorCallback: () => undefined };
    try {
      await this.pyodide.loadPackage([...wanted.keys()], { ...silent, checkIntegrity: true });
    } finally {
      observer.disconnect();
    }
    await Promise.all(
      [...wanted].map(async ([name, asker]) => {
        const reason = name in this.pyodide.loadedPackages ? "" : await this.reason(name, asker);
        for (const each of this.lock[name]!.imports) this.finder.explain(each, reason);
      }),
    );
  }

  private address(name: string): string {
    return new URL(this.lock[name]!.file_name, this.base).href;
  }

  /**
   * The reason why a package did not load: like fetch, Pyodide can't distinguish a damaged file from an absent
   * network.
   */
  private async reason(name: string, asker: string | null): Promise<string> {
    const address = this.address(name);
    const { host, origin } = new URL(address);
    const own = origin === new URL(this.base).origin;
    const kind = own ? "it is kept on this site" : "it comes from Pyodide's distribution";
    const use = "Run again when the network is there, or drop its wheel on the page";
    const what = await fetch(address, { method: "HEAD", cache: "no-store" }).then(
      ({ ok, status }) =>
        ok
          ? `what ${host} sent is not the file whose hash this site knows (SHA-256). Drop its wheel on the page`
          : `${host} answered ${status}. Drop its wheel on the page`,
      () => `${host} can't be reached. ${use}`,
    );
    return `${asker ? `${asker} needs it, ` : ""}${kind}, and ${what}`;
  }
}
