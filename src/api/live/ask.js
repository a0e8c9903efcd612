// Requests to the server that this page came from. Paths are relative, so that the page of an isolated chain asks that chain.

const KEY = "dposlab-lab-token";
let token = sessionStorage.getItem(KEY) ?? "";

/** An answer that says no: its status, why, and after how many seconds it may be another. */
export class Refused extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    Object.assign(this, { status, wait });
  }
}

export const hasToken = () => token !== "";
/** Keeps the token of --lab-token for this tab. */
export function setToken(text) {
  token = text.trim();
  sessionStorage.setItem(KEY, token);
}

/** The prefix of all paths: that of a view of the past while the page shows one, else empty. `anew` reopens a view that was closed. */
let base = "";
let again = null;
export function setBase(path, anew) {
  [base, again] = [path, anew];
}

/** A token is shown where it is asked for, and nowhere else. */
const headersOf = (path, more = {}) => (token && /(^|\/)(lab|watch)\b/.test(path) ? { ...more, authorization: `Bearer ${token}` } : more);

async function answer(method, path, body, { live = false, isLast = false } = {}) {
  const asked = live ? "" : base;
  const headers = headersOf(path, body === undefined ? {} : { "content-type": "application/json" });
  let response;
  try {
    response = await fetch(asked + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, "The testnet does not answer.");
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Refused(response.status, `Status ${response.status}, and no JSON`);
  }
  if (response.status === 404 && asked && !isLast && json.message?.startsWith("there is no view")) {
    // The first of several requests that find it closed opens it.
    if (asked === base) base = await again();
    return answer(method, path, body, { isLast: true });
  }
  if (!response.ok) {
    const wait = Number(response.headers.get("retry-after")) || 0;
    throw new Refused(response.status, `${json.message ?? `Status ${response.status}`}${wait ? `; wait ${wait} s` : ""}`, wait);
  }
  return json;
}

/** The whole answer, with `meta` where it is a page of a list. */
export const askWhole = (path) => answer("GET", path);
/** The `data` of an answer. */
export const ask = async (path, how) => (await answer("GET", path, undefined, how)).data;
/** The value of an answer, or `none` after a 404 or 422. */
export async function orElse(asked, none) {
  try {
    return await asked;
  } catch (why) {
    if (why.status === 404 || why.status === 422) return none;
    throw why;
  }
}
/** The `data` of an answer, or null after a 404 or 422. */
export const askSome = (path) => orElse(ask(path), null);
export const post = async (path, body = {}, how) => (await answer("POST", path, body, how))?.data;
export const drop = (path, how) => answer("DELETE", path, undefined, how);

/**
 * Reads server-sent events until the signal ends it: each as (event, id, data). A token needs a header, so this is no EventSource.
 * `opened` is waited for before the first of them.
 */
export async function follow(path, signal, opened, heard) {
  const response = await fetch(path, { headers: headersOf(path), signal });
  if (!response.ok) throw new Refused(response.status, `Status ${response.status}`);
  await opened();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const told = { event: "message", id: null, data: "" };
      for (const line of part.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) told[line.slice(0, at)] = line.slice(at + 2);
      }
      heard(told);
    }
  }
}
