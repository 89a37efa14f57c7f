/* The kernels in the page: a driver for the WebAssembly module, without a page.
 *
 * It unpacks the module, launches kernels, reads the records that the emulator's headers lay out (the same ones that
 * softmax_lab/emulator/report.py and trace.py read), finds what closed forms need of the data, and judges results as a
 * family's checker does in Python. Formulas are evaluated elsewhere (formulas.js). It is one function, so that a worker can
 * be made from its text; Node tests it.
 */
(() => {
"use strict";

function core() {
  const INPUT_MAGIC = 0x31756d652d787866n, PAGE = 4096, MOST_ARGUMENTS = 32, HEAD = 22, LOWEST = -3.4028234663852886e38;
  const NO_BUFFER = 2 ** 32 - 1, ANOTHER_BLOCK = 2 ** 32 - 2, VARIABLES = 2 ** 30, GLOBAL = 1, SHARED = 2;
  const f64 = new Float64Array(1), f32 = new Float32Array(1);

  /** What atob gives as bytes, where the browser cannot yet decode by itself; a loop is much faster than Uint8Array.from. */
  function bytesOf(text) {
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }
  /** The module file's text: base64 of gzip of a length, a description in JSON, and the WebAssembly. */
  async function unpack(base64) {
    const packed = Uint8Array.fromBase64?.(base64) ?? bytesOf(atob(base64));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = new DataView(bytes.buffer).getUint32(0, true);
    const info = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    return { info, module: await WebAssembly.compile(bytes.subarray(4 + size)) };
  }

  const triple = (sizes) => [].concat(sizes, 1, 1).slice(0, 3);
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

    /** How it is launched: `grid` blocks of `threads`, each one to three sizes, `shared` bytes of dynamic shared memory a
     * block; `group` blocks are alive together. `args` are Float32Arrays (inputs), {out: elements} and integers, in the kernel's
     * order. `trace` is {block, warp, first, steps, order}: of that warp's steps, `steps` from number `first` on are kept, and
     * the kinds of the first `order`. `blocks` runs only those from the first up to the last. */
    function launch(kernel, { grid, threads, shared = 0, group = 1 }, args, { sanitize = true, trace = null, blocks = [0, Number.MAX_SAFE_INTEGER] } = {}) {
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
      const { block: of = -1, warp = 0, first = 0, steps = 0, order = 0 } = trace ?? {};
      const big = [...triple(grid), ...triple(threads), shared, group, 1, sanitize ? 1 : 0, of, warp, first, steps, order, ...blocks, records.length, ...records.flat()];
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
      const PARTS = 8, where = u64(at + 16 + 24 * PARTS), out = new BigUint64Array(memory, at + 24 + 24 * PARTS, where);
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
        order: new Uint8Array(memory.slice(u64(at + 16 + 24 * 6 + 16), u64(at + 16 + 24 * 6 + 16) + u64(at + 16 + 24 * 6))),
        traced: table(7, u64)[0],
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
      // The kernel's own file first, then what it includes: another kernel may have brought that earlier.
      const order = (file) => info.files.indexOf(file) + (file.endsWith(".cuh") ? info.files.length : 0);
      return [...found.values()].sort((a, b) => order(a.file) - order(b.file) || a.line - b.line
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

  // ---- what closed forms need of the data ----
  const WARP = 32, up = (a, b) => Math.ceil(a / b);
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
  /** How often a merge finds the larger maximum in the second of two parts, as the maxima of a row's threads meet by halves
   * (online.merge_rises); in a butterfly every thread merges with its partner. */
  function mergeRises(x, rows, cols, threads, butterfly) {
    let count = 0;
    for (let row = 0; row < rows; row++) {
      const top = new Float32Array(threads).fill(LOWEST);
      for (let i = 0; i < cols; i++) if (x[row * cols + i] > top[i % threads]) top[i % threads] = x[row * cols + i];
      for (let half = threads >> 1; half; half >>= 1) {
        const before = top.slice();
        for (let t = 0; t < (butterfly ? threads : half); t++) {
          const other = before[t ^ half];
          if (other > before[t]) top[t] = other, count++;
        }
      }
    }
    return count;
  }
  /** The symbols on this matrix that the kernel's formulas hold and data decide. */
  function fromData({ data, threads }, x, rows, cols) {
    const found = {};
    if (data.includes("R")) found.R = rises(x, rows, cols, 1).count;
    if (data.includes("R_T") || data.includes("D")) ({ count: found.R_T, split: found.D } = rises(x, rows, cols, threads));
    for (const name of ["R_X", "R_Y"]) if (data.includes(name)) found[name] = mergeRises(x, rows, cols, threads, name === "R_X");
    return found;
  }

  // ---- the exact answer, in double precision, and how far from it a float32 result may be: what a family's `oracle` and
  // `compare` say in Python. A new family needs its entry here and one in live_inputs.js. `arrays` are its inputs in order,
  // `summing` the roundings that the sum of a row is allowed. ----
  const FAMILIES = {
    softmax: {
      exact: ([x], rows, cols) => byRow(x, rows, cols, (row, top, y) => {
        let sum = 0;
        row.forEach((v, i) => sum += y[i] = Math.exp(v - top));
        row.forEach((_, i) => y[i] /= sum);
      }),
      allowed: ([x], want, rows, cols, { unit, operation, least }, summing) => byRow(x, rows, cols, (row, top, most, from) =>
        row.forEach((v, i) => most[i] = want[from + i] * unit * (operation + finite(v - top) + summing) + least)),
    },
    log_softmax: {
      exact: ([x], rows, cols) => byRow(x, rows, cols, (row, top, y) => {
        const log = Math.log(row.reduce((sum, v) => sum + Math.exp(v - top), 0));
        row.forEach((v, i) => y[i] = v - top - log < LOWEST ? -Infinity : v - top - log);
      }),
      allowed: ([x], want, rows, cols, { unit, operation }, summing) => byRow(x, rows, cols, (row, top, most, from) =>
        row.forEach((v, i) => most[i] = unit * (operation + finite(v - top) + 3 * finite(want[from + i]) + summing))),
    },
    gemv: {
      exact: ([A, x], rows, cols) => product(A, x, rows, cols, (v) => v),
      allowed: ([A, x], want, rows, cols, { unit, operation, least }, summing) =>
        product(A, x, rows, cols, Math.abs).map((size) => (operation + summing) * unit * size + cols * least),
    },
  };
  const finite = (v) => Number.isFinite(v) ? Math.abs(v) : 0;
  /** `fill(row, its maximum, its place in the answer, where it starts)` for each row. */
  function byRow(x, rows, cols, fill) {
    const out = new Float64Array(rows * cols);
    for (let from = 0; from < rows * cols; from += cols) {
      const row = x.subarray(from, from + cols);
      fill(row, row.reduce((a, b) => Math.max(a, b), -Infinity), out.subarray(from, from + cols), from);
    }
    return out;
  }
  function product(A, x, rows, cols, of) {
    const y = new Float64Array(rows);
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < cols; c++) y[r] += of(A[r * cols + c]) * of(x[c]);
    return y;
  }
  /** Each result's error in units of what is allowed (reference.judged): what is not finite must be equal. `terms`, where given,
   * are the roundings of one thread's sum, allowed instead of the random walk's (reference.compare). */
  function judge(family, y, arrays, rows, cols, roundings, terms = null) {
    const { exact, allowed } = FAMILIES[family], want = exact(arrays, rows, cols), error = new Float64Array(want.length);
    const most = allowed(arrays, want, rows, cols, roundings, terms ?? roundings.sum * Math.sqrt(cols));
    let worst = 0, at = 0;
    want.forEach((right, i) => {
      error[i] = Object.is(right, y[i]) ? 0 : Number.isFinite(right) && !Number.isNaN(y[i]) ? Math.abs(y[i] - right) / most[i] : Infinity;
      if (error[i] > worst) worst = error[i], at = i;
    });
    return { ok: worst <= 1, worst, at, got: y[at], want, error };
  }

  /** Runs one kernel on its family's inputs: what it did, what formulas need of the data, and whether y is right. `block` is for
   * kernels whose threads of a block a reader may choose. */
  function run(machine, kernel, arrays, rows, cols, { block = kernel.block, judged = true, ...how } = {}) {
    const family = machine.info.families[kernel.family], sizes = { rows, cols }, grid = up(rows, block / kernel.threads);
    const given = { ...sizes, y: { out: family.extents.y.reduce((n, size) => n * sizes[size], 1) } };
    family.inputs.forEach((name, k) => given[name] = arrays[k]);
    const { threads, shared } = kernel.launch, launch = { grid, threads: block === kernel.block ? threads : block, shared };
    const did = machine.launch(kernel.index, launch, family.arguments.map((name) => given[name]), how);
    if (!judged) return did;
    // A long row of like terms rounds one way again and again: allow the certain bound where it is the larger one.
    const { roundings } = machine.info, each = up(cols, kernel.threads), terms = each > roundings.sum * Math.sqrt(cols) ? each : null, y = did.outputs[0];
    return { ...did, grid, block, threads: launch.threads, rows, cols, arrays, y, data: fromData(kernel, arrays[0], rows, cols), verdict: judge(kernel.family, y, arrays, rows, cols, roundings, terms) };
  }
  /** One planted defect or its repaired twin, on 1, 2, 3, … (planted.SIZE). */
  const PLANTED = 128;
  function runPlanted(machine, { index, grid, block, shared, group }, how) {
    return machine.launch(index, { grid, threads: block, shared, group }, [Float32Array.from({ length: PLANTED }, (_, i) => i + 1), { out: PLANTED }, PLANTED], how);
  }
  return { unpack, machine, fromData, judge, run, runPlanted, planted: PLANTED, families: Object.keys(FAMILIES) };
}

const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.core) return;
Lab.core = core;
Object.assign(Lab, core());
})();
