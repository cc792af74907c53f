/** Which earlier states of a document are kept: many of the last hour, few of the last year. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * The newest snapshot of each span is kept; spans are longer for older snapshots. All snapshots of the last hour
 * are kept.
 */
const SPANS = [
  { age: HOUR, span: 1 },
  { age: DAY, span: HOUR },
  { age: 30 * DAY, span: DAY },
  { age: Infinity, span: 7 * DAY },
];

/** Room for 15 of the last hour, 23 of the last day, 29 of the last month, and the rest by week. */
export const SNAPSHOTS = 100;

/** A snapshot is made before a change if the newest is older than this: every five minutes while the reader types. */
export const SNAPSHOT_MS = 5 * MINUTE;

/** The times among these whose snapshots are deleted. The first of all is kept: it is the document's original state. */
export function thin(times: number[], now: number): number[] {
  const kept = new Set([Math.min(...times)]);
  const spans = new Set<string>();
  for (const time of [...times].sort((a, b) => b - a)) {
    const { span } = SPANS.find(({ age }) => now - time < age)!;
    const name = `${span} ${Math.floor(time / span)}`;
    if (!spans.has(name) && kept.size < SNAPSHOTS) kept.add(time);
    spans.add(name);
  }
  return times.filter((time) => !kept.has(time));
}
