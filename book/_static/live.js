/* The kernels alive in the page: a driver for the WebAssembly module and one bench that shows what it did.
 *
 * `core` knows no page: it unpacks the module, launches kernels, reads the records that the emulator's headers lay out
 * (the same ones that softmax_lab/emulator/report.py and trace.py read), and evaluates closed forms. It is one
 * function, so that a worker can be made from its text and Node can test it.
 */
(() => {
"use strict";

function core() {
  const INPUT_MAGIC = 0x31756d652d787866n, PAGE = 4096, MOST_ARGUMENTS = 32, HEAD = 20, LOWEST = -3.4028234663852886e38;
  const NO_BUFFER = 2 ** 32 - 1, ANOTHER_BLOCK = 2 ** 32 - 2, VARIABLES = 2 ** 30, GLOBAL = 1, SHARED = 2;
  const f64 = new Float64Array(1), f32 = new Float32Array(1);

  /** The module file's text: base64 of gzip of a length, a description in JSON, and the WebAssembly. */
  async function unpack(base64) {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = new DataView(bytes.buffer).getUint32(0, true);
    const info = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    return { info, module: await WebAssembly.compile(bytes.subarray(4 + size)) };
  }

  /** A machine for the kernels of an unpacked module: `launch` runs one and says what it did. */
  function machine({ info, module }) {
    let exports = null, text = "";
    const fresh = () => {
      const wasi = new Proxy({
        fd_write(file, vectors, count, written) {
          const view = new DataView(exports.memory.buffer);
          let total = 0;
          for (let i = 0; i < count; i++) {
            const at = view.getUint32(vectors + 8 * i, true), size = view.getUint32(vectors + 8 * i + 4, true);
            text += new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, size));
            total += size;
          }
          view.setUint32(written, total, true);
          return 0;
        },
      }, { get: (own, name) => own[name] ?? (() => 8) });
      exports = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi }).exports;
      exports._initialize?.();
    };
    const place = (site) => {
      const [file, line] = info.sites[site] ?? [-1, 0];
      return file < 0 ? ["?", 0] : [info.files[file], line];
    };

    /** `args` are Float32Arrays (inputs), {out: elements} and integers, in the kernel's order. */
    function launch(kernel, grid, block, args, { shared = 0, group = 1, sanitize = true, trace = null, steps = 1024 } = {}) {
      if (!exports) fresh();
      text = "";
      let at = PAGE * Math.ceil(8 * (HEAD + 5 * MOST_ARGUMENTS) / PAGE);
      const arrays = [], records = args.map((argument) => {
        if (typeof argument === "number") return [0, 8, argument, 0, 0];
        const bytes = 4 * (argument.out ?? argument.length), given = argument.out === undefined, here = at;
        arrays.push({ at: here, bytes, data: given ? argument : null });
        at += PAGE * Math.ceil((bytes + 1) / PAGE);
        return [1, bytes, here, 4, given ? 1 : 0];
      });
      const room = exports.emu_page_room(at);
      const words = new BigInt64Array(exports.memory.buffer, room, HEAD + 5 * MOST_ARGUMENTS);
      const big = [...grid, ...block, shared, group, 1, sanitize ? 1 : 0, trace ? trace[0] : -1, trace ? trace[1] : 0,
        trace ? steps : 0, 0, Number.MAX_SAFE_INTEGER, records.length, ...records.flat()];
      words.set([INPUT_MAGIC, 0n, 0n, BigInt(kernel), ...big.map(BigInt)]);
      for (const { at: here, bytes, data } of arrays) {
        if (data) new Float32Array(exports.memory.buffer, room + here, bytes / 4).set(data);
        else new Uint8Array(exports.memory.buffer, room + here, bytes).fill(255);
      }
      let answer;
      const start = performance.now();
      try {
        answer = exports.emu_page_run();
      } catch (trap) {
        const why = crash(trap);
        exports = null;
        throw why;
      }
      const ms = performance.now() - start;
      return results(answer, info.parameters[kernel], args, arrays, ms);
    }

    function crash(trap) {
      const [trouble, inside, bx, by, bz, tx, ty, tz] = new Uint32Array(exports.memory.buffer, exports.emu_page_crash(), 8);
      const what = ["invalid operation", "out of memory", "stack overflow: a thread has 6 kB here for its local arrays and calls"];
      const where = inside ? ` in block (${bx},${by},${bz}), thread (${tx},${ty},${tz})` : "";
      return new Error(`${what[trouble]}${where}${trouble ? "" : ` (${trap.message})`}`);
    }

    function results(at, parameters, args, arrays, ms) {
      const memory = exports.memory.buffer, view = new DataView(memory);
      const u64 = (where) => Number(view.getBigUint64(where, true));
      if (u64(at) === 1) throw new RangeError("no such launch: a block has 1 to 1024 threads and at most 232448 bytes of shared memory");
      const table = (k, read) => {
        const where = at + 16 + 24 * k, count = u64(where), each = u64(where + 8), data = u64(where + 16);
        return Array.from({ length: count }, (_, i) => read(data + each * i));
      };
      const numbers = (names) => (where) => Object.fromEntries(names.map((name, i) => [name, u64(where + 8 * i)]));
      const totals = table(0, u64), unwritten = table(1, u64);
      const site = numbers(["site", "space", "write", "size", "requests", "lanes", "sectors", "useful_bytes", "wavefronts", "taken"]);
      const inOrder = arrays.map((_, k) => k), names = args.map((a, i) => [a, i]).filter(([a]) => typeof a !== "number")
        .map(([, i]) => parameters[i] ?? `argument ${i}`);
      const named = (buffer) => names[buffer] ?? info.variables[buffer - VARIABLES] ?? "dynamic shared memory";
      const fault = (where) => {
        const row = numbers(["kind", "site", "count", "size", "write", "buffer", "other"])(where);
        const offset = Number(view.getBigInt64(where + 56, true)), triple = (o) => [0, 8, 16].map((i) => u64(where + o + i));
        const [file, line] = place(row.site), kind = info.kinds[row.kind];
        return say({ kind, file, line, block: triple(64), thread: triple(88), write: !!row.write, size: row.size, count: row.count,
          detail: detail(kind, offset, row, row.buffer === NO_BUFFER ? "" : named(row.buffer)) });
      };
      const where = u64(at + 16 + 144), out = new BigUint64Array(memory, at + 168, where);
      return {
        ms, aborted: u64(at) === 2, printed: text,
        counters: Object.fromEntries(info.counters.map((name, i) => [name, totals[i]])),
        unwritten: inOrder.map((k) => unwritten[k]),
        outputs: arrays.map((a, k) => a.data ? null : new Float32Array(memory.slice(Number(out[k]), Number(out[k]) + a.bytes)))
          .filter(Boolean),
        sites: merged([
          ...table(2, site).map((s) => ({ ...s, op: s.write ? "store" : "load", space: s.space === SHARED ? "shared" : "global", place: place(s.site), taken: 0, diverged: 0 })),
          ...table(3, site).map((s) => ({ ...s, op: "branch", space: "", size: 0, taken: s.taken, diverged: s.wavefronts, wavefronts: 0,
            place: [info.files[s.site >> 20], s.site & 0xfffff] })),
        ]),
        faults: table(4, fault),
        steps: table(5, (p) => step(view, p, named)),
      };
    }

    function merged(sites) {
      const found = new Map();
      for (const { op, space, size, place: [file, line], requests, lanes, sectors, useful_bytes, wavefronts, taken, diverged } of sites) {
        const key = [file, line, op, space, size].join();
        const sums = { requests, lanes, sectors, useful_bytes, wavefronts, taken, diverged };
        const before = found.get(key);
        if (before) for (const name in sums) before[name] += sums[name];
        else found.set(key, { op, file, line, space, size, ...sums });
      }
      const text = (s) => [s.op, s.space].join();
      return [...found.values()].sort((a, b) => info.files.indexOf(a.file) - info.files.indexOf(b.file) || a.line - b.line
        || (text(a) < text(b) ? -1 : text(a) > text(b)) || a.size - b.size);
    }

    function step(view, p, named) {
      const [op, space, type, size, mask, site, buffer, sectors, wavefronts, argument] = Array.from({ length: 10 }, (_, i) => view.getUint32(p + 4 * i, true));
      const name = info.ops[op], moves = name !== "barrier" && name !== "warp barrier", [file, line] = place(site);
      const active = Array.from({ length: 32 }, (_, lane) => moves && !!(mask >>> lane & 1));
      const values = (from) => active.map((on, lane) => on ? value(view, p + from + 16 * lane, type, Math.min(size, 16)) : null);
      return { op: name, file, line, mask, space: { [GLOBAL]: "global", [SHARED]: "shared" }[space] ?? "", size, sectors, wavefronts, argument,
        array: ["load", "store", "atomic"].includes(name) ? named(buffer) : "",
        address: active.map((on, lane) => on ? Number(view.getBigInt64(p + 40 + 8 * lane, true)) : null),
        before: values(296), after: values(808) };
    }
    return { info, launch };
  }

  // How a value is read, in the order of `Type` in the emulator's state.h.
  const KINDS = [
    [4, (v, p) => v.getUint32(p, true)], [2, (v, p) => half(v.getUint16(p, true))],
    [2, (v, p) => { const w = new DataView(new ArrayBuffer(4)); w.setUint16(2, v.getUint16(p, true), true); return w.getFloat32(0, true); }],
    [4, (v, p) => v.getFloat32(p, true)], [8, (v, p) => v.getFloat64(p, true)], [4, (v, p) => v.getInt32(p, true)],
  ];
  function half(bits) {
    const sign = bits >> 15 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
  }
  function value(view, p, type, size) {
    let [each, read] = KINDS[type];
    if (size % each) [each, read] = [1, (v, q) => v.getUint8(q)];
    const all = Array.from({ length: size / each }, (_, i) => read(view, p + each * i));
    return all.length === 1 ? all[0] : all;
  }

  /** A fault with the sentence that report.py makes of it. */
  function say(f) {
    const access = f.size ? ` (${f.write ? "write" : "read"} of ${f.size} bytes)` : "", triple = (t) => `(${t.join(",")})`;
    f.text = `${f.kind}${access} at ${f.file}:${f.line}, block ${triple(f.block)}, thread ${triple(f.thread)}`
      + (f.detail ? `; ${f.detail}` : "") + (f.count > 1 ? `, ${f.count} times` : "");
    return f;
  }
  function detail(kind, offset, { other, buffer, size }, where) {
    switch (kind) {
      case "out of bounds":
        if (buffer === NO_BUFFER) return "there is no buffer";
        if (offset < 0) return `${-offset} bytes before the start of ${where}`;
      // falls through
      case "shared out of bounds": return `${Math.max(offset, 0)} bytes after the end of ${where}`;
      case "misaligned": return `byte ${offset} of ${where} is not a multiple of ${size}`;
      case "shared race": case "global race":
        return `byte ${offset} of ${where}, against ${other === ANOTHER_BLOCK ? "another block" : `thread ${other} of the block`}, with no barrier between`;
      case "shared uninitialised": case "global uninitialised": return `byte ${offset} of ${where}`;
      case "barrier after exit": return `${other} threads had returned`;
      case "deadlock": return `it waits for the lanes of mask 0x${other.toString(16).padStart(8, "0")}, which cannot all come`;
      case "mask names an absent lane": case "shuffle from an inactive lane": return `lane ${other}`;
    }
    return "";
  }

  // ---- closed forms: formulas arrive as trees, ["*", "M", "N"], so that no text has to be evaluated ----
  const SECTOR = 32, WARP = 32, up = (a, b) => Math.ceil(a / b);
  const FUNCTIONS = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "%": (a, b) => a % b,
    ceil: up, min: Math.min, lg: (a) => 31 - Math.clz32(a),
    S(rows, cols) {
      const pitch = 4 * cols;
      if (pitch >= SECTOR) return rows * cols;
      const warp = (lanes) => {
        let n = 0;
        for (let i = 0; lanes && i < cols; i++) n += Math.floor(((lanes - 1) * pitch + 4 * i) / SECTOR) - Math.floor(4 * i / SECTOR) + 1;
        return n;
      };
      return Math.floor(rows / WARP) * warp(WARP) + warp(rows % WARP);
    },
    V(rows, cols) {
      const full = Math.floor(cols / WARP), tail = cols % WARP;
      let total = 0;
      for (let first = 0; first < Math.min(rows, SECTOR); first++) {
        const phase = first * cols * 4 % SECTOR;
        total += up(rows - first, SECTOR) * (full * up(phase + 4 * WARP, SECTOR) + (tail ? up(phase + 4 * tail, SECTOR) : 0));
      }
      return total;
    },
  };
  function evaluate(tree, symbols) {
    if (typeof tree === "number") return tree;
    if (typeof tree === "string") return symbols[tree];
    const [name, ...rest] = tree;
    return FUNCTIONS[name] ? FUNCTIONS[name](...rest.map((each) => evaluate(each, symbols))) : NaN;
  }
  /** R (rises of a running maximum) and D (warp steps whose lanes disagree on a rise) of a matrix. */
  function rises(x, rows, cols, threads) {
    const steps = up(cols, threads), seen = new Map();
    let count = 0;
    for (let row = 0; row < rows; row++)
      for (let t = 0; t < Math.min(threads, cols); t++)
        for (let i = t, k = 0, top = LOWEST; i < cols; i += threads, k++) {
          const v = x[row * cols + i], rose = v > top, key = Math.floor((row * threads + t) / WARP) * steps + k;
          if (rose) top = v, count++;
          seen.set(key, seen.get(key) | (rose ? 1 : 2));
        }
    let split = 0;
    for (const both of seen.values()) split += both === 3;
    return { count, split };
  }
  /** Every count of a kernel in closed form on this matrix: field → number. */
  function derive(kernel, x, rows, cols, block) {
    const one = rises(x, rows, cols, 1), mine = kernel.threads === 1 ? one : rises(x, rows, cols, kernel.threads);
    const symbols = { M: rows, N: cols, B: block, W: WARP, E: 4, R: one.count, R_T: mine.count, D: mine.split }, out = {};
    for (const [, formulas] of kernel.phases)
      for (const field in formulas) out[field] = (out[field] ?? 0) + evaluate(formulas[field], symbols);
    return out;
  }

  // ---- softmax in double precision, and how far from it a float32 result may be (reference.py: compare) ----
  function softmax(x, rows, cols) {
    const y = new Float64Array(rows * cols);
    for (let r = 0; r < rows; r++) {
      let top = -Infinity, sum = 0;
      const row = x.subarray(r * cols, (r + 1) * cols);
      for (const v of row) top = Number.isNaN(v) || Number.isNaN(top) ? NaN : Math.max(top, v);
      row.forEach((v, i) => sum += y[r * cols + i] = Math.exp(v - top));
      for (let i = 0; i < cols; i++) y[r * cols + i] /= sum;
    }
    return y;
  }
  function judge(y, x, rows, cols) {
    const want = softmax(x, rows, cols), unit = 2 ** -24;
    let worst = 0, at = 0;
    for (let r = 0; r < rows; r++) {
      let top = -Infinity;
      for (let i = 0; i < cols; i++) top = Math.max(top, x[r * cols + i]);
      for (let i = r * cols; i < (r + 1) * cols; i++) {
        const depth = Math.abs(x[i] - top), allowed = want[i] * unit * (8 + (Number.isFinite(depth) ? depth : 0) + cols) + 2 ** -147;
        const both = Number.isNaN(want[i]) && Number.isNaN(y[i]);
        const error = both ? 0 : Number.isNaN(want[i]) || Number.isNaN(y[i]) ? Infinity : Math.abs(y[i] - want[i]) / allowed;
        if (error > worst) worst = error, at = i;
      }
    }
    return { ok: worst <= 1, worst, at, got: y[at], want };
  }

  /** Runs one softmax kernel on a matrix: what it did, what the formulas say, and whether y is right. */
  function softmaxRun(machine, kernel, x, rows, cols, { block, trace = [0, 0], ...how } = {}) {
    const threads = block ?? kernel.block, grid = up(rows, threads / kernel.threads);
    const run = machine.launch(kernel.index, [grid, 1, 1], [threads, 1, 1], [x, { out: rows * cols }, rows, cols], { trace, ...how });
    return { ...run, grid, block: threads, rows, cols, y: run.outputs[0], derived: derive(kernel, x, rows, cols, threads), verdict: judge(run.outputs[0], x, rows, cols) };
  }
  return { unpack, machine, evaluate, derive, judge, softmax, softmaxRun };
}

const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.mount) return Lab.mount(); // JupyterLab: each bench of a notebook brings this script along
Lab.core = core;
Object.assign(Lab, core());
if (typeof document === "undefined") return;

// ---- the module: loaded once, when the first bench comes into sight ----
const MAIN_THREAD = 65536, MOST = 2 ** 20, STEPS = 512; // elements; elements; instructions of a warp that are kept
const here = document.currentScript?.src ?? "";
let loaded = null, arrived = null;
const packed = new Promise((resolve) => (arrived = resolve));
Lab.kernels = (mark, text) => arrived(text);
function load() {
  return loaded ??= (async () => {
    if (here) document.head.append(Object.assign(document.createElement("script"), { src: new URL("kernels.wasm.js", here).href }));
    const unpacked = await Lab.unpack(await packed);
    return { unpacked, machine: Lab.machine(unpacked), info: unpacked.info };
  })();
}
let helper = null, asked = 0;
/** A long run happens in a worker, made from the driver's own text: no file, so it works from file:// too. */
function inWorker(unpacked, ...rest) {
  if (!helper) {
    const text = `const lab = (${core})(); let one = null; onmessage = ({ data: [id, module, args] }) => {
      try { one ??= lab.machine(module); postMessage([id, lab.softmaxRun(one, ...args)]); } catch (error) { postMessage([id, null, error.message]); } };`;
    helper = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  }
  const id = ++asked;
  return new Promise((resolve, reject) => {
    const stop = () => (helper.removeEventListener("message", hear), helper.removeEventListener("error", fail));
    const hear = ({ data: [of, run, why] }) => of === id && (stop(), run ? resolve(run) : reject(new Error(why)));
    const fail = () => (stop(), helper = null, reject(new Error(`this page may not start a worker, so at most ${MAIN_THREAD} elements run here`)));
    helper.addEventListener("message", hear);
    helper.addEventListener("error", fail);
    helper.postMessage([id, unpacked, rest]);
  });
}

// ---- inputs ----
function normals(seed = 1) {
  let state = seed >>> 0;
  const uniform = () => { // mulberry32
    let t = state = state + 0x6d2b79f5 | 0;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
const byRow = (change) => (rows, cols, next) => Array.from({ length: rows }, () => change(Array.from({ length: cols }, next))).flat();
const SCORES = {
  "normal": byRow((row) => row),
  "rising": byRow((row) => row.sort((a, b) => a - b)),
  "falling": byRow((row) => row.sort((a, b) => b - a)),
  "constant": byRow((row) => row.map(() => -0.7)),
  "widely spread": byRow((row) => row.map((v) => 1000 * v)),
  "first half masked (−∞)": byRow((row) => row.map((v, i) => i < row.length / 2 ? -Infinity : v)),
};
function typed(text) {
  const words = text.replace(/[−–]/g, "-").trim().split(/[\s,;]+/).filter(Boolean);
  const row = words.map((word) => /^[+-]?(inf|infinity|∞)$/i.test(word) ? (word[0] === "-" ? -Infinity : Infinity) : /^nan$/i.test(word) ? NaN : Number(word));
  const wrong = row.findIndex((v, i) => Number.isNaN(v) && !/^nan$/i.test(words[i]));
  if (wrong >= 0) throw new RangeError(`“${words[wrong]}” is no number; write numbers with spaces between, also inf, -inf or nan`);
  if (!row.length) throw new RangeError("type at least one number");
  return row;
}

// ---- drawing: the visual language of lane_art.py and frames.py ----
const BLUE = "var(--lab-blue, #0072B2)", TINT = "var(--lab-blue-tint, #0072B240)", LINE = "var(--lab-line, #8888)";
const safe = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const count = (n) => n === undefined || Number.isNaN(n) ? "–" : Number.isInteger(n) ? n.toLocaleString("en-US").replace(/,/g, "\u202f") : n.toFixed(2);
function brief(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(brief).join(" ");
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value < -3.4028e38) return "low";
  let text = Number.isInteger(value) && Math.abs(value) < 1e6 ? `${value}` : value.toFixed(2);
  if (text.length > 6) text = value.toExponential(0);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}
const words = (x, y, text, { size = 14, anchor = "middle", muted = false } = {}) =>
  `<text x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}" fill="currentColor"${muted ? ' class="lab-muted"' : ""}>${safe(text)}</text>`;
const box = (x, y, w, h, fill, stroke = LINE, more = "") => `<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${fill}" stroke="${stroke}" ${more}/>`;
const on = (step, lane) => step.mask >>> lane & 1;
const lanes = (step) => Array.from({ length: 32 }, (_, lane) => lane);
const centre = (lane) => 8 + 22 * lane + 10;
const squares = (step, y) => lanes(step).map((l) => box(8 + 22 * l, y, 20, 20, on(step, l) ? BLUE : "none", LINE, on(step, l) ? "" : 'stroke-dasharray="3 4"')).join("");
function registers(step, y, lines) {
  return lanes(step).map((lane) => {
    const x = lane % 16 * 45, top = y + Math.floor(lane / 16) * (28 + 19 * lines.length), live = on(step, lane);
    return box(x + 1, top, 43, 22 + 19 * lines.length, live ? TINT : "none", live ? BLUE : LINE, live ? "" : 'stroke-dasharray="3 4"')
      + words(x + 22, top + 14, lane, { size: 13, muted: true }) + lines.map((values, k) => words(x + 22, top + 31 + 19 * k, brief(values[lane]))).join("");
  }).join("");
}
let serial = 0;
function picture(step) {
  const uid = `live${++serial}`, out = [];
  let height = 0;
  if (step.op === "shuffle") {
    out.push(words(8, 16, "each lane reads a lane's value from before", { anchor: "start", size: 15, muted: true }), squares(step, 26), squares(step, 118));
    for (const lane of lanes(step)) if (on(step, lane)) {
      const from = centre(step.address[lane]), to = centre(lane), self = from === to;
      out.push(`<path d="M${from} 48L${to} 116" fill="none" stroke="${self ? LINE : BLUE}" stroke-width="1.5"${self ? ' stroke-dasharray="2 4"' : ""}/>`);
    }
    out.push(words(8, 164, "before, after", { anchor: "start", size: 15, muted: true }), registers(step, 172, [step.before, step.after]));
    height = 172 + 2 * 66 + 6;
  } else if (["load", "store", "atomic"].includes(step.op)) {
    const touched = new Map();
    step.address.forEach((a, lane) => {
      if (a === null) return;
      for (let b = 0; b < step.size; b += 4) {
        const sector = Math.floor((a + b) / 32);
        touched.set(sector, (touched.get(sector) ?? []).concat([[lane, Math.floor((a + b) % 32 / 4)]]));
      }
    });
    out.push(registers(step, 4, [step.after]));
    let k = 0;
    if (step.space !== "shared") for (const [sector, used] of [...touched].sort((a, b) => a[0] - b[0])) {
      const x = k % 4 * 180, y = 116 + Math.floor(k / 4) * 46, who = used.map(([lane]) => lane), cells = new Set(used.map(([, cell]) => cell));
      out.push(words(x + 1, y + 13, `byte ${sector * 32}: ${who.length > 1 ? `lanes ${who[0]}–${who.at(-1)}` : `lane ${who[0]}`}`, { anchor: "start", size: 13, muted: true }));
      for (let c = 0; c < 8; c++) out.push(box(x + 1 + 20 * c, y + 18, 20, 20, cells.has(c) ? BLUE : `url(#${uid})`));
      k++;
    }
    height = 120 + Math.ceil(k / 4) * 46;
  } else {
    out.push(words(8, 16, "all who take part wait here for each other", { anchor: "start", size: 15, muted: true }), squares(step, 26));
    height = 54;
  }
  const pattern = `<defs><pattern id="${uid}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="1.5" opacity=".55"/></pattern></defs>`;
  return `<svg viewBox="0 0 720 ${height}" role="img" aria-label="${safe(spoken(step))}" style="width:100%;max-width:720px">${pattern}${out.join("")}</svg>`;
}
function spoken(step) {
  const active = lanes(step).filter((l) => on(step, l)).length, who = active === 32 ? "All 32 lanes" : active === 1 ? "One lane" : `${active} lanes`;
  switch (step.op) {
    case "shuffle": return `${who} exchange a value (argument ${step.argument}): lane 0 had ${brief(step.before[0])} and receives ${brief(step.after[0])}.`;
    case "load": case "store": case "atomic":
      return `${who} ${step.op} ${step.size} bytes each of ${step.array}: one request, ${step.space === "shared" ? `${step.wavefronts} wavefronts` : `${step.sectors} sectors, ${Math.round(100 * active * step.size / (32 * step.sectors))}% of their bytes asked for`}.`;
  }
  return `${who} meet at a ${step.op}.`;
}

// ---- the bench ----
const NOTHING = "nothing: it works all the same", WRONG = "wrong numbers";
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) name in element && name !== "list" ? (element[name] = value) : element.setAttribute(name, value);
  element.append(...children);
  return element;
}
let names = 0;
function labelled(text, control) {
  control.id = `lab-bench-${++names}`;
  return el("span", { className: "lab-field" }, el("label", { htmlFor: control.id }, text), control);
}
const options = (select, entries) => select.replaceChildren(...entries.map(([value, text]) => el("option", { value }, text)));

function bench(host, { unpacked, machine, info }) {
  const given = host.dataset, kernelOf = () => info.kernels.find((k) => k.name === kernel.value), defectOf = () => info.defects.find((d) => d.name === kernel.value);
  const kernel = el("select"), gone = el("select"), scores = el("select"), row = el("input", { type: "text", spellcheck: false, autocomplete: "off", inputMode: "text" });
  const rows = el("input", { type: "number", min: 1, step: 1 }), cols = el("input", { type: "number", min: 1, step: 1 }), block = el("select");
  const go = el("button", { type: "submit", className: "lab-run" }, "Run"), status = el("div", { className: "lab-said" }), detail = el("div"), guess = el("fieldset", { hidden: true });
  status.setAttribute("role", "status");
  kernel.append(...info.kernels.map((k) => el("option", { value: k.name }, `${k.name}: ${k.title}`)),
    el("optgroup", { label: "Planted defects" }, ...info.defects.filter((d) => d.fault).map((d) => el("option", { value: d.name }, d.name.replaceAll("_", " ")))));
  options(scores, [["typed", "typed in"], ...Object.keys(SCORES).map((name) => [name, name])]);
  kernel.value = given.kernel ?? info.kernels[0].name;
  scores.value = given.row ? "typed" : given.scores ?? "normal";
  row.value = given.row ?? "2 0 1 -1";
  [rows.value, cols.value] = [given.rows ?? 1, given.cols ?? 8];
  const fields = [labelled("Kernel", kernel), labelled("Line taken away", gone), labelled("Scores", scores), labelled("Row", row), labelled("Rows", rows), labelled("Columns", cols), labelled("Threads of a block", block)];
  fields[3].classList.add("lab-wide-field");
  const form = el("form", { className: "lab-controls" }, ...fields, guess, go);

  const cutOf = () => info.cuts.find((c) => c.name === gone.value && c.kernel === kernel.value);
  function outcomes(expected) {
    const other = ["out of bounds", "shared race", "deadlock"].filter((kind) => kind !== expected);
    return [NOTHING, WRONG, ...(expected === WRONG || !expected ? other : [expected, ...other]).slice(0, 3)];
  }
  function offer() { // what can be chosen depends on the kernel
    const k = kernelOf(), kept = [gone.value, block.value];
    options(gone, [["", "none"], ...info.cuts.filter((c) => c.kernel === kernel.value).map((c) => [c.name, c.title])]);
    options(block, !k ? [["", "as planted"]] : k.threads === 1 ? [32, 64, 128, 256, 512, 1024].map((n) => [n, n]) : [[k.block, k.block]]);
    gone.value = [...gone.options].some((o) => o.value === kept[0]) ? kept[0] : "";
    block.value = [...block.options].some((o) => o.value === kept[1]) ? kept[1] : k?.block ?? "";
  }
  function arrange() {
    const k = kernelOf(), cut = cutOf(), broken = cut ?? defectOf();
    fields[1].hidden = gone.options.length < 2;
    for (const field of fields.slice(2)) field.hidden = !k;
    fields[3].hidden = !k || scores.value !== "typed";
    fields[5].hidden = !k || scores.value === "typed";
    guess.hidden = !broken;
    if (!broken) return;
    const name = `guess${++names}`, expected = cut ? cut.outcome : defectOf().fault;
    guess.replaceChildren(el("legend", {}, "What will happen? Predict, then run."), ...outcomes(expected).map((text) =>
      el("label", {}, el("input", { type: "radio", name, value: text }), ` ${text}`)));
  }
  function matrix() {
    const whole = (input, what) => {
      const n = Number(input.value);
      if (!Number.isInteger(n) || n < 1) throw new RangeError(`${what} must be a whole number from 1 up`);
      return n;
    };
    const m = whole(rows, "rows");
    const one = scores.value === "typed" ? typed(row.value) : null, n = one ? one.length : whole(cols, "columns");
    if (m * n > MOST) throw new RangeError(`${count(m * n)} elements are too many for a page: at most ${count(MOST)}; the Python package has no such limit`);
    return [Float32Array.from(one ? Array(m).fill(one).flat() : SCORES[scores.value](m, n, normals())), m, n];
  }

  let turn = 0;
  async function run() {
    const mine = ++turn;
    host.dataset.state = "running";
    try {
      const k = kernelOf(), cut = cutOf();
      let did, x = null;
      if (k) {
        const [values, m, n] = matrix(), which = { ...k, index: cut ? cut.index : k.index }, how = { block: Number(block.value), trace: [0, 0], steps: STEPS };
        x = values;
        if (m * n > MAIN_THREAD) status.replaceChildren(el("p", { className: "lab-note" }, "Running in the background …"));
        did = m * n > MAIN_THREAD ? await inWorker(unpacked, which, values, m, n, { ...how, sanitize: false }) : Lab.softmaxRun(machine, which, values, m, n, how);
      } else {
        const d = defectOf();
        did = machine.launch(d.index, [d.grid, 1, 1], [d.block, 1, 1], [Float32Array.from({ length: 128 }, (_, i) => i + 1), { out: 128 }, 128], { shared: d.shared, group: d.group, trace: [0, 0], steps: STEPS });
      }
      if (mine !== turn) return;
      show(did, k, cut, x);
      host.dataset.state = "ready";
      host.dataset.ms = did.ms.toFixed(2);
      Lab.last = did;
    } catch (error) {
      if (mine !== turn) return;
      status.replaceChildren(el("p", { className: "lab-note" }, `${error.message}.`));
      detail.replaceChildren();
      host.dataset.state = "refused";
    }
  }

  function show(did, k, cut, x) {
    const file = k ? k.file : "defects.cu", said = [];
    const unwritten = did.unwritten.at(-1), right = !did.verdict || did.verdict.ok;
    const happened = did.faults.length ? did.faults[0].kind : k && (!right || unwritten) ? WRONG : NOTHING;
    const chosen = guess.querySelector("input:checked");
    if (!guess.hidden && chosen) said.push(`You said: ${chosen.value}. ${chosen.value === happened || did.faults.some((f) => f.kind === chosen.value) ? "So it is." : `It is: ${happened}.`}`);
    if (cut) said.push(`Line ${cut.line} of ${cut.file} is ${cut.instead ? `“${cut.instead}” now` : "gone"}.`);
    if (k) {
      const v = did.verdict, where = [Math.floor(v.at / did.cols), v.at % did.cols];
      said.push(right ? `${count(did.rows * did.cols)} results, each within rounding of softmax in double precision.`
        : `Wrong: y[${where}] is ${v.got.toPrecision(6)}, must be ${v.want[v.at].toPrecision(6)}.`);
    }
    if (unwritten && k) said.push(`${count(unwritten)} elements were never written.`);
    if (!k && happened === NOTHING) said.push("No fault.");
    said.push(`${count(did.ms < 1 ? 1 : Math.round(did.ms))} ms.`.replace(/^1 ms/, did.ms < 1 ? "Less than 1 ms" : "1 ms"));
    const list = el("ul", { className: "lab-faults" }, ...did.faults.map((f) => el("li", {}, f.text)));
    status.replaceChildren(el("p", { className: "lab-note" }, said.join(" ")), ...(did.faults.length ? [list] : []));

    const open = new Map([...detail.querySelectorAll("details")].map((d) => [d.dataset.part, d.open]));
    const part = (name, title, shown, ...content) => {
      const d = el("details", { className: "lab-part", open: open.get(name) ?? shown }, el("summary", {}, title), ...content);
      d.dataset.part = name;
      return d;
    };
    detail.replaceChildren(
      ...(k && did.rows * did.cols ? [part("y", "Results", true, results(did, x))] : []),
      part("counts", "Counts", true, counts(did, k && !cut ? did.derived : null)),
      part("lines", "Line by line", false, perLine(did)),
      part("steps", `Step through warp 0 of block 0 (${did.steps.length === STEPS ? `its first ${STEPS}` : did.steps.length} steps)`, host.dataset.open === "steps", stepper(did, file, cut)));
  }
  const table = (heads, body, texts = 1) => { // the first `texts` columns are words, the others numbers
    const box = el("div", { className: "lab-scroll", tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", heads.join(", "));
    box.innerHTML = `<table class="lab-table"><thead><tr>${heads.map((h, i) => `<th scope="col"${i >= texts ? ' class="num"' : ""}>${h}</th>`).join("")}</tr></thead><tbody>${
      body.map(([first, ...rest]) => `<tr><th scope="row">${first}</th>${rest.map((c, i) => `<td${i + 1 >= texts ? ' class="num"' : ""}>${c}</td>`).join("")}</tr>`).join("")}</tbody></table>`;
    return box;
  };
  function results(did, x) {
    const n = Math.min(did.cols, 16), exact = did.verdict.want;
    return table(["column of row 0", "x", "y", "exact", "error [roundings]"], Array.from({ length: n }, (_, i) => [i, brief(x[i]), did.y[i].toPrecision(7), exact[i].toPrecision(10),
      Number.isNaN(exact[i]) || !exact[i] ? "–" : (Math.abs(did.y[i] - exact[i]) / exact[i] / 2 ** -24).toFixed(1)]));
  }
  function counts(did, derived) {
    const body = Object.entries(info.words).filter(([field]) => did.counters[field] || derived?.[field])
      .map(([field, name]) => [safe(name), count(did.counters[field]), ...(derived ? [count(derived[field] ?? 0), did.counters[field] === (derived[field] ?? 0) ? "yes" : "no"] : [])]);
    return table(derived ? ["count", "counted", "closed form", "same"] : ["count", "counted"], body);
  }
  function perLine(did) {
    return table(["line", "source", "what", "requests", "sectors a request", "lanes disagreed"], did.sites.map((s) => [
      `${safe(s.file)}:${s.line}`, `<code>${safe((info.texts[s.file] ?? "").split("\n")[s.line - 1]?.split("//")[0].trim() ?? "")}</code>`, s.op === "branch" ? "branch" : `${s.op} ${s.space}`,
      count(s.requests), s.op === "branch" || !s.sectors ? "–" : count(s.sectors / s.requests), s.op === "branch" ? `${count(s.diverged)} of ${count(s.requests)}` : "–"]), 3);
  }
  function stepper(did, file, cut) {
    if (!did.steps.length) return el("p", { className: "lab-note" }, "This warp did nothing that is shown here.");
    const last = did.steps.length - 1, slider = el("input", { type: "range", min: 0, max: last, value: 0 }), note = el("p", { className: "lab-note" }), art = el("div", { className: "lab-frame lab-wide", tabIndex: 0 });
    const caption = el("figcaption"), pre = el("pre"), source = el("figure", { className: "lab-code lab-source-view" }, caption, el("div", { className: "highlight" }, pre));
    pre.tabIndex = 0;
    let shown = "";
    const draw = () => {
      const step = did.steps[Number(slider.value)];
      note.textContent = `${Number(slider.value) + 1} of ${last + 1}: ${step.file}:${step.line}. ${spoken(step)}`;
      slider.setAttribute("aria-valuetext", note.textContent);
      art.innerHTML = picture(step);
      const name = info.texts[step.file] ? step.file : file;
      if (shown !== name) {
        shown = name;
        caption.innerHTML = `<code>${safe(name)}</code>`;
        pre.innerHTML = info.texts[name].replace(/\n$/, "").split("\n").map((line, i) => {
          const at = line.indexOf("//"), code = at < 0 ? safe(line) : `${safe(line.slice(0, at))}<span class="c1">${safe(line.slice(at))}</span>`;
          return `<span class="lab-line" data-line="${i + 1}">${cut && cut.file === name && cut.line === i + 1 ? `<del>${code}</del>` : code}</span>`;
        }).join("\n");
      }
      pre.querySelector(".lab-hot")?.classList.remove("lab-hot");
      const hot = pre.querySelector(`[data-line="${step.line}"]`);
      hot?.classList.add("lab-hot");
      if (hot) pre.scrollTop = hot.offsetTop - pre.clientHeight / 2;
    };
    const move = (by) => () => (slider.value = Number(slider.value) + by, draw());
    slider.oninput = draw;
    const bar = el("div", { className: "lab-stepbar" }, el("button", { type: "button", onclick: move(-1) }, "‹ Back"), labelled("Step", slider), el("button", { type: "button", onclick: move(1) }, "Next ›"));
    draw();
    return el("div", {}, bar, note, art, source);
  }

  form.onsubmit = (event) => (event.preventDefault(), run());
  kernel.onchange = () => (offer(), arrange(), guess.hidden ? run() : status.replaceChildren(), guess.hidden || detail.replaceChildren());
  gone.onchange = () => {
    const cut = cutOf();
    if (cut) scores.value = "normal", [rows.value, cols.value] = cut.shape; // where it shows
    arrange();
    cut ? (status.replaceChildren(), detail.replaceChildren()) : run();
  };
  scores.onchange = () => (arrange(), guess.hidden && run());
  for (const input of [row, rows, cols, block]) input.onchange = () => guess.hidden && run();
  row.oninput = () => guess.hidden && run();
  offer();
  if (given.cut) gone.value = given.cut, [rows.value, cols.value] = cutOf()?.shape ?? [rows.value, cols.value];
  arrange();
  host.replaceChildren(form, status, detail);
  if (guess.hidden) run();
  else host.dataset.state = "waiting";
}

/** Brings every bench to life that is not yet; where that fails, what stands there stays. */
Lab.mount = () => {
  for (const host of document.querySelectorAll(".lab-bench:not([data-state])")) {
    host.dataset.state = "seen";
    new IntersectionObserver(async ([entry], watch) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      const start = performance.now();
      try {
        bench(host, await load());
        host.dataset.start = (performance.now() - start).toFixed(1);
      } catch (error) {
        host.dataset.state = "failed";
        host.append(el("p", { className: "lab-note" }, `The kernels cannot run in this page (${error.message}). A host with a strict content security policy has to allow 'wasm-unsafe-eval'.`));
      }
    }, { rootMargin: "200px" }).observe(host);
  }
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", Lab.mount);
else Lab.mount();
})();
