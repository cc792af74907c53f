/** A websocket whose messages wait in a queue until they are asked for. */

export class WeftConnectionError extends Error {
  override readonly name = "WeftConnectionError";
}

export class Socket {
  closeReason = "";
  private readonly queue: Uint8Array[] = [];
  private readonly waiting: ((message: Uint8Array | null) => void)[] = [];

  private constructor(private readonly socket: WebSocket) {
    socket.addEventListener("message", (event: MessageEvent<ArrayBuffer | string>) => {
      const { data } = event;
      const message = typeof data === "string" ? new TextEncoder().encode(data) : new Uint8Array(data);
      const waiter = this.waiting.shift();
      if (waiter) waiter(message);
      else this.queue.push(message);
    });
    socket.addEventListener("close", (event) => {
      this.closeReason = `${event.code} ${event.reason}`.trim();
      this.waiting.splice(0).forEach((waiter) => waiter(null));
    });
  }

  /** Connects; the protocols are offered as subprotocols. */
  static open(url: string, ...protocols: string[]): Promise<Socket> {
    return new Promise((resolve, reject) => {
      let socket: WebSocket;
      try {
        socket = new WebSocket(url, protocols);
      } catch (error) {
        reject(new WeftConnectionError(`${url} is not a websocket address: ${(error as Error).message}`));
        return;
      }
      socket.binaryType = "arraybuffer";
      const wrapped = new Socket(socket);
      socket.addEventListener("open", () => resolve(wrapped));
      socket.addEventListener("error", () => {
        reject(new WeftConnectionError(`no connection to ${url}; is the host running, and is the address right?`));
      });
    });
  }

  /** Sends a copy of the bytes; the caller may reuse them at once. */
  send(message: Uint8Array): void {
    if (this.socket.readyState !== WebSocket.OPEN) {
      throw new WeftConnectionError(`the connection is closed (${this.closeReason || "closing"})`);
    }
    this.socket.send(message as Uint8Array<ArrayBuffer>);
  }

  /** Bytes that are sent and have not left yet. */
  get unsent(): number {
    return this.socket.bufferedAmount;
  }

  /** The next message, or null once the connection is closed and the queue is empty. */
  recv(): Promise<Uint8Array | null> {
    const message = this.queue.shift();
    if (message) return Promise.resolve(message);
    if (this.socket.readyState >= WebSocket.CLOSING) return Promise.resolve(null);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  close(): void {
    this.socket.close();
  }
}
