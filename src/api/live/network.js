// The network as it is now: the answers of /lab, requested again when something happens, and the samples and events that the page
// retains.
import { Refused, ask, follow } from "./ask.js";
import { network as named } from "./show.js";

/** Events that are kept, samples for the plots, and heights of the tree. */
const EVENTS = 500;
const SAMPLES = 600;
const HEIGHTS = 60;
const HEIGHTS_MAX = 960;
/** The largest number of nodes whose links are drawn. With more, links are too dense to see. */
const LINKED = 110;
/** The least time between two looks at a network that runs, and the most at one that rests [ms]. */
const EACH = 250;
const REST = 2000;
const KINDS = [
  "block.forged",
  "block.refused",
  "chain.rolled-back",
  "chain.moved",
  "fault.began",
  "fault.ended",
  "node.down",
  "node.up",
  "round.began",
  "forger.suspended",
  "forger.failed",
];

export class Network {
  constructor() {
    Object.assign(this, { lab: null, tree: null, round: null, faults: [], refused: null, events: [], told: 0 });
    // `shared` is null if this client may steer, else the reason why not. The picture is then the one that everybody may see.
    Object.assign(this, { shared: null, faucet: null, then: [] });
    Object.assign(this, { samples: [], spans: [], listeners: new Set(), running: false, asking: false, again: false, depth: HEIGHTS });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.resume()));
  }

  /** Asks whether this client may steer. A client that may not sees the same picture, without controls. */
  async greet() {
    try {
      const { lab, faucet } = await ask("watch", { live: true });
      this.shared = lab === "open" ? null : lab;
      this.faucet = faucet;
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      // Looking says the same again.
    }
  }

  /** True if this client may steer, and the page shows the present. */
  get isSteered() {
    return !this.shared && !this.isPast;
  }

  /** Begins to look, for as long as the page is seen. */
  start(listener) {
    this.listeners.add(listener);
    this.wanted = true;
    if (!document.hidden) this.resume();
  }

  stop(listener) {
    this.listeners.delete(listener);
    if (this.listeners.size) return;
    this.wanted = false;
    this.pause();
  }

  resume() {
    if (!this.wanted || this.running) return;
    this.running = true;
    this.ended = new AbortController();
    this.look();
    if (!this.shared) this.listen(this.ended.signal);
  }

  /** Shows the past from now on, or the present: what is looked at does not change by itself, or does. */
  async travel(isPast) {
    this.isPast = isPast;
    this.turn = (this.turn ?? 0) + 1;
    Object.assign(this, { depth: HEIGHTS, again: false });
    if (this.wanted) await this.look(true);
  }

  pause() {
    this.running = false;
    clearTimeout(this.timer);
    this.ended?.abort();
  }

  /** Looks now, after an action. With `isOther` the page shows another instant, and the answers for the earlier one are discarded. */
  async look(isOther = false) {
    clearTimeout(this.timer);
    if (this.asking && !isOther) {
      this.again = true;
      return;
    }
    this.asking = true;
    const began = performance.now();
    const turn = this.turn;
    let later = 0;
    try {
      const seen = await (this.shared ? this.askPicture() : this.askLab());
      if (turn !== this.turn) return;
      Object.assign(this, { ...seen, refused: null });
      this.remember();
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      if (turn !== this.turn) return;
      // Above the rate limit the page looks later.
      if (why.status === 429 && this.lab) later = why.wait * 1000;
      else this.refused = why;
    } finally {
      if (turn === this.turn) this.asking = false;
    }
    for (const listener of this.listeners) listener(this);
    if (!this.running || this.isPast) return;
    const took = performance.now() - began;
    const wait = this.shared
      ? Math.max(REST, later)
      : this.again
        ? EACH
        : this.refused
          ? REST
          : typeof this.lab?.pace === "number" || this.lab?.pace === "max"
          ? Math.max(EACH, 3 * took)
          : REST;
    this.again = false;
    this.timer = setTimeout(() => this.look(), wait);
    this.due = performance.now() + wait;
  }

  /** All that the page draws of the network. It requests the events of the past; those of the present arrive on a stream. */
  async askLab() {
    const lab = await this.askNodes();
    const [tree, round, faults, then] = await Promise.all([
      ask(`lab/tree?from=${this.from(lab)}`),
      ask("lab/round"),
      ask("lab/faults"),
      this.isPast ? ask("lab/happened") : null,
    ]);
    return { lab, tree, round, faults, then: then ? gathered(then) : [] };
  }

  /** The picture that everybody may see: the same parts, in one answer. */
  async askPicture() {
    const seen = await ask(this.lab ? `watch?from=${this.from(this.lab)}` : "watch");
    const { network: lab, tree, round, faults, faucet, events } = seen;
    this.recall(events);
    return { lab, tree, round, faults, faucet };
  }

  /** The height from which on blocks are drawn. */
  from({ nodes }) {
    return Math.max(1, nodes.reduce((most, node) => Math.max(most, node.height), 1) - this.depth);
  }

  /** Asks for the nodes, with their links if these can be drawn and the server returns them. */
  async askNodes() {
    if (this.unlinked || this.lab?.nodes.length > LINKED) return ask("lab");
    try {
      return await ask("lab?peers=true");
    } catch (why) {
      if (why.status !== 422) throw why;
      this.unlinked = true;
      return ask("lab");
    }
  }

  /** Looks down to the lowest branch that a node stands on. */
  reach(branches) {
    const base = branches.filter(({ nodes }) => nodes).reduce((least, { from }) => Math.min(least, from), Infinity);
    const deep = base - this.tree.from < 2 && this.tree.from > 1;
    if (deep && this.depth < HEIGHTS_MAX) {
      this.depth = Math.min(HEIGHTS_MAX, this.depth * 2);
      if (this.isPast) this.look();
      else this.soon();
    } else if (!deep && this.tree.height - base < this.depth / 4) this.depth = Math.max(HEIGHTS, this.depth / 2);
    else if (base === Infinity) this.depth = HEIGHTS;
  }

  /** Looks soon, where it would not anyway. */
  soon() {
    if (this.isPast) return;
    if (this.asking) this.again = true;
    else if (this.running && this.due - performance.now() > EACH) {
      clearTimeout(this.timer);
      this.due = performance.now() + EACH;
      this.timer = setTimeout(() => this.look(), EACH);
    }
  }

  async listen(signal) {
    while (!signal.aborted) {
      try {
        // The stream is open before the earlier events are requested, so none between them is missed.
        const before = async () => this.recall(await ask("lab/happened", { live: true }));
        await follow(`lab/events?kind=${KINDS.join(",")}`, signal, before, (told) => this.hear(told));
      } catch {
        // The stream was refused or ended: looking shows the reason, and the loop tries again later.
      }
      if (!signal.aborted) await new Promise((wake) => setTimeout(wake, REST));
    }
  }

  hear({ event, data }) {
    if (!data) return;
    const line = JSON.parse(data);
    // It was among the earlier events, too.
    if (this.recalled.delete(JSON.stringify(line))) return;
    this.told += 1;
    if (event === "gap") push(this.events, { kind: "gap", at: this.events.at(-1)?.at ?? 0, node: null, missed: line.missed });
    else push(this.events, line);
    this.soon();
    for (const listener of this.listeners) listener(this, "event");
  }

  /** Takes what the server remembers for all that has happened. */
  recall(lines) {
    this.recalled = new Set(lines.map((line) => JSON.stringify(line)));
    this.events = gathered(lines);
    this.told += 1;
    for (const listener of this.listeners) listener(this, "event");
  }

  /** The samples, faults and events until the instant that the page shows. Samples from before the page opened follow from the blocks. */
  get shown() {
    if (!this.isPast) return { samples: this.samples, spans: this.spans, events: this.events };
    const now = this.lab.nowMicros / 1e6;
    const kept = this.samples.filter((sample) => sample.now <= now);
    const samples = [...this.sampled(kept[0]?.now ?? now), ...kept];
    if (samples.at(-1)?.now !== now) samples.push(this.sample(now));
    const spans = this.spans.filter(({ from }) => from <= now);
    const known = new Set(spans.map(({ id }) => id));
    for (const { id, state, since, fault } of this.faults)
      if (state === "in-force" && !known.has(id)) spans.push({ id, from: since, to: null, name: fault.kind });
    return {
      samples,
      spans: spans.map((span) => (span.to !== null && span.to > now ? { ...span, to: null } : span)),
      events: this.then,
    };
  }

  /** Samples of the time before an instant, computed from the blocks. */
  sampled(until) {
    const before = this.tree.blocks.filter((block) => block.winning && block.time < until);
    return before.map((block) => ({ now: block.time, confirmed: block.confirmed, pool: null }));
  }

  /** A sample of the network as it was last seen. */
  sample(now) {
    const { lab, tree } = this;
    const live = lab.nodes.filter((node) => node.live);
    const pool = live.length ? live.reduce((sum, node) => sum + node.pool, 0) / live.length : null;
    const tip = tree.blocks.find((block) => block.id === tree.tip);
    return { now, confirmed: tip?.confirmed ?? this.samples.at(-1)?.confirmed ?? 0, pool };
  }

  /** Keeps a sample for the plots, and when faults were in force. */
  remember() {
    const { lab, faults } = this;
    const now = lab.nowMicros / 1e6;
    if (this.isPast) return;
    const sample = this.sample(now);
    // Back at a snapshot, what was is not any more.
    while (this.samples.length && this.samples.at(-1).now > now) this.samples.pop();
    if (!this.samples.length) this.samples = this.sampled(now);
    const last = this.samples.at(-1);
    if (!last || now > last.now) this.samples.push(sample);
    else last.pool = sample.pool;
    if (this.samples.length > SAMPLES) this.samples.splice(0, this.samples.length - SAMPLES);
    const known = new Map(this.spans.map((span) => [span.id, span]));
    this.spans = this.spans.filter((span) => span.from <= now);
    for (const { id, state, since, fault } of faults) {
      const span = known.get(id);
      if (state === "in-force" && !span) this.spans.push({ id, from: since, to: null, name: fault.kind });
      else if (state === "in-force") span.to = null;
      else if (state === "over" && span?.to === null) span.to = now;
    }
    if (this.spans.length > 40) this.spans.splice(0, this.spans.length - 40);
  }
}

/** Many nodes often do the same within a slot: one line tells of all of them. `all` holds the nodes, and `nodes` counts them. */
function push(events, event) {
  const last = events.at(-1);
  const many = ["chain.moved", "chain.rolled-back", "node.down", "node.up", "block.refused", "forger.suspended"].includes(event.kind);
  if (many && last?.kind === event.kind && last.to?.id === event.to?.id && last.cause === event.cause && Math.abs(event.at - last.at) < named.slotSeconds * 1e6) {
    last.all = (last.all ?? new Set([last.node])).add(event.node);
    last.nodes = last.all.size;
    return;
  }
  events.push(event);
  if (events.length > EVENTS) events.splice(0, events.length - EVENTS);
}

function gathered(lines) {
  const events = [];
  for (const line of lines) push(events, line);
  return events;
}

/** The nodes that a list, a span or a share of a fault names, as numbers; null where only the server knows. */
export function nodesOf(named, nodes) {
  const number = (ref) => (typeof ref === "number" ? ref : nodes.findIndex((node) => node.delegate === ref));
  if (Array.isArray(named)) return named.map(number);
  if (named?.from !== undefined)
    return nodes.map((node) => node.node).filter((node) => node >= number(named.from) && node <= number(named.to));
  if (named?.share !== undefined && (named.of ?? "nodes") === "nodes")
    return nodes.map((node) => node.node).filter((node) => node < Math.ceil(named.share * nodes.length - 1e-9));
  return null;
}

/** For each node the number of its part of the network, as faults in force divide it. An isolated node is a part of its own. */
export function partsOf(faults, nodes) {
  const keys = nodes.map(() => "");
  for (const { state, fault } of faults) {
    if (state !== "in-force") continue;
    if (fault.kind === "partition") {
      fault.groups.forEach((group, index) =>
        nodesOf(group, nodes)?.forEach((node) => {
          if (node in keys) keys[node] += `${index + 1} `;
        }),
      );
      keys.forEach((_, node) => {
        keys[node] += "|";
      });
    }
    if (fault.kind === "isolate")
      nodesOf(fault.nodes, nodes)?.forEach((node) => {
        if (node in keys) keys[node] += `alone ${node}|`;
      });
  }
  const order = [...new Set(keys)];
  return keys.map((key) => order.indexOf(key));
}
