// The newest events, newest first. The list is short enough to be drawn at once.
import { svg } from "./drawing.js";
import { clock, coins, element, plural, short } from "./show.js";
import { lookOf, marker } from "./tree.js";

const SHOWN = 60;
const ACTED = "When the node acted. The time of a block is the begin of its slot, which is earlier.";
const GROUPS = {
  blocks: ["Blocks", ["block.forged", "block.refused", "forger.suspended", "forger.failed"]],
  chain: ["Forks", ["chain.rolled-back", "chain.moved", "gap"]],
  faults: ["Faults and nodes", ["fault.began", "fault.ended", "node.down", "node.up"]],
  rounds: ["Rounds", ["round.began"]],
};

const tip = ({ id, height }) => `height ${height} (${short(id, 4)})`;
const CAUSES = {
  forked: "its peers are on another chain",
  "double-forging": "two blocks of one slot",
  "never-ready": "it never caught up",
  asked: "a reorganisation was asked for",
};
const WORDS = {
  "block.forged": ({ block, fees }) =>
    `forged height ${block.height}${block.transactions ? ` with ${plural(block.transactions, "transaction")}, fees ${coins(fees)}` : ""}`,
  "block.refused": ({ reason }) => `refused a block: ${reason}`,
  "forger.suspended": ({ reached, in_quorum: quorum }) => `did not forge: reaches ${plural(reached, "peer")}, ${quorum} of them agree`,
  "forger.failed": ({ reason }) => `cannot forge: ${reason}`,
  "chain.rolled-back": ({ from, to, cause }) => `rolled back from ${tip(from)} to ${tip(to)}: ${CAUSES[cause] ?? cause}`,
  "chain.moved": ({ to }) => `stands on ${tip(to)} since the network went back`,
  "fault.began": ({ fault, fault_kind: kind }) => `fault ${fault} began: ${kind}`,
  "fault.ended": ({ fault, fault_kind: kind }) => `fault ${fault} ended: ${kind}`,
  "node.down": ({ cause }) => `down: ${cause}`,
  "node.up": () => "up again",
  "round.began": ({ round }) => `round ${round} began`,
  gap: ({ missed }) => `${missed === null ? "some" : missed} events left out: they came faster than they were read`,
};
const SIGNS = {
  "fault.began": "▲",
  "fault.ended": "▽",
  "node.down": "✕",
  "node.up": "○",
  "chain.rolled-back": "↶",
  "chain.moved": "↶",
  "block.forged": "■",
  "block.refused": "□",
  "round.began": "◔",
  gap: "…",
};
const LOUD = new Set(["chain.rolled-back", "fault.began", "node.down", "forger.failed", "block.refused", "forger.suspended"]);

export class Feed {
  constructor(where) {
    this.off = new Set();
    this.rows = element("ol", { class: "events", "aria-label": "Events, the newest first", tabindex: 0 });
    const toggles = Object.entries(GROUPS).map(([group, [name]]) =>
      element(
        "button",
        { type: "button", class: "chip", "aria-pressed": "true", onclick: ({ target }) => this.toggle(group, target) },
        name,
      ),
    );
    this.hold = element("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => this.still() }, "Hold");
    this.bar = element("div", { class: "chips" }, toggles, this.hold);
    where.append(this.rows);
  }

  toggle(group, button) {
    if (!this.off.delete(group)) this.off.add(group);
    button.setAttribute("aria-pressed", String(!this.off.has(group)));
    this.state = null;
    this.again?.();
  }

  still() {
    const held = this.hold.getAttribute("aria-pressed") !== "true";
    this.hold.setAttribute("aria-pressed", String(held));
    this.held = null;
    this.again?.();
  }

  draw(network, branches) {
    this.again = () => this.draw(network, branches);
    // A held list keeps copies of the events, because a line that stands for several nodes would count further ones.
    if (this.hold.getAttribute("aria-pressed") === "true") this.held ??= network.shown.events.map((event) => ({ ...event }));
    const events = this.held ?? network.shown.events;
    const state = this.held
      ? "held"
      : `${network.told} ${events.length} ${events.at(-1)?.at} ${events.at(-1)?.nodes} ${Boolean(network.lab)} ${network.isPast} ${branches.key}`;
    if (state === this.state) return;
    this.state = state;
    const hidden = new Set([...this.off].flatMap((group) => GROUPS[group][1]));
    const rows = [];
    for (let index = events.length - 1; index >= 0 && rows.length < SHOWN; index -= 1) {
      const event = events[index];
      if (!hidden.has(event.kind)) rows.push(this.row(event, network.lab?.nodes, branches));
    }
    this.rows.replaceChildren(
      ...(rows.length ? rows : [element(
              "li",
              { class: "soft" },
              network.isSteered ? "Nothing yet. Advance the clock, or let it run." : "Nothing has happened yet.",
            )]),
    );
  }

  /**
   * An event about a block has the colour of the branch that the block is on now, and a forged one the branch's shape. A block that the
   * page has not seen yet, or not any more, has no branch's.
   */
  sign({ kind, block, to }, branches) {
    const id = block?.id ?? to?.id;
    const look = id === undefined ? undefined : branches.of(id);
    const isKnown = look !== undefined;
    const shown =
      kind === "block.forged" && isKnown
        ? svg("svg", { width: 12, height: 12, viewBox: "0 0 12 12" }, marker(look, 6, 6, 5))
        : (SIGNS[kind] ?? "·");
    return element("span", { class: "sign", "aria-hidden": "true", style: id === undefined ? null : `color:var(--${lookOf(look)[0]})` }, shown);
  }

  row(event, nodes, branches) {
    const one = event.node === null ? "" : `${nodes?.[event.node]?.delegate ?? `node ${event.node}`} `;
    const who = event.nodes > 1 ? `${event.nodes} nodes: ` : one;
    return element(
      "li",
      { class: LOUD.has(event.kind) ? "loud" : null },
      element("time", { title: ACTED }, clock(event.at / 1e6)),
      this.sign(event, branches),
      element("span", {}, who ? element("b", {}, who) : null, WORDS[event.kind]?.(event) ?? event.kind),
    );
  }
}
