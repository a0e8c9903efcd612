// The document: elements with attributes, children, classes and listeners, as far as the drawing code asks for them. Selectors
// are those of cascade.js. Elements have no place on a screen; `clientWidth` asks layout.js.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const HTML_NAMESPACE = "http://www.w3.org/1999/xhtml";

class Node {
  constructor() {
    this.parentNode = null;
  }

  remove() {
    const among = this.parentNode?.childNodes;
    if (among) among.splice(among.indexOf(this), 1);
    this.parentNode = null;
  }
}

class Text extends Node {
  constructor(data) {
    super();
    this.data = String(data);
  }

  get textContent() {
    return this.data;
  }

  cloneNode() {
    return new Text(this.data);
  }
}

const kebab = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

class Element extends Node {
  constructor(name, namespace) {
    super();
    this.localName = name;
    this.namespaceURI = namespace;
    this.attributes = new Map();
    this.childNodes = [];
    this.listeners = [];
    const own = this;
    this.style = {
      get cssText() {
        return own.getAttribute("style") ?? "";
      },
      set cssText(text) {
        if (text) own.setAttribute("style", text);
        else own.removeAttribute("style");
      },
    };
    this.dataset = new Proxy({}, {
      get: (_, key) => own.attributes.get(`data-${kebab(String(key))}`),
      set: (_, key, value) => Boolean(own.attributes.set(`data-${kebab(key)}`, String(value))),
    });
    this.classList = {
      contains: (name) => own.classes().includes(name),
      add: (name) => own.setAttribute("class", [...new Set([...own.classes(), name])].join(" ")),
      remove: (name) => own.setAttribute("class", own.classes().filter((other) => other !== name).join(" ")),
    };
  }

  classes() {
    return (this.attributes.get("class") ?? "").split(" ").filter(Boolean);
  }

  get tagName() {
    return this.namespaceURI === HTML_NAMESPACE ? this.localName.toUpperCase() : this.localName;
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }

  removeAttribute(name) {
    this.attributes.delete(name);
  }

  get children() {
    return this.childNodes.filter((node) => node instanceof Element);
  }

  append(...nodes) {
    this.insert(this.childNodes.length, nodes);
  }

  prepend(...nodes) {
    this.insert(0, nodes);
  }

  replaceChildren(...nodes) {
    for (const child of [...this.childNodes]) child.remove();
    this.append(...nodes);
  }

  insert(place, nodes) {
    const made = nodes.map((node) => (node instanceof Node ? node : new Text(node)));
    for (const node of made) {
      node.remove();
      node.parentNode = this;
    }
    this.childNodes.splice(Math.min(place, this.childNodes.length), 0, ...made);
  }

  cloneNode(deep) {
    const copy = new Element(this.localName, this.namespaceURI);
    for (const [name, value] of this.attributes) copy.attributes.set(name, value);
    if (deep) copy.append(...this.childNodes.map((child) => child.cloneNode(true)));
    return copy;
  }

  get textContent() {
    return this.childNodes.map((child) => child.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  querySelectorAll(selector) {
    const wanted = compiled(selector);
    const found = [];
    const look = (element) => {
      for (const child of element.children) {
        if (wanted.some((one) => matches(child, one))) found.push(child);
        look(child);
      }
    };
    look(this);
    return found;
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  addEventListener(kind, listener) {
    this.listeners.push([kind, listener]);
  }

  dispatch(kind) {
    for (const [other, listener] of this.listeners) if (other === kind) listener({ target: this });
  }

  get clientWidth() {
    return widthInside(this);
  }

  getContext() {
    return {
      font: "400 12px",
      measureText(text) {
        const [weight, size] = this.font.split(" ").map(Number.parseFloat);
        return { width: textWidth(text, size, weight) };
      },
    };
  }
}

/** Letters that XML does not allow stand for others that it does. */
const legal = (text) => text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;" };
const escaped = (text, letters) => legal(text).replace(letters, (letter) => ENTITIES[letter]);

/** An element as XML, as `XMLSerializer` writes it. */
function serialize(node, outside = null) {
  if (node instanceof Text) return escaped(node.data, /[&<>\r]/g);
  const space = node.namespaceURI === outside ? "" : ` xmlns="${node.namespaceURI}"`;
  const attributes = [...node.attributes].map(([name, value]) => ` ${name}="${escaped(value, /[&<>"\t\n\r]/g)}"`).join("");
  const inner = node.childNodes.map((child) => serialize(child, node.namespaceURI)).join("");
  return `<${node.localName}${space}${attributes}${inner ? `>${inner}</${node.localName}>` : "/>"}`;
}
