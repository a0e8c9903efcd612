"use strict";
// A sequence diagram: a lane for each node, a row for what happened, arrows for the messages that brought it about. The colour,
// the dashes and the letter of a lane say on which of the rival branches its node stands.
//
//   new Sequence(where, title, explanation, chosen).draw()     `chosen` hears the row under the pointer or the keys
//
// A row is { after_seconds, kind, nodes, text, arrows: [{ from, to, lost }], stands }. Up and down move from row to row.

const LANE_LOOKS = [["good", null], ["bad", "7 3"], ["third", "2 3"], ["fourth", "9 3 2 3"], ["fifth", "5 2 1 2"], ["sixth", "12 4"]];
const MARK_OF = { "block.forged": "square", "block.applied": "circle", "chain.rolled-back": "triangle", "block.refused": "cross", "pool.rejected": "cross", "pool.evicted": "cross", failure: "cross",
  "health.checked": "diamond", "forger.suspended": "diamond", "node.down": "cross", "node.up": "circle", submitted: "plus" };
const WIDEST_LANES = 24;
const SIDE_BY_SIDE = 760;

/** Nodes by number. From nine nodes on, three or more consecutive numbers become a span, as in the text. */
function nodeList(nodes) {
  if (nodes.length <= 8) return nodes.join(" ");
  const spans = [];
  for (const node of nodes) {
    if (spans.length && spans.at(-1)[1] + 1 === node) spans.at(-1)[1] = node;
    else spans.push([node, node]);
  }
  return spans.flatMap(([first, last]) => (last - first > 1 ? `${first}–${last}` : first === last ? first : [first, last])).join(" ");
}

/** Which nodes have a lane: all, or those that do something in the rows. */
function laneNodes(explanation) {
  const { nodes, target, chain } = explanation;
  if (nodes <= WIDEST_LANES) return [...Array(nodes).keys()];
  const all = new Set(target.node === null ? [] : [target.node]);
  for (const row of [...chain.rows].reverse()) for (const node of [...row.nodes.slice(0, 2), ...row.nodes.slice(-1), ...row.arrows.slice(0, 1).map(({ from }) => from)]) if (all.size < WIDEST_LANES) all.add(node);
  return [...all].sort((one, other) => one - other);
}

class Sequence {
  constructor(where, title, explanation, chosen) {
    Object.assign(this, { title, chosen, rows: explanation.chain.rows, lanes: laneNodes(explanation), at: null });
    const letters = [...new Set(this.rows.flatMap((row) => [...row.stands]))].filter((letter) => /[A-Za-z?]/.test(letter) && letter !== "x").sort();
    this.looks = new Map(letters.map((letter, index) => [letter, LANE_LOOKS[index % LANE_LOOKS.length]]));
    this.area = element("div", { class: "area sequence", tabindex: 0, role: "group", "aria-roledescription": "diagram", "aria-label": `${title}: ${this.rows.length} rows, up and down to move` });
    where.append(this.area);
    this.area.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.area.addEventListener("click", (event) => this.show(this.under(event)));
    this.area.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(([entry]) => { if (Math.abs(entry.contentRect.width - this.width) > 1) this.draw(); }).observe(this.area);
  }

  look(letter) {
    if (letter === "x") return { stroke: "var(--soft)", dash: "1 5" };
    const [color, dash] = this.looks.get(letter) || ["soft", null];
    return { stroke: `var(--${color})`, dash };
  }

  draw() {
    this.width = this.area.clientWidth || 800;
    const wide = this.width >= SIDE_BY_SIDE;
    const time = 66;
    const room = wide ? Math.min(this.width * 0.5, this.lanes.length * 46) : this.width - time - 10;
    const step = room / this.lanes.length;
    this.x = new Map(this.lanes.map((node, index) => [node, time + step * (index + 0.5)]));
    const textAt = wide ? time + room + 12 : time;
    this.rowHeight = wide ? 25 : 42;
    this.head = 30;
    const made = [];
    for (const node of this.lanes) made.push(words(this.x.get(node), 16, String(node), { "text-anchor": "middle", class: "lane-name" }));
    made.push(words(0, 16, "seconds", { class: "title" }));
    const y = (index) => this.head + this.rowHeight * index + (wide ? 12 : 10);
    let before = null;
    this.rows.forEach((row, index) => {
      const at = y(index);
      for (const node of this.lanes) {
        const letter = row.stands[node] || "·";
        const { stroke, dash } = this.look(letter);
        const x = px(this.x.get(node));
        // In a narrow window the words stand below the lanes, which make room for them.
        const [up, down] = wide ? [this.rowHeight / 2, this.rowHeight / 2] : [12, 9];
        made.push(svg("path", { d: `M${x},${px(at - up)}V${px(at + down)}`, style: `stroke:${stroke};stroke-width:${letter === "·" ? 1.5 : 3};fill:none`, "stroke-dasharray": row.folded ? "1 4" : dash }));
        if (/[A-Za-z]/.test(letter) && letter !== "x" && (!before || (before.stands[node] || "·") !== letter)) made.push(words(x + 4, at - 4, letter, { class: "branch" }));
      }
      before = row;
    });
    this.rows.forEach((row, index) => made.push(...this.row(row, y(index), wide, textAt)));
    const height = this.head + this.rowHeight * this.rows.length + 6;
    this.mark = svg("rect", { class: "brush", x: 0, width: this.width, height: this.rowHeight, y: -this.rowHeight });
    this.svg = svg("svg", { viewBox: `0 0 ${px(this.width)} ${px(height)}`, width: px(this.width), height: px(height), "aria-hidden": "true" }, this.mark, made);
    this.area.replaceChildren(this.svg);
    this.place();
  }

  row(row, at, wide, textAt) {
    const made = [];
    const inkOf = (node) => this.look(row.stands[node] || "·").stroke;
    for (const { from, to, lost } of row.arrows) {
      const [start, end] = [this.x.get(from), this.x.get(to)];
      if (start === undefined || end === undefined) continue;
      const side = Math.sign(end - start) || 1;
      const tip = end - side * 6;
      made.push(svg("path", { d: `M${px(start)},${at}H${px(tip)}`, style: `stroke:${lost ? "var(--bad)" : "var(--text)"};stroke-width:1.2;fill:none`, "stroke-dasharray": lost ? "4 3" : null }));
      made.push(lost ? svg("path", { d: `M${px(tip)},${at}${SHAPES.cross(4)}`, style: "stroke:var(--bad);stroke-width:2;fill:none" })
        : svg("path", { d: `M${px(tip + side * 2)},${at}l${-side * 6},-3.5v7z`, style: "fill:var(--text)" }));
    }
    const shape = MARK_OF[row.kind];
    if (shape) {
      for (const node of row.nodes.filter((node) => this.x.has(node))) {
        const d = `M${px(this.x.get(node))},${at}${SHAPES[shape](row.kind === "failure" ? 7 : 5)}`;
        made.push(svg("path", { d, style: hollow(shape) ? `stroke:var(--bad);stroke-width:2.5;fill:none` : `fill:${inkOf(node)};stroke:var(--card);stroke-width:1` }));
      }
    }
    made.push(words(0, at + 4, row.folded ? "…" : row.after_seconds.toFixed(3), { class: "tick" }));
    const who = row.nodes.length && !row.folded ? `${row.nodes.length > 1 ? "nodes" : "node"} ${nodeList(row.nodes)} ` : "";
    const full = `${who}${row.text}`;
    const text = words(textAt, wide ? at + 4 : at + 22, shortened(full, this.width - textAt - 4, row.kind === "failure" ? 700 : 400), { class: row.folded ? "tick" : row.kind === "failure" ? "failure" : "said" });
    text.append(svg("title", {}, full));
    made.push(text);
    return made;
  }

  under(event) {
    const index = Math.floor((event.clientY - this.area.getBoundingClientRect().top - this.head) / this.rowHeight);
    return index >= 0 && index < this.rows.length ? index : this.at;
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = this.at ?? (step > 0 ? -1 : this.rows.length);
    this.show(Math.max(0, Math.min(this.rows.length - 1, from + step)));
  }

  show(index) {
    if (index === null || index === this.at) return;
    this.at = index;
    this.place();
    this.chosen(this.rows[index]);
  }

  place() {
    this.mark.setAttribute("visibility", this.at === null ? "hidden" : "visible");
    if (this.at !== null) this.mark.setAttribute("y", px(this.head + this.rowHeight * this.at));
  }
}
