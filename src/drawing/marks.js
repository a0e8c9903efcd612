"use strict";
// Marks: what stands for the values of a series, as SVG. A series is { kind, name, x, y, color, … } with plain arrays; null
// in `y` is a gap. Each kind says what it spans, what it draws, and what it tells of a value.
//
//   line    y; `step` holds each value until the next x (the last one for `hold`), `fill` down to 0, `dash`, `marker`
//   band    low, high                              between two lines
//   points  y; `low`, `high` error bars, `join` by a line, `text` to tell
//   bars    y, `width` in units of x; bars of one panel stand on each other
//   boxes   y: objects { min, p5, p25, p50, p75, p95, max, mean }; `place` of `places` beside each other
//   heat    x, rows (names), y: rows of arrays; stronger is more

const SVG = new DOMParser().parseFromString("<svg/>", "text/html").querySelector("svg").namespaceURI;

/** An SVG element. */
function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style" && value) made.style.cssText = value;
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

const px = (value) => Math.round(value * 100) / 100;
const stroke = (series) => `stroke:var(--${series.color})`;
const fill = (series) => `fill:var(--${series.color})`;
const DASHES = { dash: "6 4", dot: "1.5 4", dashdot: "7 3 1.5 3" };

/** The index of the last x that is not greater; x rises. -1 where all are. */
function lastNotAfter(x, value) {
  let [low, high] = [0, x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Indices of the series that lie in the domain, and one more on either side, which a line comes from or goes to. */
function visible(series, [low, high]) {
  const first = Math.max(0, lastNotAfter(series.x, low));
  return [first, Math.min(series.x.length, lastNotAfter(series.x, high) + 2)];
}

/**
 * Runs of points without a gap, in pixels. Where more than four share a column of pixels, the first, the least, the greatest
 * and the last of them stay: the line looks the same, and 100,000 points are drawn as fast as 1,000.
 */
function runs(series, y, sx, sy) {
  const [first, end] = visible(series, sx.domain);
  const all = [];
  let run = [];
  let column = [];
  const flush = () => {
    if (column.length > 4) {
      const low = column.reduce((one, other) => (other[1] > one[1] ? other : one));
      const high = column.reduce((one, other) => (other[1] < one[1] ? other : one));
      const kept = new Set([column[0], low, high, column.at(-1)]);
      column = column.filter((point) => kept.has(point));
    }
    run.push(...column);
    column = [];
  };
  const close = () => {
    flush();
    if (run.length) all.push(run);
    run = [];
  };
  for (let index = first; index < end; index += 1) {
    if (y[index] === null || y[index] === undefined) {
      close();
      continue;
    }
    const point = [sx.at(series.x[index]), sy.at(y[index]), index];
    if (column.length && Math.floor(column[0][0]) !== Math.floor(point[0])) flush();
    column.push(point);
  }
  close();
  return all;
}

/** The corners of a run: a step holds its value until the next x, the last one as long as `hold` says. */
function corners(series, run, sx) {
  if (!series.step) return run;
  const stepped = run.flatMap(([x, y], index) =>
    !index
      ? [[x, y]]
      : y === run[index - 1][1]
        ? []
        : [
            [x, run[index - 1][1]],
            [x, y],
          ],
  );
  const [, y, index] = run.at(-1);
  const until = index + 1 < series.x.length ? series.x[index + 1] : series.x[index] + (series.hold || 0);
  return [...stepped, [sx.at(until), y]];
}

const through = (points) => `M${points.map(([x, y]) => `${px(x)},${px(y)}`).join("L")}${points.length === 1 ? "h0" : ""}`;

/** Markers differ by shape and not by colour alone. */
const SHAPES = {
  circle: (r) => `m${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
  square: (r) => `m${-r * 0.9},${-r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  diamond: (r) => `m0,${-r * 1.25}l${r * 1.25},${r * 1.25}l${-r * 1.25},${r * 1.25}l${-r * 1.25},${-r * 1.25}z`,
  triangle: (r) => `m0,${-r * 1.2}l${r * 1.2},${r * 2.1}h${-r * 2.4}z`,
  cross: (r) => `m${-r},${-r}l${2 * r},${2 * r}m0,${-2 * r}l${-2 * r},${2 * r}`,
  plus: (r) => `m${-r * 1.2},0h${r * 2.4}m${-r * 1.2},${-r * 1.2}v${r * 2.4}`,
};
const hollow = (shape) => shape === "cross" || shape === "plus";

function markers(series, points) {
  const shape = series.marker || "circle";
  const seen = new Set();
  const once = points.filter(([x, y]) => {
    const cell = `${Math.round(x)},${Math.round(y)}`;
    return !seen.has(cell) && seen.add(cell);
  });
  const d = once.map(([x, y]) => `M${px(x)},${px(y)}${SHAPES[shape](series.size || 4)}`).join("");
  return svg("path", { class: "marker", d, style: hollow(shape) ? `${stroke(series)};fill:none;stroke-width:2` : fill(series) });
}

const extent = (values) =>
  values.reduce(
    ([low, high], value) => (value === null || value === undefined ? [low, high] : [Math.min(low, value), Math.max(high, value)]),
    [Infinity, -Infinity],
  );
const within = (series, domain, values) => values.slice(...visible(series, domain));

const MARKS = {
  line: {
    span: (series, domain) => extent(within(series, domain, series.y)),
    draw(series, sx, sy, panel) {
      const made = [];
      const all = runs(series, series.y, sx, sy);
      const lines = all.map((run) => corners(series, run, sx));
      if (series.fill) {
        const floor = panel.top + panel.height;
        const area = lines.map((line) => `${through(line)}L${px(line.at(-1)[0])},${floor}L${px(line[0][0])},${floor}Z`).join("");
        made.push(svg("path", { class: "under", d: area, style: `${fill(series)};opacity:.14` }));
      }
      const style = `${stroke(series)};fill:none;stroke-width:${series.width || 2};stroke-linejoin:round;stroke-linecap:${series.dash === "dot" ? "round" : "butt"}`;
      made.push(svg("path", { class: "line", d: lines.map(through).join(""), style, "stroke-dasharray": DASHES[series.dash] }));
      // A point without neighbours would be a line of no length.
      const points = all.flat();
      const sparse = points.length <= (sx.at(sx.domain[1]) - sx.at(sx.domain[0])) / 8;
      if (series.marker ? sparse : false) made.push(markers({ size: 3.5, ...series }, points));
      else if (!series.step) made.push(markers({ ...series, marker: "circle", size: 2 }, all.filter((run) => run.length === 1).flat()));
      return made;
    },
    tell: (series, index, axis) => tell(axis, series.y[index]),
  },
  band: {
    span: (series, domain) => extent([...within(series, domain, series.low), ...within(series, domain, series.high)]),
    draw(series, sx, sy) {
      const highs = runs(series, series.high, sx, sy);
      const lows = runs(series, series.low, sx, sy);
      const areas = highs.map(
        (run, index) =>
          `${through(corners(series, run, sx))}L${corners(series, lows[index], sx)
            .reverse()
            .map(([x, y]) => `${px(x)},${px(y)}`)
            .join("L")}Z`,
      );
      return [svg("path", { class: "under", d: areas.join(""), style: `${fill(series)};opacity:.2` })];
    },
    tell: (series, index, axis) =>
      series.low[index] === null ? "–" : `${tell(axis, series.low[index])} to ${tell(axis, series.high[index])}`,
  },
  points: {
    span: (series, domain) => extent([series.y, series.low || [], series.high || []].flatMap((values) => within(series, domain, values))),
    draw(series, sx, sy) {
      const points = series.x
        .map((x, index) => [sx.at(x) + (series.nudge || 0), sy.at(series.y[index]), index])
        .filter(([, , index]) => series.y[index] !== null);
      const made = [];
      if (series.join)
        made.push(
          svg("path", {
            class: "line",
            d: points.length ? through(points) : "",
            style: `${stroke(series)};fill:none;stroke-width:2`,
            "stroke-dasharray": DASHES[series.dash],
          }),
        );
      if (series.low) {
        const bars = points
          .filter(([, , index]) => series.low[index] !== null)
          .map(([x, , index]) => {
            const [low, high] = [px(sy.at(series.low[index])), px(sy.at(series.high[index]))];
            return `M${px(x)},${low}V${high}M${px(x - 5)},${low}h10M${px(x - 5)},${high}h10`;
          });
        made.push(svg("path", { class: "error", d: bars.join(""), style: `${stroke(series)};stroke-width:1.5;opacity:.75;fill:none` }));
      }
      return [...made, markers(series, points)];
    },
    tell: (series, index, axis) => series.text?.[index] ?? tell(axis, series.y[index]),
  },
  bars: {
    span: (series, domain) =>
      extent([
        0,
        ...within(
          series,
          domain,
          series.y.map((value, index) => (series.base?.[index] || 0) + (value || 0)),
        ),
      ]),
    draw(series, sx, sy) {
      const [first, end] = visible(series, [sx.domain[0] - series.width, sx.domain[1] + series.width]);
      const room = Math.abs(sx.at(series.x[first] + series.width) - sx.at(series.x[first]));
      const width = room < 5 ? Math.max(1, room + 0.4) : room * 0.76;
      // Where several bars share a column of pixels, the greatest of them stays.
      const columns = new Map();
      for (let index = first; index < end; index += 1) {
        if (!series.y[index]) continue;
        const column = Math.round(sx.at(series.x[index]) * 2) / 2;
        if (!(series.y[columns.get(column)] >= series.y[index])) columns.set(column, index);
      }
      const d = [...columns.values()].map((index) => {
        const base = series.base?.[index] || 0;
        const [top, foot] = [px(sy.at(base + series.y[index])), px(sy.at(base))];
        return `M${px(sx.at(series.x[index]) - width / 2)},${foot}V${top}h${px(width)}V${foot}Z`;
      });
      const texture = series.texture ? svg("path", { class: "texture", d: d.join(""), style: `fill:${patternOf(series.texture)}` }) : null;
      return [svg("path", { class: "bar", d: d.join(""), style: fill(series) }), texture];
    },
    tell: (series, index, axis) => tell(axis, series.y[index]),
  },
  boxes: {
    span: (series) => extent(series.y.flatMap((box) => [box.min, box.max])),
    draw(series, sx, sy) {
      const d = { box: "", median: "", whisker: "", ends: "" };
      const at = boxPlaces(series, sx);
      series.y.forEach((box, index) => {
        const [x, half] = [at.x(index), at.half];
        const y = Object.fromEntries(Object.entries(box).map(([key, value]) => [key, px(sy.at(value))]));
        d.box += `M${px(x - half)},${y.p75}h${px(2 * half)}V${y.p25}h${px(-2 * half)}Z`;
        d.median += `M${px(x - half)},${y.p50}h${px(2 * half)}`;
        d.whisker += `M${px(x)},${y.p75}V${y.p95}M${px(x)},${y.p25}V${y.p5}M${px(x - half / 2)},${y.p95}h${px(half)}M${px(x - half / 2)},${y.p5}h${px(half)}`;
        for (const end of [y.min, y.max]) d.ends += `M${px(x)},${end}${SHAPES.circle(2)}`;
      });
      const line = `${stroke(series)};fill:none;stroke-width:1.5`;
      return [
        svg("path", { class: "whisker", d: d.whisker, style: line }),
        svg("path", { class: "box", d: d.box, style: `${stroke(series)};${fill(series)};fill-opacity:.22;stroke-width:1.5` }),
        svg("path", { class: "median", d: d.median, style: `${stroke(series)};fill:none;stroke-width:3` }),
        svg("path", { class: "ends", d: d.ends, style: `${stroke(series)};fill:none` }),
        markers(
          { size: 3.5, ...series },
          series.y.map((box, index) => [at.x(index), sy.at(box.mean)]),
        ),
      ];
    },
    tell: (series, index, axis) => {
      const box = series.y[index];
      return `median ${tell(axis, box.p50)}, mean ${tell(axis, box.mean)}, half in ${tell(axis, box.p25)} to ${tell(axis, box.p75)}, nine in ten in ${tell(axis, box.p5)} to ${tell(axis, box.p95)}, all in ${tell(axis, box.min)} to ${tell(axis, box.max)}`;
    },
  },
  heat: {
    span: (series) => [0, series.rows.length - 1],
    draw(series, sx, sy) {
      const [, most] = heatSpan(series);
      const width = Math.max(1, Math.abs(sx.at(series.x[0] + 1) - sx.at(series.x[0])));
      const height = Math.abs(sy.at(1) - sy.at(0));
      const gap = width > 6 ? 1.5 : 0;
      const levels = new Map([[0, ""]]);
      series.y.forEach((row, place) =>
        row.forEach((value, index) => {
          const [x, y] = [sx.at(series.x[index]) - width / 2, sy.at(place) - height / 2];
          const level = value > 0 ? Math.ceil((value / most) * 8) : 0;
          levels.set(
            level,
            `${levels.get(level) || ""}M${px(x + gap / 2)},${px(y + 1)}h${px(width - gap)}v${px(height - 2)}h${px(gap - width)}z`,
          );
        }),
      );
      return [...levels]
        .sort(([one], [other]) => one - other)
        .map(([level, d]) =>
          svg("path", {
            class: "cell",
            "data-level": level,
            d,
            style: level ? `${fill(series)};fill-opacity:${0.3 + 0.7 * (level / 8)}` : "fill:var(--faint)",
          }),
        );
    },
    tell: (series, index) =>
      series.rows
        .map((name, row) => [name, series.y[row][index]])
        .filter(([, value]) => value > 0)
        .map(([name, value]) => `${name} ${value}`)
        .slice(0, 12)
        .join(", ") || "none",
  },
};

const heatSpan = (series) => extent(series.y.flat());

/** Boxes of several series stand beside each other about their x. */
function boxPlaces(series, sx) {
  const places = series.places || 1;
  const xs = [...new Set(series.spots || series.x)].map(sx.at).sort((one, other) => one - other);
  const nearest = xs.slice(1).reduce((least, x, index) => Math.min(least, x - xs[index]), 90);
  const room = Math.max(5, Math.min(nearest * 0.75, 34 * places)) / places;
  const half = Math.max(2, room * 0.38);
  return { half, x: (index) => sx.at(series.x[index]) + ((series.place || 0) - (places - 1) / 2) * room };
}

/** Bars stand on those before them; nothing else does. */
function stack(all) {
  const sums = new Map();
  return all.map((series) => {
    if (series.kind !== "bars") return series;
    const base = series.x.map((x) => sums.get(x) || 0);
    series.x.forEach((x, index) => sums.set(x, base[index] + (series.y[index] || 0)));
    return { ...series, base };
  });
}

/** A little picture of a series, for legends: 26 by 12 pixels. */
function swatch(series) {
  const style = `${stroke(series)};fill:none;stroke-width:${series.width || 2}`;
  const lineAt =
    series.kind === "line" || series.join ? svg("path", { d: "M1,6h24", style, "stroke-dasharray": DASHES[series.dash] }) : null;
  const square = `${fill(series)}${["band", "boxes"].includes(series.kind) ? ";opacity:.3" : ""}`;
  const patch = ["bars", "band", "heat", "boxes"].includes(series.kind)
    ? svg("rect", { x: 6, y: 0.5, width: 14, height: 11, rx: 2, style: square })
    : null;
  const texture = series.texture ? svg("rect", { x: 6, y: 0.5, width: 14, height: 11, style: `fill:${patternOf(series.texture)}` }) : null;
  const area = series.fill ? svg("rect", { x: 1, y: 6, width: 24, height: 6, style: `${fill(series)};opacity:.14` }) : null;
  const mark = ["points", "boxes"].includes(series.kind) || series.marker ? markers({ size: 3.5, ...series }, [[13, 6]]) : null;
  return [area, lineAt, patch, texture, mark].filter(Boolean);
}

/** Textures tell bars and slots apart where colours do not. */
const patternOf = (texture) => `url(#texture-${texture})`;
function textures() {
  const line = (d) => svg("path", { d, style: "stroke:var(--card);stroke-width:1.4;fill:none" });
  const pattern = (name, d) => svg("pattern", { id: `texture-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line(d));
  return svg("defs", {}, pattern("rising", "M-1,1l2,-2M0,6l6,-6M5,7l2,-2"), pattern("crossed", "M0,3h6M3,0v6"));
}
