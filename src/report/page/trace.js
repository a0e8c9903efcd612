// A trace that was opened: for each event when, where and what it was, where its line stands in the file, and the tip that it
// left its node on. Lines stay in the file; one is read when it is looked at. So a million events take some 30 MB.
//
// Lines are read from bytes as `dposlab` writes them (docs/trace.md); one that is written otherwise is read as JSON.

const CHUNK = 4 << 20;
const LINE_MAX = 64 << 20;
/** Events that are counted together. */
const BIN = 256;
/** States that are kept at most, to go on from. */
const STATES = 2048;
/** Sorts of events, each with its colour and the beginnings of its kinds. */
const SORTS = [
  ["forged", "good", ["block.forged"]],
  ["taken", "third", ["block.received", "block.applied"]],
  ["refused, left", "bad", ["block.", "chain.", "forger.suspended", "forger.failed"]],
  ["health, peers, rounds", "fifth", ["health.", "peer.", "round.", "forger."]],
  ["pools", "fourth", ["pool."]],
  ["messages", "sixth", ["network."]],
  ["faults, nodes", "shade", ["fault.", "node."]],
];
const bytesOf = (text) => new TextEncoder().encode(text);
const [AT, NODE, KIND, BLOCK, TO, PREVIOUS, HEIGHT] = ['{"at":', ',"node":', ',"kind":"', ',"block":{"id":"', '"to":{"id":"', '"previous":"', '"height":'].map(bytesOf);

/** How a kind moves its node's tip: to its block, to the block before, to where it says; or whether it goes down or up. */
const MOVES = { "block.applied": 1, "block.reverted": 2, "chain.rolled-back": 3, "chain.moved": 3, "node.down": 4, "node.up": 5 };
const [DOWN, UP, STAYS] = [-3, -2, -1];

class Trace {
  constructor() {
    this.count = 0;
    this.kinds = [];
    this.kindAt = new Map();
    this.blocks = [];
    this.blockAt = new Map();
    this.grow(1 << 16);
  }

  grow(room) {
    const grown = (old, Type) => { const made = new Type(room); if (old) made.set(old); return made; };
    this.at = grown(this.at, Float64Array);
    this.axis = grown(this.axis, Float64Array);
    this.node = grown(this.node, Int32Array);
    this.kind = grown(this.kind, Uint8Array);
    this.tip = grown(this.tip, Int32Array);
    this.from = grown(this.from, Float64Array);
  }

  /** Reads a file; `progress` hears the share that is read. Throws what a reader can act on. */
  static async open(file, progress = () => {}) {
    const unzipped = /\.gz$/.test(file.name) ? await new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).blob() : file;
    const trace = new Trace();
    trace.file = unzipped;
    await trace.read(file.name, progress);
    trace.sum();
    return trace;
  }

  async read(name, progress) {
    const { size } = this.file;
    const part = (from) => (from < size ? this.file.slice(from, Math.min(size, from + CHUNK)).arrayBuffer() : null);
    let [rest, start, next] = [new Uint8Array(0), 0, part(0)];
    for (let from = 0; from < size; from += CHUNK) {
      const bytes = new Uint8Array(await next);
      next = part(from + CHUNK);
      let begin = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, begin)) {
        if (rest.length) {
          const joined = new Uint8Array(rest.length + end);
          joined.set(rest);
          joined.set(bytes.subarray(0, end), rest.length);
          this.line(name, joined, 0, joined.length, start);
          rest = new Uint8Array(0);
        } else {
          this.line(name, bytes, begin, end, start);
        }
        begin = end + 1;
        start = from + begin;
      }
      const left = new Uint8Array(rest.length + bytes.length - begin);
      if (left.length > LINE_MAX) throw new Error(`${name}: a line is longer than ${LINE_MAX} bytes`);
      left.set(rest);
      left.set(bytes.subarray(begin), rest.length);
      rest = left;
      progress(Math.min(1, (from + CHUNK) / size));
    }
    // A last line without an end is what a killed run was about to write.
    if (!this.head) throw this.isNone(name);
    this.end = start;
  }

  isNone(name) {
    return new Error(`${name}: is no trace; allowed is a file of JSON lines as \`run --out\` and \`run --trace FILE.jsonl\` write it, or one packed by gzip`);
  }

  line(name, bytes, begin, end, start) {
    if (!this.head) {
      let head;
      try {
        head = end - begin < 1 << 22 ? JSON.parse(new TextDecoder().decode(bytes.subarray(begin, end))) : {};
      } catch {
        head = {};
      }
      if (head?.trace !== "dposlab" || !(head.nodes >= 0) || !head.tip) throw this.isNone(name);
      if (head.schema !== 1) throw new Error(`${name}: line 1: schema: found ${head.schema}, allowed is 1`);
      this.head = head;
      this.block(head.tip.id, head.tip.height);
      return;
    }
    if (this.count === this.at.length) this.grow(2 * this.count);
    this.from[this.count] = start;
    if (!this.written(bytes, begin, end) && !this.parsed(bytes, begin, end)) throw new Error(`${name}: line ${this.count + 2}: is no event of a trace`);
    this.axis[this.count] = this.count ? Math.max(this.axis[this.count - 1], this.at[this.count]) : this.at[0];
    this.count += 1;
  }

  /** A line as it is written; whether it is one. */
  written(bytes, begin, end) {
    let place = begin;
    const is = (text) => {
      for (let index = 0; index < text.length; index += 1) if (bytes[place + index] !== text[index]) return false;
      place += text.length;
      return true;
    };
    const digits = () => {
      let value = 0;
      const first = place;
      for (let digit = bytes[place] - 48; digit >= 0 && digit <= 9; digit = bytes[place] - 48) { value = value * 10 + digit; place += 1; }
      return place > first ? value : -1;
    };
    const text = () => {
      let read = "";
      for (; place < end && bytes[place] !== 34; place += 1) read += String.fromCharCode(bytes[place]);
      return read;
    };
    const seek = (pattern) => {
      for (; place < end; place += 1) if (bytes[place] === pattern[0] && is(pattern)) return true;
      return false;
    };
    if (!is(AT)) return false;
    const at = digits();
    if (at < 0 || !is(NODE)) return false;
    let node = -1;
    if (bytes[place] === 110) place += 4;
    else if ((node = digits()) < 0) return false;
    if (!is(KIND)) return false;
    // Kinds are few: two numbers of its letters tell one from the others.
    let [key, first] = [0, place];
    for (; bytes[place] !== 34; place += 1) {
      if (place >= end) return false;
      key = (Math.imul(key, 31) + bytes[place]) | 0;
    }
    key = key * 64 + place - first;
    let kind = this.kindAt.get(key);
    if (kind === undefined) {
      kind = this.kindOf(new TextDecoder().decode(bytes.subarray(first, place)));
      this.kindAt.set(key, kind);
    }
    place += 1;
    const move = this.kinds[kind].move;
    let tip = move < 4 ? STAYS : move === 4 ? DOWN : UP;
    if (move > 0 && move < 4) {
      const below = move === 2 ? 1 : 0;
      let height = -1;
      if (move === 1 ? !is(BLOCK) : move === 3 ? !seek(TO) : !seek(HEIGHT)) return false;
      if (below && ((height = digits()) < 0 || !seek(PREVIOUS))) return false;
      const id = text();
      if (!below && (!seek(HEIGHT) || (height = digits()) < 0)) return false;
      tip = this.block(id, height - below);
    }
    return this.add(at, node, kind, tip);
  }

  /** A line as any JSON; whether it is an event. */
  parsed(bytes, begin, end) {
    let event;
    try {
      event = JSON.parse(new TextDecoder().decode(bytes.subarray(begin, end)));
    } catch {
      return false;
    }
    if (!(event?.at >= 0) || typeof event.kind !== "string") return false;
    const kind = this.kindOf(event.kind);
    const move = this.kinds[kind].move;
    const to = move === 1 ? event.block : move === 2 ? event.block && { id: event.block.previous, height: event.block.height - 1 } : event.to;
    if (move > 0 && move < 4 && typeof to?.id !== "string") return false;
    return this.add(event.at, event.node ?? -1, kind, move === 4 ? DOWN : move === 5 ? UP : move ? this.block(to.id, to.height) : STAYS);
  }

  add(at, node, kind, tip) {
    if (node >= this.head.nodes) return false;
    this.at[this.count] = at;
    this.node[this.count] = node;
    this.kind[this.count] = kind;
    this.tip[this.count] = node < 0 ? STAYS : tip;
    return true;
  }

  kindOf(name) {
    const known = this.kinds.findIndex((kind) => kind.name === name);
    if (known >= 0 || this.kinds.length > 200) return Math.max(0, known);
    const sort = SORTS.findIndex(([, , begins]) => begins.some((begin) => name.startsWith(begin)));
    this.kinds.push({ name, sort: sort < 0 ? 3 : sort, move: MOVES[name] || 0, count: 0 });
    return this.kinds.length - 1;
  }

  block(id, height) {
    let known = this.blockAt.get(id);
    if (known === undefined) {
      known = this.blocks.push({ id, height }) - 1;
      this.blockAt.set(id, known);
    }
    return known;
  }

  /** Counts by sort, bin by bin, and states to go on from. */
  sum() {
    const { count, head } = this;
    this.every = Math.max(32, Math.ceil(count / STATES));
    this.sums = new Uint32Array((Math.ceil(count / BIN) + 1) * SORTS.length);
    this.states = [];
    const tips = new Int32Array(head.nodes);
    const down = new Uint8Array(head.nodes);
    const running = new Uint32Array(SORTS.length);
    for (let event = 0; event < count; event += 1) {
      if (event % BIN === 0) this.sums.set(running, (event / BIN) * SORTS.length);
      if (event % this.every === 0) this.states.push({ tips: tips.slice(), down: down.slice() });
      const kind = this.kinds[this.kind[event]];
      kind.count += 1;
      running[kind.sort] += 1;
      this.follow(event, tips, down);
    }
    this.sums.set(running, Math.ceil(count / BIN) * SORTS.length);
  }

  follow(event, tips, down) {
    const tip = this.tip[event];
    if (tip >= 0) tips[this.node[event]] = tip;
    else if (tip !== STAYS) down[this.node[event]] = tip === DOWN ? 1 : 0;
  }

  /** Where each node stands after an event, and which are down. */
  stateAfter(event) {
    const from = Math.floor(event / this.every);
    const [tips, down] = [this.states[from].tips.slice(), this.states[from].down.slice()];
    for (let index = from * this.every; index <= event; index += 1) this.follow(index, tips, down);
    return { tips, down };
  }

  /** The heights of the lowest and the highest live node after an event. */
  heightsAfter(event) {
    const { tips, down } = this.stateAfter(event);
    let [low, high] = [Infinity, -Infinity];
    for (let node = 0; node < tips.length; node += 1) {
      if (down[node]) continue;
      const { height } = this.blocks[tips[node]];
      low = Math.min(low, height);
      high = Math.max(high, height);
    }
    return { low, high };
  }

  /** How many events of a sort come before one. */
  before(event, sort) {
    const bin = Math.floor(event / BIN);
    let sum = this.sums[bin * SORTS.length + sort];
    for (let index = bin * BIN; index < event; index += 1) if (this.kinds[this.kind[index]].sort === sort) sum += 1;
    return sum;
  }

  /** The first event at an instant or later; as many as there are, if there is none. */
  firstAt(instant) {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.axis[middle] < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The next event in a direction of a kind and of a node, where they are given; -1 if there is none. */
  next(event, step, kind, node) {
    for (let index = event + step; index >= 0 && index < this.count; index += step) {
      if ((kind < 0 || this.kind[index] === kind) && (node < 0 || this.node[index] === node)) return index;
    }
    return -1;
  }

  /** The line of an event. */
  async textOf(event) {
    const end = event + 1 < this.count ? this.from[event + 1] : this.end;
    return this.file.slice(this.from[event], end).text();
  }
}
