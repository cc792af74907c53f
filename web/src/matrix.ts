/** A matrix as a picture, one pixel for each number. */
import { format } from "./numbers.js";

// Dark indigo over rose to pale yellow; lightness rises evenly, so it also reads in grey.
const RAMP = [
  [20, 18, 52],
  [72, 44, 120],
  [142, 60, 132],
  [206, 88, 108],
  [243, 145, 96],
  [252, 210, 140],
  [252, 248, 214],
] as const;
const NOT_A_NUMBER = [128, 128, 128] as const;

function ramp(t: number): readonly [number, number, number] {
  const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const [a, b] = [RAMP[low]!, RAMP[low + 1]!];
  const mix = (i: 0 | 1 | 2) => a[i] + (b[i] - a[i]) * (at - low);
  return [mix(0), mix(1), mix(2)];
}

/**
 * Draws into the figure's canvas, which it makes if there is none; the caption says which numbers are darkest
 * and brightest.
 */
export function drawMatrix(figure: HTMLElement, rows: number, columns: number, values: Float64Array): void {
  let canvas = figure.querySelector("canvas");
  if (!canvas) {
    canvas = document.createElement("canvas");
    canvas.className = "matrix";
    canvas.setAttribute("role", "img");
    figure.append(canvas);
  }
  canvas.setAttribute("aria-label", `${rows} by ${columns} matrix`);
  canvas.width = columns;
  canvas.height = rows;
  const finite = values.filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  if (rows && columns) {
    const pixels = new ImageData(columns, rows);
    values.forEach((value, i) => {
      const [r, g, b] = Number.isFinite(value) ? ramp(high > low ? (value - low) / (high - low) : 0.5) : NOT_A_NUMBER;
      pixels.data.set([r, g, b, 255], 4 * i);
    });
    canvas.getContext("2d")!.putImageData(pixels, 0, 0);
  }
  figure.querySelector("figcaption span")!.textContent = finite.length ? `${format(low)} to ${format(high)}` : "";
}
