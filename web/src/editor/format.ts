/// <reference path="./types.d.ts" />
/**
 * Formatting by ruff, compiled to WebAssembly. It is large (11 MB, 2.6 MB compressed), so it is fetched when somebody
 * first formats.
 */
import type { Workspace } from "@astral-sh/ruff-wasm-web";

let workspace: Promise<Workspace> | null = null;

async function load(): Promise<Workspace> {
  const [ruff, { default: file }] = await Promise.all([
    import("@astral-sh/ruff-wasm-web"),
    import("@astral-sh/ruff-wasm-web/ruff_wasm_bg.wasm"),
  ]);
  await ruff.default({ module_or_path: new URL(file, import.meta.url) });
  return new ruff.Workspace({ "line-length": 88, "indent-width": 4 }, ruff.PositionEncoding.Utf16);
}

/** The program as ruff lays it out. Rejects where ruff can't be fetched, or can't read the program. */
export async function formatted(text: string): Promise<string> {
  workspace ??= load();
  let ruff: Workspace;
  try {
    ruff = await workspace;
  } catch (error) {
    workspace = null; // asked for again, it is fetched again
    throw new Error(
      `The formatter can't be fetched: ${error instanceof Error ? error.message : String(error)}. Try again online.`,
    );
  }
  return ruff.format(text);
}
