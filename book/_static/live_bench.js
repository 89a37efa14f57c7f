/* The live bench: choose a kernel and its input, take a line away, run, and see what it did. */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.bench) return;
const { el, labelled } = Lab, { safe, brief, exactly, several } = Lab.art, { symbols, counts: derived, holds } = Lab.formulas;

// Elements that run in the page itself, and in the background at most; seconds of a run in the background.
const limits = Lab.limits = { here: 2 ** 14, most: 2 ** 20, seconds: 20 };
const WINDOW = 256; // steps of a warp that are kept at once
const NOTHING = "nothing: it works all the same", WRONG = "wrong numbers", TYPED = "typed or drawn";
const short = (v) => Number.isFinite(v) ? `${Number(v.toPrecision(6))}`.replaceAll("-", "−") : brief(v);
const count = (n) => n === undefined || Number.isNaN(n) ? "–" : Number.isInteger(n) ? Lab.grouped(n) : n.toFixed(2);

// ---- running: small launches at once, larger ones in a worker made from the driver's own text, so from file:// too ----
function runner(unpacked) {
  const machine = Lab.machine(unpacked);
  let worker = null, asked = 0, give = null;
  function inWorker(name, args) {
    if (!worker) {
      const text = `const lab = (${Lab.core})(); let one = null; onmessage = ({ data: [id, module, name, args] }) => {
        try { one ??= lab.machine(module); postMessage([id, lab[name](one, ...args)]); } catch (error) { postMessage([id, null, error.message]); } };`;
      worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }
    const id = ++asked;
    return new Promise((resolve, reject) => {
      const clock = setTimeout(() => stop(`stopped after ${limits.seconds} s: a page gives a run no more; take fewer rows or columns`), 1000 * limits.seconds);
      const done = (settle, value) => (clearTimeout(clock), give = null, settle(value));
      give = (why) => done(reject, new Error(why));
      worker.onmessage = ({ data: [of, did, why] }) => of === id && (did ? done(resolve, did) : done(reject, new Error(why)));
      worker.onerror = () => (worker = null, done(reject, new Error(`this page may not start a worker, so at most ${count(limits.here)} elements run here`)));
      worker.postMessage([id, unpacked, name, args]);
    });
  }
  /** Ends what runs in the background. */
  function stop(why) {
    if (!give) return;
    worker?.terminate();
    worker = null;
    give(why);
  }
  /** `name` is a function of the driver, `size` the elements it goes through. */
  async function start(name, size, ...args) {
    stop("another run was asked for");
    if (size <= limits.here) return Lab[name](machine, ...args);
    try {
      return await inWorker(name, args);
    } catch (error) {
      throw error instanceof DOMException ? new Error(`this page may not start a worker, so at most ${count(limits.here)} elements run here`) : error;
    }
  }
  return { start, stop };
}

// ---- closed forms as a reader writes them ----
function formula(tree, tight = false) {
  if (!Array.isArray(tree)) return `${tree}`;
  const [name, a, b] = tree, all = (each) => formula(each);
  switch (name) {
    case "*": return times(...product(tree));
    case "+": case "-": case "%": {
      const text = `${formula(a)} ${{ "+": "+", "-": "−", "%": "mod" }[name]} ${formula(b, name === "-")}`;
      return tight ? `(${text})` : text;
    }
    case "ceil": return `⌈${formula(a, true)}/${formula(b, true)}⌉`;
    case "lg": return `log₂ ${formula(a, true)}`;
  }
  return `${name}(${tree.slice(1).map(all).join(", ")})`;
}
/** [the number, the rest in words] of a product, which may be of one thing. */
function product(tree) {
  const factors = (each) => Array.isArray(each) && each[0] === "*" ? [...factors(each[1]), ...factors(each[2])] : [each], all = factors(tree);
  const number = all.reduce((n, each) => typeof each === "number" ? n * each : n, 1);
  return [number, all.filter((each) => typeof each !== "number").map((each) => formula(each, true)).join("·")];
}
const times = (number, text) => number === 1 && text ? text : text ? `${number}·${text}` : `${number}`;
/** The closed form of one count over all phases: like ones are gathered. */
function closedForm(kernel, field) {
  const found = new Map(), terms = (tree) => Array.isArray(tree) && tree[0] === "+" ? [...terms(tree[1]), ...terms(tree[2])] : [tree];
  for (const [, formulas] of kernel.phases)
    for (const tree of field in formulas ? terms(formulas[field]) : []) {
      const [number, text] = product(tree);
      found.set(text, (found.get(text) ?? 0) + number);
    }
  return [...found].map(([text, number]) => times(number, text)).join(" + ");
}

// What formulas call, and what their symbols stand for.
const CALLS = {
  S: "sectors of one pass, a thread to a row", V: "sectors of one pass, a warp to a row", V4: "sectors of one pass, a warp to a row that reads four floats a lane where a row starts at 16 bytes",
  Q4: "its requests", X4: "its sectors of the vector",
};
const SYMBOLS = {
  M: "rows", N: "columns", B: "threads of a block", P: "rows of a block", W: "lanes of a warp", E: "bytes of an element",
  T: "threads of a row", R: "rises of the running maximum", R_T: "rises, over all threads", D: "warp steps in which lanes disagree",
  R_X: "merges of lanes that find the larger maximum in the other one", R_Y: "merges of threads that find the larger maximum in the second one",
};

Lab.bench = async (host, { unpacked, info, art }) => {
  const given = host.dataset, { start, stop } = runner(unpacked);
  const kernel = el("select"), gone = el("select"), scores = el("select", { className: "lab-kinds" }), block = el("select");
  const text = () => el("input", { type: "text", spellcheck: false, autocomplete: "off" }), row = text(), vector = text();
  const rows = el("input", { type: "number", min: 1, step: 1 }), cols = el("input", { type: "number", min: 1, step: 1 });
  // As text, which a browser reads faster than it makes a hundred elements one by one.
  const listed = (entries) => entries.map(([value, text, disabled]) => `<option value="${safe(value)}"${disabled ? " disabled" : ""}>${safe(text)}</option>`).join("");
  const options = (select, entries) => select.innerHTML = listed(entries);
  const twins = info.planted.filter((d) => !d.fault), faulty = info.planted.filter((d) => d.fault);
  const shown = twins.filter((d) => info.cuts.some((c) => c.kernel === d.name));
  const group = (label, entries) => `<optgroup label="${safe(label)}">${listed(entries)}</optgroup>`;
  const home = info.kernels.find((k) => k.name === given.kernel)?.family; // the lesson's own come first
  kernel.innerHTML = [...Object.keys(info.families).sort((a, b) => (b === home) - (a === home)).map((name) => group(Lab.given[name].title, info.kernels.filter((k) => k.family === name).map((k) => [k.name, `${k.name}: ${k.title}`]))),
    ...(info.absent.length ? [group("Not in the page", info.absent.map((k) => [k.name, `${k.name}: ${k.why}`, true]))] : []),
    group("With barriers, to break", shown.map((d) => [d.name, d.title])), group("With a planted defect, to find", faulty.map((d) => [d.name, d.title]))].join("");
  kernel.value = given.kernel;
  [row.value, vector.value, rows.value, cols.value] = [given.row ?? "2 0 1 -1", "1", given.rows ?? 1, given.cols ?? 8];

  const kernelOf = () => info.kernels.find((k) => k.name === kernel.value), plantedOf = () => info.planted.find((d) => d.name === kernel.value);
  const familyOf = () => kernelOf() && { name: kernelOf().family, ...info.families[kernelOf().family] };
  const cutOf = () => info.cuts.find((c) => c.name === gone.value && c.kernel === kernel.value);
  const fileOf = () => kernelOf()?.file ?? info.plantedFile, rangeOf = () => plantedOf() ? [plantedOf().first, plantedOf().last] : null;
  const fields = { kernel: labelled("Kernel", kernel), gone: labelled("Taken away", gone), scores: labelled("Scores", scores), rows: labelled("Rows", rows),
    cols: labelled("Columns", cols), block: labelled("Threads of a block", block), row: labelled("Row", row), vector: labelled("x", vector) };
  for (const name of ["kernel", "row"]) fields[name].classList.add("lab-wide-field");
  const call = (field, name) => fields[field].querySelector("label").textContent = name;
  const go = el("button", { type: "submit", className: "lab-run" }, "Run"), halt = el("button", { type: "button", hidden: true }, "Stop"), whole = el("button", { type: "button", hidden: true }, "Put it back"), example = el("button", { type: "button", hidden: true }, "Take an input that shows it");
  const guess = el("fieldset", { hidden: true }), listing = Lab.listing(info.texts), launch = el("p", { className: "lab-hint lab-launch" }), status = el("div", { className: "lab-said" }), detail = el("div"), kept = {};
  listing.host.classList.add("lab-broken");
  status.setAttribute("role", "status");
  const pad = Lab.plot(art, info.look, (drawn) => {
    if (kernelOf() && (scores.value !== TYPED || row.value !== Lab.written(drawn))) scores.value = TYPED;
    row.value = Lab.written(drawn);
    touched();
  }, host.firstElementChild?.clientWidth);
  const form = el("form", { className: "lab-controls" }, ...Object.values(fields), listing.host, launch, guess, el("span", { className: "lab-buttons" }, go, halt, whole, example));

  function outcomes(expected) {
    const others = ["out of bounds", "shared race", "deadlock", "global race"].filter((kind) => kind !== expected);
    return [...(cutOf() ? [NOTHING] : []), WRONG, ...(expected === WRONG || !expected ? others : [expected, ...others]).slice(0, 3).sort()];
  }
  let chosen = ""; // the block size that the reader chose; else each kernel has its own
  function offer() { // what can be chosen depends on the kernel
    const k = kernelOf(), family = familyOf(), before = [gone.value, chosen, scores.value];
    const lines = info.cuts.filter((c) => c.kernel === kernel.value).map((c) => [c.name, c.title]);
    options(gone, [["", lines.length ? "none" : "this kernel has none to take"], ...lines]);
    gone.disabled = !lines.length;
    options(block, !k ? [["", "as planted"]] : k.blocks.map((n) => [n, n]));
    if (k) {
      const words = Lab.given[family.name];
      options(scores, [TYPED, ...Object.keys(words.named)].map((name) => [name, name]));
      call("scores", words.kind);
      call("row", words.row);
      call("vector", `${family.inputs.slice(1).join(", ")}, repeated as needed`);
    }
    const has = (select, value) => [...select.options].some((o) => o.value === value);
    gone.value = has(gone, before[0]) ? before[0] : "";
    block.value = has(block, before[1]) && before[1] ? before[1] : k?.block ?? "";
    if (k) scores.value = has(scores, before[2]) && before[2] ? before[2] : "normal";
    block.disabled = block.options.length < 2;
    block.title = block.disabled && k ? "This kernel has one block size" : "";
  }
  let asked = "", answered = ""; // the question on show, and what was answered to it
  function arrange() {
    const k = kernelOf(), d = plantedOf(), cut = cutOf(), broken = cut ?? (d?.fault ? d : null);
    fields.gone.hidden = !!d?.fault;
    for (const name of ["scores", "rows", "cols", "block", "row", "vector"]) fields[name].hidden = !k;
    if (scores.value !== TYPED) fields.row.hidden = true;
    if (scores.value !== TYPED || familyOf()?.inputs.length === 1) fields.vector.hidden = true;
    if (scores.value === TYPED) fields.cols.hidden = true;
    pad.host.hidden = !k;
    const question = broken ? `${kernel.value} ${gone.value}` : "";
    if (asked !== question) answered = "";
    guess.hidden = !broken || !!answered;
    whole.hidden = !cut;
    example.hidden = !cut?.shape || !readers;
    go.textContent = !cut ? "Run" : cut.instead ? "Run with the line changed" : "Run without the line";
    listing.host.hidden = !broken && !!k;
    if (broken || !k) listing.show(cut?.file ?? fileOf(), cut?.line ?? 0, cut ?? null, rangeOf());
    launch.hidden = !!k;
    if (d) launch.textContent = `The launch: ${several(d.grid, "block")} of ${several(d.block, "thread")}, ${d.shared ? `${d.shared} bytes of` : "no"} dynamic shared memory${d.grid > 1 ? ` a block${d.group > 1 ? ", cooperative" : ""}` : ""}. n = ${Lab.planted}; x and y have ${Lab.planted} floats each.`;
    if (broken && asked !== question) {
      const name = `${row.id}-guess`;
      guess.replaceChildren(el("legend", {}, `${!cut ? "What is wrong here" : cut.instead ? "What happens with that line changed" : "What happens without that line"}? Predict, then run.`),
        ...outcomes(cut ? cut.outcome : d.fault).map((text) => el("label", {}, el("input", { type: "radio", name, value: text }), ` ${text}`)));
    }
    asked = question;
  }
  /** [input arrays, rows, columns], as the reader has chosen them. */
  function inputs() {
    const sized = (input, what) => {
      const n = Number(input.value);
      if (!Number.isInteger(n) || n < 1) throw new RangeError(`${what} must be a whole number from 1 up`);
      return n;
    };
    const m = sized(rows, "rows"), one = scores.value === TYPED ? Lab.typed(row.value) : null, n = one ? one.length : sized(cols, "columns");
    if (m * n > limits.most) throw new RangeError(`${count(m * n)} elements are too many for a page, which takes ${count(limits.most)} at most; with the Python package, softmax_lab.count() has no such limit`);
    if (!one) return [Lab.made(kernelOf().family, scores.value, m, n), m, n];
    cols.value = n; // where the reader goes on from, if a distribution is chosen next
    return [Lab.fromRow(familyOf(), one, Lab.typed(vector.value), m), m, n];
  }

  let turn = 0;
  const idle = () => { // who pressed Stop would lose the place
    if (document.activeElement === halt) go.focus();
    halt.hidden = true;
  };
  async function run() {
    const mine = ++turn, k = kernelOf(), d = plantedOf(), cut = cutOf(), rest = () => mine === turn;
    host.dataset.state = "running";
    let ticking = 0;
    try {
      const full = { block: 0, warp: 0, first: 0, steps: WINDOW, order: 2 ** 17 };
      let did, again, size = 1;
      if (k) {
        const [arrays, m, n] = inputs(), which = { ...k, index: cut?.index ?? k.index }, threads = Number(block.value), inBlock = Math.min(m, threads / k.threads) * n;
        size = m * Math.max(n, k.threads); // lanes without a column take their time too
        if (size > limits.here) {
          const began = performance.now(), tick = () => status.replaceChildren(el("p", { className: "lab-note" }, `Running in the background: ${count(m * n)} elements, ${Math.round((performance.now() - began) / 1000)} s …`));
          tick();
          ticking = setInterval(tick, 1000);
          halt.hidden = false;
        }
        did = await start("run", size, which, arrays, m, n, { block: threads, trace: { ...full, order: size > limits.here ? 2 ** 22 : full.order } });
        again = (b, warp, first) => start("run", inBlock, which, arrays, m, n,
          { block: threads, judged: false, sanitize: false, blocks: [b, b + 1], trace: { block: b, warp, first, steps: 2 * WINDOW, order: inBlock > limits.here ? 2 ** 22 : full.order } });
      } else {
        const which = { ...d, index: cut?.index ?? d.index };
        did = await start("runPlanted", 1, which, { trace: full });
        again = (b, warp, first) => start("runPlanted", 1, which, { trace: { ...full, block: b, warp, first } });
      }
      if (!rest()) return;
      show(did, k, d, cut, again);
      host.dataset.state = "ready";
      host.dataset.ms = did.ms.toFixed(2);
      Lab.last = did;
    } catch (error) {
      if (!rest()) return;
      status.replaceChildren(el("p", { className: "lab-note" }, `${error.message.replace(/^./, (first) => first.toUpperCase())}.`));
      detail.replaceChildren();
      pad.stale();
      host.dataset.state = "refused";
    } finally {
      clearInterval(ticking);
      if (rest()) idle();
    }
  }

  function show(did, k, d, cut, again) {
    const said = [], unwritten = k ? did.unwritten.at(-1) : 0, right = !did.verdict || did.verdict.ok;
    const kinds = [...new Set(did.faults.map((f) => f.kind)), ...(k && (!right || unwritten) ? [WRONG] : [])], happened = kinds.filter((kind, i) => !i || kind === WRONG).join(", and ") || NOTHING;
    if (!guess.hidden) {
      answered = guess.querySelector("input:checked").value;
      if (guess.contains(document.activeElement)) go.focus();
      guess.hidden = true;
    }
    if (cut) said.push(`${cut.instead ? "With" : "Without"} line ${cut.line} of ${cut.file}${cut.instead ? ` changed (now “${cut.instead}”)` : ""}: ${happened}.`);
    if (answered) said.push((kinds.length ? kinds.includes(answered) : answered === NOTHING) ? `You said so: ${answered}.` : `You said: ${answered}. It is: ${happened}.`);
    const read = k && scores.value === TYPED ? [row, vector].filter((_, i) => !i || !fields.vector.hidden).map((field) => Lab.typed(field.value)) : [];
    for (const [kind, what] of [["lost", "Beyond float32, so an infinity here"], ["sunk", "Too small for float32, so a zero here"]]) {
      const words = read.flatMap((each) => each[kind]);
      if (words.length) said.push(`${what}: ${words.join(", ")}.`);
    }
    const each = familyOf()?.extents.y.includes("cols"), wide = each ? did.cols : 1; // results of a row
    if (k) {
      const v = did.verdict, spot = each ? `${Math.floor(v.at / wide)}, ${v.at % wide}` : v.at;
      said.push(right ? `${count(did.y.length)} ${did.y.length === 1 ? "result is" : "results are"} right; the largest error is ${v.worst.toFixed(2)} of what rounding may cost.`
        : `Wrong: y[${spot}] is ${short(v.got)} and must be ${short(v.want[v.at])}.`);
    }
    if (unwritten) said.push(`${count(unwritten)} elements were never written.`);
    if (k && right && !unwritten && kinds.some((kind) => / race$/.test(kind))) said.push("In this page the threads happened to run in an order that gives right numbers; on a GPU nothing holds them to it.");
    if (!cut && !did.faults.length) said.push("No fault: every access in bounds, no race.");
    said.push(did.ms < 1 ? "Under 1 ms." : `${count(Math.round(did.ms))} ms.`);
    const place = (f) => el("li", {}, f.text, el("br"), el("code", {}, (info.texts[f.file] ?? "").split("\n")[f.line - 1]?.trim() ?? ""));
    status.replaceChildren(el("p", { className: "lab-note" }, said.join(" ")), ...(did.faults.length ? [el("ul", { className: "lab-faults" }, ...did.faults.map(place))] : []));
    if (did.faults.length && !listing.host.hidden) listing.show(did.faults[0].file, did.faults[0].line, cut ?? null, rangeOf());
    if (k) pad.show(familyOf(), did.arrays[0].subarray(0, did.cols), ...[did.y, did.verdict.want].map((y) => each ? y.subarray(0, did.cols) : y), did.cols <= Lab.plot.most && did.rows * did.cols <= limits.here);

    const open = new Map([...detail.querySelectorAll("details")].map((part) => [part.dataset.part, part.open]));
    const part = (name, title, first, make) => { // what a closed part holds is made when it is opened
      const box = el("details", { className: "lab-part", open: open.get(name) ?? first }, el("summary", {}, title)), fill = () => box.open && box.children.length < 2 && box.append(make());
      box.dataset.part = name;
      box.ontoggle = fill;
      fill();
      return box;
    };
    const warps = Math.ceil((k ? did.block : d.block) / 32), blocks = k ? did.grid : d.grid;
    detail.replaceChildren(
      part("counts", k ? "Counts, beside the closed forms for this input" : "Counts", true, () => counts(did, k, cut)),
      ...(k ? [part("y", "Results, beside the exact answer", false, () => results(did, k, each))] : []),
      part("lines", "Line by line: sectors of a request, warps that split", false, () => perLine(did)),
      part("steps", "Step through a warp", host.dataset.open === "steps", () => Lab.stepper(did, { art, info, file: fileOf(), range: rangeOf(), gone: cut ?? null, blocks, warps, threads: k ? did.threads : d.block, retrace: again, kept })));
  }
  const table = (heads, body, texts = 1) => { // the first `texts` columns are words, the others numbers
    const box = el("div", { className: "lab-scroll", tabIndex: 0 });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `Table: ${heads.join(", ")}`);
    const num = (i) => i >= texts ? ' class="num"' : "";
    box.innerHTML = `<table class="lab-table"><thead><tr>${heads.map((h, i) => `<th scope="col"${num(i)}>${h}</th>`).join("")}</tr></thead><tbody>${
      body.map(([first, ...rest]) => `<tr><th scope="row">${first}</th>${rest.map((c, i) => `<td${num(i + 1)}>${c}</td>`).join("")}</tr>`).join("")}</tbody></table>`;
    return box;
  };
  function results(did, k, each) {
    const { error, want, worst, at } = did.verdict, pick = el("input", { type: "number", min: 0, max: did.rows - 1, step: 1, value: each && worst > 1 ? Math.floor(at / did.cols) : 0 }), hold = el("div");
    const off = (i) => Number.isNaN(want[i]) && !error[i] ? "–" : Number.isFinite(error[i]) && error[i] < 1e4 ? error[i].toFixed(2) : "far more";
    const line = (i) => [exactly(did.y[i], 7), exactly(want[i], 10), off(i)], most = Math.min(each ? did.cols : did.rows, 64);
    const heads = ["y", "exact", "error, of what is allowed"], first = did.arrays[0];
    const fill = () => {
      const r = Math.min(Math.max(Math.trunc(Number(pick.value)) || 0, 0), did.rows - 1), from = r * did.cols;
      const body = Array.from({ length: most }, (_, i) => each ? [i, brief(first[from + i]), ...line(from + i)] : [i, ...line(i)]);
      hold.replaceChildren(table(each ? ["column", "x", ...heads] : ["row", ...heads], body));
    };
    pick.onchange = fill;
    fill();
    const field = labelled(`Row (0–${did.rows - 1})`, pick), cut = (each ? did.cols : did.rows) > most;
    field.hidden = !each || did.rows === 1;
    return el("div", {}, field, el("p", { className: "lab-hint" }, `Allowed is ${Lab.given[k.family].allowed(info.roundings)}. 1 is the limit.${cut ? ` The first ${most} ${each ? "columns" : "rows"}.` : ""}`), hold);
  }
  function counts(did, k, cut) {
    const lookup = k && symbols({ ...k, block: did.block }, did.rows, did.cols, 4, did.data), form = k && derived(k.phases, lookup);
    const body = Object.entries(info.words).filter(([field]) => did.counters[field] || form?.[field]).map(([field, name]) => {
      const said = form?.[field] ?? 0, same = did.counters[field] === said;
      return [safe(name), count(did.counters[field]), ...(k ? [count(said), same ? "yes" : '<strong class="lab-off">no</strong>', `<span class="lab-formula">${safe(closedForm(k, field)) || "0"}</span>`] : [])];
    });
    if (!k) return table(["count", "counted"], body);
    const held = (names) => Object.entries(names).filter(([name]) => holds(k.phases, name)), called = held(CALLS);
    const note = `${cut ? "The closed forms are those of the whole kernel. " : ""}On this input ${held(SYMBOLS).map(([name, meaning]) => `${name} = ${count(lookup(name))} (${meaning})`).join(", ")}.${called.length ? ` Of (M, N), ${called.map(([name, meaning]) => `${name}: ${meaning}`).join("; ")}.` : ""}`;
    return el("div", {}, table(["count", "counted", "derived", "same", "closed form"], body), el("p", { className: "lab-hint" }, note));
  }
  function perLine(did) {
    const source = (s) => safe((info.texts[s.file] ?? "").split("\n")[s.line - 1]?.split("//")[0].trim() ?? "");
    const box = table(["line", "what", "requests", "sectors of a request", "warps that split", "source"], did.sites.map((s) => [`${safe(s.file)}:${s.line}`,
      s.op === "branch" ? "branch" : `${s.op}, ${s.space}`, s.op === "branch" ? "–" : count(s.requests), s.op === "branch" || !s.sectors ? "–" : count(s.sectors / s.requests), s.op === "branch" ? `${count(s.diverged)} of ${count(s.requests)}` : "–", `<code>${source(s)}</code>`]), 2);
    for (const cell of box.querySelectorAll(":is(td, th):last-child")) cell.className = ""; // words again
    return box;
  }

  const clear = () => {
    stop("another run was asked for");
    ++turn;
    idle();
    host.dataset.state = "waiting";
    status.replaceChildren();
    detail.replaceChildren();
    if (!kernelOf()) return;
    try {
      const [[first], , n] = inputs();
      pad.show(familyOf(), first.subarray(0, n), null, null, n <= Lab.plot.most);
    } catch { // said when it is run
      pad.stale();
    }
  };
  const changed = () => (arrange(), guess.hidden ? run() : clear()); // who has to predict runs it by hand
  const inputFields = [scores, row, vector, rows, cols];
  let readers = false, before = null; // whether the input is the reader's own, and what stood there before a cut's example
  const touched = () => (readers = true, before = null, changed());
  const prepare = () => { // a cut's own input: where its loss shows
    const cut = cutOf();
    if (!cut?.shape) return;
    before ??= [readers, inputFields.map((field) => field.value)];
    readers = false;
    if (cut.row) [scores.value, row.value, rows.value] = [TYPED, cut.row, 1];
    else [scores.value, rows.value, cols.value] = ["normal", ...cut.shape];
  };
  const restore = () => {
    if (!before) return;
    inputFields.forEach((field, i) => field.value = before[1][i]);
    [readers, before] = [before[0], null];
  };
  const take = () => {
    if (!gone.value) restore();
    else if (!readers) prepare();
    changed();
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    if (guess.hidden || guess.querySelector("input:checked")) return void run();
    if (!guess.querySelector("p")) guess.append(el("p", { className: "lab-note", role: "alert" }, "A prediction is missing: it is the guess that teaches."));
    guess.querySelector("input").focus();
  };
  halt.onclick = () => stop("stopped");
  whole.onclick = () => (gone.value = "", take(), kernel.focus());
  example.onclick = () => (prepare(), changed(), go.focus());
  kernel.onchange = () => (restore(), offer(), changed());
  gone.onchange = take;
  block.onchange = () => (chosen = block.value, changed());
  guess.onchange = () => guess.querySelector("p")?.remove();
  for (const input of [scores, rows, cols]) input.onchange = touched;
  row.oninput = vector.oninput = touched;
  offer();
  if (given.row) scores.value = TYPED;
  if (given.cut) gone.value = given.cut;
  arrange();
  const still = [...host.childNodes];
  host.replaceChildren(form, pad.host, status, detail);
  try {
    if (guess.hidden) await run();
    else clear();
  } catch (error) {
    host.replaceChildren(...still);
    throw error;
  }
};
})();
