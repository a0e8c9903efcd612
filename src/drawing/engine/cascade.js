// The cascade: which value a property has at an element, from the pages' own style sheet, `style` and attributes of SVG.
//
// A selector consists of types, classes, attributes and `:root`, joined by spaces and `>`. Rules with another pseudo class, and
// those inside of `@media`, say nothing of a drawing at rest and are passed over.

/** Properties of a drawing: the value where none is set, and whether an element has its parent's. */
const PROPERTIES = {
  fill: ["rgb(0, 0, 0)", true],
  "fill-opacity": ["1", true],
  stroke: ["none", true],
  "stroke-width": ["1px", true],
  "stroke-dasharray": ["none", true],
  "stroke-linecap": ["butt", true],
  "stroke-linejoin": ["miter", true],
  "stroke-opacity": ["1", true],
  "paint-order": ["normal", true],
  opacity: ["1", false],
  "font-family": ["sans-serif", true],
  "font-size": ["16px", true],
  "font-weight": ["400", true],
  "grid-column": ["", false],
};

/** The selectors of a list; those that are not understood are left out. */
function compiled(list) {
  return list.split(",").map(selectorOf).filter(Boolean);
}

function selectorOf(text) {
  const parts = text.trim().replace(/\s*>\s*/g, " > ").split(/\s+/);
  const steps = [];
  let child = false;
  for (const part of parts) {
    if (part === ">") child = true;
    else {
      const step = compoundOf(part);
      if (!step) return null;
      steps.push({ ...step, child });
      child = false;
    }
  }
  const weight = steps.reduce((sum, { type, classes, attributes, root }) => sum + (type ? 1 : 0) + 100 * (classes.length + attributes.length + (root ? 1 : 0)), 0);
  return { steps, weight };
}

function compoundOf(text) {
  const step = { type: null, classes: [], attributes: [], root: false };
  const rest = text.replace(/^\*/, "").replace(/^[a-z][\w-]*/i, (type) => ((step.type = type), ""))
    .replace(/\.([\w-]+)/g, (_, name) => (step.classes.push(name), ""))
    .replace(/\[([\w-]+)="([^"]*)"\]/g, (_, name, value) => (step.attributes.push([name, value]), ""))
    .replace(":root", () => ((step.root = true), ""));
  return rest ? null : step;
}

const fits = (element, { type, classes, attributes, root }) =>
  (!type || element.localName === type) && classes.every((name) => element.classList.contains(name)) &&
  attributes.every(([name, value]) => element.getAttribute(name) === value) && (!root || element === document.documentElement);

function matches(element, { steps }, last = steps.length - 1) {
  if (!fits(element, steps[last])) return false;
  if (last === 0) return true;
  for (let above = element.parentNode; above; above = above.parentNode) {
    if (matches(above, { steps }, last - 1)) return true;
    if (steps[last].child) return false;
  }
  return false;
}

/** The declarations of a block, `font` as the properties that it sets. */
function declarations(text) {
  return text.split(";").flatMap((declared) => {
    const colon = declared.indexOf(":");
    if (colon < 0) return [];
    const [name, value] = [declared.slice(0, colon).trim(), declared.slice(colon + 1).trim()];
    const font = name === "font" && value.match(/^(?:(\d+) )?([\d.]+px)(?:\/\S+)? (.+)$/);
    return font ? [["font-weight", font[1] ?? "400"], ["font-size", font[2]], ["font-family", font[3]]] : [[name, value]];
  });
}

/** Rules of a style sheet that a drawing may need, with their order in it. */
function rulesOf(sheet) {
  const rules = [];
  const text = sheet.replace(/\/\*.*?\*\//gs, "");
  let at = 0;
  while (at < text.length) {
    const open = text.indexOf("{", at);
    if (open < 0) break;
    let [end, depth] = [open + 1, 1];
    for (; end < text.length && depth > 0; end += 1) depth += text[end] === "{" ? 1 : text[end] === "}" ? -1 : 0;
    const head = text.slice(at, open).trim();
    const kept = head.startsWith("@") ? [] : declarations(text.slice(open + 1, end - 1)).filter(([name]) => name in PROPERTIES || name.startsWith("--"));
    if (kept.length) for (const selector of compiled(head)) rules.push({ selector, kept });
    at = end;
  }
  return rules.map((rule, order) => ({ ...rule, order }));
}

/** Rules by the class or type of the element that they end at. */
function indexed(rules) {
  const index = new Map();
  for (const rule of rules) {
    const { type, classes, root } = rule.selector.steps.at(-1);
    const key = root ? ":root" : classes.length ? `.${classes[0]}` : (type ?? "*");
    index.set(key, [...(index.get(key) ?? []), rule]);
  }
  return index;
}

/** The values that attributes, rules and `style` set at an element: a later one wins, of rules the one of the weightier selector. */
function declared(element) {
  const keys = ["*", element.localName, ...element.classes().map((name) => `.${name}`), ...(element === document.documentElement ? [":root"] : [])];
  const rules = keys.flatMap((key) => RULES.get(key) ?? []).filter(({ selector }) => matches(element, selector));
  rules.sort((one, other) => one.selector.weight - other.selector.weight || one.order - other.order);
  const attributes = element.namespaceURI === SVG_NAMESPACE ? [...element.attributes].filter(([name]) => name in PROPERTIES) : [];
  return new Map([...attributes, ...rules.flatMap(({ kept }) => kept), ...declarations(element.getAttribute("style") ?? "")]);
}

const length = (value) => (/^-?[\d.]+$/.test(value) ? `${Number(value)}px` : value);

/** A value as `getComputedStyle` gives it: colours as `rgb()`, lengths with their unit. */
function normal(name, value) {
  const hex = value.match(/^#([\da-f]{6})$/i)?.[1] ?? value.match(/^#([\da-f]{3})$/i)?.[1].replace(/./g, "$&$&");
  if (hex) return `rgb(${[0, 2, 4].map((place) => Number.parseInt(hex.slice(place, place + 2), 16)).join(", ")})`;
  if (name === "stroke-width") return length(value);
  if (name === "stroke-dasharray") return value.split(/[\s,]+/).map(length).join(", ");
  if (name.endsWith("opacity")) return String(Number(value));
  return value;
}

/** The style of an element; `getPropertyValue` also gives the variables of the root. */
function getComputedStyle(element) {
  const levels = [];
  for (let level = element; level; level = level.parentNode) levels.push(declared(level));
  const variable = (name) => levels.find((level) => level.has(name))?.get(name) ?? "";
  const getPropertyValue = (name) => {
    if (name.startsWith("--")) return variable(name);
    const [unset, inherits] = PROPERTIES[name];
    const value = (inherits ? levels : levels.slice(0, 1)).find((level) => level.has(name))?.get(name) ?? unset;
    return normal(name, value.replace(/var\((--[\w-]+)\)/g, (_, other) => variable(other)));
  };
  return { getPropertyValue, get fontFamily() { return getPropertyValue("font-family"); } };
}

const RULES = indexed(rulesOf(given.style));
