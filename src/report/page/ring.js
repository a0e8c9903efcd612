"use strict";
// The rings of rounds: a slot is a piece, a round is a ring, the latest outside, clockwise from the top.
//
// A ring is { round, turns: [[slot, owner, height]], lacks }: `owner` is an index into the names, a height of 0 is a slot
// that was missed, and `lacks` counts the pieces that a round still lacks at the end of the run.

const SIDE = 520;
const RINGS = 10;

class Ring {
  constructor(where, title, rounds, names) {
    Object.assign(this, { title, rounds, names, last: rounds.length, at: null });
    this.area = element("div", { class: "area ring", tabindex: 0, role: "group", "aria-roledescription": "plot" });
    this.told = element("div", { class: "unseen", role: "status" });
    where.append(this.area, this.told);
    this.area.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.area.addEventListener("pointerleave", () => this.show(null));
    this.area.addEventListener("blur", () => this.show(null));
    this.area.addEventListener("keydown", (event) => this.key(event));
  }

  shown() {
    return this.rounds.slice(Math.max(0, this.last - RINGS), this.last);
  }

  /** Where a ring lies: its inner and outer radius. */
  radii(index) {
    const hole = 105;
    const each = Math.min(48, (SIDE / 2 - 4 - hole) / this.shown().length);
    const inner = SIDE / 2 - 4 - each * (this.shown().length - index);
    return [inner, inner + each * 0.86];
  }

  piece(index, turn) {
    const { turns, lacks } = this.shown()[index];
    const wide = (2 * Math.PI) / (turns.length + lacks);
    const [inner, outer] = this.radii(index);
    const gap = Math.min(0.07 * wide, 0.012);
    const [from, to] = [turn * wide + gap, (turn + 1) * wide - gap];
    const point = (radius, angle) => `${px(SIDE / 2 + radius * Math.sin(angle))},${px(SIDE / 2 - radius * Math.cos(angle))}`;
    const long = to - from > Math.PI ? 1 : 0;
    return `M${point(inner, from)}L${point(outer, from)}A${px(outer)},${px(outer)} 0 ${long},1 ${point(outer, to)}L${point(inner, to)}A${px(inner)},${px(inner)} 0 ${long},0 ${point(inner, from)}Z`;
  }

  draw() {
    const d = { forged: "", missed: "" };
    this.shown().forEach(({ turns }, index) =>
      turns.forEach(([, , height], turn) => {
        d[height ? "forged" : "missed"] += this.piece(index, turn);
      }),
    );
    // Pieces as thin as a line would be all texture.
    const fine = this.shown().some(({ turns }) => turns.length > 250);
    this.mine = svg("path", { class: "same" });
    this.mark = svg("path", { class: "chosen" });
    this.words = svg("g", { "text-anchor": "middle" });
    this.svg = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, width: SIDE, height: SIDE, "aria-hidden": "true" },
      svg("path", { class: "forged", d: d.forged, style: "fill:var(--good)" }),
      svg("path", { class: "missed", d: d.missed, style: "fill:var(--bad)" }),
      fine ? null : svg("path", { class: "texture", d: d.missed, style: `fill:${patternOf("rising")}` }),
      this.mine,
      this.mark,
      this.words,
    );
    this.area.replaceChildren(this.svg);
    const count = (missed) =>
      this.shown()
        .flatMap(({ turns }) => turns)
        .filter(([, , height]) => !height === missed).length;
    const rounds = this.shown();
    this.idle = [
      `rounds ${rounds[0].round} to ${rounds.at(-1).round}`,
      `${number(count(false))} slots forged`,
      `${number(count(true))} missed`,
    ];
    if (rounds.length === 1) this.idle[0] = `round ${rounds[0].round}`;
    this.area.setAttribute(
      "aria-label",
      `${this.title}: ${this.idle.join(", ")}. Arrow keys go from slot to slot and from round to round.`,
    );
    this.show(null);
  }

  /** Shows a piece, [ring, turn], in the middle, and the other slots of its owner. */
  show(at, aloud = false) {
    this.at = at;
    let lines = this.idle;
    if (at) {
      const { round, turns } = this.shown()[at[0]];
      const [slot, owner, height] = turns[at[1]];
      lines = [this.names[owner], `round ${round}, slot ${number(slot)}`, height ? `forged height ${number(height)}` : "missed"];
      const same = this.shown().flatMap(({ turns }, index) =>
        turns.flatMap((turn, place) => (turn[1] === owner ? [this.piece(index, place)] : [])),
      );
      this.mine.setAttribute("d", same.join(""));
      this.mark.setAttribute("d", this.piece(...at));
      if (aloud) this.told.textContent = lines.join(", ");
    } else for (const mark of [this.mine, this.mark]) mark.setAttribute("d", "");
    this.words.replaceChildren(
      ...lines.map((line, index) =>
        svg(
          "text",
          { x: SIDE / 2, y: SIDE / 2 - 16 + index * 22, class: index ? "tick" : "middle", style: index ? "font-size:15px" : null },
          shortened(line, 170),
        ),
      ),
    );
  }

  under(event) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width - 0.5) * SIDE, ((event.clientY - box.top) / box.height - 0.5) * SIDE];
    const index = this.shown().findIndex((_, ring) => {
      const [inner, outer] = this.radii(ring);
      return Math.hypot(x, y) >= inner && Math.hypot(x, y) <= outer;
    });
    if (index < 0) return null;
    const { turns, lacks } = this.shown()[index];
    const turn = Math.floor(((Math.atan2(x, -y) / (2 * Math.PI) + 1) % 1) * (turns.length + lacks));
    return turn < turns.length ? [index, turn] : null;
  }

  key(event) {
    const rings = this.shown();
    const [ring, turn] = this.at || [rings.length - 1, -1];
    const moves = {
      ArrowRight: [ring, turn + 1],
      ArrowLeft: [ring, turn - 1],
      ArrowUp: [ring + 1, turn],
      ArrowDown: [ring - 1, turn],
      Home: [ring, 0],
      End: [ring, Infinity],
    };
    if (event.key === "Escape") this.show(null);
    else if (moves[event.key]) {
      const index = Math.max(0, Math.min(rings.length - 1, moves[event.key][0]));
      this.show([index, Math.max(0, Math.min(rings[index].turns.length - 1, moves[event.key][1]))], true);
    } else return;
    event.preventDefault();
  }
}
