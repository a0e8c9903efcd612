// Faults in force, each with its end, and a form for another one.
import { drop, post } from "./ask.js";
import { clock, duration, element, number, plural } from "./show.js";
import { nodesOf } from "./network.js";
import { place } from "./steer.js";

const NODES = ["nodes", "Nodes", "0-3, 7 or names"];
/** The kinds that the form knows, with what each asks for; all others are given as JSON. */
const KINDS = [
  ["partition", "Partition", [["groups", "Cut off", "0-3, 7; further parts after /"]]],
  ["isolate", "Isolate", [NODES]],
  ["crash", "Crash", [NODES]],
  ["pause", "Pause", [NODES]],
  ["offline", "Delegates offline", [["delegates", "Delegates", "genesis_1, genesis_2"]]],
  ["delay", "Delay messages", [["by_ms", "By ms", "300"]]],
  ["drop", "Drop messages", [["chance", "Chance", "0.2"]]],
  ["heal", "Heal partitions", []],
  ["", "Other, as JSON", [["json", "Fault", '{"kind": "slow", …}']]],
];

/** The fields that are numbers. */
const NUMBERS = new Set(["by_ms", "chance"]);

/** Nodes as people write them: numbers, spans and names. */
function someNodes(text) {
  return text
    .split(/[,\s]+/)
    .filter(Boolean)
    .flatMap((word) => {
      const span = /^(\d+)-(\d+)$/.exec(word);
      if (span) return Array.from({ length: Math.max(0, Math.min(5000, span[2] - span[1] + 1)) }, (_, index) => Number(span[1]) + index);
      return [/^\d+$/.test(word) ? Number(word) : word];
    });
}

/** The first range of a text whose begin is above its end, if it has one. */
const reversed = (text) => text.split(/[,/\s]+/).find((word) => {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(word) ?? [];
  return Number(from) > Number(to);
});

/** The body of a new fault. */
export function bodyOf(kind, fields, seconds) {
  if (kind === "") return JSON.parse(fields.json);
  const body = { kind };
  if (kind === "partition")
    body.groups = fields.groups
      .split("/")
      .map(someNodes)
      .filter((group) => group.length);
  if (fields.nodes !== undefined) body.nodes = someNodes(fields.nodes);
  if (fields.delegates !== undefined) body.delegates = someNodes(fields.delegates);
  if (fields.by_ms !== undefined) body.by_ms = Number(fields.by_ms);
  if (fields.chance !== undefined) body.chance = Number(fields.chance);
  if (seconds !== "" && kind !== "heal") body.until = { after: Number(seconds) };
  return body;
}

/** A fault in a few words. */
function told(fault, nodes) {
  const named = (some) => {
    const all = nodesOf(some, nodes);
    if (!all) return JSON.stringify(some);
    return all.length > 5 ? plural(all.length, "node") : `${all.length === 1 ? "node" : "nodes"} ${all.join(", ")}`;
  };
  if (fault.kind === "partition") return fault.groups.map(named).join(" / ");
  if (fault.nodes) return named(fault.nodes);
  const { kind, from, until, ...rest } = fault;
  return Object.entries(rest)
    .map(([name, value]) => {
      const [, words, unit] = /^(.*?)(?:_(ms|seconds))?$/.exec(name);
      const said = typeof value === "string" ? value : JSON.stringify(value);
      return `${words.replaceAll("_", " ")} ${said}${unit ? ` ${unit === "ms" ? "ms" : "s"}` : ""}`;
    })
    .join(", ");
}

const ends = (until) => {
  if (!until) return "until it is ended";
  if (until.after !== undefined) return `for ${duration(until.after)}`;
  return `until ${Object.entries(until)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(" ")}`;
};

export class Faults {
  constructor(deeds) {
    this.deeds = deeds;
    this.list = element("ol", { class: "faults", "aria-label": "Faults in force and waiting" });
    this.kind = element(
      "select",
      { "aria-label": "Kind of fault", onchange: () => this.ask() },
      KINDS.map(([kind, name]) => element("option", { value: kind }, name)),
    );
    this.fields = element("span", { class: "fields" });
    this.seconds = element("input", {
      type: "number",
      min: 1,
      "aria-label": "Seconds it lasts; empty until it is ended",
      placeholder: "until ended",
      class: "some",
    });
    this.lasts = element("label", { class: "lasts" }, "for ", this.seconds, " s");
    this.form = element(
      "form",
      {
        class: "fault",
        "aria-label": "New fault",
        novalidate: "",
        onsubmit: (event) => {
          event.preventDefault();
          this.begin();
        },
      },
      this.kind,
      this.fields,
      this.lasts,
      element("button", { type: "submit", class: "act" }, "Begin"),
    );
    this.told = place();
    this.node = element("div", {}, this.form, this.told, this.list);
    this.ask();
  }

  ask() {
    const [kind, , asked] = KINDS.find(([kind]) => kind === this.kind.value);
    this.lasts.hidden = kind === "" || kind === "heal";
    this.deeds.clear(this.told);
    this.fields.replaceChildren(
      ...asked.map(([name, label, hint]) =>
        element("input", { name, "aria-label": label, placeholder: hint, spellcheck: "false", autocomplete: "off" }),
      ),
    );
  }

  begin() {
    const inputs = [...this.fields.querySelectorAll("input")];
    const names = Object.fromEntries(inputs.map((field) => [field.name, field.getAttribute("aria-label")]));
    // Commas and strokes alone name nothing, and some fields are numbers.
    const isUsable = ({ name, value }) => (NUMBERS.has(name) ? value.trim() !== "" && Number.isFinite(Number(value)) : /[^\s,/]/.test(value));
    const wrong = inputs.find((field) => !isUsable(field));
    if (wrong) {
      const why = NUMBERS.has(wrong.name) && wrong.value.trim() ? `“${wrong.value.trim()}” is no number: ` : "";
      this.deeds.say(this.told, "wrong", `${names[wrong.name]}: ${why}give something like ${wrong.placeholder}.`);
      return;
    }
    const [range] = this.kind.value === "" ? [] : inputs.map(({ value }) => reversed(value)).filter(Boolean);
    if (range) return this.deeds.say(this.told, "wrong", `${range} is no range: give the smaller number first.`);
    let body;
    try {
      body = bodyOf(this.kind.value, Object.fromEntries(inputs.map((field) => [field.name, field.value])), this.seconds.value);
    } catch {
      this.deeds.say(this.told, "wrong", `This is no JSON: give something like ${inputs[0].placeholder}.`);
      return;
    }
    this.deeds.do(
      this.told,
      "The fault",
      () => post("lab/faults", body),
      ({ id, state, fault }) => `Fault ${id}, ${fault.kind}, ${state === "in-force" ? "is in force" : `is ${state}`}.`,
      { ...names, also: this.also(names), until: "The seconds it lasts", after: "The seconds it lasts", "until.after": "The seconds it lasts" },
    );
  }

  /** All forms of nodes that a field takes, beside the names that the server lists. */
  also(names) {
    const last = (this.deeds.network.lab?.nodes.length ?? 1) - 1;
    const words = `nodes are numbers from 0 to ${last}, ranges such as 0-3, or names, with commas between them`;
    return Object.fromEntries(["nodes", "groups"].filter((name) => name in names).map((name) => [name, words]));
  }

  ending(id, fault) {
    return element(
      "button",
      {
        type: "button",
        class: "act",
        "aria-label": `End fault ${id}, ${fault.kind}`,
        onclick: () =>
          this.deeds.do(
            this.told,
            `Ending fault ${id}`,
            () => drop(`lab/faults/${id}`),
            () => `Fault ${id} has ended.`,
          ),
      },
      "End",
    );
  }

  draw({ faults, lab, isSteered }) {
    const shown = faults
      .filter(({ state }) => state !== "over")
      .slice(-30)
      .reverse();
    const key = JSON.stringify([shown, faults.length, isSteered]);
    if (key === this.key) return;
    this.key = key;
    const over = faults.filter(({ state }) => state === "over").length;
    const rows = shown.map(({ id, state, since, fault }) =>
      element(
        "li",
        { class: state },
        element(
          "span",
          {},
          element("b", {}, fault.kind),
          ` ${told(fault, lab.nodes)} `,
          element("span", { class: "soft" }, state === "waiting" ? "waits" : `since ${clock(since)}`, `, ${ends(fault.until)}`),
        ),
        isSteered ? this.ending(id, fault) : null,
      ),
    );
    if (!shown.length) rows.push(element("li", { class: "soft" }, over ? `None in force; ${number(over)} over.` : "None in force."));
    this.list.replaceChildren(...rows);
  }
}
