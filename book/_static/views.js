/* Views that a page draws by itself, in the book and in JupyterLab alike: this file finds them, hands each its data, and
 * has the controls and tables that they share. A view that fails says so and leaves what stood there.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.views) return;
const { el, labelled, fresh } = Lab, { number, SPACE } = Lab.formulas;

const safe = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** At most one call a frame, however often it is asked for: what a slider may do while it is dragged. */
function throttled(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => (waiting = false, action()));
  };
}

/** A line that is read out once it has stood still for a while, so that a slider does not speak at every step. */
function spoken() {
  const line = el("p", { className: "lab-aside" });
  line.setAttribute("role", "status");
  let timer = 0;
  return { line, say: (text) => (clearTimeout(timer), timer = setTimeout(() => line.textContent = text, 600)) };
}

/** A slider over powers of two with a field for any whole number between; `change` hears of a new value. */
function scale(label, unit, start, most, change) {
  const top = Math.log2(most), id = fresh("scale"), help = el("span", { id: `${id}-help`, className: "lab-aside" }, `from 1 to ${most}`);
  const slider = el("input", { type: "range", min: 0, max: top, step: 1, id });
  const field = el("input", { type: "number", min: 1, max: most, step: 1, inputMode: "numeric", id: `${id}-exact` });
  const wrong = el("p", { className: "lab-wrong", id: `${id}-wrong`, hidden: true });
  slider.setAttribute("aria-label", `${label}, in powers of two`);
  field.setAttribute("aria-label", `${label}, exactly`);
  field.setAttribute("aria-describedby", `${help.id} ${wrong.id}`);
  const box = el("div", { className: "lab-scale" }, el("label", { htmlFor: field.id }, label), slider, field, help, wrong);
  const show = (value) => {
    slider.value = Math.round(Math.log2(value));
    slider.setAttribute("aria-valuetext", `${number(value).replaceAll(SPACE, "")} ${unit}`);
    field.setAttribute("aria-invalid", "false");
    wrong.hidden = true;
    wrong.textContent = "";
  };
  const control = { box, value: start };
  slider.oninput = () => {
    control.value = 2 ** Number(slider.value);
    field.value = control.value;
    show(control.value);
    change();
  };
  field.oninput = () => {
    const value = Number(field.value);
    if (field.value.trim() && Number.isInteger(value) && value >= 1 && value <= most) {
      control.value = value;
      show(value);
      change();
    } else {
      field.setAttribute("aria-invalid", "true");
      wrong.hidden = false;
      wrong.textContent = `A whole number from 1 to ${number(most)} is needed; below stands ${number(control.value)}.`;
    }
  };
  field.onchange = () => {
    if (wrong.hidden || field.value === String(control.value)) return;
    const refused = field.value || "That";
    field.value = control.value;
    show(control.value);
    wrong.hidden = false; // says what became of it until another number is chosen
    wrong.textContent = `${refused} is no whole number from 1 to ${number(most)}: ${number(control.value)} stands again.`;
  };
  field.value = start;
  show(start);
  return control;
}

/** A table as prose.Table makes it: the first `texts` columns are words, the others numbers; `hot` is the row set apart. */
function table(heads, rows, { texts = 1, hot = -1, note = "" } = {}) {
  const kind = (i) => i >= texts ? ' class="num"' : "";
  const unit = (head) => safe(head).replace(/(\[[^\]]+\])/, '<span class="unit">$1</span>');
  const box = el("div", { className: "lab-scroll", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", `Table: ${heads.join(", ")}`);
  box.innerHTML = `<table class="lab-table${heads.length > 5 ? " lab-many" : ""}"><thead><tr>${heads.map((h, i) => `<th scope="col"${kind(i)}>${unit(h)}</th>`).join("")}</tr></thead><tbody>${
    rows.map(([first, ...rest], k) => `<tr${k === hot ? ' class="lab-hot" aria-current="true"' : ""}><th scope="row">${first}</th>${
      rest.map((cell, i) => `<td${kind(i + 1)}>${cell}</td>`).join("")}</tr>`).join("")}</tbody></table>`;
  return el("div", {}, box, ...(note ? [el("p", { className: "lab-note" }, note)] : []));
}

/** A picture, 720 units wide as all of the book's, with what it shows in words. */
function picture(height, title, words, body) {
  const id = fresh("picture"), figure = el("div", { className: "lab-figure" });
  figure.innerHTML = `<svg viewBox="0 0 720 ${height}" role="img" aria-labelledby="${id}-title ${id}-desc" font-family="sans-serif" font-size="16"><title id="${id}-title">${safe(title)}</title><desc id="${id}-desc">${safe(words)}</desc>${body}</svg>`;
  return figure;
}

/** Puts `parts` into `place`, and leaves the keyboard's place and the scroll of a part as they were. */
function renew(place, ...parts) {
  const boxes = () => [...place.querySelectorAll(".lab-scroll, .lab-figure")];
  const before = boxes().map((box) => [box.scrollLeft, box === document.activeElement]);
  place.replaceChildren(...parts);
  boxes().forEach((box, i) => before[i] && (box.scrollLeft = before[i][0], before[i][1] && box.focus({ preventScroll: true })));
}

const kinds = {};
function mount() {
  for (const host of document.querySelectorAll(".lab-view:not([data-state])")) {
    host.dataset.state = "seen";
    try {
      const data = JSON.parse(host.querySelector('script[type="application/json"]').textContent);
      const draw = kinds[host.dataset.view], parts = draw(data, host);
      host.setAttribute("role", "group");
      host.setAttribute("aria-label", draw.title);
      host.querySelector(".lab-still").replaceWith(...parts);
      host.dataset.state = "ready";
    } catch (error) {
      host.dataset.state = "failed";
      host.append(el("p", { className: "lab-note" }, `This cannot be drawn here (${error.message}); what stands above was made with the page.`));
    }
  }
}
Lab.views = { kinds, mount, safe, throttled, spoken, scale, table, picture, renew };

// Scripts of a page run in order before this event; in a notebook each output calls `mount` itself.
document.addEventListener("DOMContentLoaded", mount);
})();
