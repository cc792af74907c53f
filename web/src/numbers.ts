/** A number as a label: at most four digits, no trailing zeros. */
export function format(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1).replace(".0e", "e") : String(Number(value.toPrecision(4)));
}

/** A duration in the unit that suits it. */
export function milliseconds(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  return ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
