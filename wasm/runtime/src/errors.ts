/** An error of a call of the runtime; the message names the next step. */
export class WeftRuntimeError extends Error {
  override readonly name = "WeftRuntimeError";
}

/** The device's memory is full. Every buffer is as it was. */
export class WeftMemoryError extends Error {
  override readonly name = "WeftMemoryError";
}

/**
 * The page has stopped the program (`WasmDevice.interruptView`). Every buffer is still valid, donated ones too, but
 * those have other contents.
 */
export class WeftInterrupted extends Error {
  override readonly name = "WeftInterrupted";
}

/** A compiled program reported an error, or trapped. `code` is the number its metadata explains, 0 for a trap. */
export class WeftProgramError extends Error {
  override readonly name = "WeftProgramError";
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}
