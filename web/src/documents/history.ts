/** Which earlier states of a document are kept: many of the last hour, few of the last year. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The newest snapshot of each span stays; spans are longer for what is older. Of the last hour all stay. */
const SPANS = [
  { age: HOUR, span: 1 },
  { age: DAY, span: HOUR },
  { age: 30 * DAY, span: DAY },
  { age: Infinity, span: 7 * DAY },
];

/** Room for 15 of the last hour, 23 of the last day, 29 of the last month, and the rest by week. */
export const SNAPSHOTS = 100;

/** A snapshot is made before a change when the newest is older than this: while one types, each five minutes. */
export const SNAPSHOT_MS = 5 * MINUTE;

/** The times among these whose snapshots go. The first of all stays: it is what the document began as. */
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
