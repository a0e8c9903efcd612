"use strict";
// Saving: a drawing as an SVG that needs nothing beside itself, or as a PNG of twice its size.

// Properties that the page's styles set, each with its value where none is set.
const KEPT = {
  fill: "rgb(0, 0, 0)",
  "fill-opacity": "1",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "stroke-opacity": "1",
  "paint-order": "normal",
  opacity: "1",
};
const KEPT_OF_TEXT = ["font-family", "font-size", "font-weight"];

/** A copy of a drawing on the page with all styles in it, on the colour of its card, with the legend above it. */
function standalone(drawing, title, keys = []) {
  const copy = drawing.cloneNode(true);
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((made, index) => inline(made, originals[index]));
  const [width, height] = [Number(drawing.getAttribute("width")), Number(drawing.getAttribute("height"))];
  const text = getComputedStyle(document.documentElement);
  const legend = legendOf(keys, width, text.getPropertyValue("--soft").trim());
  const [margin, top] = [12, legend.height];
  const body = svg("g", { transform: `translate(0 ${top})` }, [...copy.childNodes]);
  const size = [width + 2 * margin, Math.ceil(height + top + 2 * margin)];
  const back = svg("rect", { x: -margin, y: -margin, width: size[0], height: size[1], fill: text.getPropertyValue("--card").trim() });
  const whole = svg(
    "svg",
    { width: size[0], height: size[1], viewBox: `${-margin} ${-margin} ${size[0]} ${size[1]}` },
    svg("title", {}, title),
    back,
    legend.nodes,
    body,
  );
  const hung = svg("svg", { width: 0, height: 0 }, whole);
  // Colours of the legend and textures are known once they are on the page.
  document.body.append(hung);
  if (new XMLSerializer().serializeToString(whole).includes("#texture-")) whole.prepend(textures());
  whole.querySelectorAll("*").forEach((made) => {
    if (made.getAttribute("style")?.includes("var(")) inline(made, made);
  });
  hung.remove();
  return { text: new XMLSerializer().serializeToString(whole), size };
}

function inline(made, original) {
  made.removeAttribute("class");
  if (["title", "clipPath", "defs", "pattern", "g", "svg"].includes(original.tagName)) return;
  const style = getComputedStyle(original);
  const names = Object.keys(KEPT).filter((name) => style.getPropertyValue(name) !== KEPT[name]);
  if (original.tagName === "text") names.push(...KEPT_OF_TEXT);
  made.style.cssText = names.map((name) => `${name}:${style.getPropertyValue(name).replaceAll('"', "'")}`).join(";");
}

/** The names of the series with their pictures, in lines of the width. */
function legendOf(keys, width, ink) {
  let [x, y] = [0, 0];
  const family = getComputedStyle(document.body).fontFamily.replaceAll('"', "'");
  const nodes = keys.map((series) => {
    const wide = 34 + widthOf(series.name) + 18;
    if (x > 0 && x + wide > width) [x, y] = [0, y + 20];
    const node = svg(
      "g",
      { transform: `translate(${x} ${y})` },
      swatch(series),
      svg("text", { x: 33, y: 10, style: `fill:${ink};font:12px ${family}` }, series.name),
    );
    x += wide;
    return node;
  });
  return { nodes, height: keys.length ? y + 26 : 0 };
}

function download(name, url) {
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

function saveSvg(name, drawing) {
  const url = URL.createObjectURL(new Blob([drawing.text], { type: "image/svg+xml" }));
  download(`${name}.svg`, url);
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The browser draws the SVG; a canvas of twice its size takes it as an image. */
async function savePng(name, drawing) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing.text)}`;
  await image.decode();
  const canvas = element("canvas", { width: drawing.size[0] * 2, height: drawing.size[1] * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  download(`${name}.png`, canvas.toDataURL("image/png"));
}
