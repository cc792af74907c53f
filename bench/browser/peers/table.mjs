// What bench/browser/peers.mjs measures, what is asked of weft, and how it is printed.

/**
 * @typedef {object} Asked
 * @property {string} title as the tables call it
 * @property {number} [target] the largest part of the best peer's time with one thread (with several it is 1
 * everywhere), or
 * @property {number} [limit] the largest time in ms, or
 * @property {number} [limitOverEmpty] the largest time in ms beyond that of an empty call
 * @property {number} [flops] of a call, or
 * @property {number} [bytes] moved by a call
 * @property {string} [unit] and
 * @property {number} [scale] what a ms is in it
 * @typedef {Record<string, number | undefined>} Times of each peer in ms
 * @typedef {Record<string, { times: Times, problems: Record<string, string> }>} Results
 * @typedef {{ threads?: number, emptyMs?: number | null }} Circumstances
 */

export const PEERS = ["jax-js", "tfjs", "ort"];

/** @type {(n: number, size: number, from: number, to: number) => number} */
const conv = (n, size, from, to) => 2 * n * size * size * 9 * from * to;
const mlp = 2 * 128 * (784 * 512 + 512 * 512 + 512 * 10);
const MICRO = { unit: "µs", scale: 1000 };

/** @type {Record<string, Asked>} */
export const WORKLOADS = {
  matmul_256: { title: "matmul 256", target: 1, flops: 2 * 256 ** 3 },
  matmul_512: { title: "matmul 512", target: 2 / 3, flops: 2 * 512 ** 3 },
  matmul_1024: { title: "matmul 1024", target: 2 / 3, flops: 2 * 1024 ** 3 },
  matmul_2048: { title: "matmul 2048", target: 2 / 3, flops: 2 * 2048 ** 3 },
  chain_1m: { title: "chain 1M", target: 1 / 3, bytes: 8 * 2 ** 20 },
  chain_16m: { title: "chain 16M", target: 1 / 3, bytes: 8 * 2 ** 24 },
  softmax: { title: "softmax 4096×1024", target: 1, bytes: 8 * 2 ** 22 },
  layer_norm: { title: "layer norm 4096×1024", target: 1 / 3, bytes: 8 * 2 ** 22 },
  sum_axis0: { title: "sum of 4096², axis 0", target: 1, bytes: 4 * 2 ** 24 },
  sum_axis1: { title: "sum of 4096², axis 1", target: 1, bytes: 4 * 2 ** 24 },
  mlp_forward: { title: "MLP forward", target: 2 / 3, flops: mlp },
  mlp_train: { title: "MLP training step", target: 1 / 2, flops: 3 * mlp - 2 * 128 * 784 * 512 },
  conv_56: { title: "conv 3×3 1×56×56×64→64", target: 2 / 3, flops: conv(1, 56, 64, 64) },
  conv_28: { title: "conv 3×3 32×28×28×32→64", target: 2 / 3, flops: conv(32, 28, 32, 64) },
  attention: { title: "attention 8×512×64", target: 1 / 2, flops: 4 * 8 * 512 * 512 * 64 },
  scan: { title: "scan, 10,000 steps", target: 1 / 4, unit: "µs a step", scale: 0.1 },
  sort: { title: "sort 1M", target: 1 / 2 },
  cumsum: { title: "cumsum 1M", target: 1 },
  fft: { title: "FFT 2^18", target: 1 / 3 },
  cholesky: { title: "cholesky 512", target: 1 / 3 },
  svd: { title: "SVD 256", target: 1 / 10 },
  eager: { title: "x + 1 on 4 floats, eager", limit: 0.06, ...MICRO },
  jit: { title: "x + 1 on 4 floats, jit", limitOverEmpty: 0.015, ...MICRO },
  readback: { title: "tiny call and read back", target: 1, ...MICRO },
  exported: { title: "the same, weft exported: no Python", target: 1, ...MICRO },
};

/**
 * The workload of that name.
 * @param {string} name
 */
export function workload(name) {
  const found = WORKLOADS[name];
  if (!found) throw new Error(`no workload ${name}; there are ${Object.keys(WORKLOADS).join(", ")}`);
  return found;
}

/**
 * The workloads that `--only a,b` names, all where it is not given.
 * @param {string | undefined} only
 */
export function chosen(only) {
  const names = only ? only.split(",").map((name) => name.trim()) : Object.keys(WORKLOADS);
  const unknown = names.filter((name) => !(name in WORKLOADS));
  if (unknown.length)
    throw new Error(`no workload ${unknown.join(", ")}; there are ${Object.keys(WORKLOADS).join(", ")}`);
  return names;
}

/**
 * The fastest peer that measured `times` and its time, or null.
 * @param {Times} times
 */
export function best(times) {
  /** @type {{ name: string, ms: number } | null} */
  let found = null;
  for (const name of PEERS) {
    const ms = times[name];
    if (ms !== undefined && (found === null || ms < found.ms)) found = { name, ms };
  }
  return found;
}

/**
 * What is asked of weft: {ratio of weft to the best peer, asked: its text, met: true, false, or null where it can't be
 * said}.
 * @param {string} name
 * @param {Times} times
 * @param {Circumstances} circumstances
 */
export function verdict(name, times, { threads = 1, emptyMs = null } = {}) {
  const { target = 1, limit, limitOverEmpty } = workload(name);
  const peer = best(times);
  const ratio = peer && times.weft !== undefined ? times.weft / peer.ms : null;
  /** @type {(value: number | null | undefined, test: (value: number) => boolean) => boolean | null} */
  const known = (value, test) => (value === null || value === undefined ? null : test(value));
  if (limit !== undefined) return { ratio, asked: `≤ ${limit * 1000} µs`, met: known(times.weft, (ms) => ms <= limit) };
  if (limitOverEmpty !== undefined) {
    const most = emptyMs === null ? null : emptyMs + limitOverEmpty;
    const asked = most === null ? `≤ ${limitOverEmpty * 1000} µs + a call` : `≤ ${(most * 1000).toFixed(1)} µs`;
    return { ratio, asked, met: most === null ? null : known(times.weft, (ms) => ms <= most) };
  }
  const share = threads > 1 ? 1 : target;
  return {
    ratio,
    asked: share === 1 ? "< 1" : `≤ ${share.toFixed(2)}`,
    met: known(ratio, (r) => (share === 1 ? r < 1 : r <= share)),
  };
}

/**
 * Three significant digits, as few characters as that takes.
 * @param {number | null | undefined} value
 */
export function figure(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  if (value >= 100) return value.toFixed(0);
  return value.toPrecision(3);
}

/**
 * @param {Asked} asked
 * @param {number | undefined} ms
 */
function rate({ flops, bytes }, ms) {
  if (ms === undefined) return "";
  return flops ? `${(flops / ms / 1e6).toFixed(1)} GFLOP/s` : bytes ? `${(bytes / ms / 1e6).toFixed(1)} GB/s` : "";
}

/**
 * The table as Markdown. A figure with ! has a problem, named below the table.
 * @param {Results} results
 * @param {Circumstances} circumstances
 */
export function table(results, { threads = 1, emptyMs = null } = {}) {
  const columns = [...PEERS, "weft"];
  const head = [
    "workload",
    "unit",
    ...columns,
    "weft / best peer",
    "asked",
    "met",
    "weft's rate",
    "numpy",
    "weft on XLA",
  ];
  const rows = Object.entries(results).map(([name, { times, problems }]) => {
    const { title, unit = "ms", scale = 1 } = workload(name);
    /** @param {string} who */
    const cell = (who) => {
      const ms = times[who];
      if (ms === undefined) return problems[who] ? "error" : "–";
      return figure(ms * scale) + (problems[who] ? "!" : "");
    };
    const { ratio, asked, met } = verdict(name, times, { threads, emptyMs });
    const mark = met === null ? "–" : met ? "yes" : "no";
    return [
      title,
      unit,
      ...columns.map(cell),
      figure(ratio),
      asked,
      mark,
      rate(workload(name), times.weft),
      cell("numpy"),
      cell("xla"),
    ];
  });
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => [...(row[i] ?? "")].length)));
  /** @type {(text: string, i: number) => string} */
  const pad = (text, i) => (i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0));
  /** @param {string[]} row */
  const line = (row) => `| ${row.map(pad).join(" | ")} |`;
  const rule = `|${widths.map((width, i) => `${"-".repeat(width + 1)}${i === 0 ? "-" : ":"}`).join("|")}|`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

/**
 * Every problem of `results`, a line each.
 * @param {Results} results
 */
export function problems(results) {
  return Object.entries(results).flatMap(([name, { problems }]) =>
    Object.entries(problems).map(([who, message]) => `${who}, ${workload(name).title}: ${message}`),
  );
}
