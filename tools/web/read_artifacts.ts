/**
 * What the page's runtime says of artifacts: a file of containers, each with its length (u32) before it, to a JSON list
 * of error messages, null for those that it takes. Bundled and run by test_readers.py.
 */
import { readFileSync } from "node:fs";
import { parseArtifact } from "../../wasm/runtime/src/container.js";
import { WeftRuntimeError } from "../../wasm/runtime/src/errors.js";
import { checkPlan } from "../../wasm/runtime/src/plan_contents.js";

function said(bytes: Uint8Array): string | null {
  try {
    const { metadata, code, constants } = parseArtifact(bytes);
    if (metadata.kind === "webgpu") checkPlan(metadata, code, constants);
    return null;
  } catch (error) {
    if (error instanceof WeftRuntimeError) return error.message;
    return `${(error as Error).name}, which is a bug of the reader: ${(error as Error).stack}`;
  }
}

const file = new Uint8Array(readFileSync(process.argv[2]!));
const answers: (string | null)[] = [];
for (let at = 0; at < file.length;) {
  const length = new DataView(file.buffer, file.byteOffset + at, 4).getUint32(0, true);
  answers.push(said(file.subarray(at + 4, at + 4 + length)));
  at += 4 + length;
}
console.log(JSON.stringify(answers));
