/* The cost explorer (what a kernel costs at any shape, in closed form) and the recorded shapes (what a GPU took).
 * Their first picture is the one that explorers.py drew; a test holds the two to the same words.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab, { el, labelled, fresh } = Lab, { counts, symbols, evaluate, floorTime, number, scaled, times, SPACE } = Lab.formulas;
const { kinds, safe, throttled, spoken, scale, table, renew, picture } = Lab.views;
if (kinds.costs) return;
const shape = (rows, cols) => `${number(rows)}\u00a0×\u00a0${number(cols)}`, code = (text) => `<code>${safe(text)}</code>`;
/** A count; where an expected value is in it, it says so. */
const tally = (n) => Number.isInteger(n) ? number(n) : `≈\u00a0${number(n, 4)}`;
const LINE = "var(--lab-line, #8888)", INK = { L1: "var(--lab-l1, #56B4E9)", DRAM: "var(--lab-dram, #D55E00)" };
const wide = (field) => (field.classList.add("lab-wide-field"), field);
const told = (html) => el("p", { className: "lab-note", innerHTML: html });
const source = (html) => el("p", { className: "lab-note lab-source", innerHTML: html });

// ---- pictures, 720 units wide as all of the book's ----
const text = (x, y, words, { anchor = "start", muted = false, turn = null } = {}) =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="currentColor"${muted ? ' class="lab-muted"' : ""}${turn === null ? "" : ` transform="rotate(${turn.toFixed(2)} ${x.toFixed(1)} ${y.toFixed(1)})"`}>${safe(words)}</text>`;
const line = (x1, y1, x2, y2, { width = 1, stroke = LINE, dashes = "" } = {}) =>
  `<path d="M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" fill="none" stroke="${stroke}" stroke-width="${width}"${dashes ? ` stroke-dasharray="${dashes}"` : ""}/>`;
const decade = (k) => k < -3 || k > 3 ? `10${String(k).replace(/[-\d]/g, (c) => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])}` : number(10 ** k);

function roofline(points, roofs, peak, title) {
  const [left, right, bottom, top] = [-2, 2.5, 9, 14.5], [x0, x1, y0, y1] = [92, 704, 384, 10], out = [];
  const x = (v) => x0 + (x1 - x0) * (Math.min(right, Math.max(left, Math.log10(v))) - left) / (right - left);
  const y = (v) => y0 - (y0 - y1) * (Math.min(top, Math.max(bottom, Math.log10(v))) - bottom) / (top - bottom);
  for (let k = left; k <= right; k++) out.push(line(x(10 ** k), y0, x(10 ** k), y1, { width: 0.7 }), text(x(10 ** k), y0 + 22, decade(k), { anchor: "middle" }));
  for (let k = bottom; k <= top; k++) out.push(line(x0, y(10 ** k), x1, y(10 ** k), { width: 0.7 }), text(x0 - 8, y(10 ** k) + 5, scaled(10 ** k, "FLOP/s").replace("FLOP/s", ""), { anchor: "end" }));
  out.push(text((x0 + x1) / 2, 430, "arithmetic intensity [FLOP/B]", { anchor: "middle" }), text(16, (y0 + y1) / 2, "performance [FLOP/s]", { anchor: "middle", turn: -90 }));
  // Words stand clear of roofs, points and each other, also as large as a phone shows them: [x, y] of all that is drawn.
  const marks = [], wide = (words) => 10.4 * words.length, along = (x0, y0, x1, y1) => {
    for (let k = 0; k <= 200; k++) marks.push([x0 + (x1 - x0) * k / 200, y0 + (y1 - y0) * k / 200]);
  };
  const free = (left, top, right, bottom) => left > x0 && right < x1 && top > y1 && bottom < y0 && !marks.some(([x, y]) => x > left - 3 && x < right + 3 && y > top - 3 && y < bottom + 3);
  const lowest = Math.min(...roofs.map((roof) => roof.bandwidth)), said = [], spots = points.map(({ intensity, performance }) => [x(intensity), y(performance ?? Math.min(peak ?? Infinity, intensity * lowest))]);
  for (const [px, py] of spots) for (const [dx, dy] of [[7, 0], [-7, 0], [0, 7], [0, -7]]) marks.push([px + dx, py + dy]);
  const names = roofs.map((roof, rank) => {
    const corner = Math.min(peak ? peak / roof.bandwidth : 10 ** right, 10 ** right), flat = Math.min(peak ?? Infinity, corner * roof.bandwidth);
    const style = { width: 2, stroke: "currentColor", dashes: roof.measured ? "" : "7 4" }, tilt = Math.atan2(y(flat) - y(corner * roof.bandwidth / 100), x(corner) - x(corner / 100));
    for (const ends of [[x(10 ** left), y(10 ** left * roof.bandwidth), x(corner), y(flat)], [x(corner), y(flat), x1, y(flat)]]) out.push(line(...ends, style)), along(...ends);
    const words = `${scaled(roof.bandwidth, "B/s")} ${roof.label}`, under = rank > 0, fit = Math.log10(corner) - wide(words) * Math.cos(tilt) / (x1 - x0) * (right - left);
    const place = (at) => [x(10 ** at) + (under ? 22 : -6), y(10 ** at * roof.bandwidth) + (under ? 22 : -12)];
    const clear = ([a, b]) => spots.every(([px, py]) => { // of a point, in the direction of the words and across it
      const [dx, dy] = [px - a, py - b], on = dx * Math.cos(tilt) + dy * Math.sin(tilt), off = dy * Math.cos(tilt) - dx * Math.sin(tilt);
      return on < -12 || on > wide(words) + 12 || off > 14 || off < -26;
    });
    const starts = [fit - 0.15, ...Array.from({ length: 20 }, (_, k) => fit - 0.15 * k), left + 0.25].filter((at) => at > left + 0.2);
    const spot = place(starts.find((at) => clear(place(at))) ?? starts[0]);
    return [spot, words, tilt];
  });
  for (const [[a, b], words, tilt] of names) {
    out.push(text(a, b, words, { turn: tilt * 180 / Math.PI }));
    for (const up of [2, 8, 14]) along(a + up * Math.sin(tilt), b - up * Math.cos(tilt), a + wide(words) * Math.cos(tilt) + up * Math.sin(tilt), b + wide(words) * Math.sin(tilt) - up * Math.cos(tilt));
  }
  if (peak) {
    const words = `${scaled(peak, "FLOP/s")} FP32 peak`;
    out.push(text(x1 - 4, y(peak) - 8, words, { anchor: "end" }));
    along(x1 - 4 - wide(words), y(peak) - 14, x1, y(peak) - 14);
  }
  points.forEach(({ level, words, intensity, performance }, i) => {
    const [px, py] = spots[i];
    if (performance === null) out.push(line(px, y0, px, py, { width: 3, stroke: INK[level], dashes: "6 3" })), along(px, y0, px, py);
    out.push(`<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="7" fill="${INK[level]}" stroke="currentColor" stroke-width="1.2"/>`);
    said.push(`${words}: ${number(intensity)} FLOP/B, ${performance === null ? `at most ${scaled(Math.min(peak ?? Infinity, intensity * lowest), "FLOP/s")}` : scaled(performance, "FLOP/s")}`);
  });
  points.forEach(({ words, performance }, i) => { // beside the point or at the foot of its line, else in a line further off
    const [px, py] = spots[i], first = performance === null ? y0 - 30 : py + 22;
    const tries = Array.from({ length: 16 }, (_, k) => [1, -1].flatMap((way) => [12, -12 - wide(words)].map((dx) => [px + dx, first + way * 19 * k]))).flat();
    const [a, b] = tries.find(([a, b]) => free(a, b - 14, a + wide(words), b + 4)) ?? tries[0];
    out.push(text(a < px ? px - 12 : a, b, words, { anchor: a < px ? "end" : "start" }));
    along(a, b - 5, a + wide(words), b - 5);
  });
  const bounds = roofs.map((roof) => `${roof.label} ${scaled(roof.bandwidth, "B/s")}`).join(", ");
  return picture(440, title, `${title}. Roofs: ${bounds}. Points: ${said.join("; ")}.`, out.join(""));
}

// ---- the cost explorer ----
/** Everything the explorer says of one choice: also what tests under Node ask for. */
function bill(data, kernel, rows, cols, size) {
  const lookup = symbols(kernel, rows, cols, size), did = counts(kernel.executed, lookup), useful = counts(kernel.textbook, lookup);
  const moved = [evaluate(data.once, lookup), did.bytes, did.moved];
  const floors = moved.map((bytes, i) => ({ words: data.ways[i], bytes, intensity: bytes ? did.flops / bytes : null, times: data.roofs.map((roof) => floorTime(bytes, roof.bandwidth, did.flops, data.peak ?? Infinity)) }));
  const seconds = size === data.recorded.size ? data.recorded.runs[`${kernel.name} ${rows} ${cols}`] ?? null : null;
  return { did, useful, floors, seconds };
}
// Columns of the table of phases: field, head, whether every family has it.
const PHASES = [["flops", "FLOPs", true], ["exp", "exponentials"], ["compare", "comparisons"], ["bytes", "asked [B]", true], ["moved", "at L1 [B]", true]];
kinds.costs = (data) => {
  const pick = el("select", {}, ...data.kernels.map((k) => el("option", { value: k.name }, `${k.name}: ${k.title}`)));
  pick.value = data.start.kernel;
  const later = throttled(() => draw());
  const rows = scale("Rows", "rows", data.start.rows, data.most, later), cols = scale("Columns", "columns", data.start.cols, data.most, later);
  const group = fresh("element"), sizes = el("fieldset", {}, el("legend", {}, "Bytes of an element"), ...data.types.map((type) => {
    const radio = el("input", { type: "radio", name: group, value: type.size, checked: type.size === data.recorded.size, onchange: later });
    return el("label", {}, radio, `${type.size} (${type.name})`);
  }));
  const form = el("form", { className: "lab-controls", onsubmit: () => false }, wide(labelled("Kernel", pick)), rows.box, cols.box, sizes);
  const place = el("div"), { line: aside, say } = spoken();
  pick.onchange = later;
  let open = false;

  function draw() {
    const kernel = data.kernels.find((k) => k.name === pick.value), type = data.types.find((t) => t.size === Number(sizes.querySelector(":checked").value));
    const { did, useful, floors, seconds } = bill(data, kernel, rows.value, cols.value, type.size), [floor] = floors;
    const where = `${code(kernel.name)} on ${shape(rows.value, cols.value)} ${type.name}`;
    // Only a data sheet is a bound. A copy writes as much as it reads: what reads more may be faster.
    const bound = (i) => {
      const { label, measured } = data.roofs[i], took = `<strong>${scaled(floor.times[i], "s")}</strong>`;
      return measured ? `at the rate of the ${safe(label)} it would take ${took}` : `No ${safe(data.does)} of this size that reads from DRAM and writes there is faster than ${took} (${safe(label)})`;
    };
    const words = `${where}: ${tally(did.flops)} FLOPs${did.exp ? ` and ${tally(did.exp)} exponentials` : ""}; the lanes ask for ${scaled(did.bytes, "B")}, <strong>${number(did.intensity)} FLOP/B</strong>. ${[...data.roofs.keys()].map(bound).join("; ")}. What starting a launch takes is not counted.`;
    const run = seconds === null ? "No run is recorded for this choice." : `The recorded run took ${scaled(seconds, "s")}, ${times(seconds / floor.times.at(-1))} the time at the rate of the ${safe(data.roofs.at(-1).label)}.`;
    const asif = kernel.dtypes.includes(type.name) ? "" : ` The kernel itself takes ${kernel.dtypes.join(" and ")}: at ${type.size} bytes this is what its formulas would say.`;
    const performance = seconds === null ? null : did.flops / seconds;
    const picture = roofline([["L1", "L1, as derived", did.moved], ["DRAM", "DRAM, at best", floor.bytes]].filter(([, , bytes]) => did.flops && bytes)
      .map(([level, label, bytes]) => ({ level, words: label, intensity: did.flops / bytes, performance })), data.roofs, data.peak, `Roofline of ${kernel.title}`);
    const known = Object.keys(data.words).filter((field) => did[field] || useful[field]);
    const bills = table(["count", "executed", "textbook"], known.map((field) => [safe(data.words[field]), tally(did[field] ?? 0), field in useful ? tally(useful[field]) : data.unstated.includes(field) ? "–" : "0"]), { note: data.note });
    const lookup = symbols(kernel, rows.value, cols.value, type.size), columns = PHASES.filter(([field, , always]) => always || field in data.words);
    const phases = el("details", { className: "lab-part", open, ontoggle: (event) => open = event.target.open }, el("summary", {}, "Phase by phase"),
      table(["phase", ...columns.map(([, head]) => head)], kernel.executed.map((phase) => {
        const mine = counts([phase], lookup);
        return [safe(phase[0]), ...columns.map(([field]) => tally(mine[field] ?? 0))];
      })));
    renew(place, told(`${words} ${run}${asif}`),
      table([data.floors, "bytes", "intensity [FLOP/B]", ...data.roofs.map((roof) => roof.label)], floors.map((f) => [f.words, scaled(f.bytes, "B"), number(f.intensity), ...f.times.map((t) => scaled(t, "s"))])),
      picture, bills, phases, source(data.source));
    say(`${number(did.flops)} FLOPs, ${scaled(did.bytes, "B")}, ${number(did.intensity)} FLOP per byte, at least ${scaled(floor.times[0], "s")}`);
  }
  draw();
  return [form, aside, place];
};
kinds.costs.title = "Cost explorer";
Lab.bill = bill;

// ---- the recorded shapes ----
kinds.shapes = (data) => {
  const pick = el("select", {}, ...data.kernels.map((k) => el("option", { value: k.name }, `${k.name}: ${k.title}`)));
  pick.value = data.start.kernel;
  const slider = el("input", { type: "range", min: 0, max: data.shapes.length - 1, step: 1, value: data.start.shape });
  const later = throttled(() => draw()), readout = el("output", { className: "lab-readout" }), place = el("div"), { line: aside, say } = spoken();
  const field = wide(labelled("Recorded shape", slider));
  field.append(readout);
  slider.oninput = later;
  pick.onchange = later;

  function draw() {
    const [rows, cols] = data.shapes[slider.value], here = data.runs.filter((run) => run.shape === Number(slider.value));
    const mine = here.findIndex((run) => run.kernel === pick.value), written = shape(rows, cols);
    readout.textContent = written;
    slider.setAttribute("aria-valuetext", `${rows} by ${cols}`);
    const body = here.map((run) => [code(run.kernel), ...run.cells]);
    const words = mine < 0 ? `${code(pick.value)} is not measured yet at this shape.`
      : `${code(pick.value)} took <strong>${scaled(here[mine].seconds, "s")}</strong>; copying the same matrix took ${scaled(here[mine].copy, "s")}.`;
    renew(place, told(`${data.why} ${words}`), ladder(here, mine), table(data.heads, body, { hot: mine }), source(data.source));
    say(`${pick.value}, ${rows} by ${cols}: ${mine < 0 ? "not measured" : scaled(here[mine].seconds, "s")}`);
  }
  /** Times of all kernels at one shape, on the axis of the whole record, so that shapes compare as well. */
  function ladder(here, mine) {
    const known = data.runs.flatMap((run) => [run.seconds, run.copy ?? run.seconds]), left = Math.floor(Math.log10(Math.min(...known))), right = Math.ceil(Math.log10(Math.max(...known)));
    const x = (s) => 190 + 514 * (Math.log10(s) - left) / (right - left), row = (i) => 34 + 30 * i, foot = row(here.length) + 4, out = [], said = [];
    for (let k = left; k <= right; k++) out.push(line(x(10 ** k), 12, x(10 ** k), foot, { width: 0.7 }), text(x(10 ** k), foot + 22, scaled(10 ** k, "s"), { anchor: k === right ? "end" : "middle" }));
    const copy = here.find((run) => run.copy)?.copy;
    if (copy) out.push(line(x(copy), 12, x(copy), foot, { width: 2, stroke: "currentColor", dashes: "7 4" }), text(x(copy), foot + 46, "copying the matrix", { anchor: x(copy) < 260 ? "start" : "middle" }));
    here.forEach((run, i) => {
      const chosen = i === mine;
      out.push(text(182, row(i) + 5, run.kernel, { anchor: "end" }), line(copy ? x(copy) : 190, row(i), x(run.seconds), row(i), { width: chosen ? 4 : 2, stroke: chosen ? "currentColor" : LINE }),
        `<circle cx="${x(run.seconds).toFixed(1)}" cy="${row(i)}" r="7" fill="${chosen ? "var(--lab-blue, #0072B2)" : "var(--pst-color-background, #fff)"}" stroke="currentColor" stroke-width="1.5"/>`);
      const late = x(run.seconds) > 600;
      out.push(text(x(run.seconds) + (late ? -12 : 12), row(i) + (late ? -8 : 5), scaled(run.seconds, "s"), { anchor: late ? "end" : "start" }));
      said.push(`${run.kernel} ${scaled(run.seconds, "s")}`);
    });
    return picture(foot + 56, "Recorded times", `Time of one launch, logarithmic: ${said.join(", ")}${copy ? `; copying the matrix ${scaled(copy, "s")}` : ""}.`, out.join(""));
  }
  draw();
  return [el("form", { className: "lab-controls", onsubmit: () => false }, wide(labelled("Kernel", pick)), field), aside, place];
};
kinds.shapes.title = "Recorded shapes";
})();
