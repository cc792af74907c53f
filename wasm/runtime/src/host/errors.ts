/** The host, or the network to it, is gone, and with it what the session had there. Connect again. */
export class WeftConnectionLost extends Error {
  override readonly name = "WeftConnectionLost";
}

/** The host refuses an operation, or a program failed there. `kind` is the class of the error in Python. */
export class WeftHostError extends Error {
  override readonly name = "WeftHostError";
  constructor(
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}
