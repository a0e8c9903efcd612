// The page: which view an address shows, and the live view put together.
import { Refused, hasToken, post, setToken } from "./ask.js";
import { svg, textures } from "./drawing.js";
import { bench } from "./bench.js";
import { AGAIN, Fresh, LISTS, List } from "./explorer.js";
import { Faults } from "./faults.js";
import { front } from "./front.js";
import { Feed } from "./feed.js";
import { Flow } from "./flow.js";
import { Network } from "./network.js";
import { Nodes, nodeKeys } from "./nodes.js";
import { CHAIN, tellOrigin } from "./origin.js";
import { Ring, ringKeys } from "./ring.js";
import { card, element, inFrame, network as named, number, plural, say, setText } from "./show.js";
import { Clock, Deeds, Tools, place } from "./steer.js";
import { THINGS, about, search } from "./things.js";
import { Travel } from "./travel.js";
import { Branches, Tree } from "./tree.js";
import { inWords } from "./words.js";

const page = document.getElementById("page");
const banner = document.getElementById("banner");
const network = new Network();
const deeds = new Deeds(network);
const go = (address) => {
  location.hash = address;
};

/** A place for a drawing, with two texts below it: one to read, and one for screen readers. */
const canvas = (kind) =>
  element("div", { class: kind }, element("p", { class: "read soft" }), element("p", { class: "told unseen", role: "status" }));
const picture = (parts) => svg("svg", { width: 16, height: 12, viewBox: "0 0 16 12", "aria-hidden": "true" }, parts);
const legend = (all) =>
  element(
    "ul",
    { class: "legend" },
    all.map(([words, parts]) => element("li", {}, picture(parts), words)),
  );

class Live {
  constructor() {
    const [ring, tree, nodes, flow, ofNode] = [
      canvas("ringing"),
      canvas("growing"),
      canvas("standing"),
      element("div", { class: "plot" }),
      place(),
    ];
    const feedBox = element("div", { class: "listed" });
    this.clock = new Clock(deeds);
    this.tools = new Tools(deeds);
    this.faults = new Faults(deeds);
    const tools = network.shared ? watching() : card("Tools", "", null, this.tools.node);
    this.feed = new Feed(feedBox);
    this.tiles = element("dl", { class: "tiles" });
    this.branchKeys = element("div", {});
    this.branches = new Branches();
    const show = (block) => go(`/blocks/${block}`);
    this.node = element(
      "div",
      { class: "grid live empty" },
      element("h1", { class: "unseen" }, "The network live"),
      element("section", { class: "card control", "aria-label": "Clock" }, this.clock.node),
      this.tiles,
      card("Round", "third", null, ring, legend(ringKeys())),
      card("Nodes", "third", null, nodes, ofNode, this.branchKeys),
      element("div", { class: "third stack" }, card("Faults", "", null, this.faults.node), tools),
      card("Blocks", "growth", null, tree),
      card("Throughput and pool", "half flowing", null, flow),
      card("Events", "half eventful", this.feed.bar, feedBox),
    );
    // A client that may only watch gets no controls.
    for (const part of [this.clock.form, this.clock.group, this.faults.form]) part.hidden = Boolean(network.shared);
    this.steered = [this.clock.form, this.clock.group, this.tools.node, this.faults.form];
    this.ring = new Ring(ring, show);
    this.tree = new Tree(tree, show);
    this.nodes = new Nodes(nodes, (node, what) =>
      deeds.do(
        ofNode,
        `${what === "crash" ? "Crashing" : "Restarting"} node ${node}`,
        () => post(`lab/nodes/${node}/${what}`),
        () => `Node ${node} ${what === "crash" ? "has crashed" : "is up again"}.`,
      ),
    );
    this.flow = new Flow(flow);
  }

  open() {
    this.listener = (_, what) => inFrame("live", () => this.draw(what));
    network.start(this.listener);
    this.draw();
  }

  close() {
    network.stop(this.listener);
  }

  draw() {
    guard(network.refused);
    travel.looked();
    if (!network.lab || !network.round) return;
    if (this.seen !== network.lab) {
      this.seen = network.lab;
      this.node.classList.remove("empty");
      // The past has no controls.
      for (const part of this.steered) part.toggleAttribute("inert", Boolean(network.isPast));
      const ordered = this.branches.assign(network.tree);
      network.reach(this.branches.branches);
      this.clock.draw(network);
      this.tally();
      this.ring.draw(network.round);
      Object.assign(this.tree, { nodes: network.lab.nodes.length, branches: this.branches.branches });
      this.tree.draw(network.tree, ordered, network.round.slotSeconds);
      this.nodes.draw(network, this.branches);
      this.keys();
      this.faults.draw(network);
      this.tools.draw(network);
      this.flow.draw(network);
    }
    this.feed.draw(network, this.branches);
  }

  keys() {
    const keys = nodeKeys(this.nodes, network.lab.nodes, this.branches.branches);
    const key = keys.map(([words]) => words).join();
    if (key === this.keyed) return;
    this.keyed = key;
    this.branchKeys.replaceChildren(legend(keys));
  }

  /** The figures in a line. */
  tally() {
    const { lab, tree, round } = network;
    const { samples } = network.shown;
    const live = lab.nodes.filter((node) => node.live);
    const standing = new Map();
    for (const { tip } of live) standing.set(tip, (standing.get(tip) ?? 0) + 1);
    const agree = Math.max(0, ...standing.values());
    const branches = 1 + this.branches.branches.filter((branch) => branch.nodes).length;
    const pool = live.length ? live.reduce((sum, node) => sum + node.pool, 0) / live.length : 0;
    const [missed, elsewhere, forged] = ["missed", "elsewhere", "forged"].map((wanted) => round.slots.filter(({ state }) => state === wanted).length);
    const figures = [
      ["Height", number(tree.height)],
      ["Round", `${number(round.round)}, ${number(forged)} of ${number(round.blocks)}`],
      ["Missed in round", `${number(missed)}${elsewhere ? `, ${number(elsewhere)} elsewhere` : ""}`, missed + elsewhere > 0],
      ["Nodes live", `${number(live.length)} of ${number(lab.nodes.length)}`, live.length < lab.nodes.length],
      ["On the winning tip", live.length ? `${number((agree / live.length) * 100, 0)} %` : "–", live.length > 0 && agree * 2 < live.length],
      ["Branches", number(branches), branches > 1],
      ["Pool, mean", number(pool, 1)],
      ["Transactions/s", this.flow.rate(samples)],
      ["Faults in force", number(lab.faults.length), lab.faults.length > 0],
      ["Seed", lab.seed === null ? "–" : String(lab.seed)],
    ];
    if (this.tiles.children.length) {
      figures.forEach(([, value, loud], index) => {
        const tile = this.tiles.children[index];
        tile.classList.toggle("loud", Boolean(loud));
        setText(tile.lastChild, value);
      });
    } else
      this.tiles.append(
        ...figures.map(([name, value, loud]) =>
          element("div", { class: loud ? "tile loud" : "tile" }, element("dt", {}, name), element("dd", {}, value)),
        ),
      );
    const state =
      branches > 1
        ? `The network has ${branches} branches.`
        : live.length < lab.nodes.length
          ? `${plural(lab.nodes.length - live.length, "node")} down.`
          : "All nodes are live, on one chain.";
    if (state !== this.said) say(state);
    this.said = state;
  }
}

/** Says why nothing can be seen. */
function guard(why) {
  const key = why ? `${why.status} ${why.message}` : "";
  if (banner.dataset.why === key) return;
  banner.dataset.why = key;
  document.body.classList.toggle("refused", Boolean(why));
  // A button that can do nothing says so by being off.
  for (const control of page.querySelectorAll(".live button, .live input, .live select")) {
    control.disabled = Boolean(why);
    control.title = why ? inWords(why.message) : "";
  }
  banner.replaceChildren(
    ...(why ? [element("div", { class: "banner", role: "alert" }, element("p", {}, inWords(why.message)))] : []),
  );
}

/** The card in place of the tools for a client that may only watch. It has a form for the token if `/lab` needs one. */
function watching() {
  const told = place();
  const field = element("input", { type: "password", "aria-label": "Token of --lab-token", placeholder: "token", autocomplete: "off" });
  const use = async () => {
    setToken(field.value);
    await network.greet();
    if (network.shared) return deeds.say(told, "wrong", "This is not the token of this testnet.");
    begin();
  };
  const form = element(
    "form",
    {
      class: "row",
      onsubmit: (event) => {
        event.preventDefault();
        use();
      },
    },
    element("span", { class: "parts" }, field, element("button", { type: "submit", class: "act" }, "Use this token")),
    told,
  );
  const words = {
    token: "Every visitor may watch this testnet. A visitor with its token may steer it as well.",
    closed: "Every visitor may watch this testnet. It is steered from elsewhere.",
  };
  const made = card("Watching", "watching tools", null, element("p", { class: "soft" }, words[network.shared]));
  if (network.shared === "token") made.append(form);
  if (network.shared === "token" && hasToken()) deeds.say(told, "wrong", "The token that this tab had is not that of this testnet.");
  return made;
}

/** The instant that is shown is another one. */
const travel = new Travel(document.getElementById("travel"), network, () => {
  if (shown && !shown.isLive) route();
});

const views = document.getElementById("views");
/** The views by their names: the network first, or the explorer where one may only watch. */
function nameViews() {
  const lists = Object.entries(LISTS).map(([view, { title }]) => [view, title]);
  const all = network.shared ? [["", "Explorer"], ...lists, ["live", "Live"]] : [["", "Live"], ...lists, ["lab", "Lab"]];
  views.replaceChildren(...all.map(([view, title]) => element("a", { href: `#/${view}`, "data-view": view }, title)));
}

let live = null;
let shown = null;
let turn = 0;

const noAnswer = (why) => card("No answer", "", null, element("p", {}, inWords(why.message)));

/** The server answers again. The page begins anew if it is another testnet. */
async function returned() {
  const { nethash } = named;
  await about(named);
  if (named.nethash === nethash) guard(null);
  else await begin();
}

/** Shows what the address says. */
async function route(event) {
  const mine = (turn += 1);
  const [path, queryText] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const query = new URLSearchParams(queryText);
  for (const link of views.children) link.toggleAttribute("aria-current", link.dataset.view === view);
  let made;
  try {
    made = await viewOf(view, rest.join("/"), query);
  } catch (why) {
    if (!(why instanceof Refused)) throw why;
    // The page asks again until there is an answer.
    const again = () => {
      if (document.hidden) setTimeout(again, AGAIN);
      else if (mine === turn) route();
    };
    setTimeout(again, Math.max(AGAIN, (why.wait ?? 0) * 1000));
    made = { title: "No answer", nodes: [noAnswer(why)], loads: [] };
  }
  if (mine !== turn) return;
  shown?.stop?.();
  if (made.to) return location.replace(made.to);
  if (!made.live) guard(null);
  document.title = `${made.title} · ${CHAIN === null ? "" : `chain ${CHAIN} · `}dposlab`;
  page.replaceChildren(...(made.live ? [made.live.node] : [element("h1", { class: "unseen" }, made.title), ...made.nodes.filter(Boolean)]));
  travel.show(Boolean(made.live));
  if (made.live) {
    made.live.open();
    shown = { isLive: true, stop: () => made.live.close() };
  } else shown = new Fresh(made.loads, guard, returned);
  if (event) {
    page.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

async function viewOf(view, id, query) {
  if (view === "live" || (view === "" && !network.shared)) return { title: "Live", live: (live ??= new Live()) };
  await known;
  if (view === "") return front(network, named, deeds);
  if (view === "lab") return network.shared ? { title: "Lab", nodes: [watching()], loads: [] } : bench(network, deeds);
  if (view === "search") return search(id.trim());
  if (id && THINGS[view]) return THINGS[view](id, query);
  if (!LISTS[view])
    return { title: "Not found", nodes: [card("Not found", "", null, element("p", {}, "There is no such view."))], loads: [] };
  const list = new List(LISTS[view], Number(query.get("page")), (page) => `#/${view}?page=${page}`);
  return { title: LISTS[view].title, nodes: [list.node], loads: [() => list.load()] };
}

const known = about(named).catch(() => {});

const search_ = document.getElementById("search");
search_.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = search_.elements.text.value.trim();
  if (text) go(`/search/${encodeURIComponent(text)}`);
});

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () =>
  localStorage.getItem("dposlab-theme") ?? new URLSearchParams(location.search).get("theme") ?? (dark.matches ? "dark" : "light");
const paint = () => {
  root.dataset.theme = theme();
};
document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("dposlab-theme", root.dataset.theme === "dark" ? "light" : "dark");
  paint();
});
dark.addEventListener("change", paint);
paint();

// Textures that distinguish colours.
document.body.append(svg("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": "true" }, textures()));
addEventListener("hashchange", route);
// The part after # is a route of this page, so this link has no address of its own.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  page.focus();
});
tellOrigin(document.getElementById("origin"));

/** Begins, or begins anew after a token was given: a client that may steer then gets the controls. */
async function begin() {
  await Promise.all([network.greet(), known]);
  document.querySelector('#foot [href="metrics"]').hidden = Boolean(network.shared);
  shown?.stop?.();
  [live, shown] = [null, null];
  nameViews();
  // The instant of an address comes first, so that nothing else is shown before it.
  await travel.begin();
  await route();
}
begin();
