// Refusals of the server in the words of the page: names of its fields, amounts in coins, and times as people read them.
import { clock, coins, duration, number } from "./show.js";

/** The value that an answer quotes, without its quotation marks. */
const bare = (text) => text.replace(/^["'](.*)["']$/s, "$1");
const given = (text) => (bare(text) === "" ? "nothing" : `“${bare(text)}”`);

/** Answers that the page knows better words for, beside those about one field. */
const KNOWN = [
  [
    /^(\d+) arktoshi were asked for, and the funded accounts have (\d+) besides fees$/,
    ([, asked, there]) => `The faucet has ${coins(there)}, and ${coins(asked)} were asked for.`,
  ],
  [
    /^the funded accounts have as many transactions pending/,
    () => "As many payments of the faucet are pending as a pool takes. Let a few slots pass, then pay again.",
  ],
  [/where transactions of version 2 are not taken yet/, () => "No account can pay before the second block. Let a slot pass first."],
  [
    /^no account's passphrase is known/,
    () => "There is no faucet here: the network was loaded, and the passphrases of its accounts are unknown.",
  ],
  [/^there is no view of this number/, () => "This instant was shown long ago and is closed. Choose it again."],
  [
    /^Rate limit exceeded(?:; wait (\d+) s)?$/,
    ([, wait]) => `That was too often.${wait ? ` Try again in ${duration(Number(wait))}.` : ""}`,
  ],
  [/^there is no chain of this number/, () => "This chain is gone: it was deleted."],
  [/found all nodes in one group/, () => "These are all nodes, which cuts off none. Leave at least one node out."],
  [
    /found node (\d+) in the groups/,
    ([, node]) => `Node ${node} is in two parts. Name each node in one part only.`,
  ],
  [
    /^key 'kind': unknown variant `([^`]*)`, expected one of (.*)$/s,
    ([, kind, kinds]) => `There is no kind “${kind}”. The kinds are ${kinds.replaceAll("`", "").replace(/, ([^,]*)$/, " and $1")}.`,
  ],
  [/^the testnet, or this chain of it, has ended$/, () => "The run has ended; the log says why."],
  [/^An internal server error occurred$/, () => "Something broke; the log says what."],
];

/** A value that has another form than its field, by the types of Rust. */
const FORMS = [
  [/^u(8|16|32|64|128|size)$/, "a whole number from 0 on"],
  [/^i(8|16|32|64|128|size)$/, "a whole number"],
  [/^f(32|64)$/, "a number"],
  [/^a string$/, "a text"],
];
/** The bounds in a validator's sentence. */
const ASKED = [
  [/^must be (?:larger|greater) than or equal to (\S+)$/, (bound) => `must be ${number(Number(bound))} or more`],
  [/^must be less than or equal to (\S+)$/, (bound) => `must be ${number(Number(bound))} or less`],
];

/** Answers about one field, by its key: what was found, and what is allowed. */
const FIELDS = {
  recipient: (found) => `${given(found)} is no address of this network.`,
  amount: (found, allowed) => `${money(found)} cannot be paid${within(allowed)}.`,
  balance: (found, allowed) => `An account cannot begin with ${money(found)}${within(allowed)}.`,
  depth: (found, allowed) => {
    const range = /^(\d+) to (\d+)/.exec(allowed);
    if (!range) return null;
    return Number(range[2]) < 1
      ? "There is no block above the first that could be left."
      : `${number(Number(found))} blocks cannot be left: 1 to ${number(Number(range[2]))} can.`;
  },
  node: (found, allowed) => `There is no node ${found}: they have the numbers ${allowed}.`,
  at: (found, allowed) => {
    const range = /^(\d+) to (\d+)/.exec(allowed);
    return range
      ? `${instant(found)} cannot be shown: the past that is kept goes from ${instant(range[1])} to ${instant(range[2])}.`
      : null;
  },
};
const money = (found) => (/^"?\d+"?$/.test(found) ? coins(bare(found)) : given(found));
/** The range of an amount in coins. */
const within = (allowed) => {
  const range = /^arktoshi from (\d+) to (\d+)/.exec(allowed);
  return range ? `: ${coins(range[1])} to ${coins(range[2])} can` : "";
};
const instant = (micros) => clock(Number(micros) / 1e6);

/** A refusal for people. `names` tells what the form calls the keys of the API, and `names.also` what else a key allows. */
export function inWords(message, names = {}) {
  for (const [form, words] of KNOWN) {
    const found = form.exec(message);
    if (found) return words(found);
  }
  const field = /^(?:key ')?([^':]+)'?: found (.*), allowed (is|are) (.*)$/s.exec(message);
  if (field) {
    const [, key, found, are, allowed] = field;
    const also = names.also?.[key] ? `; ${names.also[key]}` : "";
    return (
      FIELDS[key]?.(found, allowed) ?? `${names[key] ?? key}: ${given(found)} is not possible, ${allowed.replace(/'/g, "")} ${are}${also}.`
    );
  }
  const child = /^child "([^"]+)" fails because \["[^"]+" (.*)\]$/s.exec(message);
  if (child) {
    const [form, words] = ASKED.find(([form]) => form.test(child[2])) ?? [];
    return `${names[child[1]] ?? child[1]} ${form ? words(form.exec(child[2])[1]) : child[2]}.`;
  }
  const typed = /^key '([^']+)': (?:invalid (?:type|value): (?:string|integer|floating point|boolean|character) |unknown variant )(.*), expected (?:one of )?(.*)$/s.exec(message);
  if (typed) {
    const [, key, found, wanted] = typed;
    const [form, words] = FORMS.find(([form]) => form.test(wanted)) ?? [];
    return `${names[key] ?? key}: ${given(found.replaceAll("`", ""))} is not possible, ${form ? wanted.replace(form, words) : wanted.replaceAll("`", "")} is.`;
  }
  const other = /^key '([^']+)': (.*)$/s.exec(message);
  const text = other ? `${names[other[1]] ?? other[1]}: ${other[2]}` : message;
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
