/** A program in the fragment of an address: deflated, in URL-safe base64. The fragment never leaves the browser. */

async function through(bytes: Uint8Array, transform: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function encodeProgram(source: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(source), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return `#code=${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** The program in a fragment, or null if there is none or it is damaged. */
export async function decodeProgram(fragment: string): Promise<string | null> {
  const match = /^#code=([\w-]+)$/.exec(fragment);
  if (!match) return null;
  try {
    const binary = atob(match[1]!.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(
      Uint8Array.from(binary, (c) => c.charCodeAt(0)),
      new DecompressionStream("deflate-raw"),
    );
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
