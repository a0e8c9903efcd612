"use strict";
// Elements and tables. All text is set as text. Styles go through the object model, which no policy of a page forbids.

/** An element with attributes and children; text children are put in as text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style" && value) made.style.cssText = value;
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** A table that scrolls in itself. A cell is text, an element, or { text, class }. */
function table(head, rows, label) {
  const cell = (value) =>
    value instanceof Node
      ? element("td", {}, value)
      : value !== null && typeof value === "object"
        ? element("td", { class: value.class }, value.text)
        : element("td", {}, String(value));
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${label}` },
    element(
      "table",
      {},
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          head.map((name) => (name === "" ? element("td") : element("th", { scope: "col" }, name))),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) => element("tr", {}, row.map(cell))),
      ),
    ),
  );
}
