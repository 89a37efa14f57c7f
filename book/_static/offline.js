// The published pages: a cure for a fault between the theme and the widget manager, and names,
// spoken values and tab stops for the controls that the widget manager leaves without; where the manager cannot run, what
// each widget can show. No dependency.
"use strict";

// The theme's Font Awesome turns every <i class="fa"> into an <svg>, also those added later. The Play widget looks its
// <i> up again at each change, throws, and takes the linked slider and Stack with it. So the theme's icons are
// replaced once, before the widgets are drawn (they wait for "load"), and nothing after.
window.FontAwesomeConfig = { autoReplaceSvg: false, observeMutations: false };

// The manager compiles schemas from text, which a strict content security policy forbids: no widget is drawn then. That is
// known as soon as its script is read, before the page's end.
let refused = null;
const refusal = new Promise((resolve) => (refused = resolve));
window.addEventListener("securitypolicyviolation", (event) => event.blockedURI === "eval" && refused());

document.addEventListener("DOMContentLoaded", () => {
  window.FontAwesome?.dom.i2svg({ node: document.body });

  const page = document.querySelector("main") ?? document.body;
  const keys = document.createElement("p");
  keys.id = "lab-keys";
  keys.hidden = true; // read out as the description of each slider; book.css draws the visible hint
  keys.textContent = "Arrow keys move one step, Home and End jump to the ends.";
  page.append(keys);

  // Without the manager, what stands in <noscript> is unfolded, and taken back should a slow one draw the widget after all.
  const LATE = 8000; // ms after loading
  const views = () => [...page.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')].map((view) => ({
    view, drawn: view.previousElementSibling?.matches(".widget-subarea:not(:empty)"), still: view.nextElementSibling?.matches(".lab-static") ? view.nextElementSibling : null,
  }));
  const unfold = () => {
    for (const { view, drawn, still } of views()) {
      const frames = view.nextElementSibling;
      if (!drawn && !still && frames?.matches("noscript")) view.insertAdjacentHTML("afterend", frames.textContent);
    }
  };
  const fold = () => views().forEach(({ drawn, still }) => drawn && still?.remove());
  refusal.then(unfold);
  window.addEventListener("load", () => setTimeout(refused, LATE));

  const set = (element, name, value) => {
    if (value && element.getAttribute(name) !== value) element.setAttribute(name, value); // no change, no new mutation
  };
  const described = (element) => element?.querySelector(".widget-label")?.textContent.trim() ?? "";

  const PLAY = [["fa-play", "Play"], ["fa-pause", "Pause"], ["fa-stop", "Back to the first step"], ["fa-retweet", "Repeat"], ["fa-repeat", "Repeat"]];

  const dress = () => {
    fold();
    for (const slider of page.querySelectorAll(".widget-slider, .widget-inline-hbox:has(.noUi-handle)")) {
      const label = described(slider);
      const spoken = slider.querySelector(".widget-readout")?.textContent.trim();
      for (const handle of slider.querySelectorAll(".noUi-handle")) {
        set(handle, "aria-label", label || "Step");
        set(handle, "aria-valuetext", spoken); // the label shown, where the manager says the index
        set(handle, "aria-describedby", keys.id);
      }
      const readout = slider.querySelector(".widget-readout[contenteditable='true']");
      if (readout) {
        set(readout, "role", "textbox");
        set(readout, "aria-label", `${label || "Step"}, value`);
      }
    }
    for (const play of page.querySelectorAll(".widget-play")) {
      const label = described(play.parentElement?.querySelector(".widget-slider"));
      for (const button of play.querySelectorAll("button")) {
        const icon = button.querySelector("i, svg");
        const [, verb] = PLAY.find(([name]) => icon?.classList.contains(name)) ?? ["", "Play"];
        set(button, "aria-label", label ? `${verb}: ${label}` : verb);
        set(button, "title", verb);
        set(icon ?? button, "aria-hidden", icon ? "true" : null);
      }
    }
    for (const group of page.querySelectorAll(".widget-toggle-buttons, .widget-radio")) {
      set(group, "role", group.matches(".widget-radio") ? "radiogroup" : "group");
      set(group, "aria-label", described(group));
    }
    for (const label of page.querySelectorAll('.widget-label[title="null"]')) label.removeAttribute("title");
    for (const button of page.querySelectorAll(".widget-toggle-button")) {
      set(button, "aria-pressed", String(button.classList.contains("mod-active")));
    }
    // A box that scrolls sideways must be reachable from the keyboard.
    for (const box of page.querySelectorAll(".lab-scroll, .lab-formula, .lab-figure, .lab-frame, .lab-code pre, .widget-html-content")) {
      if (box.scrollWidth > box.clientWidth + 1) {
        set(box, "tabindex", "0");
        set(box, "role", "region");
        set(box, "aria-label", "Scrolls sideways");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      }
    }
  };

  // Frames come and go with each step: look again once a frame at most.
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      dress();
    });
  };
  new MutationObserver(later).observe(page, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class", "aria-valuetext"],
  });
  window.addEventListener("resize", later);
  dress();
});
