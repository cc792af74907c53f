/** Text to compressed bytes and back, with a limit against bytes that unfold without end. */

/** Why bytes could not be turned into text. */
export class DataError extends Error {
  override name = "DataError";

  constructor(
    readonly kind: "damaged" | "too-large",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export async function compress(text: string, format: CompressionFormat): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * The text in compressed bytes.
 *
 * @param limit The most bytes that the text may have; reading stops there.
 * @throws DataError if there are more, or if the bytes are no such text.
 */
export async function decompress(bytes: Uint8Array, format: CompressionFormat, limit: number): Promise<string> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream(format));
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let [text, size] = ["", 0];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      size += value.length;
      if (size > limit) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw new DataError("damaged", "The compressed text is damaged.", { cause: error });
  }
  await reader.cancel().catch(() => {});
  throw new DataError("too-large", `it unfolds to more than ${limit} bytes.`);
}
