// The tree of blocks: the winning chain in the first lane, a lane for each branch, and on each block how many nodes stand there.
import { SHAPES, px, svg } from "./drawing.js";
import { clock, number, plural, setText } from "./show.js";

const [WIDE, HIGH] = [26, 46];
const LANES = 6;
/** Branches differ by colour and by shape. The first is the winning chain. */
const LOOKS = [
  ["good", "circle"],
  ["bad", "square"],
  ["third", "triangle"],
  ["fourth", "diamond"],
  ["fifth", "plus"],
  ["sixth", "cross"],
];
export const lookOf = (branch) => (branch === null || branch === undefined ? ["soft", "circle"] : LOOKS[branch % LOOKS.length]);
export const marker = (branch, x, y, r, more = {}) => {
  const [color, shape] = lookOf(branch);
  const hollow = shape === "plus" || shape === "cross";
  return svg("path", {
    d: `M${px(x)},${px(y)}${SHAPES[shape](r)}`,
    style: hollow ? `fill:none;stroke:var(--${color});stroke-width:2.5` : `fill:var(--${color})`,
    ...more,
  });
};

/** Blocks in branches. A branch keeps its look for as long as anybody stands on it. */
export class Branches {
  constructor() {
    this.looks = new Map();
  }

  /** Gives each block its `row` and its `branch`: 0 for the winning chain, null for one that everybody has left. */
  assign(tree) {
    const blocks = new Map(tree.blocks.map((block) => [block.id, { ...block }]));
    const ordered = [...blocks.values()].sort((one, other) => one.height - other.height || (one.id < other.id ? -1 : 1));
    const branches = [];
    for (const block of ordered) {
      const parent = blocks.get(block.previous);
      if (block.winning) continue;
      if (parent && !parent.winning && !parent.goesOn) {
        parent.goesOn = true;
        block.of = parent.of;
      } else {
        // Where the block before is not known, the branch may begin far below.
        block.of = { root: block.id, from: block.height, isWhole: Boolean(parent), nodes: 0 };
        branches.push(block.of);
      }
      block.of.to = block.height;
      block.of.nodes += block.nodes;
    }
    this.lay(branches);
    for (const block of ordered) {
      block.row = block.winning ? 0 : block.of.row;
      block.branch = block.winning ? 0 : block.of.look;
    }
    this.blocks = blocks;
    this.branches = branches;
    this.key = `${tree.from} ${tree.tip} ${branches.map(({ root, look }) => `${root}${look}`).join()}`;
    return ordered;
  }

  lay(branches) {
    const ends = [];
    const alive = new Set(branches.filter((branch) => branch.nodes).map((branch) => branch.root));
    for (const root of this.looks.keys()) if (!alive.has(root)) this.looks.delete(root);
    for (const branch of [...branches].sort((one, other) => (other.nodes > 0) - (one.nodes > 0) || one.from - other.from)) {
      let row = ends.findIndex((taken) => taken.every(([from, to]) => branch.to < from - 1 || branch.from > to + 1));
      if (row < 0) row = ends.push([]) - 1;
      ends[row].push([branch.from, branch.to]);
      branch.row = row + 1;
      branch.look = branch.nodes ? this.look(branch.root) : null;
    }
  }

  look(root) {
    if (!this.looks.has(root)) {
      const taken = new Set(this.looks.values());
      let free = 1;
      while (taken.has(free)) free += 1;
      this.looks.set(root, free);
    }
    return this.looks.get(root);
  }

  /** The branch that a node's tip is on; undefined where it lies below all that is known. */
  of(tip) {
    return this.blocks?.get(tip)?.branch;
  }
}

export class Tree {
  constructor(where, choose) {
    Object.assign(this, { where, choose, at: null });
    this.told = where.querySelector(".told");
    this.area = svg("svg", { class: "tree", tabindex: 0, role: "img", "aria-label": "Blocks of all branches" });
    where.prepend(this.area);
    this.area.addEventListener("click", (event) => {
      const id = event.target.closest("[data-block]")?.dataset.block;
      if (id) this.choose(id);
    });
    this.area.addEventListener("pointermove", (event) => this.show(event.target.closest("[data-block]")?.dataset.block ?? null));
    this.area.addEventListener("pointerleave", () => this.show(null));
    this.area.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.tree && this.draw(this.tree, this.ordered, this.slotSeconds)).observe(where);
  }

  draw(tree, ordered, slotSeconds) {
    const width = this.where.clientWidth;
    const state = `${width} ${ordered.map((block) => `${block.id}${block.nodes}${block.row}${block.branch}`).join()}`;
    Object.assign(this, { tree, ordered, slotSeconds });
    if (!width || state === this.state) return;
    this.state = state;
    const columns = this.columns(ordered, Math.max(4, Math.floor((width - 96) / WIDE)));
    const shown = ordered.filter((block) => columns.has(block.height) && block.row < LANES);
    const rows = Math.max(2, 1 + shown.reduce((most, block) => Math.max(most, block.row), 0));
    const places = new Map(shown.map((block) => [block.id, [columns.get(block.height), 30 + block.row * HIGH]]));
    const parts = [this.axis(columns, rows)];
    const lines = { plain: "", left: "" };
    for (const block of shown) {
      const [x, y] = places.get(block.id);
      const from = places.get(block.previous) ?? (block.height > 1 ? [this.before(shown, block, places) ?? 2, y] : null);
      if (!from) continue;
      const [before, level] = from;
      lines[block.branch === null ? "left" : "plain"] +=
        level === y
          ? `M${px(before)},${y}H${px(x)}`
          : `M${px(before)},${level}C${px(before + 14)},${level} ${px(x - 16)},${y} ${px(x)},${y}`;
    }
    parts.push(svg("path", { d: lines.plain, class: "limb" }), svg("path", { d: lines.left, class: "limb left" }));
    this.shown = shown;
    for (const block of shown) parts.push(this.block(block, ...places.get(block.id)));
    const height = 30 + rows * HIGH;
    const below = this.below(ordered, shown);
    if (below) parts.push(svg("text", { x: 14, y: height - 6, class: "tick" }, below));
    this.area.replaceChildren(...parts);
    this.area.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.area.setAttribute("width", width);
    this.area.setAttribute("height", height);
    this.area.setAttribute("aria-label", this.describe());
    this.show(this.at);
  }

  /** The block of the same branch before heights that are left out. */
  before(shown, block, places) {
    const known = shown.findLast((other) => other.row === block.row && other.of === block.of && other.height < block.height);
    return known && places.get(known.id)[0];
  }

  /** The place of each height: the newest ones, and where branches begin and end, however far below. */
  columns(ordered, room) {
    const wanted = new Set();
    const want = (height) => height >= 1 && wanted.size < room && wanted.add(height);
    const [lowest, highest] = ordered.length ? [ordered[0].height, ordered.at(-1).height] : [1, 1];
    [0, 1, 2].forEach((less) => want(highest - less));
    for (const { nodes, from, to } of this.branches ?? []) if (nodes) [from - 1, from, to].forEach(want);
    for (const block of ordered) if (block.nodes) want(block.height);
    for (let height = highest; height >= lowest && wanted.size < room; height -= 1) want(height);
    const heights = [...wanted].sort((one, other) => one - other);
    return new Map(heights.map((height, index) => [height, 14 + index * WIDE + WIDE / 2]));
  }

  /** Heights above the blocks; a dashed line where some are left out. */
  axis(columns, rows) {
    const heights = [...columns.keys()];
    const every = [5, 10, 20, 50].find((step) => step * WIDE > 14 + String(heights.at(-1)).length * 9) ?? 100;
    const marks = [];
    let end = -Infinity;
    heights.forEach((height, index) => {
      const x = columns.get(height);
      const gap = index > 0 && heights[index - 1] < height - 1;
      if (gap) marks.push(svg("path", { d: `M${px(x - WIDE / 2)},4V${24 + rows * HIGH - 16}`, class: "break" }));
      const words = number(height);
      if (!(height % every === 0 || gap || index === 0) || x - words.length * 4 < end + 6) return;
      end = x + words.length * 4;
      marks.push(
        svg("path", { d: `M${px(x)},14V${24 + rows * HIGH - 16}`, class: "rule" }),
        svg("text", { x: px(x), y: 9, class: "tick", "text-anchor": "middle" }, words),
      );
    });
    return svg("g", {}, marks);
  }

  block(block, x, y) {
    const left = block.branch === null;
    const [color] = lookOf(block.branch);
    const group = svg(
      "g",
      { "data-block": block.id, class: `block${left ? " left" : ""}` },
      svg("rect", { x: px(x - WIDE / 2), y: y - HIGH / 2 + 2, width: WIDE, height: HIGH - 4, class: "hit" }),
      svg("rect", { x: px(x - 8), y: y - 8, width: 16, height: 16, rx: 4, style: left ? null : `fill:var(--${color})` }),
    );
    const many = block.transactions > 99;
    if (block.transactions)
      group.append(
        svg("text", { x: px(x), y: y + 4, class: many ? "count many" : "count", "text-anchor": "middle" }, many ? "99+" : block.transactions),
      );
    if (!block.nodes) return group;
    const last = block.height === this.ordered.at(-1).height || !this.ordered.some((other) => other.previous === block.id);
    const words = last ? plural(block.nodes, "node") : number(block.nodes);
    if (last) group.append(marker(block.branch, x + 18, y, 5), svg("text", { x: px(x + 27), y: y + 4, class: "stand" }, words));
    else group.append(marker(block.branch, x - 5, y + 16, 3.5), svg("text", { x: px(x + 1), y: y + 20, class: "stand small" }, words));
    return group;
  }

  /** Nodes that stand on blocks which have no place here. */
  below(ordered, shown) {
    const total = this.nodes ?? 0;
    const seen = shown.reduce((sum, block) => sum + block.nodes, 0);
    return total > seen ? `${plural(total - seen, "node")} on blocks that are not shown` : "";
  }

  describe() {
    const standing = this.ordered
      .filter((block) => block.nodes)
      .sort((one, other) => other.nodes - one.nodes)
      .slice(0, 6);
    const told = standing.map(
      (block) => `${plural(block.nodes, "node")} on height ${block.height}${block.winning ? "" : " of another branch"}`,
    );
    return `Blocks of all branches. ${told.join(", ")}. Arrow keys go from block to block, Enter shows it.`;
  }

  show(id, aloud = false) {
    const block = id && this.shown?.find((block) => block.id === id);
    this.at = block ? id : null;
    this.area.querySelector(".picked")?.classList.remove("picked");
    if (block) this.area.querySelector(`[data-block="${CSS.escape(id)}"]`)?.classList.add("picked");
    const text = block
      ? `Height ${number(block.height)} · ${block.forger} · slot ${number(block.slot)} · ${clock(block.time)} · ${plural(block.transactions, "transaction")} · ${block.nodes ? `${plural(block.nodes, "node")} here · ` : ""}${block.winning ? "winning chain" : block.branch === null ? "left by all" : "other branch"}`
      : this.summary();
    setText(this.where.querySelector(".read"), text);
    if (aloud && block) setText(this.told, text);
  }

  summary() {
    const live = (this.branches ?? []).filter((branch) => branch.nodes).length;
    const left = (this.branches ?? []).length - live;
    return `${live ? `${plural(live + 1, "branch", "branches")} with nodes` : "One chain"}${left ? `, ${number(left)} left by all` : ""}. A number in a block counts its transactions.`;
  }

  key(event) {
    if (!this.shown?.length) return;
    const block = this.shown.find(({ id }) => id === this.at) ?? null;
    const last = this.shown.filter(({ row }) => row === 0).at(-1);
    const near = (rows) =>
      rows && [...rows].sort((one, other) => Math.abs(one.height - block.height) - Math.abs(other.height - block.height))[0];
    const step = {
      ArrowLeft: () => (block ? this.shown.find(({ id }) => id === block.previous) : last),
      ArrowRight: () =>
        block
          ? (this.shown.find(({ previous, row }) => previous === block.id && row === block.row) ??
            this.shown.find(({ previous }) => previous === block.id))
          : last,
      ArrowDown: () => (block ? near(this.shown.filter(({ row }) => row === block.row + 1)) : last),
      ArrowUp: () => (block ? near(this.shown.filter(({ row }) => row === block.row - 1)) : last),
      End: () => last,
      Home: () => this.shown[0],
    }[event.key];
    if (event.key === "Enter" && block) this.choose(block.id);
    else if (event.key === "Escape") this.show(null);
    else if (step) this.show((step() ?? block)?.id ?? null, true);
    else return;
    event.preventDefault();
  }
}
