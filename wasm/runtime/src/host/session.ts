/**
 * A session on a host: numbered operations, their replies, and how both survive a lost connection. Nothing waits for a
 * reply but the caller who asked for one.
 */
import { WeftConnectionLost, WeftHostError } from "./errors.js";
import { decode, encode, SUBPROTOCOL, type Aval, type Fields, type Kind, type Message } from "./messages.js";

const CHUNK = 1 << 20; // bytes of bulk data in one message
const HEADER = 4096; // room in a frame beside bulk data
const FRAME = 256 << 10; // small messages travel together in frames of about this size
const BUFFERED = 8 << 20; // bytes in the socket's own buffer, with which an upload waits
const LOG = 64 << 20; // bytes that the host has not confirmed, with which it waits too
const PROGRAMS = 1000; // that the host knows by their hashes
const HANDLES = 2 ** 20; // that an operation takes at most
const CRUMBS = 32; // what is freed or settled waits for company, up to so many
const CRUMBS_BYTES = 4096; // and so many bytes in all
const TIDY = 100; // ms
const BEAT = 2500; // ms of silence after which the host is asked whether it is there
const SILENCE = 10_000; // and after which it is taken for gone
const PAUSES = [50, 100, 200, 500, 1000, 2000]; // ms between attempts to take a connection up again
const REFUSED = 1000; // ms after which a host that can't be reached is taken for gone, while there is a network
const [RESTART, LATER] = [1012, 1013]; // with which a host closes a connection that starts again, or has no room now
const ANSWER = 4000; // ms within which a host answers a login

/** What the session needs of a websocket; browsers, Node 22 and the package ws have it. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
  addEventListener(type: string, listener: (event: never) => void): void;
}
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

/** What a host does that takes long. While it is full, the session itself is "queued", and has a place. */
export interface Progress {
  /** Of the program; "" of the session itself. */
  readonly name: string;
  /** It waits behind other sessions, or is compiled, or runs. */
  readonly stage: "queued" | "compiling" | "running";
  readonly seconds: number;
  /** Operations that follow it. */
  readonly waiting: number;
  /** Of the session among the `of` that wait for a host that is full; 0 once it has begun. */
  readonly place: number;
  readonly of: number;
}

/** How a session is opened. */
export interface Opening {
  ticket?: Ticket;
  onProgress?: ((progress: Progress) => void) | null;
  signal?: AbortSignal | null;
}

/** A session as another page takes it up. Who has it has the session. */
export interface Ticket {
  readonly id: string;
  readonly secret: string;
}

type Operation = Extract<
  Kind,
  | "Put"
  | "Part"
  | "Program"
  | "ProgramPart"
  | "Forget"
  | "Compile"
  | "Execute"
  | "ExecuteFetching"
  | "Fetch"
  | "Free"
  | "Ping"
  | "Keep"
>;

/** What an operation is answered. */
class Reply {
  private at = 0;
  credited = 0;

  constructor(
    readonly resolve: (value: Uint8Array<ArrayBuffer>) => void,
    readonly reject: (error: Error) => void,
    /** Where the bytes of the reply go; the caller knows how many there are. */
    readonly data: Uint8Array<ArrayBuffer>,
  ) {}

  /** Takes a part; whether the reply is complete. */
  take({ size, offset, data }: Fields<"Data">): boolean {
    if (size !== this.data.length || offset !== this.at || offset + data.length > size)
      throw new WeftHostError(
        "ProtocolError",
        `the host sent bytes ${offset}… of ${size}, of which ${this.at} are here`,
      );
    this.data.set(data, offset);
    this.at += data.length;
    return this.at === size;
  }

  /** Begins again, on a new connection. */
  restart(): void {
    this.at = this.credited = 0;
  }

  get received(): number {
    return this.at;
  }
}

const base64url = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const fromBase64url = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The host closes the connection, and says to connect again. */
class ComeAgain extends WeftConnectionLost {}

export class Session {
  onProgress: ((progress: Progress) => void) | null = null;
  /** Why the session is over, if it is. */
  failure: Error | null = null;
  private welcome: Fields<"Welcome"> | null = null;
  private login: { id: string; secret: Uint8Array } | null = null; // of the session, once there is one
  private socket: WebSocketLike | null = null;
  private opening: WebSocketLike | null = null; // a connection that has not logged in, or waits for its place
  private queuedAt = 0; // since when it waits, if it does
  private ops = 0;
  private cancelled = 0; // the last operation whose result nobody wants
  private handles = 0;
  private log: { op: number; data: Uint8Array }[] = []; // operations that the host has not confirmed
  private logged = 0; // their bytes
  private sent = 0; // the last operation that this connection has carried
  private control: Uint8Array[] = [];
  private garbage: number[] = [];
  private garbageBytes = 0;
  private settled: number[] = []; // operations whose replies the host may forget
  private settledBytes = 0;
  private tidying: ReturnType<typeof setTimeout> | undefined;
  private flushing = false;
  private readonly replies = new Map<number, Reply>();
  private readonly programs = new Map<string, Uint8Array>(); // hashes of those that were sent
  private kept = 0; // seconds for which the host keeps the session
  private heard = 0; // when the last frame came
  private watch: ReturnType<typeof setInterval> | undefined;

  private constructor(
    readonly url: string,
    private readonly token: string,
    private readonly name: string,
    private readonly WebSocket: WebSocketClass,
  ) {}

  static async open(
    url: string,
    token: string,
    name: string,
    WebSocket: WebSocketClass,
    { ticket, onProgress = null, signal = null }: Opening = {},
  ): Promise<Session> {
    const session = new Session(url, token, name, WebSocket);
    session.onProgress = onProgress;
    if (ticket) session.login = { id: ticket.id, secret: fromBase64url(ticket.secret) };
    for (let attempt = 0; ; attempt++) {
      try {
        await session.connect(signal);
        break;
      } catch (error) {
        // a session that ends at this moment may still be given the connection; asked again, the host says why it ended
        const again = error instanceof ComeAgain || (ticket && error instanceof WeftConnectionLost && attempt < 2);
        if (!again || attempt === PAUSES.length) throw error;
        await sleep(PAUSES[attempt]!);
      }
    }
    if (ticket) {
      session.ops = session.sent; // what the host has not received is lost with the page that sent it
      session.handles = session.ops * HANDLES; // beyond all that it can have chosen
    }
    return session;
  }

  /** What another page needs to take the session up. */
  ticket(): Ticket {
    if (this.failure) throw this.failure;
    const { id, secret } = this.login!;
    return { id, secret: base64url(secret) };
  }

  /** The platform and the kind of each device in turn. */
  get devices(): readonly string[] {
    return this.welcome!.devices;
  }

  // operations --------------------------------------------------------------------------------------------------------

  newHandle(): number {
    return ++this.handles;
  }

  /** Sends an operation and returns its number; nothing waits. */
  operate<K extends Operation>(kind: K, fields: Omit<Fields<K>, "op">): number {
    if (this.failure) throw this.failure;
    if (kind !== "Free" && (this.garbageBytes >= CRUMBS_BYTES || this.garbage.length >= CRUMBS)) this.freeNow();
    const op = ++this.ops;
    const data = encode(kind, { op, ...fields } as unknown as Fields<K>);
    this.log.push({ op, data });
    this.logged += data.length;
    this.flushSoon();
    return op;
  }

  /** Sends an operation whose reply has `size` bytes. */
  request<K extends Operation>(kind: K, fields: Omit<Fields<K>, "op">, size = 0): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((resolve, reject) => {
      this.replies.set(this.operate(kind, fields), new Reply(resolve, reject, new Uint8Array(size)));
      this.watchOver();
    });
  }

  /** Uploads an array; resolves to its handle as soon as the last part is on its way. */
  async put(data: Uint8Array, aval: Aval, device: number): Promise<number> {
    const handle = this.newHandle();
    const chunk = this.chunk();
    this.operate("Put", { handle, aval, device, data: data.subarray(0, chunk) });
    for (let at = chunk; at < data.length; at += chunk) {
      await this.drained();
      this.operate("Part", { handle, data: data.subarray(at, at + chunk) });
    }
    return handle;
  }

  /** Sends a program, unless the session has done so. */
  async send(digest: Uint8Array, data: Uint8Array): Promise<void> {
    const key = base64url(digest);
    if (this.programs.delete(key)) {
      this.programs.set(key, digest); // the last one used
      return;
    }
    this.programs.set(key, digest);
    if (this.programs.size > PROGRAMS) {
      const [oldest, hash] = this.programs.entries().next().value!;
      this.programs.delete(oldest);
      this.operate("Forget", { hash });
    }
    const chunk = this.chunk();
    this.operate("Program", { hash: digest, size: data.length, data: data.subarray(0, chunk) });
    for (let at = chunk; at < data.length; at += chunk) {
      await this.drained();
      this.operate("ProgramPart", { hash: digest, data: data.subarray(at, at + chunk) });
    }
  }

  /** Frees an array of so many bytes, or a program, soon: with the next operation, or in company if it is small. */
  free(handle: number, bytes = CRUMBS_BYTES): void {
    if (this.failure) return;
    this.garbage.push(handle);
    this.garbageBytes += bytes;
    this.tidySoon();
  }

  private freeNow(): void {
    this.garbageBytes = 0;
    if (this.garbage.length) this.operate("Free", { handles: this.garbage.splice(0) });
  }

  private settleNow(): void {
    this.settledBytes = 0;
    if (this.settled.length) this.say("Settled", { ops: this.settled.splice(0) });
  }

  private tidySoon(): void {
    this.tidying ??= setTimeout(() => {
      this.tidying = undefined;
      if (this.failure) return;
      this.freeNow();
      this.settleNow();
    }, TIDY);
  }

  /** Drops all that is pending: the host stops what it computes, begins with nothing else of it, and whoever waits gets
      an error. */
  cancel(): void {
    const stopped = new WeftHostError("Cancelled", "this result is not awaited any more: the work was cancelled");
    for (const reply of this.replies.values()) reply.reject(stopped);
    this.replies.clear();
    this.cancelled = this.ops;
    this.say("Cancel", { through: this.cancelled });
  }

  /** Has the host keep the session while no connection carries it; resolves to the seconds for which it does. */
  async keep(seconds: number): Promise<number> {
    await this.request("Keep", { seconds: Math.ceil(seconds) });
    return this.kept;
  }

  /** Closes the connection; the session goes on without it. */
  leave(): void {
    if (this.failure) return;
    this.freeNow();
    this.settleNow();
    this.flush();
    this.fail(new WeftConnectionLost(`the session on ${this.url} was left to whoever resumes it`));
    this.socket?.close();
    this.opening?.close();
  }

  close(): void {
    if (this.failure) return;
    this.settleNow();
    this.say("Bye", {});
    this.flush();
    this.fail(new WeftConnectionLost(`the session on ${this.url} is closed`));
    this.socket?.close();
    this.opening?.close();
  }

  private chunk(): number {
    return Math.min(CHUNK, this.welcome!.frame - HEADER);
  }

  /** Resolves once the socket has room for more bulk data. */
  private async drained(): Promise<void> {
    this.flush();
    const full = (): boolean => this.socket === null || this.socket.bufferedAmount > BUFFERED || this.logged > LOG;
    while (!this.failure && full()) await sleep(5);
    if (this.failure) throw this.failure;
  }

  // frames ------------------------------------------------------------------------------------------------------------

  private say<K extends Kind>(kind: K, fields: Fields<K>): void {
    this.control.push(encode(kind, fields));
    this.flushSoon();
  }

  /** What is asked for in one turn of the event loop travels together. */
  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    const { socket, welcome } = this;
    if (!socket || !welcome || socket.readyState !== 1) return;
    const limit = Math.min(FRAME, welcome.frame);
    let parts: Uint8Array[] = [];
    let size = 0;
    const send = (): void => {
      const frame = new Uint8Array(size);
      let at = 0;
      for (const part of parts) {
        frame.set(part, at);
        at += part.length;
      }
      socket.send(frame);
      parts = [];
      size = 0;
    };
    const add = (data: Uint8Array): void => {
      if (parts.length && size + data.length > limit) send();
      parts.push(data);
      size += data.length;
    };
    this.control.splice(0).forEach(add);
    for (const { op, data } of this.log.slice(this.unsent())) {
      add(data);
      this.sent = op;
    }
    if (parts.length) send();
  }

  /** Where in the log the operations begin that this connection has not carried. */
  private unsent(): number {
    return this.log.length ? Math.max(0, this.sent + 1 - this.log[0]!.op) : 0;
  }

  private confirm(op: number): void {
    const known = this.log.splice(0, this.log.length ? Math.max(0, op + 1 - this.log[0]!.op) : 0);
    for (const { data } of known) this.logged -= data.length;
  }

  private receive(frame: Uint8Array): void {
    this.heard = Date.now();
    for (const message of decode(frame)) this.handle(message);
  }

  private handle(message: Message): void {
    switch (message.kind) {
      case "Received":
        return this.confirm(message.op);
      case "Data": {
        const reply = this.replies.get(message.op);
        if (!reply) {
          // it was settled, and sent again before the host knew
          if (message.offset + message.data.length >= message.size) this.say("Settled", { ops: [message.op] });
        } else if (reply.take(message)) {
          this.settle(message.op)?.resolve(reply.data);
        } else if (reply.received - reply.credited >= this.welcome!.window / 4) {
          reply.credited = reply.received;
          this.say("Credit", { fetch: message.op, received: reply.received });
        }
        return;
      }
      case "Ready":
        return this.settle(message.op)?.resolve(new Uint8Array(0));
      case "Kept":
        this.kept = message.seconds;
        return this.settle(message.op)?.resolve(new Uint8Array(0));
      case "Error":
        return this.settle(message.op)?.reject(new WeftHostError(message.error, message.message));
      case "Progress": {
        const { name, stage, milliseconds, waiting } = message;
        const seconds = milliseconds / 1000;
        return this.tell({ name, stage: stage as Progress["stage"], seconds, waiting, place: 0, of: 0 });
      }
      case "Beat":
      case "Compiled":
        return;
      case "End":
        throw new WeftHostError(message.error, message.message);
      default:
        throw new WeftHostError("ProtocolError", `the host sent ${message.kind}, which this client did not ask for`);
    }
  }

  private tell(now: Progress): void {
    queueMicrotask(() => this.onProgress?.(now)); // an error of the listener's is not one of the session
  }

  private settle(op: number): Reply | undefined {
    const reply = this.replies.get(op);
    this.replies.delete(op);
    this.settled.push(op);
    this.settledBytes += reply?.data.length ?? 0;
    if (this.settledBytes >= CRUMBS_BYTES || this.settled.length >= CRUMBS) this.settleNow();
    else this.tidySoon();
    return reply;
  }

  /** The session is over: whoever waits, and all who ask later, get `error`. */
  private fail(error: Error): void {
    if (this.failure) return;
    this.failure = error;
    clearInterval(this.watch);
    for (const reply of this.replies.values()) reply.reject(error);
    this.replies.clear();
    this.log = [];
  }

  // connections -------------------------------------------------------------------------------------------------------

  /** Connects and logs in, and waits for its place. Rejects with WeftHostError where the host says why not. */
  private async connect(signal: AbortSignal | null = null): Promise<void> {
    const { login, token } = this;
    signal?.throwIfAborted();
    const url = new URL(this.url);
    url.pathname = url.pathname.replace(/\/$/, "") + (login ? `/session/${encodeURIComponent(login.id)}` : "/session");
    if (this.name && !login) url.searchParams.set("name", this.name);
    const offers = [SUBPROTOCOL, `weft-token.${base64url(new TextEncoder().encode(token))}`];
    if (login) offers.push(`weft-resume.${base64url(login.secret)}`);
    const socket = new this.WebSocket(url.href, offers);
    socket.binaryType = "arraybuffer";
    this.opening = socket;
    this.queuedAt = 0;
    let watch: ReturnType<typeof setInterval> | undefined;
    let abort = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const gone = (why: string): void => reject(new WeftConnectionLost(`no connection to ${this.url}: ${why}`));
        const late = setTimeout(() => {
          gone("it does not answer");
          socket.close();
        }, ANSWER);
        abort = () => {
          clearTimeout(late);
          reject(signal!.reason as Error);
          socket.close();
        };
        signal?.addEventListener("abort", abort);
        let greeted = false;
        socket.addEventListener("message", ({ data }: { data: ArrayBuffer | string }) => {
          try {
            if (typeof data === "string") throw new WeftHostError("ProtocolError", "the host sent text");
            if (greeted) return this.receive(new Uint8Array(data));
            clearTimeout(late);
            const messages = decode(new Uint8Array(data));
            if (this.waits(messages)) {
              watch ??= setInterval(() => this.watchQueue(socket, gone), BEAT);
              return;
            }
            greeted = true;
            this.start(socket, messages);
            resolve();
          } catch (error) {
            // the host has ended the session, or does not speak as a host does
            if (greeted) this.fail(error as Error);
            reject(error as Error);
            socket.close();
          }
        });
        socket.addEventListener("error", () => {
          clearTimeout(late);
          gone("is the host running (`weft-host`), and does it allow this page (`--allow-origin`)?");
        });
        socket.addEventListener("close", ({ code, reason }: { code: number; reason: string }) => {
          clearTimeout(late);
          const why = `it closed the connection (${code} ${reason})`;
          if (code === RESTART || code === LATER) reject(new ComeAgain(`no connection to ${this.url}: ${why}`));
          gone(why);
          if (this.socket === socket) this.lost(code, reason);
        });
      });
    } finally {
      signal?.removeEventListener("abort", abort);
      clearInterval(watch);
      if (this.opening === socket) this.opening = null;
    }
  }

  /** Whether the host has let the session in not yet; it says at what place it waits. */
  private waits([first]: Message[]): boolean {
    this.heard = Date.now();
    if (first?.kind === "Waiting") {
      this.queuedAt ||= this.heard;
      const { place, of } = first;
      const seconds = (this.heard - this.queuedAt) / 1000;
      this.tell({ name: "", stage: "queued", seconds, waiting: 0, place, of });
    }
    return first?.kind === "Waiting" || (first?.kind === "Beat" && this.queuedAt > 0);
  }

  /** While the session waits for its place, a silent host is asked whether it is there, and given up at last. */
  private watchQueue(socket: WebSocketLike, gone: (why: string) => void): void {
    if (Date.now() - this.heard > SILENCE) {
      gone(`it has not answered for ${SILENCE / 1000} s`);
      socket.close();
    } else if (Date.now() - this.heard > BEAT && socket.readyState === 1) {
      socket.send(encode("Beat", {}) as Uint8Array<ArrayBuffer>);
    }
  }

  private start(socket: WebSocketLike, [first, ...rest]: Message[]): void {
    if (first?.kind === "End") throw new WeftHostError(first.error, first.message);
    if (first?.kind !== "Welcome") throw new WeftHostError("ProtocolError", `${this.url} answers as no weft host does`);
    this.welcome = first;
    this.login = { id: first.id, secret: first.secret.slice() }; // its bytes are a view of the frame
    this.socket = socket;
    this.heard = Date.now();
    this.confirm(first.received);
    this.sent = first.received;
    this.control = [];
    [this.settled, this.settledBytes] = [[], 0]; // the host sends these replies again
    if (this.cancelled) this.say("Cancel", { through: this.cancelled }); // the host may not have heard of it
    for (const reply of this.replies.values()) reply.restart(); // the host sends replies again from their beginning
    rest.forEach((message) => this.handle(message));
    this.flush();
  }

  /** Takes a lost connection up again, within the time that the host grants. */
  private async lost(code: number, reason: string): Promise<void> {
    this.socket = null;
    if (this.failure) return;
    const why = `${code} ${reason}`.trim();
    if ([1002, 1003, 1007, 1008, 1009].includes(code))
      return this.fail(new WeftConnectionLost(`the host closed the connection: ${why}`));
    if (code === 1000)
      // so the host closes a connection that another one of the same session replaces
      return this.fail(new WeftConnectionLost("the session was taken up elsewhere, and goes on there"));
    let began = Date.now();
    for (let attempt = 0; !this.failure; attempt++) {
      try {
        return await this.connect();
      } catch (error) {
        if (error instanceof WeftHostError) return this.fail(error); // such as that it does not know the session
        if (error instanceof ComeAgain || this.queuedAt) began = Date.now(); // the host was there until now
        if (error instanceof ComeAgain) code = RESTART;
        const patience = online() && code !== RESTART ? REFUSED : this.welcome!.grace_ms;
        if (Date.now() - began > Math.min(patience, this.welcome!.grace_ms)) {
          const text = `the connection to ${this.url} is lost (${why}), and nothing answers there any more`;
          return this.fail(new WeftConnectionLost(`${text}; connect again, and compute anew what you need`));
        }
      }
      await sleep(PAUSES[Math.min(attempt, PAUSES.length - 1)]!);
    }
  }

  /** While somebody waits, a host that is silent is asked whether it is there, and given up at last. */
  private watchOver(): void {
    if (this.watch !== undefined) return;
    this.heard = Date.now();
    this.watch = setInterval(() => {
      if (!this.replies.size) {
        clearInterval(this.watch);
        this.watch = undefined;
      } else if (this.socket && Date.now() - this.heard > SILENCE) {
        const { socket } = this;
        void this.lost(0, `it has not answered for ${SILENCE / 1000} s`);
        socket.close();
      } else if (Date.now() - this.heard > BEAT) {
        this.say("Beat", {});
      }
    }, BEAT);
  }
}

/** Whether the machine has a network; without one, it is not the host that is gone. */
const online = (): boolean => (globalThis as { navigator?: { onLine?: boolean } }).navigator?.onLine !== false;
