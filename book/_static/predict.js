/* Predict, then look: questions first; what was derived, counted and measured only after an answer to each, with the
 * reader's own beside it. Nothing is sent or kept: a reload forgets it.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab, { el, labelled, fresh } = Lab, { number, judged, MISSING } = Lab.formulas;
const { kinds, safe, table } = Lab.views;
if (kinds.predict) return;

/** A number as people type it: a decimal comma, thousands apart, a unit or a × behind it; null where it is none. */
function typed(text, unit) {
  let words = text.trim().replace(/[−–]/g, "-").replace(/[\s\u202f]+/g, "").replace(/×$|x$/, "");
  if (unit && words.toLowerCase().endsWith(unit.replace(/\s/g, "").toLowerCase())) words = words.slice(0, -unit.replace(/\s/g, "").length);
  words = words.replace(/(\d),(?=\d{3}(\D|$))/g, "$1").replace(",", ".");
  const share = words.match(/^(\d+)\/(\d+)$/); // 1/24
  if (share && Number(share[2])) return share[1] / share[2];
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(words) ? Number(words) : null;
}

/** What is wrong with an answer that was typed, in words; "" where nothing is. All that is asked for is counted, timed or a
 * share: never below zero, never without an end. */
function faulty(text, unit) {
  const value = typed(text, unit);
  if (value === null) return "A number is needed, such as 0.25, 1/8 or 1e6.";
  if (value < 0) return "No answer here is below zero.";
  return Number.isFinite(value) ? "" : "That is beyond any number: a smaller one is needed.";
}

function asked(question, changed) {
  const ask = el("span", { innerHTML: question.ask });
  if (question.options) {
    const group = fresh("guess"), set = el("fieldset", {}, el("legend", {}, ask), ...question.options.map(([label], k) =>
      el("label", {}, el("input", { type: "radio", name: group, value: k, onchange: changed }), label)));
    return { box: set, lock: (on) => (set.disabled = on), said: () => {
      const chosen = set.querySelector(":checked");
      return chosen && question.options[chosen.value][0];
    }, clear: () => set.querySelectorAll("input").forEach((input) => input.checked = false), wrong: () => "" };
  }
  const input = el("input", { type: "text", inputMode: "decimal", autocomplete: "off", spellcheck: false, oninput: changed });
  const why = el("span", { className: "lab-wrong", id: fresh("why") });
  const box = labelled(ask, input);
  input.setAttribute("aria-describedby", why.id);
  box.classList.add("lab-wide-field");
  box.append(el("span", { className: "lab-unit" }, question.unit), why);
  return { box, lock: (on) => (input.readOnly = on), said: () => faulty(input.value, question.unit) ? null : typed(input.value, question.unit), clear: () => input.value = "", wrong: () => {
    why.textContent = input.value.trim() && faulty(input.value, question.unit);
    input.setAttribute("aria-invalid", String(Boolean(why.textContent)));
    return why.textContent;
  } };
}

kinds.predict = (data) => {
  const look = el("button", { type: "submit", className: "lab-run" }, "Look"), again = el("button", { type: "button", hidden: true }, "Predict again");
  const hint = el("p", { className: "lab-note lab-source", id: fresh("hint") }), answers = el("div", { tabIndex: -1, hidden: true });
  const changed = () => {
    const wrong = questions.map((q) => q.wrong()).some(Boolean), open = questions.filter((q) => q.said() === null).length;
    look.setAttribute("aria-disabled", String(Boolean(open)));
    hint.textContent = wrong ? "Some answer cannot be held against anything yet." : open ? `${open === 1 ? "One prediction is" : `${open} predictions are`} missing: it is the guess that teaches.` : "Ready to look.";
  };
  const questions = data.questions.map((question) => asked(question, changed));
  look.setAttribute("aria-describedby", hint.id);
  answers.setAttribute("role", "group");
  answers.setAttribute("aria-label", "What came out");
  const show = () => {
    const said = questions.map((q) => q.said());
    if (said.includes(null)) return changed(), void questions[said.indexOf(null)].box.querySelector("input").focus();
    const rows = data.questions.map((question, k) => {
      const known = data.levels.map((level) => question.values[level] ?? null), truth = known.filter((v) => v !== null).at(-1) ?? null;
      const mine = question.options ? said[k] : number(said[k]);
      const verdict = question.options ? (question.right === null ? MISSING : question.options[question.right][0] === said[k] ? "right" : `it is: ${question.options[question.right][0]}`) : judged(said[k], truth);
      return [question.ask + (question.unit ? ` <span class="unit">[${safe(question.unit)}]</span>` : ""), safe(mine), ...known.map((v, i) => v === null ? (data.levels[i] === "measured" && question.measurable ? MISSING : "–") : number(v)), safe(verdict)];
    });
    const replies = data.questions.flatMap((question, k) => question.options ? [question.options.find(([label]) => label === said[k])] : []).filter(([, reply]) => reply);
    const compared = table(["question", "you", ...data.levels, "yours against it"], rows);
    compared.classList.add("lab-guessed");
    answers.replaceChildren(compared, ...replies.map(([label, reply]) => el("p", { className: "lab-note", innerHTML: `You said: <b>${safe(label)}</b>. ${reply}` })), el("div", { innerHTML: data.then }));
    answers.hidden = again.hidden = false;
    look.hidden = true;
    hint.textContent = "";
    questions.forEach((q) => q.lock(true));
    answers.focus({ preventScroll: true });
    globalThis.MathJax?.typesetPromise?.([answers]);
  };
  again.onclick = () => {
    questions.forEach((q) => (q.lock(false), q.clear()));
    answers.hidden = again.hidden = true;
    answers.replaceChildren();
    look.hidden = false;
    changed();
    questions[0].box.querySelector("input").focus();
  };
  const form = el("form", { className: "lab-controls lab-guess", noValidate: true, onsubmit: (event) => (event.preventDefault(), show()) }, ...questions.map((q) => q.box), look, again);
  changed();
  return [form, hint, answers];
};
kinds.predict.title = "Predict, then look";
Lab.typed = typed;
})();
