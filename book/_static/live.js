/* Live benches: <div class="lab-bench" data-kernel=…> in a page. This script waits until one is a screen away and only
 * then loads the rest: the kernels, and the bench's scripts as the one file that the book's build makes of them (live.py).
 * From file:// too, so everything is a plain script.
 */
(() => {
"use strict";
const Lab = globalThis.SoftmaxLab ??= {};
if (Lab.mount) return; // JupyterLab: each bench of a notebook brings its scripts along
const FILES = ["bench.js", "kernels.wasm.js"];
const here = document.currentScript?.src ?? "";

let arrived = null, loaded = null;
const packed = new Promise((resolve) => (arrived = resolve));
Lab.kernels = (mark, text) => arrived(text);
const fetched = (name) => new Promise((resolve, reject) => {
  const script = Object.assign(document.createElement("script"), { src: new URL(name, here).href, async: false });
  script.onload = resolve;
  script.onerror = () => reject(new Error(`${name} is missing`));
  document.head.append(script);
});
Lab.load = () => loaded ??= (async () => {
  const scripts = here ? Promise.all(FILES.map(fetched)) : null, compiled = packed.then((text) => Lab.unpack(text));
  compiled.catch(() => {}); // said below, not as an unhandled rejection while a script is still on its way
  await scripts;
  const unpacked = await compiled;
  return { unpacked, info: unpacked.info, art: Lab.art(unpacked.info.look) };
})();

/** Brings every bench to life that is not yet; where that fails, what stands there stays. */
Lab.mount = () => {
  for (const host of document.querySelectorAll(".lab-bench:not([data-state])")) {
    host.dataset.state = "seen";
    new IntersectionObserver(async ([entry], watch) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      const start = performance.now();
      try {
        const parts = await Lab.load();
        await Lab.bench(host, parts);
        host.getBoundingClientRect(); // laid out: a reader can read it
        host.dataset.start = (performance.now() - start).toFixed(1);
      } catch (error) {
        host.dataset.state = "failed";
        const note = Object.assign(document.createElement("p"), { className: "lab-note", textContent: `The kernels cannot run in this page (${error.message}). A host with a strict content security policy has to allow 'wasm-unsafe-eval'.` });
        host.append(note);
      }
    }, { rootMargin: "100% 0px" }).observe(host);
  }
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", Lab.mount);
else Lab.mount();
})();
