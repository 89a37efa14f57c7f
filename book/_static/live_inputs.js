/* What a reader gives a bench: a family's inputs by name, typed or drawn, and the picture of a row above the results.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.given) return;

/** Standard normal numbers, the same ones for the same seed (mulberry32, Box–Muller). */
function normals(seed = 1) {
  let state = seed >>> 0;
  const uniform = () => {
    let t = state = state + 0x6d2b79f5 | 0;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
const ROWS = {
  "normal": (row) => row,
  "rising": (row) => row.sort((a, b) => a - b),
  "falling": (row) => row.sort((a, b) => b - a),
  "all equal": (row) => row.map(() => -0.7),
  "widely spread": (row) => row.map((v) => 1000 * v),
  "huge": (row) => row.map((v) => 3.4e38 * Math.sign(v)),
  "every third masked (−∞)": (row) => row.map((v, i) => i % 3 ? v : -Infinity),
  "first half masked (−∞)": (row) => row.map((v, i) => 2 * i < row.length ? -Infinity : v),
  "all masked (−∞)": (row) => row.map(() => -Infinity),
};
const several = (next, n) => Float32Array.from({ length: n }, next);
/** A matrix (rows × cols), each row changed by `change`. */
function matrix(next, rows, cols, change) {
  const x = new Float32Array(rows * cols);
  for (let r = 0; r < rows; r++) x.set(change(several(next, cols)), r * cols);
  return x;
}
const rowwise = ([name, change]) => [name, (next, rows, cols) => [matrix(next, rows, cols, change)]];
const withVector = (change, vector = several) => (next, rows, cols) => [matrix(next, rows, cols, change), Float32Array.from(vector(next, cols))];
const cancelling = (row) => row.map((v, i) => i % 2 ? -1e4 * row[i - 1] + 0.01 * v : 1e4 * v);

const SCORES = { kind: "Scores", one: "Score", row: "Row", picture: "scores x", low: ["−∞, a mask", "M masks"], named: Object.fromEntries(Object.entries(ROWS).map(rowwise)) };
/** What a reader may give each family of kernels: `named` makes its input arrays, (next normal number, rows, cols) → arrays;
 * `kind` is what the first one holds, `row` one of its rows, `low` what −∞ is there and what the key M does, and `allowed` how far from the exact answer a result may be. */
const given = {
  softmax: {
    title: "Softmax of each row", ...SCORES,
    allowed: ({ operation, sum }) => `what float32 must lose: ${operation} roundings, as many more as x lies below the maximum, and ${sum}·√N for the sum (N of a thread where that is more)`,
  },
  log_softmax: {
    title: "Log-softmax of each row", ...SCORES,
    allowed: ({ operation, sum }) => `what float32 must lose: ${operation} roundings of 1, and ${sum}·√N for the sum (N of a thread where that is more), as many as x lies below the maximum, and three of the result`,
  },
  gemv: {
    title: "Matrix times vector", kind: "Entries", one: "Entry", row: "Row of A", picture: "row 0 of A", low: ["−∞", "M puts −∞"],
    named: {
      "normal": withVector(ROWS.normal),
      "all equal": withVector(ROWS["all equal"], (next, n) => Array(n).fill(0.3)),
      "widely spread": withVector(ROWS["widely spread"]),
      "large ones that nearly cancel": withVector(cancelling, (next, n) => Array(n).fill(1)),
      "x picks the last column": withVector(ROWS.normal, (next, n) => Array.from({ length: n }, (_, i) => i === n - 1 ? 1 : 0)),
      "an infinity in each row": withVector((row) => row.map((v, i) => i ? v : Infinity)),
    },
    allowed: ({ operation, sum }) => `what float32 must lose: ${operation} + ${sum}·√N roundings of the sum of all |A·x| of the row (N of a thread where that is more)`,
  },
};
/** The input arrays of a family by name; where none of its names is meant, null. */
const made = (family, name, rows, cols) => given[family].named[name]?.(normals(), rows, cols) ?? null;
/** Its input arrays from one row, which all rows repeat, and a vector, which is repeated until it is long enough. */
const fromRow = (family, row, vector, rows) => [
  matrix(() => 0, rows, row.length, () => row),
  ...family.inputs.slice(1).map(() => Float32Array.from(row, (_, i) => vector[i % vector.length])),
];

/** The numbers of a typed row; `lost` are words of it that no float holds and that are infinite then, `sunk` those that are zero. */
function typed(text) {
  const words = text.replace(/[−–]/g, "-").trim().split(/[\s,;]+/).filter(Boolean);
  const endless = (word) => /^[+-]?(inf|infinity|∞)$/i.test(word);
  const row = words.map((word) => endless(word) ? (word[0] === "-" ? -Infinity : Infinity) : /^nan$/i.test(word) ? NaN : Number(word));
  const wrong = row.findIndex((v, i) => Number.isNaN(v) && !/^nan$/i.test(words[i]));
  if (wrong >= 0) throw new RangeError(`Not a number: “${words[wrong]}”; write numbers with spaces between, also inf, -inf or nan`);
  if (!row.length) throw new RangeError("type at least one number");
  const become = (value, written) => words.filter((word, i) => Math.abs(Math.fround(row[i])) === value && written(word));
  return Object.assign(row, { lost: become(Infinity, (word) => !endless(word)), sunk: become(0, (word) => /[1-9]/.test(word.split(/e/i)[0])) });
}
const written = (row) => Array.from(row, (v) => v === -Infinity ? "-inf" : v === Infinity ? "inf" : Number.isNaN(v) ? "nan" : `${Number(v.toPrecision(6))}`).join(" ");

const SHOWN = 64, TOP = 18, TALL = 132, GAP = 38, LOW = 96, REACH = 4;
/** The picture of one row: numbers that can be drawn, above results with the exact answer as a line, one for each column
 * or for each row of the matrix.
 *
 * `onDraw(row)` gets the new row. By pointer: drag, below the box for −∞. By keys: ← → choose a column, ↑ ↓ change it,
 * M or Delete makes it −∞. `room` is the width that it will have in the page: asking for it while what stands around is new
 * would make the browser lay out the page once more.
 */
function plot(art, look, onDraw, room = 0) {
  const { el } = Lab, { brief, exactly, safe } = Lab.art;
  const picture = el("div"), grip = el("div", { className: "lab-grip" }); // a finger scrolls the page everywhere but on the scores
  const pad = el("div", { className: "lab-pad", tabIndex: 0 }, picture, grip), hint = el("p", { className: "lab-hint" });
  pad.setAttribute("role", "slider");
  const host = el("div", { className: "lab-plot" }, pad, hint);
  let x = [], y = null, want = null, at = 0, wide = 0, whole = 0, from = null, open = true, words = given.softmax, each = true;

  const shape = () => {
    const n = Math.min(x.length, SHOWN), pitch = Math.min(88, (wide - 16) / n);
    const largest = Math.max(REACH, ...Array.from(x.slice(0, n), Math.abs).filter(Number.isFinite));
    return { n, pitch, largest, left: 8, zero: TOP + TALL / 2, unit: (TALL / 2 - 4) / largest };
  };
  function draw() {
    wide = Math.max(240, room || 640);
    const { n, pitch, left, zero, unit, largest } = shape(), roomy = pitch >= 44, floor = TOP + TALL, base = floor + GAP + LOW, id = `lab-plot-${pad.id ||= Lab.fresh("pad")}`;
    const bar = Math.max(1, pitch * 0.7), mid = (i) => left + pitch * (i + 0.5), out = [];
    out.push(art.rect(left, TOP, pitch * n, TALL, "none", look.line), art.text(left, TOP - 5, words.picture, { size: 13, muted: true }));
    for (let i = 0; i < n; i++) {
      const v = x[i], h = Math.abs(v) * unit, left = mid(i) - bar / 2;
      if (Number.isFinite(v)) out.push(art.rect(left, v < 0 ? zero : zero - h, bar, Math.max(h, 1), look.score));
      else out.push(art.rect(left, v > 0 ? TOP : zero, bar, TALL / 2, `url(#${id})`, look.line));
      if (roomy) out.push(art.text(mid(i), v < 0 ? zero - 6 : zero + 16, brief(v), { anchor: "middle", size: 13 }));
    }
    out.push(`<path d="M${left} ${zero}h${pitch * n}" stroke="currentColor"/>`);
    if (open) out.push(art.rect(left + pitch * at + 1, TOP + 1, pitch - 2, TALL - 2, "none", "currentColor", ' class="lab-cursor" stroke-width="2"'));
    const finite = [...(y ?? []), ...(want ?? [])].filter(Number.isFinite), [low, top] = finite.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 1e-30]);
    const scale = (LOW - 4) / (top - low), axis = base + low * scale, m = each ? n : Math.min(SHOWN, y?.length ?? n), space = each ? pitch : Math.min(88, (wide - 16) / m);
    const thick = Math.max(1, space * 0.7), middle = (i) => left + space * (i + 0.5), wordy = space >= 44, what = each ? "results y" : wide < 480 ? "y, for each row" : "results y, one for each row";
    out.push(art.text(left, base - LOW - 7, !y ? `${what}: after the run` : wide < 480 ? `${what}; lines: exact` : `${what}, and the exact answer as lines`, { size: 13, muted: true }));
    out.push(art.text(wide - 8, base - LOW - 7, finite.length ? `highest: ${exactly(Math.max(...finite), 3)}` : "", { size: 13, muted: true, anchor: "end" }));
    for (let i = 0; y && i < Math.min(m, y.length); i++) {
      const right = Object.is(y[i], want[i]) || Math.abs(y[i] - want[i]) <= 1e-3 * Math.max(top, -low), h = y[i] * scale;
      const tall = Math.max(Math.min(h, axis - base + LOW), axis - base);
      if (Number.isFinite(h)) out.push(art.rect(middle(i) - thick / 2, axis - Math.max(tall, 0), thick, Math.abs(tall), right ? look.live : look.lost));
      else if (right && !Number.isNaN(h)) out.push(art.rect(middle(i) - thick / 2, h < 0 ? axis : base - LOW, thick, Math.max(h < 0 ? base - axis : axis - base + LOW, 6), `url(#${id})`, look.line));
      else out.push(art.text(middle(i), base - 6, wordy ? brief(y[i]) : "×", { anchor: "middle", size: 13 }));
      if (Number.isFinite(want[i])) out.push(`<path d="M${middle(i) - space * 0.45} ${axis - want[i] * scale}h${space * 0.9}" stroke="currentColor" stroke-width="2"/>`);
      if (wordy && (Number.isFinite(h) || right && !Number.isNaN(h))) out.push(art.text(middle(i), base + 16, exactly(y[i], 3), { anchor: "middle", size: 13 }));
    }
    out.push(`<path d="M${left} ${axis}h${space * m}" stroke="currentColor"/>`);
    const hatch = `<defs><pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="1.5" opacity=".55"/></pattern></defs>`;
    grip.style.height = `${floor + 6}px`;
    picture.innerHTML = `<svg width="${wide}" height="${base + 22}" viewBox="0 0 ${wide} ${base + 22}" aria-hidden="true" font-family="sans-serif" fill="currentColor">${hatch}${out.join("")}</svg>`;
    pad.classList.toggle("lab-open", open);
    pad.setAttribute("aria-valuemin", -largest);
    pad.setAttribute("aria-valuemax", largest);
    pad.setAttribute("aria-valuenow", Number.isFinite(x[at]) ? x[at] : x[at] > 0 ? largest : -largest);
    pad.setAttribute("aria-valuetext", `column ${at + 1} of ${x.length}: ${brief(x[at])}${y && each ? `, result ${brief(y[at])}` : ""}`);
    pad.setAttribute("aria-label", `${words.one} of a column`);
    hint.textContent = `${whole > SHOWN ? `The first ${SHOWN} of ${whole} columns. ` : ""}${open ? `Draw: drag the bars; drag below their box for ${words.low[0]}. Keys: ← → column, ↑ ↓ value, ${words.low[1]}.` : ""}`;
  }
  const put = (column, value) => {
    x[at = Math.min(Math.max(column, 0), x.length - 1)] = value;
  };
  const drawn = () => (draw(), onDraw(x));
  function point(event) {
    const { n, pitch, left, zero, unit } = shape(), { left: x0, top: y0 } = pad.getBoundingClientRect();
    const column = Math.min(n - 1, Math.max(0, Math.floor((event.clientX - x0 + pad.scrollLeft - left) / pitch))), down = event.clientY - y0;
    return [column, down > TOP + TALL + 6 ? -Infinity : Math.round(Math.min(REACH, Math.max(-REACH, (zero - down) / unit)) * 20) / 20];
  }
  pad.onpointerdown = (event) => {
    if (!open || event.button || event.clientY - pad.getBoundingClientRect().top > TOP + TALL + 6) return;
    pad.setPointerCapture(event.pointerId);
    put(...(from = point(event)));
    drawn();
    event.preventDefault();
    pad.focus({ preventScroll: true });
  };
  pad.onpointermove = (event) => {
    if (!from) return;
    const [column, value] = point(event), [old] = from, step = Math.sign(column - old) || 1; // a quick stroke skips columns
    for (let i = old; i !== column; i += step) put(i + step, value);
    put(column, value);
    from = [column, value];
    drawn();
  };
  pad.onpointerup = pad.onpointercancel = () => (from = null);
  pad.onkeydown = (event) => {
    if (!open || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: x.length - 1 }[event.key], by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (move !== undefined) at = Math.min(Math.max(move, 0), Math.min(x.length, SHOWN) - 1), draw();
    else if (by) put(at, Math.round(((Number.isFinite(x[at]) ? x[at] : -REACH) + by * (event.shiftKey ? 0.1 : 0.5)) * 20) / 20), drawn();
    else if (/^(m|Delete|Backspace)$/i.test(event.key)) put(at, -Infinity), drawn();
    else return;
    event.preventDefault();
  };
  new ResizeObserver(() => {
    if (!host.clientWidth || host.clientWidth === room) return;
    room = host.clientWidth;
    if (x.length) draw();
  }).observe(host);
  return {
    host,
    /** Shows one row of a family's input; `canDraw` says whether it may be changed here. Results come one `each` column or row. */
    show(family, row, results, exact, canDraw) {
      [whole, x, y, want, open] = [row.length, Array.from(row.subarray ? row.subarray(0, SHOWN) : row.slice(0, SHOWN)), results?.subarray(0, SHOWN), exact?.subarray(0, SHOWN), canDraw];
      [words, each] = [given[family.name], family.extents.y.includes("cols")];
      at = Math.min(at, x.length - 1);
      host.classList.remove("lab-stale");
      draw();
    },
    /** What stands in the picture is of an older input than the one that is refused: no results, and faint. */
    stale() {
      y = want = null;
      host.classList.add("lab-stale");
      if (x.length) draw();
    },
  };
}
plot.most = SHOWN;
Object.assign(Lab, { given, made, fromRow, typed, written, plot });
})();
