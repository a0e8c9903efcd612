// Every drawing of a page that has run its scripts, as it saves it: for each metric asked for, as if a reader had chosen it.
(() => {
  const { metrics } = given.asked;
  const chooser = page.querySelector('select[aria-label="figure"]');
  const choices = chooser ? chooser.children.map((option) => option.getAttribute("value")) : [];
  const unknown = metrics.find((metric) => !choices.includes(metric));
  if (unknown !== undefined) return JSON.stringify({ unknown, choices, figures: [] });
  const figures = new Map();
  for (const metric of metrics.length ? metrics : [null]) {
    if (metric !== null) {
      chooser.value = metric;
      chooser.dispatch("change");
    }
    drawings.forEach(({ shows, drawing }, place) => {
      const { text, size } = drawing();
      figures.set(`${place} ${text}`, { name: slug(shows()), title: shows(), width: size[0], height: size[1], svg: text });
    });
  }
  return JSON.stringify({ choices, figures: [...figures.values()] });
})();
