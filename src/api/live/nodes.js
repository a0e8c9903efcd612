// The nodes: on a circle with their links, or in rows where they are many. A colour and a shape is a branch, a gap and red
// strokes are a partition.
import { px, svg } from "./drawing.js";
import { element, link, number, plural, setText } from "./show.js";
import { partsOf } from "./network.js";
import { marker } from "./tree.js";

const SIDE = 460;
const MIDDLE = SIDE / 2;
/** As many stand on the circle, and as many links are drawn between them. */
const CIRCLE = 110;
const LINKS = 8000;

export class Nodes {
  constructor(where, act) {
    Object.assign(this, { where, act, at: null, known: new Set() });
    this.links = svg("path", { class: "links" });
    this.cut = svg("path", { class: "links cut" });
    this.marks = svg("g", {});
    this.ring = svg("circle", { class: "picked-node", r: 0 });
    this.names = svg("g", { class: "parts" });
    this.svg = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "nodes", tabindex: 0, role: "img", "aria-label": "Nodes" },
      this.links,
      this.cut,
      this.names,
      this.marks,
      this.ring,
    );
    this.told = where.querySelector(".told");
    this.facts = where.querySelector(".read");
    where.prepend(this.svg);
    this.svg.addEventListener("pointerdown", (event) => this.pick(this.under(event)));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  draw(network, branches) {
    const { lab, faults } = network;
    const parts = partsOf(faults, lab.nodes);
    const looks = lab.nodes.map((node) => branches.of(node.tip));
    // A node is behind where its own branch has gone on.
    const most = new Map();
    lab.nodes.forEach((node, index) => most.set(looks[index], Math.max(most.get(looks[index]) ?? 0, node.height)));
    const behind = lab.nodes.map((node, index) => node.live && node.height < most.get(looks[index]) - 1);
    const state =
      lab.nodes.map((node, index) => `${looks[index]}${node.live}${parts[index]}${behind[index]}`).join() +
      JSON.stringify(lab.nodes.map((node) => node.peers));
    const moved = state !== this.state;
    Object.assign(this, { lab, parts, looks, behind, state, isPast: network.isPast, isSteered: network.isSteered });
    if (moved) this.place();
    this.tell();
  }

  place() {
    const { lab, parts } = this;
    const groups = [];
    parts.forEach((part, node) => (groups[part] ??= []).push(node));
    this.groups = groups.filter(Boolean);
    const many = lab.nodes.length > CIRCLE;
    this.places = many ? this.rows() : this.circle();
    const r = many ? this.size : Math.max(4, Math.min(14, 480 / lab.nodes.length));
    const marks = lab.nodes.map((node, index) => this.mark(node, index, r));
    if (!many && lab.nodes.length <= 60) marks.push(...lab.nodes.map((node, index) => this.number(node, index, r)));
    this.marks.replaceChildren(...marks);
    this.r = r;
    this.joined(many);
    this.svg.setAttribute("aria-label", this.describe());
    this.ringAt();
  }

  circle() {
    const gap = this.groups.length > 1 ? Math.min(6, 120 / this.groups.length) : 0;
    const total = this.lab.nodes.length + gap * (this.groups.length > 1 ? this.groups.length : 0);
    const places = [];
    let turn = 0;
    for (const group of this.groups) {
      for (const node of group) {
        const angle = ((turn + 0.5) / total) * 2 * Math.PI;
        places[node] = [MIDDLE + 196 * Math.sin(angle), MIDDLE - 196 * Math.cos(angle), angle];
        turn += 1;
      }
      turn += gap;
    }
    return places;
  }

  /** Groups one below another, each in rows. */
  rows() {
    const nodes = this.lab.nodes.length;
    const fit = (cell) =>
      this.groups.reduce((sum, group) => sum + Math.ceil(group.length / Math.floor((SIDE - 10) / cell)) * cell + 26, 0) <= SIDE;
    let cell = Math.sqrt((SIDE * SIDE) / nodes);
    while (cell > 4 && !fit(cell)) cell -= 0.25;
    this.size = Math.max(1.5, cell * 0.36);
    const columns = Math.floor((SIDE - 10) / cell);
    const places = [];
    let y = 20;
    this.heads = [];
    for (const group of this.groups) {
      this.heads.push(y - 6);
      group.forEach((node, index) => {
        places[node] = [5 + ((index % columns) + 0.5) * cell, y + (Math.floor(index / columns) + 0.5) * cell];
      });
      y += Math.ceil(group.length / columns) * cell + 26;
    }
    return places;
  }

  mark(node, index, r) {
    const [x, y] = this.places[index];
    if (!node.live)
      return svg("path", {
        d: `M${px(x - r * 0.7)},${px(y - r * 0.7)}l${px(r * 1.4)},${px(r * 1.4)}m0,${px(-r * 1.4)}l${px(-r * 1.4)},${px(r * 1.4)}`,
        class: "down",
      });
    const late = this.behind[index];
    return marker(this.looks[index] === undefined ? null : this.looks[index], x, y, late ? r * 0.62 : r, late ? { class: "late" } : {});
  }

  /** A node's number outside the circle; its name below it where there is room for names. */
  number(node, index, r) {
    const [x, y, angle] = this.places[index];
    const text = (x, y, size, words) =>
      svg("text", { x: px(x), y: px(y), class: "tick", "text-anchor": "middle", "font-size": size }, words);
    if (this.lab.nodes.length <= 12)
      return text(Math.max(42, Math.min(SIDE - 42, x)), y + r + 15, 12, node.delegate ?? `relay ${node.node}`);
    const away = r + 12;
    return text(x + away * Math.sin(angle), y - away * Math.cos(angle) + 4, this.lab.nodes.length > 30 ? 9.5 : 12, node.node);
  }

  /**
   * Draws the links that nodes report, and the cut ones. A node soon forgets a peer that it does not reach. So a cut link is one
   * that was reported before. If nodes have links to nine tenths of the others of their part, any pair across parts is a cut link. If
   * nodes never reported links, the method counts the pairs of nodes that do not reach each other.
   */
  joined(many) {
    const d = { fine: "", cut: "" };
    const { lab, parts, places } = this;
    const line = (one, other) => `M${px(places[one][0])},${px(places[one][1])}L${px(places[other][0])},${px(places[other][1])}`;
    let drawn = 0;
    this.cuts = 0;
    const peers = lab.nodes.map((node) => (Array.isArray(node.peers) ? new Set(node.peers) : null));
    const told = peers.some(Boolean);
    let [near, linked] = [0, 0];
    const pairs = (see) => {
      for (let one = 0; one < lab.nodes.length; one += 1) for (let other = one + 1; other < lab.nodes.length; other += 1) see(one, other);
    };
    if (told)
      pairs((one, other) => {
        const has = peers[one]?.has(other) || peers[other]?.has(one);
        if (has) this.known.add(one * lab.nodes.length + other);
        if (parts[one] !== parts[other] || !lab.nodes[one].live || !lab.nodes[other].live) return;
        near += 1;
        if (has) linked += 1;
      });
    // Without two live nodes in one part this counts as a mesh.
    if (told) this.mesh = linked >= 0.9 * near;
    const knows = this.mesh !== undefined;
    pairs((one, other) => {
      const apart = parts[one] !== parts[other];
      const isLink = !knows || this.mesh || this.known.has(one * lab.nodes.length + other);
      if (apart && isLink) this.cuts += 1;
      if (many || drawn > LINKS) return;
      if (apart && isLink && knows) d.cut += line(one, other);
      else if (!apart && peers[one]?.has(other)) d.fine += line(one, other);
      else return;
      drawn += 1;
    });
    const cut = `${number(this.cuts)} ${knows ? "links" : "pairs"} cut`;
    this.links.setAttribute("d", d.fine);
    this.cut.setAttribute("d", d.cut);
    const count = Math.max(1, lab.nodes.length);
    this.links.style.strokeOpacity = Math.max(0.05, Math.min(0.5, 12 / count));
    this.cut.style.strokeOpacity = Math.max(0.1, Math.min(0.7, 14 / count));
    const heads =
      many && this.groups.length > 1
        ? this.groups.map((group, index) =>
            svg(
              "text",
              { x: 6, y: this.heads[index] + 3, class: "tick" },
              `${plural(group.length, "node")}${index ? "" : `, ${cut}`}`,
            ),
          )
        : [];
    const walls = many ? this.heads.slice(1).map((y) => svg("path", { d: `M0,${y - 12}H${SIDE}`, class: "links cut wall" })) : [];
    const live = lab.nodes.filter((node) => node.live).length;
    const lines = this.groups.length > 1
      ? [`${number(this.groups.length)} parts`, cut]
      : [plural(count, "node"), live === count ? "all live" : `${number(count - live)} down`];
    const middle = many
      ? []
      : lines.map((line, index) =>
          svg(
            "text",
            {
              x: MIDDLE,
              y: MIDDLE - 2 + index * 22,
              class: index ? (this.groups.length > 1 ? "cut-count" : "tick") : "middle",
              "font-size": index ? 14 : 18,
              "text-anchor": "middle",
            },
            line,
          ),
        );
    this.names.replaceChildren(...heads, ...walls, ...middle);
  }

  describe() {
    const live = this.lab.nodes.filter((node) => node.live).length;
    const parts =
      this.groups.length > 1
        ? `, cut into ${this.groups.length} parts of ${this.groups
            .slice(0, 8)
            .map((group) => group.length)
            .join(", ")} nodes`
        : "";
    return `${plural(this.lab.nodes.length, "node")}, ${number(live)} live${parts}. Arrow keys go from node to node.`;
  }

  ringAt() {
    const place = this.at === null ? null : this.places?.[this.at];
    this.ring.setAttribute("r", place ? Math.max(6, this.r + 4) : 0);
    if (place) {
      this.ring.setAttribute("cx", px(place[0]));
      this.ring.setAttribute("cy", px(place[1]));
    }
  }

  pick(index, aloud = false) {
    this.at = index;
    this.ringAt();
    this.tell(aloud);
  }

  /** Shows the facts about the chosen node and its button. The text changes in place, so that the button keeps its focus. */
  tell(aloud = false) {
    const node = this.at === null ? null : this.lab.nodes[this.at];
    if (!node) {
      setText(this.facts, `Choose a node to see where it ${this.isPast ? "stood" : "stands"}${this.isSteered ? ", or to crash it" : ""}.`);
      this.line = null;
      return;
    }
    const peers = Array.isArray(node.peers) ? node.peers.length : node.peers;
    const text = `height ${number(node.height)}, ${plural(node.pool, "transaction")} in its pool${peers === undefined ? "" : `, ${plural(peers, "peer")}`}${node.live ? "" : `, down: ${node.cause}`}`;
    const key = `${node.node} ${node.live} ${this.isSteered}`;
    if (this.line?.key !== key) {
      const words = element("span", {});
      const crashed = node.cause === "crash";
      const name = `Node ${node.node}`;
      const button =
        this.isSteered && (node.live || crashed)
          ? element(
              "button",
              { type: "button", class: "act", onclick: () => this.act(node.node, node.live ? "crash" : "restart") },
              node.live ? "Crash" : "Restart",
            )
          : null;
      this.facts.replaceChildren(
        element("b", {}, name, " ", node.delegate ? link("delegates", node.delegate) : "relay"),
        " ",
        words,
        " ",
        button ?? "",
      );
      this.line = { key, words };
    }
    setText(this.line.words, text);
    if (aloud) setText(this.told, `Node ${node.node} ${node.delegate ?? "relay"}, ${text}`);
  }

  under(event) {
    if (!this.places) return null;
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
    let best = null;
    let least = Math.max(14, this.r * 2);
    this.places.forEach(([px_, py], index) => {
      const away = Math.hypot(px_ - x, py - y);
      if (away < least) [least, best] = [away, index];
    });
    return best;
  }

  key(event) {
    if (!this.lab) return;
    const last = this.lab.nodes.length - 1;
    const order = this.groups.flat();
    const place = this.at === null ? -1 : order.indexOf(this.at);
    const moves = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: last };
    if (event.key === "Escape") this.pick(null);
    else if (event.key in moves) this.pick(order[Math.max(0, Math.min(last, moves[event.key]))], true);
    else return;
    event.preventDefault();
  }
}

/** The legend: a branch each, and what a node that is down or behind looks like. */
export function nodeKeys({ looks, behind }, nodes, branches) {
  const seen = [...new Set(looks.filter((look, index) => look !== undefined && look !== null && nodes[index].live))].sort(
    (one, other) => one - other,
  );
  const words = (look) => {
    const { from, isWhole } = branches.find((branch) => branch.look === look);
    return `on a branch from ${isWhole ? "" : "below "}height ${number(from)}`;
  };
  const keys = seen.map((look) => [look === 0 ? "on the winning chain" : words(look), [marker(look, 8, 6, 5)]]);
  if (behind.includes(true)) keys.push(["small: behind", [marker(0, 8, 6, 3, { class: "late" })]]);
  if (nodes.some((node) => !node.live)) keys.push(["down", [svg("path", { d: "M4,2l8,8m0,-8l-8,8", class: "down" })]]);
  return keys;
}
