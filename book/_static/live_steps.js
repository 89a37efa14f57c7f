/* The stepper of a bench: one warp of a run, instruction by instruction, in the emulator's own trace. */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.stepper) return;
const { el, labelled } = Lab, { safe } = Lab.art, WARP = 32;
const KINDS = { load: "loads", store: "stores", atomic: "atomics", shuffle: "shuffles", vote: "votes", "warp barrier": "barriers of the warp", barrier: "barriers" };

/** A source file, or its lines [first, last], with their numbers; `show` turns to a line, and strikes one that is taken away or stands
 * otherwise now, which is told below it: beside it a phone would not show it. */
Lab.listing = (texts) => {
  const caption = el("figcaption"), pre = el("pre", { tabIndex: 0 });
  const host = el("figure", { className: "lab-code lab-source-view" }, caption, el("div", { className: "highlight" }, pre));
  let shown = "";
  return {
    host,
    show(file, line, gone = null, range = null) {
      const key = [file, gone?.line, range].join(), [first, last] = range ?? [1, Infinity];
      if (shown !== key) {
        shown = key;
        caption.innerHTML = `<code>${safe(file)}</code>`;
        pre.setAttribute("aria-label", `Source of ${file}`);
        pre.innerHTML = texts[file].replace(/\n$/, "").split("\n").map((text, i) => {
          const at = text.indexOf("//"), code = at < 0 ? safe(text) : `${safe(text.slice(0, at))}<span class="c1">${safe(text.slice(at))}</span>`;
          const [whole, indent] = (at < 0 ? text : text.slice(0, at)).match(/^( *).*?(?= *$)/), struck = gone && gone.file === file && gone.line === i + 1;
          if (i + 1 < first || i + 1 > last) return "";
          return `<span class="lab-line${struck ? " lab-struck" : ""}" data-line="${i + 1}">${struck ? `${indent}<del>${safe(whole.trim())}</del>${gone.instead ? `<span class="lab-now">${indent}<ins>${safe(gone.instead)}</ins></span>` : ""}` : code}</span>`;
        }).filter(Boolean).join("\n");
      }
      pre.querySelector(".lab-hot")?.classList.remove("lab-hot");
      const hot = pre.querySelector(`[data-line="${line}"]`);
      hot?.classList.add("lab-hot");
      const turn = () => (pre.scrollTop = hot ? hot.offsetTop + (hot.offsetHeight - pre.clientHeight) / 2 : 0);
      if (pre.clientHeight) turn();
      else requestAnimationFrame(turn); // not in the page yet
    },
  };
};

/** Steps through any warp of any block of `did`.
 *
 * `threads` is the shape of a block, a number or two of them. `retrace(block, warp, first)` runs once more and gives that warp's steps from number `first` on; `kept` is where the
 * reader stood in the run before.
 */
Lab.stepper = (did, { art, info, file, range, gone, blocks, warps, threads, retrace, kept }) => {
  let { block, warp, at } = { block: 0, warp: 0, at: 0, ...kept }, base = 0, { steps, order, traced } = did, asked = 0;
  [block, warp] = [Math.min(block, blocks - 1), Math.min(warp, warps - 1)];
  const number = (max) => el("input", { type: "number", min: 0, max, step: 1 });
  const ofBlock = number(blocks - 1), ofWarp = number(warps - 1), stops = el("select"), slider = el("input", { type: "range", min: 0 });
  const note = el("p", { className: "lab-note lab-step-note" }), whose = el("p", { className: "lab-hint" }), picture = el("div", { className: "lab-frame lab-wide", tabIndex: 0 }), source = Lab.listing(info.texts);
  const back = el("button", { type: "button" }, "‹ Back"), next = el("button", { type: "button" }, "Next ›");
  picture.setAttribute("role", "region");
  picture.setAttribute("aria-label", "Picture of the step");
  note.setAttribute("aria-live", "polite");
  const [across, down = 1] = [].concat(threads), spot = (t) => [t % across, Math.floor(t / across)];
  /** Which threads a warp is made of: the first of a block's sizes runs fastest. */
  const members = () => {
    const [[x0, y0], [x1, y1]] = [spot(WARP * warp), spot(Math.min(WARP * (warp + 1), across * down) - 1)];
    return down === 1 ? `threads ${x0}–${x1}` : y0 === y1 ? `threads (${x0}–${x1}, ${y0})` : `threads (${x0}, ${y0}) to (${x1}, ${y1})`;
  };
  const tell = () => Object.assign(kept, { block, warp, at });

  function offer() {
    const kinds = [...new Set(order)].map((op) => info.ops[op]).filter((op) => KINDS[op]), before = stops.value;
    stops.replaceChildren(...[["", "every step"], ...kinds.map((op) => [op, KINDS[op]])].map(([value, text]) => el("option", { value }, text)));
    stops.value = ["", ...kinds].includes(before) ? before : "";
    [ofBlock.value, ofWarp.value, slider.max] = [block, warp, Math.max(0, traced - 1)];
  }
  const found = (by) => { // the next step of the chosen kind, or -1
    const wanted = info.ops.indexOf(stops.value);
    for (let k = at + by; k >= 0 && k < traced; k += by) if (!stops.value || order[k] === wanted) return k;
    return -1;
  };
  async function fetch(first) {
    const mine = ++asked, from = Math.max(0, first - 64);
    note.textContent = "Running this warp …";
    try {
      const again = await retrace(block, warp, from);
      if (mine !== asked) return false;
      ({ steps, order, traced } = again);
      base = from;
      return true;
    } catch (error) {
      if (mine === asked) note.textContent = `${error.message}.`;
      return false;
    }
  }
  async function go(to) {
    at = Math.min(Math.max(to, 0), Math.max(0, traced - 1));
    if (traced && !steps[at - base] && !await fetch(at)) return;
    draw();
  }
  function draw() {
    tell();
    whose.textContent = `Warp ${warp} has the ${members()} of its block${down > 1 ? ", written (x, y)" : ""}.`;
    slider.value = at;
    const held = document.activeElement; // a button that ends at the last step would lose the reader's place
    [back.disabled, next.disabled] = [found(-1) < 0, found(1) < 0];
    if ([back, next].includes(held) && held.disabled) slider.focus();
    const step = steps[at - base];
    picture.hidden = source.host.hidden = !step;
    if (!step) {
      note.textContent = traced ? "" : `Warp ${warp} of block ${block} loads, stores and shuffles nothing.`;
      return;
    }
    const total = Lab.grouped(traced);
    note.textContent = `${at + 1} of ${total}: ${step.file}:${step.line}. ${art.spoken(step)}`;
    slider.setAttribute("aria-valuetext", note.textContent);
    const tallest = Math.max(...steps.slice(0, 256).map(art.heightOf), art.heightOf(step));
    picture.innerHTML = art.picture(step, tallest);
    source.show(info.texts[step.file] ? step.file : file, step.line, gone, range);
  }
  async function choose() {
    const whole = (input, max) => Math.min(Math.max(Math.trunc(Number(input.value)) || 0, 0), max);
    [block, warp, at] = [whole(ofBlock, blocks - 1), whole(ofWarp, warps - 1), 0];
    if (!await fetch(0)) return;
    offer();
    draw();
  }
  ofBlock.onchange = ofWarp.onchange = choose;
  slider.oninput = () => go(Number(slider.value));
  stops.onchange = () => {
    const wanted = info.ops.indexOf(stops.value), first = order.indexOf(wanted, at);
    go(!stops.value ? at : first >= 0 ? first : Math.max(0, found(-1)));
  };
  back.onclick = () => found(-1) >= 0 && go(found(-1));
  next.onclick = () => found(1) >= 0 && go(found(1));
  const chooser = el("div", { className: "lab-controls" },
    labelled(`Block (0–${blocks - 1})`, ofBlock), labelled(`Warp (0–${warps - 1})`, ofWarp), labelled("Stop at", stops));
  if (blocks === 1) chooser.children[0].hidden = true;
  if (warps === 1) chooser.children[1].hidden = whose.hidden = true;
  const host = el("div", {}, chooser, whose, el("div", { className: "lab-stepbar" }, back, labelled("Step", slider), next), note, picture, source.host);
  offer();
  if (block || warp) choose();
  else go(Math.min(at, Math.max(0, traced - 1)));
  return host;
};
})();
