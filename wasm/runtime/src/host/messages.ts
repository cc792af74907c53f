/** The messages of the protocol between clients and hosts, with the names of docs/protocol.md. */
import { Reader, Writer } from "./bytes.js";

/** The version of the protocol, as a websocket subprotocol. */
export const SUBPROTOCOL = "weft.6";

/** The type of an array on the wire. */
export interface Aval {
  readonly dtype: string;
  readonly weak: boolean;
  readonly shape: readonly number[];
}

/** How each kind of field is written and read. */
const FIELDS = {
  int: { write: (w: Writer, v: number) => w.unsigned(v), read: (r: Reader) => r.unsigned() },
  bool: { write: (w: Writer, v: boolean) => w.byte(v ? 1 : 0), read: (r: Reader) => r.bool() },
  str: { write: (w: Writer, v: string) => w.string(v), read: (r: Reader) => r.string() },
  bytes: { write: (w: Writer, v: Uint8Array) => w.bytes(v), read: (r: Reader) => r.bytes() },
  ints: {
    write: (w: Writer, v: readonly number[]) => list(w, v, (n) => w.unsigned(n)),
    read: (r: Reader): readonly number[] => r.list(() => r.unsigned()),
  },
  bools: {
    write: (w: Writer, v: readonly boolean[]) => list(w, v, (b) => w.byte(b ? 1 : 0)),
    read: (r: Reader): readonly boolean[] => r.list(() => r.bool()),
  },
  strings: {
    write: (w: Writer, v: readonly string[]) => list(w, v, (s) => w.string(s)),
    read: (r: Reader): readonly string[] => r.list(() => r.string()),
  },
  aval: {
    write: (w: Writer, v: Aval) => {
      w.string(v.dtype);
      w.byte(v.weak ? 1 : 0);
      list(w, v.shape, (n) => w.unsigned(n));
    },
    read: (r: Reader): Aval => ({ dtype: r.string(), weak: r.bool(), shape: r.list(() => r.unsigned(), 64) }),
  },
};

function list<T>(w: Writer, values: readonly T[], write: (value: T) => void): void {
  w.unsigned(values.length);
  values.forEach(write);
}

/** Of each message its code and its fields in order. */
const MESSAGES = {
  Welcome: [
    2,
    { id: "str", secret: "bytes", received: "int", grace_ms: "int", frame: "int", window: "int", devices: "strings" },
  ],
  End: [3, { error: "str", message: "str" }],
  Bye: [4, {}],
  Received: [5, { op: "int" }],
  Settled: [6, { ops: "ints" }],
  Credit: [7, { fetch: "int", received: "int" }],
  Beat: [8, {}],
  Cancel: [9, { through: "int" }],
  Reported: [10, { through: "int" }],
  Waiting: [11, { place: "int", of: "int" }],
  Put: [16, { op: "int", handle: "int", aval: "aval", device: "int", data: "bytes" }],
  Part: [17, { op: "int", handle: "int", data: "bytes" }],
  Program: [18, { op: "int", hash: "bytes", size: "int", data: "bytes" }],
  ProgramPart: [19, { op: "int", hash: "bytes", data: "bytes" }],
  Compile: [20, { op: "int", handle: "int", program: "bytes", device: "int", name: "str", donated: "bools" }],
  Execute: [21, { op: "int", program: "int", arguments: "ints", results: "ints" }],
  Fetch: [22, { op: "int", handle: "int" }],
  Wait: [23, { op: "int", handle: "int" }],
  Free: [24, { op: "int", handles: "ints" }],
  Inspect: [25, { op: "int", program: "int", what: "str", stage: "str" }],
  Ping: [26, { op: "int" }],
  ExecuteReporting: [27, { op: "int", program: "int", arguments: "ints", results: "ints" }],
  Result: [28, { op: "int", report: "int", last: "bool", data: "bytes" }],
  Raised: [29, { op: "int", report: "int" }],
  Keep: [30, { op: "int", seconds: "int" }],
  Forget: [31, { op: "int", hash: "bytes" }],
  CompileSpread: [
    40,
    {
      op: "int",
      handle: "int",
      program: "bytes",
      devices: "ints",
      grids: "ints",
      specs: "ints",
      name: "str",
      donated: "bools",
    },
  ],
  Copy: [41, { op: "int", handle: "int", source: "int", device: "int" }],
  ExecuteFetching: [42, { op: "int", program: "int", arguments: "ints", results: "ints", fetched: "ints" }],
  Data: [32, { op: "int", size: "int", offset: "int", data: "bytes" }],
  Ready: [33, { op: "int" }],
  Text: [34, { op: "int", text: "str" }],
  Error: [35, { op: "int", origin: "int", error: "str", message: "str" }],
  Compiled: [37, { op: "int", microseconds: "int" }],
  Progress: [39, { op: "int", name: "str", stage: "str", milliseconds: "int", waiting: "int" }],
  Kept: [38, { op: "int", seconds: "int" }],
  Report: [36, { number: "int", op: "int", function: "int", last: "bool", data: "bytes" }],
} as const satisfies Record<string, readonly [number, Record<string, keyof typeof FIELDS>]>;

export type Kind = keyof typeof MESSAGES;
export type Fields<K extends Kind> = {
  readonly [F in keyof (typeof MESSAGES)[K][1]]: (typeof MESSAGES)[K][1][F] extends keyof typeof FIELDS
    ? ReturnType<(typeof FIELDS)[(typeof MESSAGES)[K][1][F]]["read"]>
    : never;
};
export type Message = { [K in Kind]: { readonly kind: K } & Fields<K> }[Kind];

type Codec = { write(w: Writer, value: unknown): void; read(r: Reader): unknown };
const codecs = (kind: Kind): [string, Codec][] =>
  Object.entries(MESSAGES[kind][1]).map(([name, field]) => [name, FIELDS[field as keyof typeof FIELDS] as Codec]);
const CODECS = Object.fromEntries(Object.keys(MESSAGES).map((kind) => [kind, codecs(kind as Kind)])) as Record<
  Kind,
  [string, Codec][]
>;
const BY_CODE = new Map(Object.entries(MESSAGES).map(([kind, [code]]) => [code as number, kind as Kind]));

/** A message as bytes. Frames can be joined. */
export function encode<K extends Kind>(kind: K, fields: Fields<K>): Uint8Array {
  const w = new Writer();
  w.byte(MESSAGES[kind][0]);
  for (const [name, { write }] of CODECS[kind]) write(w, (fields as Record<string, unknown>)[name]);
  return w.finish();
}

/** The messages of a frame. Their bytes are views of it. */
export function decode(frame: Uint8Array): Message[] {
  const r = new Reader(frame);
  if (!r.left) r.fail("a frame is empty");
  const messages: Message[] = [];
  while (r.left) {
    const start = r.at;
    const kind = BY_CODE.get(r.byte());
    if (kind === undefined) return r.fail("there is no such message", start);
    const fields = CODECS[kind].map(([name, { read }]) => [name, read(r)]);
    messages.push({ kind, ...Object.fromEntries(fields) } as Message);
  }
  return messages;
}
