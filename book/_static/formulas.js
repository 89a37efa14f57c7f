/* Closed forms and numbers in the page, as cost.py, online.py, coalescing.py and units.py have them in Python; no page is
 * needed, so Node tests them. Formulas arrive as trees, ["*", "M", "N"]: nothing is ever evaluated from text, and a
 * page's content security policy need not allow it.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.formulas) return; // JupyterLab: each view of a notebook brings this script along

const SECTOR = 32, WARP = 32, up = (a, b) => Math.ceil(a / b);

/** Sectors of one pass when thread r walks row r (coalescing.thread_per_row_sectors). */
function threadPerRow(rows, cols, size) {
  const pitch = size * cols;
  if (pitch >= SECTOR) return rows * cols;
  const warp = (lanes) => {
    let n = 0;
    for (let i = 0; lanes && i < cols; i++) n += Math.floor(((lanes - 1) * pitch + size * i) / SECTOR) - Math.floor(size * i / SECTOR) + 1;
    return n;
  };
  return Math.floor(rows / WARP) * warp(WARP) + warp(rows % WARP);
}

/** [bytes past a sector's boundary at which a row starts, rows that start so], …: rows 32 apart are alike (coalescing._phases). */
const phasesOf = (rows, cols, size) => Array.from({ length: Math.min(rows, SECTOR) }, (_, first) => [first * cols * size % SECTOR, up(rows - first, SECTOR)]);
/** Sectors of `length` bytes that start `phase` past a boundary and are read in requests of `step` bytes (coalescing._walk). */
function walk(phase, length, step) {
  const full = Math.floor(length / step), rest = length % step;
  return full * up(phase + step, SECTOR) + (rest ? up(phase + rest, SECTOR) : 0);
}
const summed = (terms) => terms.reduce((sum, term) => sum + term, 0);

/** Sectors of one pass when a warp walks a row (coalescing.warp_per_row_sectors). */
const warpPerRow = (rows, cols, size) => summed(phasesOf(rows, cols, size).map(([phase, alike]) => alike * walk(phase, cols * size, WARP * size)));

// A warp walks a row by vectors of 16 bytes where the row starts at a multiple of them, else float by float.
const WIDE = 16, FLOAT = 4;
/** Sectors of such a pass (coalescing.vectors_per_row_sectors). */
const vectorsPerRow = (rows, cols) => summed(phasesOf(rows, cols, FLOAT).map(([phase, alike]) => {
  if (phase % WIDE) return alike * walk(phase, cols * FLOAT, WARP * FLOAT);
  const rest = cols * FLOAT % WIDE;
  return alike * (walk(phase, cols * FLOAT - rest, WARP * WIDE) + (rest ? 1 : 0));
}));
/** How many rows start at a multiple of 16 bytes (coalescing.rows_on_boundary). */
const onBoundary = (rows, cols) => up(rows, [1, 4, 2, 4][cols % 4]);
/** Load requests of such a pass (coalescing.vectors_per_row_requests). */
function vectorRequests(rows, cols) {
  const quick = onBoundary(rows, cols), vectors = Math.floor(cols * FLOAT / WIDE);
  return quick * (up(vectors, WARP) + (cols * FLOAT % WIDE ? 1 : 0)) + (rows - quick) * up(cols, WARP);
}
/** Sectors of a vector that is walked anew with each row, in that row's way (coalescing.shared_vectors_sectors). */
function sharedVectors(rows, cols) {
  const quick = onBoundary(rows, cols), rest = cols * FLOAT % WIDE;
  return quick * (up(cols * FLOAT - rest, SECTOR) + (rest ? 1 : 0)) + (rows - quick) * up(cols * FLOAT, SECTOR);
}

const OPERATORS = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "%": (a, b) => a % b };
// Each with the symbols it is given beside its arguments, as cost.FUNCTIONS has them.
const FUNCTIONS = {
  ceil: [up], min: [Math.min], lg: [(a) => 31 - Math.clz32(a)], S: [threadPerRow, "E"], V: [warpPerRow, "E"],
  V4: [vectorsPerRow], Q4: [vectorRequests], X4: [sharedVectors],
};

/** The number that a tree stands for; `lookup(symbol)` gives what a symbol stands for. */
function evaluate(tree, lookup) {
  if (typeof tree === "number") return tree;
  if (typeof tree === "string") return lookup(tree);
  const [name, ...rest] = tree, values = rest.map((each) => evaluate(each, lookup));
  if (Object.hasOwn(OPERATORS, name)) return OPERATORS[name](...values);
  if (!Object.hasOwn(FUNCTIONS, name)) throw new RangeError(`no function ${name} in a closed form`);
  const [apply, ...given] = FUNCTIONS[name];
  return apply(...values, ...given.map(lookup));
}

/** A function that remembers what it gave for the last arguments it was asked for. */
function remembering(find, most = 64) {
  const known = new Map();
  return (...key) => {
    const name = key.join();
    if (!known.has(name)) {
      if (known.size >= most) known.clear();
      known.set(name, find(...key));
    }
    return known.get(name);
  };
}

const harmonic = remembering((n) => {
  if (n > 100_000) return Math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n);
  let sum = 0;
  for (let k = n; k > 0; k--) sum += 1 / k;
  return sum;
});

/** E[R] on independent continuous data (online.expected_updates). */
function expectedUpdates(rows, cols, threads) {
  const short = Math.floor(cols / threads), longer = cols % threads;
  return rows * (longer * harmonic(short + 1) + (threads - longer) * harmonic(short));
}

/** E[D] of one warp that holds `rows` rows, `threads` threads to a row. */
const divergedOfWarp = remembering((rows, cols, threads) => {
  const wide = Math.min(threads, WARP);
  let total = 0;
  for (let first = 0; first < cols; first += wide) {
    const chance = 1 / (Math.floor(first / threads) + 1), lanes = rows * Math.min(wide, cols - first);
    total += 1 - chance ** lanes - (1 - chance) ** lanes;
  }
  return total;
});
/** E[D] on independent continuous data (online.expected_diverged). */
function expectedDiverged(rows, cols, threads) {
  const together = Math.max(1, Math.floor(WARP / threads)), full = Math.floor(rows / together), tail = rows % together;
  return (full && full * divergedOfWarp(together, cols, threads)) + (tail && divergedOfWarp(tail, cols, threads));
}

/** E[merge_rises] on independent continuous data (online.expected_merge_rises): how often a merge of two threads' parts, halved
 * to one, finds the larger maximum in the second. `threads` is a power of two. */
const expectedMergeRises = remembering((rows, cols, threads, butterfly) => {
  let parts = Array.from({ length: threads }, (_, t) => Math.floor((cols + threads - 1 - t) / threads)), total = 0;
  for (let half = threads >> 1; half; half >>= 1) {
    const others = parts.map((_, t) => parts[t ^ half]), mine = butterfly ? parts : parts.slice(0, half);
    total += summed(mine.map((own, t) => others[t] / Math.max(own + others[t], 1)));
    parts = mine.map((own, t) => own + others[t]);
  }
  return rows * total;
});

/** What the symbols of a kernel's formulas stand for on M × N elements of E bytes (ledger.symbols). R, R_T, R_X, R_Y and D are
 * data: what `found` says they are, else what is expected of independent scores. */
function symbols(kernel, M, N, E, found = {}) {
  const known = {
    M: () => M, N: () => N, E: () => E, W: () => WARP, B: () => kernel.block, P: () => kernel.block / kernel.threads,
    T: () => kernel.threads, R: () => found.R ?? expectedUpdates(M, N, 1), R_T: () => found.R_T ?? expectedUpdates(M, N, kernel.threads),
    D: () => found.D ?? expectedDiverged(M, N, kernel.threads),
    R_X: () => found.R_X ?? expectedMergeRises(M, N, kernel.threads, true), R_Y: () => found.R_Y ?? expectedMergeRises(M, N, kernel.threads, false),
  };
  return (symbol) => {
    if (!Object.hasOwn(known, symbol)) throw new RangeError(`no symbol ${symbol} in a closed form`);
    return known[symbol]();
  };
}

const ARITHMETIC = ["add", "sub", "mul", "div"], ASKED = ["load_bytes", "store_bytes"], MOVED = ["load_sectors", "store_sectors"];
const total = (counts, fields) => fields.reduce((sum, field) => sum + (counts[field] ?? 0), 0);

/** Counts of phases in closed form, field → number, with the sums that `Counts` and `roofline.moved_bytes` make. */
function counts(phases, lookup) {
  const out = {};
  for (const [, formulas] of phases)
    for (const field in formulas) out[field] = (out[field] ?? 0) + evaluate(formulas[field], lookup);
  const flops = total(out, ARITHMETIC), bytes = total(out, ASKED);
  return { ...out, flops, bytes, moved: SECTOR * total(out, MOVED), intensity: bytes ? flops / bytes : null };
}

/** Whether the formulas of phases hold a symbol or call a function of that name. */
const holds = (phases, name) => JSON.stringify(phases).includes(`"${name}"`);

/** Least time [s] to move `bytes` and do `flops`, the two overlapped (roofline.floor_time). */
const floorTime = (bytes, bandwidth, flops = 0, peak = Infinity) => Math.max(bytes / bandwidth, flops / peak);

// ---- numbers as a reader sees them: units.py ----
const SPACE = "\u202f", MISSING = "not measured yet";
const PREFIXES = [["n", 1e-9], ["µ", 1e-6], ["m", 1e-3], ["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];

/** To `digits` significant digits; ties go to the even digit, as in Python. */
function rounded(value, digits) {
  const near = Number(value.toPrecision(digits)), [mantissa, exponent] = Math.abs(value).toExponential(60).split("e");
  const figures = mantissa.replace(".", "");
  if (!/^50*$/.test(figures.slice(digits)) || figures[digits - 1] % 2) return near;
  return Math.sign(value) * Number(`${figures[0]}.${figures.slice(1, digits)}e${exponent}`);
}
function number(value, digits = 3) {
  if (value === null || value === undefined) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "undefined";
  let text;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) text = value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  else {
    const near = rounded(value, digits);
    if (Math.abs(near) < 1e-4 || Math.abs(near) >= 1e15) {
      const [mantissa, exponent] = near.toExponential(digits - 1).split("e");
      const raised = String(Number(exponent)).replace(/[-\d]/g, (c) => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]);
      return `${mantissa}·10${raised}`.replace("-", "−");
    }
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(near))));
    text = near.toLocaleString("en-US", { maximumFractionDigits: Math.min(decimals, 20) });
  }
  return text.replaceAll(",", SPACE).replace(/^-0$/, "0").replace("-", "−");
}
function scaled(value, base, digits = 3) {
  if (value === null || value === undefined) return MISSING;
  const fitting = PREFIXES.filter(([, size]) => Math.abs(value) >= size * 0.9995);
  let [prefix, size] = value && fitting.length ? fitting.at(-1) : base === "s" ? PREFIXES[0] : ["", 1];
  if (base === "s" ? size > 1 : size < 1) [prefix, size] = ["", 1];
  return `${number(value / size, digits)}${SPACE}${prefix}${base}`;
}
const times = (value) => value === null || value === undefined ? MISSING : `${number(value)}×`;

/** A prediction beside what it was about, in words: whole numbers that meet say so, the rest by their ratio. */
function judged(said, truth) {
  if (truth === null || truth === undefined) return MISSING;
  if (said === truth) return "exactly";
  if (truth === 0 || said === 0 || said < 0 !== truth < 0) return `${number(Math.abs(said - truth))} too ${said > truth ? "high" : "low"}`;
  const ratio = said / truth, off = Math.max(ratio, 1 / ratio);
  if (off < 1.05) return `within ${number(100 * (off - 1), off < 1.01 ? 1 : 2)}%`;
  return `${times(off)} too ${said > truth ? "high" : "low"}`;
}

Lab.formulas = { evaluate, symbols, counts, holds, floorTime, number, scaled, times, judged, SPACE, MISSING };
})();
