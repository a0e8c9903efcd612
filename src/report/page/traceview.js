// The card that opens a trace: its events over time, one of them under the cursor, and where the nodes stood then.

const VIEW = { heights: 96, row: 15, gap: 4, left: 132, axis: 22, right: 10 };
const SAMPLES = 400;
const TIPS = 40;
const WHO = 24;

class TraceView {
  constructor() {
    this.canvas = element("canvas", { class: "timeline", "aria-hidden": "true" });
    this.slider = element("input", { type: "range", min: 0, max: 0, value: 0, step: 1, "aria-label": "Event of the trace", oninput: () => this.go(Number(this.slider.value)) });
    this.kind = element("select", { "aria-label": "Kind of event to step over" });
    this.node = element("select", { "aria-label": "Node to step over" });
    this.detail = element("dl");
    this.tips = element("div");
    this.status = element("p", { class: "soft", role: "status" }, "No trace is open.");
    this.input = element("input", { type: "file", accept: ".jsonl,.gz", "aria-label": "Open a trace", onclick: () => { this.input.value = ""; }, onchange: () => this.input.files[0] && this.open(this.input.files[0]) });
    const button = (name, label, how) => element("button", { type: "button", "aria-label": label, onclick: how }, name);
    this.shown = element("div", { class: "trace", hidden: "" }, this.canvas,
      element("div", { class: "bar" }, button("◀", "Event before of this kind and node", () => this.step(-1)), this.slider, button("▶", "Next event of this kind and node", () => this.step(1))),
      element("div", { class: "choose" }, this.kind, this.node, button("+", "+ Look closer", () => this.zoom(0.25)), button("−", "− Look from further away", () => this.zoom(4)), button("All", "All of the trace", () => this.zoom(Infinity))),
      element("div", { class: "detail", role: "status" }, this.detail), this.tips);
    this.base = document.createElement("canvas");
    const drag = (event) => { if (event.buttons & 1) this.point(event.offsetX); };
    this.canvas.addEventListener("pointerdown", (event) => { this.canvas.setPointerCapture(event.pointerId); drag(event); });
    this.canvas.addEventListener("pointermove", drag);
    this.shown.addEventListener("keydown", (event) => {
      const share = { "+": 0.25, "-": 4, 0: Infinity }[event.key];
      if (share && event.target.tagName !== "SELECT") { this.zoom(share); event.preventDefault(); }
    });
    new ResizeObserver(() => { if (this.shown.clientWidth !== this.wide) this.drawBase(); }).observe(this.shown);
    new MutationObserver(() => this.drawBase()).observe(root, { attributeFilter: ["data-theme"] });
  }

  card(file) {
    const made = card("words", "Trace, event by event", `Open ${file} of this folder, or any other trace: it is read here, and goes nowhere. Drag over the time, or use the slider and its arrow keys; + and − look closer and from further away.`,
      element("div", { class: "choose" }, this.input), this.status, this.shown);
    made.addEventListener("dragover", (event) => event.preventDefault());
    made.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.open(event.dataTransfer.files[0]);
    });
    return made;
  }

  async open(file) {
    const began = performance.now();
    this.shown.hidden = true;
    this.trace = null;
    try {
      const trace = await Trace.open(file, (share) => { this.status.textContent = `${file.name}: ${percent(share)} read`; });
      if (!trace.count) throw new Error(`${file.name}: holds no event`);
      this.show(trace, file.name);
      this.opened = performance.now() - began;
    } catch (why) {
      this.status.textContent = why.message;
    }
  }

  show(trace, name) {
    const { head, count } = trace;
    [this.trace, this.event, this.told] = [trace, 0, ""];
    this.seconds = (at) => (at - head.start) / 1e6;
    this.all = [Math.min(head.start, trace.axis[0]), Math.max(trace.axis[count - 1], trace.axis[0] + 1)];
    this.window = [...this.all];
    this.slider.max = count - 1;
    const option = (text, value) => element("option", { value }, text);
    const kinds = trace.kinds.map((kind, index) => ({ ...kind, index })).sort((one, other) => one.name.localeCompare(other.name));
    this.kind.replaceChildren(option("every kind", -1), ...kinds.map((kind) => option(`${kind.name} (${number(kind.count)})`, kind.index)));
    this.node.replaceChildren(option("every node", -1), ...Array.from({ length: head.nodes }, (_, node) => option(`node ${node}`, node)));
    this.status.textContent = `${name}: ${head.scenario}, seed ${head.seed}; ${number(count)} events of ${number(head.nodes)} nodes in ${duration(this.seconds(this.all[1]), 4)}`;
    this.shown.hidden = false;
    this.drawBase();
    this.go(0);
  }

  /** Looks at an event. */
  go(event) {
    this.event = Math.max(0, Math.min(this.trace.count - 1, event));
    const at = this.trace.axis[this.event];
    const [from, to] = this.window;
    if (at < from || at > to) {
      this.window = this.within(at - (to - from) / 2, to - from);
      this.drawBase();
    }
    if (!this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.draw(); });
  }

  step(direction) {
    const found = this.trace.next(this.event, direction, Number(this.kind.value), Number(this.node.value));
    if (found >= 0) this.go(found);
  }

  point(x) {
    const [from, to] = this.window;
    const instant = from + ((x - VIEW.left) / this.width) * (to - from);
    this.go(this.trace.firstAt(Math.max(from, Math.min(to, instant)) + 1) - 1);
  }

  within(from, length) {
    const [first, last] = this.all;
    const begin = Math.max(first, Math.min(last - length, from));
    return [begin, Math.min(last, begin + length)];
  }

  zoom(share) {
    const [from, to] = this.window;
    const length = Math.max(10, Math.min(this.all[1] - this.all[0], (to - from) * share));
    const at = this.trace.axis[this.event];
    this.window = this.within(at - length / 2, length);
    this.drawBase();
    this.draw();
  }

  /** All but the cursor: counts by pixel and sort, the more the stronger, and the heights of the lowest and highest node. */
  drawBase() {
    const { trace, base } = this;
    if (!trace || this.shown.hidden) return;
    const [wide, high] = [(this.wide = this.shown.clientWidth), VIEW.heights + SORTS.length * (VIEW.row + VIEW.gap) + VIEW.axis];
    const scale = devicePixelRatio || 1;
    for (const canvas of [base, this.canvas]) Object.assign(canvas, { width: wide * scale, height: high * scale });
    this.canvas.style.height = `${high}px`;
    this.width = Math.max(1, wide - VIEW.left - VIEW.right);
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.colours = { text: colour("text") };
    const context = base.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const [from, to] = this.window;
    const columns = Math.floor(this.width);
    const edges = Int32Array.from({ length: columns + 1 }, (_, x) => trace.firstAt(from + (x / columns) * (to - from) + (x === columns ? 1 : 0)));
    this.drawHeights(context, colour);
    SORTS.forEach(([name, tone], sort) => {
      const top = VIEW.heights + sort * (VIEW.row + VIEW.gap);
      context.fillStyle = colour("soft");
      context.fillText(name, 0, top + VIEW.row / 2, VIEW.left - 8);
      context.fillStyle = colour("faint");
      context.fillRect(VIEW.left, top, this.width, VIEW.row);
      const counts = new Uint32Array(columns);
      for (let x = 0, last = trace.before(edges[0], sort); x < columns; x += 1) {
        const next = edges[x + 1] === edges[x] ? last : trace.before(edges[x + 1], sort);
        counts[x] = next - last;
        last = next;
      }
      const most = counts.reduce((one, other) => Math.max(one, other), 1);
      context.fillStyle = colour(tone);
      for (let x = 0; x < columns; x += 1) {
        if (!counts[x]) continue;
        context.globalAlpha = 0.35 + 0.65 * (Math.log1p(counts[x]) / Math.log1p(most));
        context.fillRect(VIEW.left + (x / columns) * this.width, top, Math.max(1, this.width / columns), VIEW.row);
      }
      context.globalAlpha = 1;
    });
    this.drawAxis(context, colour, high);
    this.draw();
  }

  drawHeights(context, colour) {
    const { trace } = this;
    const [from, to] = this.window;
    const x = (at) => VIEW.left + ((at - from) / (to - from)) * this.width;
    // At most SAMPLES events of the window, spread evenly.
    const first = Math.max(0, trace.firstAt(from) - 1);
    const last = Math.min(trace.count - 1, trace.firstAt(to));
    const samples = Math.min(SAMPLES, last - first + 1);
    const events = Array.from({ length: samples }, (_, index) => first + Math.round((index / Math.max(1, samples - 1)) * (last - first)));
    const states = events.map((event) => ({ at: trace.axis[event], ...trace.heightsAfter(event) })).filter(({ low }) => Number.isFinite(low));
    const [least, most] = [Math.min(...states.map(({ low }) => low)), Math.max(...states.map(({ high }) => high))];
    const y = (height) => VIEW.heights - 10 - ((height - least) / Math.max(1, most - least)) * (VIEW.heights - 22);
    context.save();
    context.fillStyle = colour("soft");
    if (states.length) {
      context.fillText(`height ${number(most)}`, 0, y(most), VIEW.left - 8);
      if (most > least) context.fillText(number(least), 0, y(least), VIEW.left - 8);
    }
    context.beginPath();
    context.rect(VIEW.left, 0, this.width, VIEW.heights);
    context.clip();
    context.lineWidth = 1.75;
    for (const [which, tone, dash] of [["low", "bad", [4, 3]], ["high", "good", []]]) {
      context.strokeStyle = colour(tone);
      context.setLineDash(dash);
      context.beginPath();
      states.forEach((state, index) => {
        const place = [x(state.at), y(state[which])];
        if (index) context.lineTo(place[0], y(states[index - 1][which]));
        context.lineTo(...place);
      });
      context.stroke();
    }
    context.restore();
  }

  drawAxis(context, colour, high) {
    const [from, to] = this.window.map(this.seconds);
    const { name, ticks } = linearTicks({ unit: "seconds" }, [from, to], Math.max(2, this.width / 120));
    const [sign] = UNITS.find(([, , unit]) => unit === name);
    const labels = ticks.map(({ label }) => (label === "0" ? label : `${label} ${sign}`));
    context.fillStyle = colour("soft");
    context.textAlign = "center";
    ticks.forEach(({ value }, index) => {
      const x = VIEW.left + ((value - from) / (to - from)) * this.width;
      context.fillRect(x, high - VIEW.axis, 1, 4);
      context.fillText(labels[index], Math.min(x, VIEW.left + this.width - 24), high - 9);
    });
    context.textAlign = "left";
  }

  draw() {
    const { trace, canvas, base, event } = this;
    if (!trace || event === undefined) return;
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(base, 0, 0);
    const scale = devicePixelRatio || 1;
    const [from, to] = this.window;
    context.fillStyle = this.colours.text;
    context.fillRect((VIEW.left + ((trace.axis[event] - from) / (to - from)) * this.width) * scale, 0, 1.5 * scale, canvas.height - VIEW.axis * scale);
    this.tell();
  }

  tell() {
    const { trace, event, slider } = this;
    const { name } = trace.kinds[trace.kind[event]];
    const node = trace.node[event] < 0 ? "the network" : `node ${trace.node[event]}`;
    const when = `${this.seconds(trace.at[event]).toFixed(6)} s`;
    slider.value = event;
    slider.setAttribute("aria-valuetext", `event ${number(event + 1)} of ${number(trace.count)}, ${when}, ${node}, ${name}`);
    const said = [["event", `${number(event + 1)} of ${number(trace.count)}`], ["when", when], ["who", node], ["what", name]];
    const rows = (more) => [...said, ...more].flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)]);
    this.detail.replaceChildren(...rows([]));
    this.tellMembers(event, rows);
    this.tellTips(event);
  }

  /** The members of its line, which is read from the file: of the last event that was asked for. */
  async tellMembers(event, rows) {
    if (this.reading) return;
    this.reading = true;
    const { trace } = this;
    try {
      const { at, node, kind, ...rest } = JSON.parse(await trace.textOf(event));
      const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
      if (trace === this.trace && event === this.event) this.detail.replaceChildren(...rows(Object.entries(rest).map(([key, value]) => [key, text(value)])));
    } catch (why) {
      this.status.textContent = `the file cannot be read any more: ${why.message}`;
    }
    this.reading = false;
    if (trace === this.trace && event !== this.event) this.tell();
  }

  tellTips(event) {
    const { trace } = this;
    const { tips, down } = trace.stateAfter(event);
    const stand = new Map();
    tips.forEach((tip, node) => { if (stand.has(tip)) stand.get(tip).push(node); else stand.set(tip, [node]); });
    const all = [...stand].map(([tip, nodes]) => ({ ...trace.blocks[tip], nodes })).sort((one, other) => other.nodes.length - one.nodes.length || other.height - one.height);
    const who = (nodes) => `${nodes.slice(0, WHO).map((node) => `${node}${down[node] ? " (down)" : ""}`).join(" ")}${nodes.length > WHO ? ` and ${nodes.length - WHO} more` : ""}`;
    const key = all.map(({ id, nodes }) => `${id}:${nodes}`).join() + down.join();
    if (key === this.told) return;
    this.told = key;
    const rows = all.slice(0, TIPS).map(({ id, height, nodes }) => [number(height), number(nodes.length), who(nodes), id]);
    const more = all.length > TIPS ? element("p", { class: "soft" }, `${number(all.length - TIPS)} tips more`) : null;
    this.tips.replaceChildren(...[table(["height", "nodes", "who stands on it", "tip"], rows, "Where the nodes stand"), more].filter(Boolean));
  }
}
