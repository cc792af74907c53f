/** Axes as numbers: from data to the place on a scale and back, ranges, ticks, and numbers as text. */
import type { Axis } from "./spec.js";

export interface Range {
  low: number;
  high: number;
}

/**
 * The position of a value on its scale: the value itself, or its logarithm. NaN for a value that a log axis does
 * not have.
 */
export function onScale(scale: Axis["scale"], value: number): number {
  return scale === "log" ? (value > 0 ? Math.log10(value) : NaN) : value;
}

export function fromScale(scale: Axis["scale"], place: number): number {
  return scale === "log" ? 10 ** place : place;
}

export const EMPTY: Range = { low: Infinity, high: -Infinity };

export function isEmpty({ low, high }: Range): boolean {
  return !(low <= high);
}

export function union(a: Range, b: Range): Range {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}

/** The range of the finite numbers on a scale. */
export function rangeOf(data: ArrayLike<number>, scale: Axis["scale"] = "linear"): Range {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < data.length; i++) {
    const value = data[i]!;
    if (value < low && value > -Infinity && (scale === "linear" || value > 0)) low = value;
    if (value > high && value < Infinity && (scale === "linear" || value > 0)) high = value;
  }
  if (!(low <= high)) return EMPTY;
  return { low: onScale(scale, low), high: onScale(scale, high) };
}

/** The range of an axis: a little more than that of the data, and never a single number or an empty one. */
export function padded(range: Range, share: number): Range {
  if (isEmpty(range)) return { low: 0, high: 1 };
  const { low, high } = range;
  // adjacent numbers that floating point can't separate would give the axis no length
  const least = Math.max(Math.abs(low), Math.abs(high)) * 1e-12 + 1e-300;
  if (high - low <= least) {
    const around = Math.abs(low) > 1e-280 ? Math.abs(low) * 0.1 : 1;
    return { low: low - around, high: high + around };
  }
  const more = (high - low) * share;
  return Number.isFinite(more) ? { low: low - more, high: high + more } : { low, high };
}

/** A round step (1, 2 or 5 times a power of ten) of which at most `count` make up `span`. */
export function roundStep(span: number, count: number): number {
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  return ([1, 2, 5].find((factor) => factor * power >= raw * (1 - 1e-9)) ?? 10) * power;
}

export interface Tick {
  /** Its place on the scale. */
  at: number;
  text: string;
}

/** Decimal digits or powers of ten, whichever is shorter, with enough digits to distinguish the ticks. */
function linearTicks({ low, high }: Range, count: number): Tick[] {
  const within = (step: number): number => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  let step = roundStep(high - low, count);
  if (!(step > 0 && Number.isFinite(step))) return [];
  if (count > 1 && within(step) < 2) {
    // a single tick does not tell how long the axis is: the next smaller step, unless that gives far more
    let smaller = step;
    for (let more = count + 1; smaller === step && more <= 10 * count; more++) smaller = roundStep(high - low, more);
    if (within(smaller) <= count + 2) step = smaller;
  }
  const places: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9 && places.length < 200; k++) {
    places.push(k === 0 ? 0 : k * step);
  }
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const precision = Math.min(Math.max(Math.ceil(Math.log10(largest / step) - 1e-9), 0), 15);
  const powers = places.map((at) => (at === 0 ? "0" : power(at.toExponential(precision))));
  const plain =
    largest >= 1e15 || digits > 20 ? null : places.map((at) => (at === 0 ? "0" : minus(at.toFixed(digits))));
  const longest = (texts: string[]) => Math.max(0, ...texts.map((text) => text.length));
  const usual = largest < 1e7 && largest >= 1e-3;
  const texts = plain && (usual || longest(plain) <= longest(powers)) ? plain : powers;
  return places.map((at, k) => ({ at, text: texts[k]! }));
}

function logTicks({ low, high }: Range, count: number): Tick[] {
  const [first, last] = [Math.ceil(low - 1e-9), Math.floor(high + 1e-9)];
  if (last - first >= 1 || last === first) {
    const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(count, 2)));
    const ticks = [];
    for (let k = first; k <= last; k++) if (k % step === 0) ticks.push({ at: k, text: decade(k) });
    if (last - first >= 1) return ticks;
  }
  // less than two decades: round numbers between
  const [from, to] = [10 ** low, 10 ** high];
  const found = linearTicks({ low: from, high: to }, count).filter(({ at }) => at > 0);
  const wide = to / from > 3;
  const decades = wide ? [1, 2, 3, 5].flatMap((k) => [k * 10 ** (first - 1), k * 10 ** first, k * 10 ** last]) : [];
  const places = wide ? decades.map((at) => ({ at, text: format(at) })) : found;
  return [...new Map(places.map((tick) => [tick.text, tick])).values()]
    .map(({ at, text }) => ({ at: Math.log10(at), text }))
    .filter(({ at }) => at >= low - 1e-9 && at <= high + 1e-9)
    .sort((a, b) => a.at - b.at);
}

/** About `count` round places inside the range of a scale. */
export function ticks(scale: Axis["scale"], range: Range, count: number): Tick[] {
  return scale === "log" ? logTicks(range, count) : linearTicks(range, count);
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(exponent: number): string {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPTS[Number(digit)]!);
  return `${exponent < 0 ? "⁻" : ""}${digits}`;
}

const minus = (text: string): string => text.replace("-", "−");

/** "1.50e-7" as 1.5×10⁻⁷. */
function power(text: string): string {
  const [digits = "", exponent = "0"] = text.split("e");
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
  const tens = `10${superscript(Number(exponent))}`;
  return minus(short === "1" ? tens : short === "-1" ? `-${tens}` : `${short}×${tens}`);
}

function decade(exponent: number): string {
  return exponent >= -3 && exponent <= 4
    ? String(Number((10 ** exponent).toPrecision(3)))
    : `10${superscript(exponent)}`;
}

/** A number as people read it, of at most `digits` digits. */
export function format(value: number, digits = 5): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return power(value.toExponential(digits - 1));
  return minus(String(Number(value.toPrecision(digits))));
}
