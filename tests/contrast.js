// Contrast of every visible text in figures, tables, excerpts and widgets of a page against what is painted under it.
// (minimum) → {seen: texts looked at, poor: those below `minimum`}. Evaluated by test_browser.py.
(minimum) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => { // any CSS colour, color-mix() included, as the browser paints it
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, under) => under.map((c, i) => top[i] * top[3] + c * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  const faded = (colour, alpha) => [...colour.slice(0, 3), colour[3] * alpha];
  const isShape = (element) => element instanceof SVGGeometryElement;
  const paint = (element) => {
    const style = getComputedStyle(element);
    if (!isShape(element)) return rgba(style.backgroundColor);
    if (style.fill === "none" || style.fill.startsWith("url(")) return [0, 0, 0, 0];
    return faded(rgba(style.fill), style.fillOpacity * style.opacity);
  };
  const ground = (text, x, y) => {
    const under = document.elementsFromPoint(x, y).filter((e) => e.contains(text) || isShape(e));
    const layers = [...under, document.body, document.documentElement].map(paint);
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };

  const areas = "article :is(figure, .lab-figure, .lab-frame, .lab-table, .lab-note, .lab-code, .lab-static, .widget-subarea)";
  const silent = "noscript, script, style, title, desc, .headerlink";
  const nodes = new Set();
  for (const area of document.querySelectorAll(areas)) {
    const walker = document.createTreeWalker(area, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode;
      if (data.trim() && !parentElement.closest(silent)) nodes.add(walker.currentNode);
    }
  }

  const poor = [];
  let seen = 0;
  for (const node of nodes) {
    const text = node.parentElement;
    text.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getClientRects()[0];
    if (!box?.width || !text.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(text);
    const drawn = text instanceof SVGElement;
    const ink = faded(rgba(drawn ? style.fill : style.color), (drawn ? style.fillOpacity : 1) * style.opacity);
    const under = ground(text, box.x + box.width / 2, box.y + box.height / 2);
    const [high, low] = [luminance(over(ink, under)), luminance(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    seen += 1;
    if (ratio < minimum) {
      poor.push(`${ratio.toFixed(2)}: "${node.data.trim().slice(0, 40)}" in <${text.tagName} class="${text.getAttribute("class") ?? ""}">`);
    }
  }
  return { seen, poor };
}
