/** Where a function on a grid reaches a level: marching squares. */

/** A closed ring around a region at or above a level, in coordinates of the grid: x in columns, y in rows. */
export interface Ring {
  x: number[];
  y: number[];
  /**
   * Whether a point is on the grid's border, or beside NaN: the ring is closed there, though the level is not
   * reached.
   */
  border: boolean[];
}

const [BOTTOM, RIGHT, TOP, LEFT] = [0, 1, 2, 3];
// For each set of corners inside (1: near, 2: right, 4: opposite, 8: above), pairs of edges: the ring enters the cell
// by the first and leaves it by the second, with the inside on its left.
const CASES: readonly (readonly number[])[] = [
  [],
  [BOTTOM, LEFT],
  [RIGHT, BOTTOM],
  [RIGHT, LEFT],
  [TOP, RIGHT],
  [BOTTOM, LEFT, TOP, RIGHT],
  [TOP, BOTTOM],
  [TOP, LEFT],
  [LEFT, TOP],
  [BOTTOM, TOP],
  [RIGHT, BOTTOM, LEFT, TOP],
  [RIGHT, TOP],
  [LEFT, RIGHT],
  [BOTTOM, RIGHT],
  [LEFT, BOTTOM],
  [],
] as const;
// The two ambiguous cases where the middle of the cell is inside too.
const JOINED: Readonly<Record<number, readonly number[]>> = {
  5: [BOTTOM, RIGHT, TOP, LEFT],
  10: [LEFT, BOTTOM, RIGHT, TOP],
};

/**
 * The rings around all regions where `z`, row by row, is at least `level`. The grid is surrounded by values below every
 * level, so that all rings are closed.
 */
export function rings(z: ArrayLike<number>, columns: number, rows: number, level: number): Ring[] {
  // With one more column and row of cells on each side. An edge is numbered by the corner where it begins: twice it,
  // and one more if it goes up.
  const wide = columns + 2;
  const value = (i: number, j: number): number =>
    i >= 0 && i < columns && j >= 0 && j < rows ? z[j * columns + i]! : NaN;
  const corner = (i: number, j: number): number => (j + 1) * wide + i + 1;
  const next = new Map<number, number>();
  for (let j = -1; j < rows; j++) {
    for (let i = -1; i < columns; i++) {
      const corners = [value(i, j), value(i + 1, j), value(i + 1, j + 1), value(i, j + 1)] as const;
      const inside = corners.reduce((bits, v, k) => bits | (v >= level ? 1 << k : 0), 0);
      const middle = (corners[0] + corners[1] + corners[2] + corners[3]) / 4 >= level;
      const pairs = (middle && JOINED[inside]) || CASES[inside]!;
      const edges = [2 * corner(i, j), 2 * corner(i + 1, j) + 1, 2 * corner(i, j + 1), 2 * corner(i, j) + 1];
      for (let k = 0; k < pairs.length; k += 2) next.set(edges[pairs[k]!]!, edges[pairs[k + 1]!]!);
    }
  }
  const found: Ring[] = [];
  for (const start of next.keys()) {
    const ring: Ring = { x: [], y: [], border: [] };
    for (let edge: number | undefined = start; edge !== undefined;) {
      const at = edge >> 1;
      const [i, j] = [(at % wide) - 1, Math.floor(at / wide) - 1];
      const [di, dj] = edge & 1 ? [0, 1] : [1, 0];
      const [a, b] = [value(i, j), value(i + di, j + dj)];
      const known = !Number.isNaN(a) && !Number.isNaN(b);
      // between an infinite value and a finite one: at the finite one
      const share = known ? Math.min(Math.max((level - a) / (b - a) || 0, 0), 1) : Number.isNaN(a) ? 1 : 0;
      ring.x.push(i + share * di);
      ring.y.push(j + share * dj);
      ring.border.push(!known);
      const after: number | undefined = next.get(edge);
      next.delete(edge);
      edge = after !== undefined && next.has(after) ? after : undefined;
    }
    if (ring.x.length > 1) found.push(ring);
  }
  return found;
}
