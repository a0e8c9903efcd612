// The window: the document, the address with its theme, and observers that see no change.

const documentElement = new Element("html", HTML_NAMESPACE);
const body = new Element("body", HTML_NAMESPACE);
const main = new Element("main", HTML_NAMESPACE);
documentElement.append(body);
body.append(main);

const document = {
  documentElement,
  body,
  title: given.title,
  activeElement: null,
  createElement: (name) => new Element(name, HTML_NAMESPACE),
  createElementNS: (namespace, name) => new Element(name, namespace),
  getElementById: (id) => ({ data: new Text(given.data), page: main })[id] ?? null,
};

class Observer {
  observe() {}
}

Object.assign(globalThis, {
  document,
  Node,
  getComputedStyle,
  location: { search: `?theme=${given.theme}` },
  URLSearchParams: class {
    get(name) {
      return name === "theme" ? given.theme : null;
    }
  },
  matchMedia: () => ({ matches: false, addEventListener() {} }),
  ResizeObserver: Observer,
  MutationObserver: Observer,
  DOMParser: class {
    parseFromString() {
      return { querySelector: () => new Element("svg", SVG_NAMESPACE) };
    }
  },
  XMLSerializer: class {
    serializeToString(element) {
      return serialize(element);
    }
  },
  TextEncoder: class {
    encode(text) {
      return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    }
  },
});
Number.prototype.toLocaleString = function toLocaleString(_, options) {
  return inEnglish(Number(this), options);
};
