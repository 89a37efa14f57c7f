/* The stepper of the merge: merging.py and merging_frames.py once more (a test compares them), so that a reader picks the
 * tree and the row, and sees where NaN is born.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab, { el, labelled, fresh } = Lab, { kinds, safe, scale, spoken, picture } = Lab.views;
if (kinds.merging) return;
const LOWEST = -3.4028234663852886e38, WARP = 32, BLOCK = 256, STRIDES = [16, 8, 4, 2, 1], STARTS = { published: -Infinity, finite: LOWEST };
const { fround } = Math, { fixed, laneList } = Lab.art, range = (n) => Array.from({ length: n }, (_, t) => t);
const wide = (field) => (field.classList.add("lab-wide-field"), field);
const threadsOf = (tree) => tree === "shared" || tree === "warps" ? BLOCK : WARP;

// ---- The model, in float32 ----
function merge(a, b, guarded) {
  const [[top, most], [low, least]] = b[0] > a[0] ? [b, a] : [a, b], factor = guarded && low === top ? 1 : fround(Math.exp(fround(low - top)));
  return [top, fround(most + fround(least * factor))];
}
const lost = ([, sum]) => Number.isNaN(sum);

/** (stride, whom each thread reads) of each round in which one reads another. */
function meetings(tree, count) {
  if (tree === "fold") return range(count).slice(1).map((t) => [t, range(count).map((l) => l ? null : t)]);
  if (tree === "shared") return range(Math.log2(count)).map((k) => count >> k + 1).map((h) => [h, range(count).map((t) => t < h ? t + h : null)]);
  return (tree === "neighbours" ? [...STRIDES].reverse() : STRIDES).map((s) => [s, range(count).map((t) => t ^ s)]);
}
/** The rounds in which a row, dealt to threads, is put together. */
function meet({ row, tree, start, guarded }) {
  const count = threadsOf(tree), empty = [start, 0], rounds = [];
  let held = range(count).map(() => empty);
  function go(kind, stride, source, other) {
    const after = [...held], alike = [];
    source.forEach((s, t) => {
      if (s === null) return;
      after[t] = kind === "move" ? other[s] : merge(held[t], other[s], guarded);
      if (kind !== "move" && !lost(held[t]) && !lost(other[s]) && held[t][0] === other[s][0] && !Number.isFinite(held[t][0])) alike.push(t);
    });
    held = after;
    const matter = range(count).filter((t) => kind === "enter" || source[t] !== null || (tree === "fold" && t > stride));
    rounds.push({ kind, stride, source, pairs: held, matter, alike, born: alike.filter((t) => lost(held[t])) });
  }
  const elements = row.map((x) => [fround(x), 1]);
  for (let first = 0; first < row.length; first += count) go("enter", first, range(count).map((t) => first + t < row.length ? first + t : null), elements);
  if (tree === "warps") {
    for (const s of STRIDES) go("merge", s, range(count).map((t) => t ^ s), held);
    go("move", WARP, range(count).map((t) => t >= WARP ? null : t < count / WARP ? t * WARP : count), [...held, empty]);
    for (const s of STRIDES) go("merge", s, range(count).map((t) => t < WARP ? t ^ s : null), held);
  } else for (const [s, source] of meetings(tree, count)) go("merge", s, source, held);
  return rounds;
}
const birth = (rounds) => lost(rounds.at(-1).pairs[0]) ? rounds.findIndex((each) => each.born.length) : -1;

// ---- Words; ** sets them bold ----
const noun = (tree) => threadsOf(tree) === WARP ? "lane" : "thread", named = (who, tree) => laneList(who).replace("lane", noun(tree));
const capital = (text) => text[0].toUpperCase() + text.slice(1), bold = (text) => safe(text).replace(/\*\*(.+?)\*\*/g, "<strong>$1</strong>"), bare = (text) => text.replaceAll("**", "");
const numeral = (m) => m === LOWEST ? "−FLT_MAX" : fixed(m), pairOf = ([m, d]) => `m = ${numeral(m)} and L = ${fixed(d)}`;
function verdict(rounds, tree) {
  const [m, d] = rounds.at(-1).pairs[0], born = birth(rounds), where = born < 0 ? "" : `born in step ${born + 1} of ${rounds.length}, in ${named(rounds[born].born, tree)}`;
  if (m <= LOWEST) return `**the row is masked whole: NaN, as the contract wants**, ${where ? `${where} already`
    : `from ${pairOf([m, d])}: each result is ${m === LOWEST ? `exp(−∞ + FLT_MAX) / ${fixed(d)}, which is 0 / 0` : `exp(−∞ − (−∞)) / ${fixed(d)}`}`}.`;
  return where ? `**the row is lost**: NaN is ${where}.` : `**the row survives**, with ${pairOf([m, d])}.`;
}
function does(rounds, at, tree, empty) {
  const { kind, stride: s, source } = rounds[at - 1], number = rounds.slice(0, at).filter((r) => r.kind === "merge").length;
  if (kind === "enter") {
    const who = range(source.length).filter((t) => source[t] !== null), idle = range(source.length).filter((t) => source[t] === null);
    return `${capital(laneList(who.map((t) => source[t])).replace("lane", "column"))} ${who.length === 1 ? "enters as a pair" : "enter as pairs"} (x, 1), in ${named(who, tree)}.`
      + (idle.length ? ` ${capital(named(idle, tree))} ${idle.length === 1 ? "has" : "have"} none.` : "");
  }
  if (kind === "move") {
    const heads = source.filter((from) => from !== null && from < BLOCK).length;
    return `Through shared memory ${laneList(range(heads))} of warp 0 take over a pair of each warp; its ${laneList(range(WARP).slice(heads))} hold ${empty} again.`;
  }
  if (tree === "fold") return `Round ${number}: lane 0 merges with lane ${s}.`;
  if (tree === "shared") return `Round ${number}: ${s === 1 ? "thread 0 merges with thread 1" : `threads t = 0–${s - 1} merge with thread t + ${s} each`}.`;
  return `Round ${number}${tree !== "warps" ? "" : source[WARP] === null ? " in warp 0" : " in each warp"}: lane l merges with lane l xor ${s}.`;
}
function words(rounds, at, tree, start) {
  const empty = `(${numeral(start)}, 0)`;
  if (!at) return `Every ${noun(tree)} starts from the empty pair ${empty}.`;
  const { pairs, matter, alike, born } = rounds[at - 1];
  let said = does(rounds, at, tree, empty);
  for (const infinity of [-Infinity, Infinity]) {
    const same = alike.filter((t) => pairs[t][0] === infinity), sign = fixed(infinity), behind = infinity < 0 ? `(${sign})` : sign;
    if (!same.length) continue;
    said += born.length ? ` **NaN is born in ${named(same, tree)}**: both maxima are ${sign}, the factor is exp(${sign} − ${behind}), and ${sign} − ${behind} is NaN.`
      : ` In ${named(same, tree)} both maxima are ${sign}: the guarded factor is 1.`;
  }
  const gone = matter.filter((t) => lost(pairs[t]));
  if (gone.length > born.length) said += ` NaN stays and spreads: it is in ${gone.length === matter.length && gone.length > 1 ? "all of " : ""}${named(gone, tree)} now.`;
  if (at === rounds.length) said += pairs[0][0] <= LOWEST ? " The row is masked whole, and NaN is what it has to give." : lost(pairs[0]) ? " The row is lost." : ` The row has ${pairOf(pairs[0])}.`;
  return said;
}

// ---- The picture ----
const heldAt = (rounds, at, start) => at ? rounds[at - 1].pairs : rounds[0].source.map(() => [start, 0]);
function looks(rounds, at, start) {
  const matter = new Set(at ? rounds[at - 1].matter : range(rounds[0].source.length));
  return heldAt(rounds, at, start).map((pair, t) => !matter.has(t) ? "idle" : lost(pair) ? "lost" : pair[0] <= LOWEST ? "absent" : "live");
}
function body(rounds, at, start, art, { pitch, cell }) {
  const mine = looks(rounds, at, start), count = mine.length, each = at ? rounds[at - 1] : null, born = each?.born ?? [], low = start === LOWEST ? "; low is −FLT_MAX" : "", { brief } = Lab.art;
  const lines = heldAt(rounds, at, start).slice(0, WARP).map((pair) => pair.map(brief));
  const label = (x, y, content, anchor = "start") => art.text(x, y, content, { anchor, size: 15, muted: true });
  const path = (data, width) => data && `<path d="${data}" fill="none" stroke="currentColor" stroke-width="${width}"/>`;
  const marks = (y, kinds, framed) => path(kinds.map((kind, t) => kind === "lost" ? `M${8 + pitch * t + 4} ${y + 4}l12 12m0 -12l-12 12` : "").join(""), 2)
    + path(framed.map((t) => `M${8 + pitch * t} ${y}h${cell}v${cell}h-${cell}z`).join(""), 4);
  let out = label(8, 16, "lane 0") + label(710, 16, `lane ${WARP - 1}`, "end");
  if (count > WARP) {
    out += label(360, 16, `${count / WARP} warps, warp 0 on top`, "middle");
    for (let warp = 0; warp < count / WARP; warp++) {
      const y = 24 + 26 * warp, own = mine.slice(warp * WARP, (warp + 1) * WARP);
      out += art.squares(y, own) + marks(y, own, born.filter((t) => Math.floor(t / WARP) === warp).map((t) => t % WARP));
    }
    const y = 24 + 26 * (count / WARP) + 20;
    return [y + 140, out + label(8, y, `warp 0: m and L of each lane${low}`) + art.registers(y + 8, lines, mine.slice(0, WARP))];
  }
  const before = at ? looks(rounds, at - 1, start) : mine;
  out += art.squares(24, before) + marks(24, before, []);
  if (each) {
    const source = each.source.map((s, t) => s === null ? null : each.kind === "enter" ? t : s), reads = range(count).filter((t) => source[t] !== null);
    out += art.wires(source, 46, 132, new Set(reads.filter((t) => ["live", "absent"].includes(mine[t]))), new Set(reads.filter((t) => mine[t] === "lost")));
  }
  return [318, out + art.squares(134, mine) + marks(134, mine, born) + label(8, 178, `m and L of each lane${low}`) + art.registers(186, lines, mine)];
}
const heard = (rounds, at, start) => `${heldAt(rounds, at, start).slice(0, WARP).map(([m, d], t) => `lane ${t}: ${numeral(m)} and ${fixed(d)}`).join(", ")}.`;

/** Columns in a text such as "0, 5-7"; a sentence where it is none. */
function masked(text, most) {
  const found = new Set();
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const [, first, last] = word.match(/^(\d+)(?:[-–](\d+))?$/) ?? [], [a, b] = [Number(first), Number(last ?? first)];
    if (first === undefined || a > b || b >= most) return `Columns from 0 to ${most - 1} are needed, such as 0 or 5–7; got ${word}.`;
    for (let column = a; column <= b; column++) found.add(column);
  }
  return [...found].sort((a, b) => a - b);
}

/** What tests under Node ask for: a choice, told step by step. */
function told({ row, tree, start, guarded, cells }, art) {
  const from = STARTS[start], rounds = meet({ row: row.map((x) => x ?? -Infinity), tree, start: from, guarded });
  return {
    verdict: verdict(rounds, tree),
    steps: range(rounds.length + 1).map((at) => ({ words: words(rounds, at, tree, from), body: body(rounds, at, from, art, cells) })),
    rounds: rounds.map(({ pairs, source, matter, alike, born }) => ({ pairs: pairs.map((pair) => pair.map(String)), source, matter, alike, born })),
  };
}
Lab.merging = { told, masked };

kinds.merging = (data) => {
  const art = Lab.art(data.look), choose = (options, value) => {
    const pick = el("select", {}, ...Object.entries(options).map(([name, title]) => el("option", { value: name }, title)));
    pick.value = value;
    pick.onchange = () => renew(true);
    return pick;
  };
  const first = data.start, tree = choose(data.trees, first.tree);
  const start = choose({ published: "(−∞, 0), as published", finite: "(−FLT_MAX, 0), as in our kernels" }, first.start);
  const guard = choose({ no: "unguarded, as published", yes: "guarded: 1 where maxima are alike" }, first.guarded ? "yes" : "no");
  const cols = scale("Columns", "columns", first.cols, data.most, () => renew(true));
  const mask = el("input", { type: "text", inputMode: "text", autocomplete: "off", spellcheck: false, value: laneList(first.masked).replace(/^lanes? ?/, "") });
  const field = labelled("−∞ at columns, such as 0 or 5–7", mask), wrong = el("p", { className: "lab-wrong", id: fresh("wrong"), hidden: true });
  mask.setAttribute("aria-describedby", wrong.id);
  field.append(wrong);
  const form = el("form", { className: "lab-controls", onsubmit: () => false }, wide(labelled("Tree", tree)), labelled("Empty pair", start), labelled("Merge", guard), cols.box, field);
  const button = (text) => el("button", { type: "button" }, text), back = button("‹ Back"), next = button("Next ›"), seek = button("Where NaN is born");
  const slider = el("input", { type: "range", min: 0, step: 1 }), bar = el("div", { className: "lab-stepbar" }, back, labelled("Step", slider), next, seek);
  const fate = el("p", { className: "lab-note" }), note = el("p", { className: "lab-note lab-step-note" }), place = el("div");
  const hint = el("p", { className: "lab-note lab-source" }, "Click or tap a lane's cell to set its first column to −∞, and again to take it back. A crossed square is NaN, a framed one where it was born; dashed lanes are empty.");
  const { line: aside, say } = spoken();
  let hidden = first.masked, rounds, at = first.at;

  function renew(turn) {
    const row = data.scores.slice(0, cols.value);
    for (const column of hidden) if (column < row.length) row[column] = -Infinity;
    rounds = meet({ row, tree: tree.value, start: STARTS[start.value], guarded: guard.value === "yes" });
    const born = birth(rounds);
    if (turn) at = born < 0 ? rounds.length : born + 1; // what became of it
    slider.max = rounds.length;
    seek.setAttribute("aria-disabled", born < 0);
    const beyond = hidden.filter((column) => column >= row.length), one = beyond.length === 1;
    const idle = beyond.length ? ` ${capital(laneList(beyond).replace("lane", "column"))} ${one ? "is" : "are"} not in this row of ${row.length} and ${one ? "masks" : "mask"} nothing.` : "";
    fate.innerHTML = bold(`Here ${verdict(rounds, tree.value)}${idle}`);
    draw();
    if (turn) say(bare(fate.textContent));
  }
  function draw() {
    const from = STARTS[start.value], [height, markup] = body(rounds, at, from, art, data.look), text = words(rounds, at, tree.value, from);
    const scrolled = place.firstChild?.scrollLeft ?? 0, figure = picture(height, `The merge, step ${at} of ${rounds.length}`, `${bare(text)} ${heard(rounds, at, from)}`, markup);
    figure.classList.add("lab-dense"); // a phone scrolls: enlarged, the words of its cells would meet
    figure.tabIndex = 0;
    figure.setAttribute("role", "region");
    figure.setAttribute("aria-label", "Picture of the step");
    place.replaceChildren(figure);
    figure.scrollLeft = scrolled;
    figure.onclick = tapped;
    note.innerHTML = bold(`Step ${at} of ${rounds.length}. ${text}`);
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${at} of ${rounds.length}`);
    back.setAttribute("aria-disabled", at === 0);
    next.setAttribute("aria-disabled", at === rounds.length);
  }
  /** Which lane's cell is at a point of the picture, and there its first column is masked or not. */
  function tapped(event) {
    const { left, top, width } = event.currentTarget.querySelector("svg").getBoundingClientRect(), unit = data.look.width / width;
    const x = (event.clientX - left) * unit, y = (event.clientY - top) * unit - (threadsOf(tree.value) > WARP ? 24 + 26 * 8 + 28 : 186), wide = data.look.width / data.look.perRow;
    const column = Math.floor(x / wide) + data.look.perRow * Math.floor(y / 66);
    if (y < 0 || y >= 132 || x < 0 || column >= cols.value) return;
    hidden = hidden.includes(column) ? hidden.filter((each) => each !== column) : [...hidden, column].sort((a, b) => a - b);
    mask.value = laneList(hidden).replace(/^lanes? ?/, "");
    check();
  }
  function check() {
    const found = masked(mask.value, data.most), bad = typeof found === "string";
    mask.setAttribute("aria-invalid", bad);
    wrong.hidden = !bad;
    wrong.textContent = bad ? found : "";
    if (bad) return;
    hidden = found;
    renew(true);
  }
  const go = (to) => (at = Math.min(Math.max(to, 0), rounds.length), draw(), say(bare(note.textContent)));
  mask.oninput = check;
  slider.oninput = () => go(Number(slider.value));
  back.onclick = () => go(at - 1);
  next.onclick = () => go(at + 1);
  seek.onclick = () => birth(rounds) >= 0 && go(birth(rounds) + 1);
  renew(false);
  return [form, aside, fate, bar, note, place, hint];
};
kinds.merging.title = "Stepper of the merge";
})();
