/** A call of the runtime that can't be answered; the message says what to do next. */
export class WeftRuntimeError extends Error {
  override readonly name = "WeftRuntimeError";
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
