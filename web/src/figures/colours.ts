/**
 * Colours: of the theme, and of numbers by colour maps.
 *
 * The maps are a few colours each, between which OKLab interpolates, where equal steps look equal. viridis, magma,
 * inferno and plasma are the maps of these names that their authors have given to the public domain (CC0): nine
 * colours of each. The others are made here, by their lightness, chroma and hue.
 */

type Lab = readonly [lightness: number, a: number, b: number];

const linear = (v: number): number => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const gamma = (v: number): number => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);

/** OKLab of #rrggbb. */
export function toLab(hex: string): Lab {
  const [r, g, b] = [1, 3, 5].map((k) => linear(parseInt(hex.slice(k, k + 2), 16) / 255)) as [number, number, number];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function toBytes([lightness, a, b]: Lab): [number, number, number] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const byte = (v: number) => Math.round(255 * Math.min(Math.max(gamma(v), 0), 1));
  return [
    byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

const polar = (lightness: number, chroma: number, degrees: number): Lab => [
  lightness,
  chroma * Math.cos((degrees * Math.PI) / 180),
  chroma * Math.sin((degrees * Math.PI) / 180),
];

const hexes = (colours: string): Lab[] => colours.split(" ").map((colour) => toLab(`#${colour}`));

const MAPS: Record<string, () => Lab[]> = {
  viridis: () => hexes("440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725"),
  magma: () => hexes("000004 1d1147 51127c 832681 b73779 e75263 fc8961 fec488 fcfdbf"),
  inferno: () => hexes("000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4"),
  plasma: () => hexes("0d0887 4c02a1 7e03a8 a92395 cc4778 e56b5d f89540 fdc527 f0f921"),
  gray: () => [polar(0, 0, 0), polar(1, 0, 0)],
  // blue and red of equal lightness on both sides of a light grey
  coolwarm: () => {
    const side = (hue: number) => [0.45, 0.55, 0.65, 0.75, 0.84].map((l, k) => polar(l, 0.17 - 0.03 * k, hue));
    return [...side(262), polar(0.91, 0, 0), ...side(28).reverse()];
  },
  // a circle: light at its ends, dark in its middle, blue on one side and red on the other
  twilight: () =>
    Array.from({ length: 25 }, (_, k) => {
      const angle = (2 * Math.PI * k) / 24;
      const chroma = 0.12 * Math.abs(Math.sin(angle));
      return polar(0.56 + 0.34 * Math.cos(angle), chroma, Math.sin(angle) >= 0 ? 255 : 25);
    }),
};

const SIZE = 256;
const tables = new Map<string, Uint8ClampedArray>();

/** The colours of a map from its lower end to its upper end: red, green and blue of 256 of them. */
export function table(name: string): Uint8ClampedArray {
  let made = tables.get(name);
  if (!made) {
    const anchors = (MAPS[name] ?? MAPS["viridis"]!)();
    made = new Uint8ClampedArray(3 * SIZE);
    for (let k = 0; k < SIZE; k++) {
      const at = (k / (SIZE - 1)) * (anchors.length - 1);
      const low = Math.min(Math.floor(at), anchors.length - 2);
      const [from, to] = [anchors[low]!, anchors[low + 1]!];
      const mixed = from.map((value, i) => value + (to[i]! - value) * (at - low)) as unknown as Lab;
      // these steps of grey are equal on screens, so a picture's bytes are shown unchanged
      made.set(name === "gray" ? [k, k, k] : toBytes(mixed), 3 * k);
    }
    tables.set(name, made);
  }
  return made;
}

/** The colour of a share from 0 to 1 of a map, in CSS. */
export function colourAt(name: string, share: number): string {
  const at = 3 * Math.round((SIZE - 1) * Math.min(Math.max(share, 0), 1));
  return `rgb(${table(name)
    .slice(at, at + 3)
    .join(",")})`;
}

/** Whether black reads better on a colour of a map than white. */
export function isLight(name: string, share: number): boolean {
  const at = 3 * Math.round((SIZE - 1) * Math.min(Math.max(share, 0), 1));
  const [r, g, b] = table(name).slice(at, at + 3) as unknown as [number, number, number];
  return 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255) > 0.3;
}

/** The bytes of a colour that CSS knows. */
export function rgbOf(colour: string): [number, number, number] {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b];
}

/** The colours that a figure takes from the page's style sheet. */
export interface Theme {
  ink: string;
  dim: string;
  line: string;
  surface: string;
  font: string;
  series: string[];
  /** The part of a colour map whose thin lines can be seen on the surface. */
  legible: readonly [number, number];
}

/** The variables of a theme's colours, and what stands for each where a page has it not. */
const COLOURS: [name: string, otherwise: string][] = [
  ["--surface", "Canvas"],
  ["--ink", "CanvasText"],
  ["--dim", "GrayText"],
  ["--line", "#8884"],
  ...Array.from({ length: 16 }, (_, k): [string, string] => [`--figure-${k + 1}`, "#3c50bd"]),
];

/** Colours as the element sees them now: of the day or of the night. */
export function readTheme(element: Element): Theme {
  const probe = document.createElement("span");
  probe.hidden = true;
  // As a colour of an element, light-dark() and var() are worked out: for all of them at once, which frames of an
  // animation have the time for.
  const probes = COLOURS.map(([name, otherwise]) => {
    const each = document.createElement("span");
    each.style.color = `var(${name}, ${otherwise})`;
    return each;
  });
  probe.append(...probes);
  element.append(probe);
  const [surface, ink, dim, line, ...series] = probes.map((each) => getComputedStyle(each).color);
  // within quotation marks already where it becomes an attribute
  const font = getComputedStyle(probe).fontFamily.replaceAll('"', "'");
  probe.remove();
  const [r, g, b] = rgbOf(surface!);
  const legible = r + g + b < 384 ? ([0.3, 1] as const) : ([0, 0.88] as const);
  return { ink: ink!, dim: dim!, line: line!, surface: surface!, font, series, legible };
}

/** A colour that a program has named, or the next of the theme's sixteen, which then begin anew. */
export function seriesColour(theme: Theme, named: string | null, index: number): string {
  const chosen = named?.startsWith("C") ? Number(named.slice(1)) : index;
  return named === null || named.startsWith("C") ? theme.series[chosen % theme.series.length]! : named;
}
