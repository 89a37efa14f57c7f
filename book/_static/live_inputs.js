/* What a reader gives a bench: elements of the page, scores by name, typed or drawn, and the picture of a row's scores
 * above its results.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.scores) return;

/** An element with properties (or attributes, where it has no such property) and children. */
Lab.el = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};
let names = 0;
Lab.labelled = (text, control) => {
  control.id = `lab-bench-${++names}`;
  return Lab.el("span", { className: "lab-field" }, Lab.el("label", { htmlFor: control.id }, text), control);
};

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
const SCORES = {
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
/** A matrix (rows × cols) of the named scores. */
function scores(name, rows, cols) {
  const next = normals(), x = new Float32Array(rows * cols);
  for (let r = 0; r < rows; r++) x.set(SCORES[name](Float32Array.from({ length: cols }, next)), r * cols);
  return x;
}
scores.names = Object.keys(SCORES);

/** The numbers of a typed row. */
function typed(text) {
  const words = text.replace(/[−–]/g, "-").trim().split(/[\s,;]+/).filter(Boolean);
  const row = words.map((word) => /^[+-]?(inf|infinity|∞)$/i.test(word) ? (word[0] === "-" ? -Infinity : Infinity) : /^nan$/i.test(word) ? NaN : Number(word));
  const wrong = row.findIndex((v, i) => Number.isNaN(v) && !/^nan$/i.test(words[i]));
  if (wrong >= 0) throw new RangeError(`“${words[wrong]}” is no number; write numbers with spaces between, also inf, -inf or nan`);
  if (!row.length) throw new RangeError("type at least one number");
  return row;
}
const written = (row) => Array.from(row, (v) => v === -Infinity ? "-inf" : v === Infinity ? "inf" : Number.isNaN(v) ? "nan" : `${Number(v.toPrecision(6))}`).join(" ");

const SHOWN = 64, TOP = 18, TALL = 132, GAP = 38, LOW = 96, REACH = 4;
/** The picture of one row: scores that can be drawn, above results with the exact answer as a line.
 *
 * `onDraw(row)` gets the new scores. By pointer: drag, below the box masks. By keys: ← → choose a column, ↑ ↓ change it,
 * M or Delete masks it.
 */
function plot(art, look, onDraw) {
  const { el } = Lab, { brief, safe } = Lab.art;
  const picture = el("div"), grip = el("div", { className: "lab-grip" }); // a finger scrolls the page everywhere but on the scores
  const pad = el("div", { className: "lab-pad", tabIndex: 0 }, picture, grip), hint = el("p", { className: "lab-hint" });
  pad.setAttribute("role", "slider");
  pad.setAttribute("aria-label", "Score of a column");
  const host = el("div", { className: "lab-plot" }, pad, hint);
  let x = [], y = null, want = null, at = 0, wide = 0, whole = 0, from = null, open = true;

  const shape = () => {
    const n = Math.min(x.length, SHOWN), pitch = Math.min(88, (wide - 16) / n);
    const largest = Math.max(REACH, ...Array.from(x.slice(0, n), Math.abs).filter(Number.isFinite));
    return { n, pitch, largest, left: 8, zero: TOP + TALL / 2, unit: (TALL / 2 - 4) / largest };
  };
  function draw() {
    wide = Math.max(240, host.clientWidth || 640);
    const { n, pitch, left, zero, unit, largest } = shape(), roomy = pitch >= 44, floor = TOP + TALL, base = floor + GAP + LOW, id = `lab-plot-${pad.id ||= `p${++names}`}`;
    const bar = Math.max(1, pitch * 0.7), mid = (i) => left + pitch * (i + 0.5), out = [];
    out.push(art.rect(left, TOP, pitch * n, TALL, "none", look.line), art.text(left, TOP - 5, "scores x", { size: 13, muted: true }));
    for (let i = 0; i < n; i++) {
      const v = x[i], h = Math.abs(v) * unit, left = mid(i) - bar / 2;
      if (Number.isFinite(v)) out.push(art.rect(left, v < 0 ? zero : zero - h, bar, Math.max(h, 1), look.score));
      else out.push(art.rect(left, v > 0 ? TOP : zero, bar, TALL / 2, `url(#${id})`, look.line));
      if (roomy) out.push(art.text(mid(i), v < 0 ? zero - 6 : zero + 16, brief(v), { anchor: "middle", size: 13 }));
    }
    out.push(`<path d="M${left} ${zero}h${pitch * n}" stroke="currentColor"/>`);
    if (open) out.push(art.rect(left + pitch * at + 1, TOP + 1, pitch - 2, TALL - 2, "none", "currentColor", ' class="lab-cursor" stroke-width="2"'));
    const finite = [...(y ?? []), ...(want ?? [])].filter(Number.isFinite), top = finite.reduce((most, v) => Math.max(most, v), 1e-30), scale = (LOW - 4) / top;
    out.push(art.text(left, base - LOW - 7, !y ? "results y: after the run" : wide < 480 ? "results y; lines: exact" : "results y, and the exact answer as lines", { size: 13, muted: true }));
    out.push(art.text(wide - 8, base - LOW - 7, finite.length ? `highest: ${top.toPrecision(3)}` : "", { size: 13, muted: true, anchor: "end" }));
    for (let i = 0; y && i < Math.min(n, y.length); i++) {
      const off = Number.isNaN(want[i]) !== Number.isNaN(y[i]) || Math.abs(y[i] - want[i]) > 1e-3 * top, h = y[i] * scale;
      if (Number.isFinite(h)) out.push(art.rect(mid(i) - bar / 2, base - Math.min(h, LOW), bar, Math.min(h, LOW), off ? look.lost : look.live));
      else out.push(art.text(mid(i), base - 6, roomy ? "NaN" : "×", { anchor: "middle", size: 13 }));
      if (Number.isFinite(want[i])) out.push(`<path d="M${mid(i) - pitch * 0.45} ${base - want[i] * scale}h${pitch * 0.9}" stroke="currentColor" stroke-width="2"/>`);
      if (roomy && Number.isFinite(h)) out.push(art.text(mid(i), base + 16, y[i].toPrecision(3), { anchor: "middle", size: 13 }));
    }
    out.push(`<path d="M${left} ${base}h${pitch * n}" stroke="currentColor"/>`);
    const hatch = `<defs><pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="1.5" opacity=".55"/></pattern></defs>`;
    grip.style.height = `${floor + 6}px`;
    picture.innerHTML = `<svg width="${wide}" height="${base + 22}" viewBox="0 0 ${wide} ${base + 22}" aria-hidden="true" font-family="sans-serif" fill="currentColor">${hatch}${out.join("")}</svg>`;
    pad.classList.toggle("lab-open", open);
    pad.setAttribute("aria-valuemin", -largest);
    pad.setAttribute("aria-valuemax", largest);
    pad.setAttribute("aria-valuenow", Number.isFinite(x[at]) ? x[at] : x[at] > 0 ? largest : -largest);
    pad.setAttribute("aria-valuetext", `column ${at + 1} of ${x.length}: ${brief(x[at])}${y ? `, result ${brief(y[at])}` : ""}`);
    hint.textContent = `${whole > SHOWN ? `The first ${SHOWN} of ${whole} columns. ` : ""}${open ? "Draw: drag the bars; drag below their box to mask (−∞). Keys: ← → column, ↑ ↓ value, M masks." : ""}`;
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
  new ResizeObserver(() => x.length && host.clientWidth && host.clientWidth !== wide && draw()).observe(host);
  return {
    host,
    /** Shows one row; `canDraw` says whether it may be changed here. */
    show(row, results, exact, canDraw) {
      [whole, x, y, want, open] = [row.length, Array.from(row.subarray ? row.subarray(0, SHOWN) : row.slice(0, SHOWN)), results?.subarray(0, SHOWN), exact?.subarray(0, SHOWN), canDraw];
      at = Math.min(at, x.length - 1);
      draw();
    },
  };
}
plot.most = SHOWN;
Object.assign(Lab, { scores, typed, written, plot });
})();
