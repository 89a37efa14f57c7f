// Words of rooflines that stand on a roof, on a point or on others; letters fill the middle of their box.
() => [...document.querySelectorAll("article svg")]
  .filter((svg) => svg.checkVisibility() && /^Roofline/.test(svg.querySelector("title")?.textContent))
  .flatMap((svg) => {
    const at = (item, x, y) => new DOMPoint(x, y).matrixTransform(item.getScreenCTM());
    const words = [...svg.querySelectorAll("text")].map((item) => {
      const { x, y, width, height } = item.getBBox();
      return { item, name: item.textContent.trim(), x, y: y + 0.2 * height, width, height: 0.6 * height };
    });
    const within = ({ item, x, y, width, height }, point) => {
      const here = point.matrixTransform(item.getScreenCTM().inverse());
      return here.x >= x && here.x <= x + width && here.y >= y && here.y <= y + height;
    };
    const roofs = [...svg.querySelectorAll("path")]
      .filter((path) => path.checkVisibility() && !path.closest("defs")
        && parseFloat(getComputedStyle(path).strokeWidth) === 2)
      .flatMap((path) => Array.from({ length: 400 }, (_, k) => {
        const { x, y } = path.getPointAtLength(path.getTotalLength() * k / 399);
        return ["a roof", at(path, x, y)];
      }));
    const points = [...svg.querySelectorAll("use, circle")].map((item) => {
      const { x, y, width, height } = item.getBBox();
      return [item, at(item, x + width / 2, y + height / 2), width];
    }).filter(([, , width]) => width > 9).map(([, centre]) => ["a point", centre]);
    const grid = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
    const others = words.flatMap((w) => grid.flatMap((a) => [0, 0.5, 1].map((b) =>
      [w.name, at(w.item, w.x + a * w.width, w.y + b * w.height), w])));
    return words.flatMap((word) => [...roofs, ...points, ...others]
      .filter(([, point, owner]) => owner !== word && within(word, point))
      .map(([what]) => `${word.name} stands on ${what}`));
  })
