/* What every script that draws in a page shares: elements, labelled controls, and keys that stay with whom they are for. */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.el) return; // JupyterLab: each output of a notebook brings its scripts along

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
/** A whole number, its thousands apart; toLocaleString loads a library first, and a bench is to be quick. */
Lab.grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
let names = 0;
Lab.fresh = (what) => `lab-${what}-${++names}`;
Lab.labelled = (text, control) => {
  control.id ||= Lab.fresh("control");
  return Lab.el("span", { className: "lab-field" }, Lab.el("label", { htmlFor: control.id }, text), control);
};

// In JupyterLab a key pressed on a slider or a choice would move through the notebook's cells, or delete one: keys pressed in
// what we draw are ours. JupyterLab listens at the document, so the event has to end before it gets there, and then reaches
// nothing: what listens inside (`onkeydown`) is called here.
globalThis.addEventListener?.("keydown", (event) => {
  const host = event.target.closest?.(".jp-Notebook :is(.lab-view, .lab-bench)");
  if (!host || event.ctrlKey || event.metaKey || event.altKey) return;
  event.stopPropagation();
  for (let at = event.target; at !== host.parentNode; at = at.parentNode) at.onkeydown?.(event);
}, true);
})();
