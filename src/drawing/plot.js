"use strict";
// A plot: panels above each other that share one horizontal axis, drawn as SVG, so that what is saved can be printed.
//
//   new Plot(where, spec).draw()
//   spec   { title, x: axis, panels, spans }
//   panel  { y: axis, height, series, lanes }     `lanes` draws the spans as bars with their names
//   span   { from, to, name, instant }            in force between; `to` is null where it outlasts the plot
//
// Drag to zoom, double-click to see all again; the legend switches series off and on. With the focus on a plot the arrow keys
// move the read-out, + and − zoom, Escape ends that. Colours are variables of the page, so a theme needs no drawing anew.

const GAP = 14;
const HEAD = 22;

/** How wide a text is in the type of the plots. */
const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, weight = 400) {
  widthOf.family ??= getComputedStyle(document.body).fontFamily;
  if (widthOf.weight !== weight) ruler.font = `${(widthOf.weight = weight)} 12px ${widthOf.family}`;
  return ruler.measureText(text).width;
}
/** Without its middle where it is too wide: names often differ at their ends. */
function shortened(text, width, weight = 400) {
  if (widthOf(text, weight) <= width) return text;
  const without = (kept) => `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
  let kept = text.length - 1;
  while (kept > 2 && widthOf(without(kept), weight) > width) kept -= 1;
  return without(kept);
}

/** Lines of whole words, none wider than this where its words are not. */
function wrapped(text, width) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && widthOf(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

const words = (x, y, text, more = {}) => svg("text", { x: px(x), y: px(y), class: "tick", ...more }, text);
const path = (d, kind) => svg("path", { d, class: kind });

/** The number of lanes up to which a name gets a lane for lack of room. */
const ROOMY = 4;

class Plot {
  static count = 0;

  constructor(where, spec) {
    this.id = `plot-${(Plot.count += 1)}`;
    this.off = new Set();
    this.zoom = null;
    this.spec = spec;
    this.legend = element("div", { class: "keys" });
    this.area = element("div", { class: "area", tabindex: 0, role: "group", "aria-roledescription": "plot" });
    this.box = element("div", { class: "readout", "aria-hidden": "true" });
    this.told = element("div", { class: "unseen", role: "status" });
    this.all = element("button", { type: "button", class: "all", onclick: () => this.show(null) }, "Show all");
    where.append(this.legend, this.area, this.told);
    this.listen();
    new ResizeObserver(([entry]) => {
      if (entry.contentRect.width !== this.width) this.draw();
    }).observe(this.area);
  }

  /** Draws something else in the same place. */
  set(spec) {
    this.spec = spec;
    this.zoom = null;
    this.draw();
  }

  /** Zooms to a part of the horizontal axis; `null` shows all of it. */
  show(domain) {
    this.zoom = domain;
    this.hide();
    this.draw();
  }

  /** Everything that is not switched off, with its panel. */
  shown() {
    return this.panels.flatMap((panel) => panel.series.map((series) => [series, panel]));
  }

  draw() {
    const { spec } = this;
    this.width = this.area.clientWidth || 600;
    this.panels = spec.panels.map((panel) => ({
      ...panel,
      series: stack((panel.series || []).filter((series) => !this.off.has(series.name))),
    }));
    const full = this.extentX();
    this.full = full;
    const domain = this.zoom || full;
    this.stops = null;
    let top = 0;
    for (const panel of this.panels) {
      panel.head = panel.lanes && !panel.y ? 4 : HEAD;
      panel.top = top + panel.head;
      if (panel.lanes) this.lay(panel, domain);
      top = panel.top + panel.height + GAP;
      if (panel.y) panel.scale = this.scaleY(panel, domain);
    }
    const labels = this.panels.flatMap((panel) => (panel.scale ? panel.scale.ticks.map((tick) => tick.label) : []));
    this.left = Math.min(this.width * 0.4, Math.max(28, ...labels.map((label) => widthOf(label) + 10)));
    this.right = this.width - 14;
    this.bottom = top - GAP;
    const inset = spec.x.inset || 0;
    this.sx = scale(spec.x, domain, this.left + inset, this.right - inset, spec.x.room || 78);
    const marks = this.panels.map((panel) => this.drawPanel(panel));
    const foot = this.drawFoot();
    this.height = this.bottom + foot.height;
    this.cross = path("", "cross");
    this.brush = svg("rect", { class: "brush", y: 0, height: this.bottom, width: 0 });
    const clip = svg(
      "clipPath",
      { id: `${this.id}-clip` },
      svg("rect", { x: this.left - 1, y: 0, width: this.right - this.left + 2, height: this.bottom + 4 }),
    );
    this.svg = svg(
      "svg",
      { viewBox: `0 0 ${this.width} ${px(this.height)}`, width: this.width, height: px(this.height), "aria-hidden": "true" },
      clip,
      foot.nodes,
      marks,
      this.cross,
      this.brush,
    );
    this.area.replaceChildren(this.svg, this.box, ...(this.zoom ? [this.all] : []));
    this.area.setAttribute("aria-label", this.describe());
    this.drawLegend();
    this.drawn?.();
  }

  extentX() {
    const { x } = this.spec;
    if (x.categories) return domainOf(x);
    let [low, high] = extent(x.values || []);
    for (const [series] of this.shown()) {
      if (!series.x.length) continue;
      const half = series.kind === "bars" || series.kind === "heat" ? (series.width || 1) / 2 : 0;
      const [least, most] = extent(series.x);
      low = Math.min(low, least - half);
      high = Math.max(high, most + half, most + (series.hold || 0));
    }
    const bars = this.shown().some(([series]) => series.kind === "bars" || series.kind === "heat");
    return domainOf(bars ? { ...x, tight: true } : x, low, high);
  }

  scaleY(panel, domain) {
    let [low, high] = [Infinity, -Infinity];
    for (const series of panel.series) {
      const [least, most] = MARKS[series.kind].span(series, domain);
      if (least < low) low = least;
      if (most > high) high = most;
    }
    return scale(panel.y, domainOf(panel.y, low, high), panel.top + panel.height, panel.top, panel.y.categories ? 1 : 34);
  }

  drawPanel(panel) {
    const { left, right } = this;
    const [top, foot] = [panel.top, panel.top + panel.height];
    const inside = svg("g", { "clip-path": `url(#${this.id}-clip)` }, panel.lanes ? null : this.drawSpans(top, foot));
    const outside = svg("g", { class: "panel" });
    if (panel.scale) {
      const { ticks } = panel.scale;
      const least = panel.y.categories ? 13 : 0;
      let last = Infinity;
      for (const { value, label } of ticks) {
        const y = px(panel.scale.at(value));
        if (!panel.y.categories) outside.append(path(`M${left},${y}H${right}`, "rule"));
        if (last - y < least) continue;
        last = y;
        outside.append(words(left - 7, y + 4, shortened(label, left - 8), { "text-anchor": "end", "data-y": value }));
      }
      if (panel.scale.title) outside.append(words(left, top - 8, panel.scale.title, { class: "title" }));
      if (!panel.y.categories) outside.append(path(`M${left},${foot}H${right}`, "base"));
    }
    for (const series of panel.series) {
      const group = svg("g", { class: "series", "data-series": series.name });
      group.append(...MARKS[series.kind].draw(series, this.sx, panel.scale, panel).filter(Boolean));
      inside.append(group);
    }
    if (panel.lanes) inside.append(...this.drawLanes(panel));
    return [outside, inside];
  }

  /** Shade from a fault's begin, a full line, to its end, a dotted one; no darker where several overlap. */
  drawSpans(top, foot) {
    const { sx } = this;
    const shades = svg("g", { style: "opacity:.14" });
    const lines = (this.spec.spans || []).flatMap(({ from, to, instant }) => {
      const x = px(sx.at(from));
      const begin = path(`M${x},${top}V${foot}`, "begin");
      if (instant) return [begin];
      const until = to === null ? this.right : sx.at(to);
      shades.append(svg("rect", { class: "span", x, y: top, width: px(Math.max(0, until - x)), height: foot - top }));
      return to === null ? [begin] : [begin, path(`M${px(until)},${top}V${foot}`, "end")];
    });
    return [shades, lines];
  }

  /** Spans that overlap go into lanes of their own. Up to `ROOMY` lanes, so does a span whose name has no room beside the one before. */
  lay(panel, [begin, end]) {
    const unit = (end - begin) / Math.max(1, this.width - 60);
    const lanes = [];
    this.laned = (this.spec.spans || []).map((span) => {
      const until = span.instant ? span.from : (span.to ?? Infinity);
      const name = (widthOf(span.name) + 20) * unit;
      const free = lanes.findIndex((one) => one.until < span.from);
      const roomy = lanes.findIndex((one) => one.named + name < span.from);
      const lane = roomy >= 0 ? roomy : free >= 0 && lanes.length >= ROOMY ? free : lanes.length;
      lanes[lane] = { until, named: Math.max(until, span.from + name) };
      return { ...span, lane };
    });
    panel.height = Math.max(1, lanes.length) * 19;
  }

  drawLanes(panel) {
    const { sx, left, right } = this;
    // The end of the last bar or name in each lane.
    const taken = [];
    return this.laned
      .flatMap((span) => {
        const y = panel.top + span.lane * 19;
        const [from, to] = [sx.at(span.from), span.instant ? sx.at(span.from) : span.to === null ? right + 9 : sx.at(span.to)];
        if (to < left || from > right) return [];
        const [start, end] = [Math.max(from, left - 9), Math.min(to, right + 9)];
        const bar = span.instant
          ? svg("path", { class: "lane-end", d: `M${px(from)},${y + 8}${SHAPES.diamond(5)}` })
          : svg("rect", { class: "lane", x: px(start), y, width: px(Math.max(2, end - start)), height: 16, rx: 3 });
        // The name stands inside, after or before the bar, wherever it has room.
        const width = widthOf(span.name);
        const [first, last] = [Math.max(from, left), Math.min(to, right)];
        const before = Math.max(left, taken[span.lane] ?? left);
        const next = Math.min(
          ...this.laned.filter((other) => other.lane === span.lane && other.from > span.from).map((other) => sx.at(other.from)),
          right,
        );
        const place =
          last - first > width + 10
            ? first + 6
            : last + width + 10 < next
              ? last + 8
              : first - width - 10 > before
                ? first - width - 8
                : null;
        taken[span.lane] = Math.max(last, place === null ? last : place + width);
        return [
          bar,
          place === null ? null : words(place, y + 12, span.name, { class: last - first > width + 10 ? "tick lane-name" : "tick" }),
        ];
      })
      .filter(Boolean);
  }

  /** Ticks and title of the horizontal axis: turned where they would overlap, thinned where even that does not help. */
  drawFoot() {
    const { sx, bottom, left, right } = this;
    const nodes = [];
    const { ticks } = sx;
    const step = ticks.length > 1 ? Math.abs(sx.at(ticks[1].value) - sx.at(ticks[0].value)) : right - left;
    const longest = Math.max(0, ...ticks.map(({ label }) => widthOf(label)));
    const turned = Boolean(sx.axis.categories) && longest > step - 8;
    const most = turned ? 170 : sx.axis.categories ? Math.max(step - 8, 30) : 400;
    let end = -Infinity;
    let height = 18;
    for (const { value, label } of ticks) {
      const x = sx.at(value);
      nodes.push(path(`M${px(x)},${bottom}v5`, "base"));
      const text = shortened(label, turned ? Math.min(most, (x + 6) / 0.82) : most);
      const width = turned ? 16 : widthOf(text);
      const anchor = turned ? "end" : x + width / 2 > this.width ? "end" : "middle";
      const from = turned ? x - 8 : anchor === "end" ? this.width - width : x - width / 2;
      if (!label || from < end + 6) continue;
      end = from + width;
      const at = anchor === "end" && !turned ? this.width - 1 : x;
      const made = words(at, bottom + 18, text, {
        "text-anchor": anchor,
        "data-x": value,
        transform: turned ? `rotate(-35 ${px(x)} ${bottom + 12})` : null,
      });
      if (text !== label) made.append(svg("title", {}, label));
      nodes.push(made);
      height = Math.max(height, turned ? 22 + widthOf(text) * 0.58 : 18);
    }
    // Between the axis' ends where that has room, else across the drawing.
    const middle = widthOf(sx.title) <= right - left ? (left + right) / 2 : this.width / 2;
    const lines = sx.title ? wrapped(sx.title, this.width - 8) : [];
    lines.forEach((line, index) =>
      nodes.push(words(middle, bottom + height + 18 + 15 * index, line, { class: "title", "text-anchor": "middle" })),
    );
    return { nodes, height: height + (lines.length ? 11 + 15 * lines.length : 6) };
  }

  drawLegend() {
    const all = this.spec.panels.flatMap((panel) => panel.series || []).filter((series) => series.name && !series.quiet);
    const names = [...new Set(all.map((series) => series.name))];
    const keyed = document.activeElement?.dataset?.key;
    this.legend.replaceChildren(
      ...(names.length < 2
        ? []
        : names.map((name) => {
            const series = all.find((series) => series.name === name);
            const picture = svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" }, swatch(series));
            return element(
              "button",
              {
                type: "button",
                class: "key",
                "aria-pressed": String(!this.off.has(name)),
                "data-key": `${this.id} ${name}`,
                onclick: () => this.toggle(name),
              },
              picture,
              name,
            );
          })),
    );
    if (keyed) [...this.legend.children].find((key) => key.dataset.key === keyed)?.focus();
  }

  toggle(name) {
    if (!this.off.delete(name)) this.off.add(name);
    this.hide();
    this.draw();
  }

  // The read-out.

  /** The values of x at which something stands, in order. */
  places() {
    if (this.stops) return this.stops;
    const lists = [...new Set(this.shown().map(([series]) => series.x))];
    const [low, high] = this.sx.domain;
    const all = lists.length === 1 ? lists[0] : [...new Set(lists.flat())].sort((one, other) => one - other);
    this.stops = all.filter((x) => x >= low && x <= high);
    return this.stops;
  }

  /** The read-out at a place: for lines, bands and heat the last value at or before it, for other marks the values exactly there. */
  at(x) {
    return this.shown().flatMap(([series, panel]) => {
      if (series.silent || !series.x.length) return [];
      if (series.kind === "line" || series.kind === "band" || series.kind === "heat") {
        const index = lastNotAfter(series.x, x);
        const ended = index >= 0 && series.hold && x > series.x[index] + series.hold;
        return index < 0 || ended ? [] : [[series, MARKS[series.kind].tell(series, index, panel.y)]];
      }
      const here = series.x.flatMap((value, index) => (value === x && series.y[index] !== null ? [index] : []));
      const told = here.slice(0, 4).map((index) => [series, MARKS[series.kind].tell(series, index, panel.y)]);
      return here.length > 4 ? [...told, [series, `and ${here.length - 4} more`]] : told;
    });
  }

  read(index, aloud = false) {
    const places = this.places();
    if (!places.length) return;
    this.place = Math.max(0, Math.min(places.length - 1, index));
    const x = places[this.place];
    const rows = this.at(x);
    const force = (this.spec.spans || [])
      .filter((span) => !span.instant && span.from <= x && (span.to === null || x < span.to))
      .map((span) => span.name);
    const head = `${this.spec.x.label ? `${this.spec.x.short ?? this.spec.x.label} ` : ""}${tell(this.spec.x, x)}`;
    this.box.replaceChildren(
      element("b", {}, head),
      ...rows.map(([series, told]) =>
        element(
          "div",
          {},
          svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12" }, swatch(series)),
          element("span", {}, series.quiet ? "" : series.name),
          element("em", {}, told),
        ),
      ),
      ...force.map((name) => element("div", { class: "force" }, `in force: ${name}`)),
    );
    const at = px(this.sx.at(x));
    this.cross.setAttribute("d", this.panels.map((panel) => `M${at},${panel.top}V${panel.top + panel.height}`).join(""));
    this.box.classList.add("open");
    const wide = this.box.offsetWidth;
    this.box.style.left = `${Math.max(0, at + 14 + wide > this.width ? Math.max(0, at - 14 - wide) : at + 14)}px`;
    if (aloud) this.told.textContent = [head, ...rows.map(([series, told]) => `${series.name}: ${told}`), ...force].join("; ");
  }

  hide() {
    this.box.classList.remove("open");
    this.cross?.setAttribute("d", "");
  }

  nearest(pixel) {
    const places = this.places();
    const x = this.sx.of(pixel);
    const before = lastNotAfter(places, x);
    const after = Math.min(places.length - 1, before + 1);
    return before >= 0 && pixel - this.sx.at(places[before]) <= this.sx.at(places[after]) - pixel ? before : after;
  }

  // Handles a reader's actions.

  listen() {
    const { area } = this;
    const pixel = (event) => event.clientX - area.getBoundingClientRect().left;
    const bounded = (x) => Math.max(this.left, Math.min(this.right, x));
    let from = null;
    area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch" || event.target.closest("button")) return;
      from = bounded(pixel(event));
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      const to = bounded(pixel(event));
      if (from !== null) {
        this.brush.setAttribute("x", Math.min(from, to));
        this.brush.setAttribute("width", Math.abs(to - from));
      }
      this.read(this.nearest(to));
    });
    const drop = (event, zooms) => {
      if (from === null) return;
      const [low, high] = [from, bounded(pixel(event))].sort((one, other) => one - other);
      from = null;
      this.brush.setAttribute("width", 0);
      if (zooms && high - low > 5) this.show([this.sx.of(low), this.sx.of(high)]);
    };
    area.addEventListener("pointerup", (event) => drop(event, true));
    area.addEventListener("pointercancel", (event) => drop(event, false));
    area.addEventListener("pointerleave", () => this.hide());
    area.addEventListener("dblclick", () => this.show(null));
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("blur", () => this.hide());
  }

  key(event) {
    if (event.target !== this.area || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.places().length - 1;
    const step = event.shiftKey ? Math.max(1, Math.round(last / 20)) : 1;
    const open = this.box.classList.contains("open");
    const place = open ? this.place : -1;
    const moves = { ArrowRight: place + step, ArrowLeft: open ? place - step : last, Home: 0, End: last };
    if (event.key in moves) this.read(moves[event.key], true);
    else if (event.key === "+" || event.key === "=") this.closer(0.5);
    else if (event.key === "-") this.closer(2);
    else if (event.key === "Escape" || event.key === "0") this.show(null);
    else return;
    event.preventDefault();
  }

  /** Zooms about the read-out, or the middle. */
  closer(by) {
    const { left, right, sx, full } = this;
    const middle = this.box.classList.contains("open") ? sx.at(this.places()[this.place]) : (left + right) / 2;
    const [low, high] = [middle - (middle - left) * by, middle + (right - middle) * by];
    const domain = [Math.max(full[0], sx.of(low)), Math.min(full[1], sx.of(high))];
    this.show(domain[0] <= full[0] && domain[1] >= full[1] ? null : domain);
    this.area.focus();
  }

  // Describes the plot to readers who do not see it.

  describe() {
    const [low, high] = this.sx.domain;
    const span = this.spec.x.categories
      ? this.spec.x.categories.slice(0, 12).join(", ")
      : `${tell(this.spec.x, low)} to ${tell(this.spec.x, high)}`;
    const series = this.shown().map(([series, panel]) => {
      const [least, most] = MARKS[series.kind].span(series, this.sx.domain);
      const range =
        series.kind === "heat"
          ? `${series.rows.length} rows`
          : least > most
            ? "no values"
            : least === most
              ? tell(panel.y, least)
              : `${tell(panel.y, least)} to ${tell(panel.y, most)}`;
      return `${series.name}: ${range}`;
    });
    const spans = (this.spec.spans || []).map(
      (span) =>
        `${span.name} from ${tell(this.spec.x, span.from)}${span.instant ? "" : span.to === null ? " to the end" : ` to ${tell(this.spec.x, span.to)}`}`,
    );
    return `${this.spec.title}. ${this.spec.x.label}: ${span}. ${[...series, ...spans].join("; ")}. Arrow keys read values.`;
  }

  /** All that is shown as a table: its head, and its rows up to a number of them. */
  table(limit) {
    const places = this.places();
    const shown = this.shown().filter(([series]) => !series.silent);
    const raw = (series, index) => (series.kind === "line" || series.kind === "bars" ? number(series.y[index], 6) : null);
    const rows = places.slice(0, limit).map((x) => [
      tell(this.spec.x, x),
      ...shown.map(([series, panel]) => {
        const here = [];
        for (let index = lastNotAfter(series.x, x); index >= 0 && series.x[index] === x; index -= 1) here.unshift(index);
        return here.map((index) => raw(series, index) ?? MARKS[series.kind].tell(series, index, panel.y)).join("; ");
      }),
    ]);
    return {
      head: [
        this.spec.x.label,
        ...shown.map(([series, panel]) => `${series.name}${panel.y.unit === "seconds" && series.kind === "line" ? ", s" : ""}`),
      ],
      rows,
      more: Math.max(0, places.length - limit),
    };
  }
}
