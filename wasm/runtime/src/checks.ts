/** Checks of JSON values, with the words that describe the permitted ones. */
import { WeftRuntimeError } from "./errors.js";

export interface Check {
  holds(x: unknown): boolean;
  wanted: string;
}
export type Fields = Record<string, Check>;
type Json = Record<string, unknown>;

const LONGEST_NAME = 1000;
const MOST_ARRAYS = 1 << 16;

export const isObject = (x: unknown): x is Json => typeof x === "object" && x !== null && !Array.isArray(x);
export const ints = (most: number): Check => ({
  holds: (x) => Number.isSafeInteger(x) && (x as number) >= 0 && (x as number) <= most,
  wanted: `an int from 0 to ${most}`,
});
export const list = (each: Check | null, most: number): Check => ({
  holds: (x) => Array.isArray(x) && x.length <= most && (!each || x.every((value) => each.holds(value))),
  wanted: `a list of at most ${most}${each ? `, each ${each.wanted}` : ""}`,
});
export const words = (...values: string[]): Check => ({
  holds: (x) => typeof x === "string" && values.includes(x),
  wanted: `one of ${values.sort().join(", ")}`,
});
export const orNull = (check: Check): Check => ({
  holds: (x) => x === null || check.holds(x),
  wanted: `null or ${check.wanted}`,
});

export const SIZE = ints(Number.MAX_SAFE_INTEGER);
export const COUNT = ints(MOST_ARRAYS - 1);
export const TEXT: Check = { holds: (x) => typeof x === "string", wanted: "a text" };
export const BOOL: Check = { holds: (x) => typeof x === "boolean", wanted: "true or false" };
export const OBJECT: Check = { holds: isObject, wanted: "an object" };
export const NAME: Check = {
  holds: (x) => typeof x === "string" && [...x].length <= LONGEST_NAME && /^(?:[^\p{C}\p{Z}]| )*$/u.test(x),
  wanted: `a text of at most ${LONGEST_NAME} printable characters`,
};
export const ARRAYS = list(null, MOST_ARRAYS);

/** A value in an error message, in a few words. */
export function brief(x: unknown): string {
  if (typeof x === "string") return JSON.stringify(x.length <= 40 ? x : `${x.slice(0, 40)}…`);
  if (Array.isArray(x)) return `a list of ${x.length}`;
  return typeof x === "object" && x !== null ? `an object of ${Object.keys(x).length}` : String(x);
}

/** Checks of one artifact, whose errors name it. */
export class Checker {
  private readonly name: string;

  constructor(metadata: unknown) {
    const name = isObject(metadata) ? metadata["name"] : undefined;
    this.name = NAME.holds(name) ? String(name) : "(without a name)";
  }

  fail(message: string): never {
    throw new WeftRuntimeError(`artifact ${this.name}: ${message}. Compile the program again`);
  }

  /** Checks an object: its required and its optional members; others are refused. */
  fields(x: unknown, place: string, required: Fields, optional: Fields = {}): void {
    if (!isObject(x)) this.fail(`${place || "the metadata"} must be an object; got ${brief(x)}`);
    const within = place && `${place}.`;
    for (const [key, check] of Object.entries(required)) {
      if (!Object.hasOwn(x, key)) this.fail(`${within}${key} is missing`);
      if (!check.holds(x[key])) this.fail(`${within}${key} must be ${check.wanted}; got ${brief(x[key])}`);
    }
    for (const [key, value] of Object.entries(x)) {
      if (Object.hasOwn(required, key)) continue;
      if (!Object.hasOwn(optional, key))
        this.fail(`${place || "the metadata"} has ${brief(key)}, which is not a known member`);
      if (!optional[key]!.holds(value))
        this.fail(`${within}${key} must be ${optional[key]!.wanted}; got ${brief(value)}`);
    }
  }
}
