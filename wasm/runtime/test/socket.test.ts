import assert from "node:assert/strict";
import { test } from "node:test";
import { Socket, WeftConnectionError } from "../src/socket.js";

/** What browsers have, without a network: tests say what happens to it. */
class Connection extends EventTarget {
  static readonly OPEN = 1;
  static readonly CLOSING = 2;
  static last: Connection;
  readyState = 0;
  readonly sent: Uint8Array[] = [];

  constructor(readonly url: string) {
    super();
    if (!url.startsWith("ws")) throw new SyntaxError("no such scheme");
    Connection.last = this;
  }

  happens(type: string, more: object = {}): void {
    this.readyState = { open: 1, close: 3 }[type] ?? this.readyState;
    this.dispatchEvent(Object.assign(new Event(type), more));
  }

  send(message: Uint8Array): void {
    this.sent.push(message);
  }

  close(): void {
    this.happens("close", { code: 1000, reason: "done" });
  }
}
Object.assign(globalThis, { WebSocket: Connection });

async function opened(): Promise<[Socket, Connection]> {
  const opening = Socket.open("ws://here");
  const connection = Connection.last;
  connection.happens("open");
  return [await opening, connection];
}

test("messages wait until they are asked for, and those who ask until one comes", async () => {
  const [socket, connection] = await opened();
  assert.equal(connection.url, "ws://here");
  const data = (...bytes: number[]) => ({ data: Uint8Array.from(bytes).buffer });
  connection.happens("message", data(1));
  connection.happens("message", { data: "hé" });
  assert.deepEqual([await socket.recv(), await socket.recv()], [Uint8Array.of(1), new TextEncoder().encode("hé")]);
  const [first, second] = [socket.recv(), socket.recv()];
  connection.happens("message", data(2));
  connection.happens("message", data(3));
  assert.deepEqual([await first, await second], [Uint8Array.of(2), Uint8Array.of(3)]);
});

test("the end of a connection is told to all who wait, and to those who come later", { timeout: 5000 }, async () => {
  const [socket, connection] = await opened();
  socket.send(Uint8Array.of(7));
  assert.deepEqual(connection.sent, [Uint8Array.of(7)]);
  const waiting = [socket.recv(), socket.recv()];
  connection.happens("message", { data: new ArrayBuffer(2) });
  socket.close();
  assert.deepEqual(await Promise.all(waiting), [new Uint8Array(2), null]);
  assert.equal(await socket.recv(), null);
  assert.equal(socket.closeReason, "1000 done");
  assert.throws(
    () => socket.send(Uint8Array.of(1)),
    (error) => error instanceof WeftConnectionError && /closed \(1000 done\)/.test(error.message),
  );
});

test("a host that isn't there, or has no address, is a connection error", { timeout: 5000 }, async () => {
  const refused = (pattern: RegExp) => (error: unknown) =>
    error instanceof WeftConnectionError && pattern.test(error.message);
  const opening = Socket.open("ws://nobody");
  Connection.last.happens("error");
  await assert.rejects(opening, refused(/no connection to ws:\/\/nobody; is the host running/));
  await assert.rejects(Socket.open("nowhere"), refused(/nowhere is not a websocket address: no such scheme/));
});
