/* How the pages draw a warp: lane_art.py and frames.py once more, stroke for stroke (a test compares the markup), with
 * sizes and colours that Python wrote beside the kernels. No page is needed.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.art) return;

const LOWEST = -3.4028234663852886e38, WARP = 32, SECTOR = 32;
const LANES = Array.from({ length: WARP }, (_, lane) => lane);
const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
const safe = (text) => String(text).replace(/[&<>"']/g, (c) => ESCAPED[c]);

/** Digits as Python rounds them: an exact half goes to the even neighbour. */
function places(value, decimals) {
  const scaled = Math.abs(value) * 10 ** decimals;
  if (scaled % 1 !== 0.5) return value.toFixed(decimals);
  return (Math.sign(value) * 2 * Math.round(scaled / 2) / 10 ** decimals).toFixed(decimals);
}
function fixed(value, decimals = 4) {
  if (value === LOWEST) return "low";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const written = places(value, Number.isInteger(value) ? 0 : decimals);
  return (Number(written) === 0 ? written.replace(/^-/, "") : written).replaceAll("-", "−");
}
/** A value in at most five characters, without places that say nothing. */
function brief(value) {
  if (value === null || value === undefined) return "";
  for (const decimals of [2, 1, 0]) {
    const short = fixed(value, decimals), bare = short.replace(/\.?0+$/, "");
    if (short.length <= 5) return short.includes(".") && Math.abs(Number(bare.replace("−", "-")) - value) <= 1e-6 * Math.abs(value) ? bare : short;
  }
  const [digit, power] = value.toExponential(0).split("e");
  return `${digit}e${Number(power)}`.replaceAll("-", "−");
}
/** A value to so many digits, and what has none as `brief` has it. */
const exactly = (value, digits) => Number.isFinite(value) ? value.toPrecision(digits).replaceAll("-", "−") : brief(value);
/** The words of a value, each as `brief` has it: a vector and a pair have several. */
const briefs = (value) => [].concat(value).map(brief);
const told = (value) => Array.isArray(value) ? `(${briefs(value).join(", ")})` : brief(value);
const several = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
function laneList(lanes) {
  const sorted = [...lanes].sort((a, b) => a - b), runs = [];
  for (const lane of sorted) {
    const last = runs.at(-1);
    if (last && last[1] === lane - 1) last[1] = lane;
    else runs.push([lane, lane]);
  }
  return (sorted.length === 1 ? "lane " : "lanes ") + runs.map(([a, b]) => a === b ? `${a}` : `${a}–${b}`).join(", ");
}

let serial = 0;
Lab.art = (look) => {
  const HATCH = "url(#hatch)", { width, cell, pitch, perRow } = look;
  const rect = (x, y, w, h, fill, stroke = "none", more = "") => `<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${fill}" stroke="${stroke}"${more}/>`;
  const text = (x, y, content, { anchor = "start", size = 16, muted = false } = {}) =>
    `<text x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}" fill="currentColor"${muted ? ' class="lab-muted"' : ""}>${safe(content)}</text>`;
  const label = (x, y, content, anchor = "start") => text(x, y, content, { anchor, size: 15, muted: true });
  const centre = (lane) => 8 + pitch * lane + cell / 2;
  /** Equal rectangles with these upper left corners, as one path. */
  const boxes = (corners, w, h, fill, stroke, more = "") =>
    `<path d="${corners.map(([x, y]) => `M${x} ${y}h${w}v${h}h-${w}z`).join("")}" fill="${fill}" stroke="${stroke}"${more}/>`;
  const DASHED = ' stroke-dasharray="3 4"';
  /** For each kind, in the order in which lanes first have it: the corners that `at(lane)` gives its lanes, drawn by `draw`. */
  const byKind = (kinds, at, draw) => [...new Set(kinds)].map((kind) =>
    draw(kinds.flatMap((each, lane) => each === kind ? [at(lane)] : []), kind)).join("");
  const squares = (y, kinds) => byKind(kinds, (lane) => [8 + pitch * lane, y], (corners, kind) => boxes(corners, cell, cell,
    { live: look.live, lost: look.lost }[kind] ?? "none", look.line, kind === "absent" ? DASHED : ""));
  function arrow(x0, y0, x1, y1) {
    const angle = Math.atan2(y1 - y0, x1 - x0);
    const head = [0.4, -0.4].map((turn) => `${(x1 - 8 * Math.cos(angle + turn)).toFixed(1)} ${(y1 - 8 * Math.sin(angle + turn)).toFixed(1)}L${x1} ${y1}`).join("M");
    return `M${x0} ${y0}L${x1} ${y1}M${head}`;
  }
  /** Who reads whom: from lane sources[l] at `top` to lane l at `bottom`; reads of a `strong` lane are bold, of a `lost` one broken. */
  function wires(sources, top, bottom, strong, lost = new Set()) {
    const paths = { faint: "", self: "", strong: "", lost: "" };
    sources.forEach((source, lane) => {
      if (source === null) return;
      const kind = lost.has(lane) ? "lost" : source === lane ? "self" : strong.has(lane) ? "strong" : "faint", ends = [centre(source), top, centre(lane), bottom];
      paths[kind] += kind === "self" ? `M${ends[0]} ${top}L${ends[2]} ${bottom}` : arrow(...ends);
    });
    const looks = { faint: `stroke="${look.line}" stroke-width="1.5"`, self: `stroke="${look.line}" stroke-width="1.5" stroke-dasharray="2 4"`, strong: `stroke="${look.live}" stroke-width="2"`, lost: `stroke="${look.lost}" stroke-width="2" stroke-dasharray="6 4"` };
    return Object.keys(looks).filter((kind) => paths[kind]).map((kind) => `<path d="${paths[kind]}" fill="none" ${looks[kind]}/>`).join("");
  }
  /** All lanes as two rows of cells: the lane's number, then each of its lines. */
  function registers(y, lines, kinds) {
    const wide = width / perRow, tall = 22 + 19 * Math.max(...lines.map((words) => words.length));
    const at = (lane) => [lane % perRow * wide, y + Math.floor(lane / perRow) * (tall + 6)];
    const looks = { live: [look.liveTint, look.live, ' stroke-width="1.5"'], lost: [look.lostTint, look.lost, ' stroke-width="1.5"'] };
    const cells = byKind(kinds, (lane) => [at(lane)[0] + 1, at(lane)[1]], (corners, kind) =>
      boxes(corners, wide - 2, tall, ...(looks[kind] ?? ["none", look.line, kind === "absent" ? DASHED : ""])));
    return cells + lines.map((words, lane) => {
      const [x, top] = at(lane);
      return text(x + wide / 2, top + 14, lane, { anchor: "middle", size: 13, muted: true })
        + words.map((word, k) => text(x + wide / 2, top + 31 + 19 * k, word, { anchor: "middle", size: 13 })).join("");
    }).join("");
  }
  function sectorBox(x, y, used) {
    const cells = Array.from({ length: 8 }, (_, place) => rect(x + cell * place, y, cell, cell, used.has(place) ? look.live : HATCH, look.line));
    return cells.join("") + rect(x, y, 8 * cell, cell, "none", "currentColor", ' stroke-width="1.5"');
  }

  const active = (step) => LANES.filter((lane) => step.mask >>> lane & 1);
  const isAccess = (step) => ["load", "store", "atomic"].includes(step.op);
  /** Who touches what: [sector, [[lane, float in the sector], …]], …, in memory order. */
  function touched(step) {
    const found = new Map();
    for (const lane of active(step))
      for (let b = 0; b < step.size; b += 4) {
        const at = step.address[lane] + b, sector = Math.floor(at / SECTOR);
        if (!found.has(sector)) found.set(sector, []);
        found.get(sector).push([lane, Math.floor((at - SECTOR * sector) / 4)]);
      }
    return [...found].sort(([a], [b]) => a - b);
  }
  const global = (step) => isAccess(step) && step.space !== "shared";
  /** Who touches which bank of shared memory, counted from the start of the array: [bank, its different words], … */
  function banked(step) {
    const found = new Map();
    for (const lane of active(step))
      for (let b = 0; b < step.size; b += 4) {
        const word = Math.floor((step.address[lane] + b) / 4), bank = word % WARP;
        found.set(bank, (found.get(bank) ?? new Set()).add(word));
      }
    return found;
  }
  const tall = (lines) => 2 * (22 + 19 * Math.max(...lines.map((words) => words.length)) + 6);

  /** [y, markup] of a step: what it draws and how far down that reaches [user units]. */
  function body(step) {
    const lanes = new Set(active(step)), kinds = LANES.map((lane) => lanes.has(lane) ? "live" : "absent");
    const ends = label(8, 16, "lane 0") + label(width - 10, 16, `lane ${WARP - 1}`, "end");
    if (step.op === "shuffle") {
      const readers = new Set([...lanes].filter((lane) => step.address[lane] !== lane));
      const pair = step.size > 4, lines = LANES.map((lane) => [...briefs(step.before[lane]), ...briefs(step.after[lane])]);
      return [186 + tall(lines), ends + squares(24, kinds) + wires(step.address, 46, 132, readers) + squares(134, kinds)
        + label(8, 178, pair ? "each lane's words before the shuffle, and those it receives" : "each lane's value before the shuffle, and the one it receives")
        + registers(186, lines, kinds)];
    }
    if (!isAccess(step)) { // a barrier
      const arrive = [...lanes].map((lane) => arrow(centre(lane), 46, centre(lane), 76)).join("");
      return [112, ends + squares(24, kinds) + `<path d="${arrive}" fill="none" stroke="${look.line}" stroke-width="1.5"/>`
        + rect(8, 78, width - 16, 6, "currentColor") + label(8, 104, step.op === "barrier" ? "here every thread of the block meets" : "here the lanes of the warp meet")];
    }
    const far = Math.max(...step.address) > 99999; // does not fit a cell; the sectors say it
    const held = LANES.map((lane) => lanes.has(lane) ? [...briefs(step.after[lane]), far ? "" : `${step.address[lane]}`] : ["–", ""]);
    let y = 70, art = ends + squares(24, kinds);
    if (global(step)) {
      art += label(8, y, `sectors of ${step.array}, at their byte: used floats solid, others hatched`);
      touched(step).forEach(([sector, users], slot) => {
        const x = 8 + slot % 4 * look.box, top = y + 24 + Math.floor(slot / 4) * look.row;
        art += sectorBox(x, top + 5, new Set(users.map(([, place]) => place))) + text(x, top, `${Lab.grouped(sector * SECTOR)}: ${laneList(new Set(users.map(([lane]) => lane)))}`, { size: 15 });
      });
      y += 24 + Math.ceil(touched(step).length / 4) * look.row + 10;
    } else { // a load's words come up from their banks, a store's go down to them
      const banks = banked(step), crowd = (bank) => banks.get(bank)?.size ?? 0, paths = ["", ""];
      for (const lane of lanes) {
        const bank = Math.floor(step.address[lane] / 4) % WARP;
        paths[crowd(bank) > 1 ? 1 : 0] += step.op === "load" ? arrow(centre(bank), 110, centre(lane), 46) : arrow(centre(lane), 44, centre(bank), 108);
      }
      [look.live, look.lost].forEach((ink, k) => art += paths[k] && `<path d="${paths[k]}" fill="none" stroke="${ink}" stroke-width="1.5"${k ? ' stroke-dasharray="6 4"' : ""}/>`);
      art += squares(110, LANES.map((bank) => ["idle", "live"][crowd(bank)] ?? "lost"));
      for (const [bank, words] of banks) if (words.size > 1) art += text(centre(bank), 124, words.size, { anchor: "middle", size: 13 });
      art += label(8, 150, `bank 0, from the start of ${step.array}`) + label(width - 10, 150, `bank ${WARP - 1}`, "end");
      y = 182;
    }
    art += label(8, y, `what each lane ${step.op === "load" ? "reads" : "writes"}${far ? ` of ${step.array}` : `, and at which byte of ${step.array}`}`);
    return [y + 10 + tall(held) + 2, art + registers(y + 10, held, kinds)];
  }
  const heightOf = (step) => body(step)[0];
  /** The step as an svg; `height` makes pictures of one trace equally high. */
  function picture(step, height = heightOf(step)) {
    const id = `lab-live-${++serial}`, art = body(step)[1].replaceAll(HATCH, `url(#${id})`);
    const hatch = `<defs><pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-width="1.5" opacity=".55"/></pattern></defs>`;
    return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${safe(spoken(step))}" style="width:100%;max-width:${width}px" font-family="sans-serif" font-size="16" fill="currentColor">${hatch}${art}</svg>`;
  }
  /** The step in a sentence. */
  function spoken(step) {
    const lanes = active(step), all = lanes.length === WARP, one = lanes.length === 1;
    const who = all ? "All 32 lanes" : one ? `Lane ${lanes[0]} alone` : `${lanes.length} lanes`;
    if (step.op === "shuffle") {
      const moved = lanes.filter((lane) => step.address[lane] !== lane), [first] = moved.length ? moved : lanes;
      return `${who} exchange ${step.size > 4 ? `${step.size} bytes` : "a value"}; lane ${first} reads lane ${step.address[first]}: it had ${told(step.before[first])} and receives ${told(step.after[first])}.`
        + ([...step.before, ...step.after].flat().includes(LOWEST) ? " Where it says low, it is −FLT_MAX, from which every maximum starts." : "");
    }
    if (!isAccess(step)) return `${who} ${one ? "is" : "are"} at a barrier of the ${step.op === "barrier" ? "block: none of its threads" : "warp: none of its lanes"} goes on before all are here.`;
    const does = { load: ["read", "reads"], store: ["write", "writes"], atomic: ["update", "updates"] }[step.op][one ? 1 : 0];
    const what = `${who} ${does} ${step.size} bytes${one ? "" : " each"} of ${step.array}`;
    if (!global(step)) {
      const banks = banked(step), words = [...banks.values()].map((each) => each.size), crowded = words.indexOf(Math.max(...words));
      return `${what.replace(/(?<!shared memory)$/, " in shared memory")}: ${several(words.reduce((sum, n) => sum + n, 0), "word")} in ${several(banks.size, "bank")}, ${several(step.wavefronts, "wavefront")}.`
        + (words[crowded] > 1 && step.size === 4 ? ` Bank ${[...banks.keys()][crowded]} has ${words[crowded]} of the words, and gives one at a time.` : "");
    }
    const sectors = touched(step), useful = 4 * new Set(sectors.flatMap(([sector, users]) => users.map(([, place]) => 8 * sector + place))).size;
    const [move, whose] = step.sectors === 1 ? ["moves", "its"] : ["move", "their"];
    return `${what}: ${several(step.sectors, "sector")} ${move}, ${Math.round(100 * useful / (SECTOR * step.sectors))}% of ${whose} bytes are asked for.`;
  }
  return { rect, text, squares, wires, registers, sectorBox, centre, picture, heightOf, spoken, active };
};
Object.assign(Lab.art, { safe, brief, exactly, fixed, several, laneList });
})();
