// Checks of arguments: the compiler of TypeScript makes most of them, and a test in JavaScript has only these.

import { UsageError } from "./errors.js";

/** A form of values: the words of an error for it, and whether a value has it. */
export type Form = readonly [allowed: string, fits: (value: unknown) => boolean];

/** The form of each option of a method. */
export type Forms<Options> = { readonly [name in keyof Required<Options>]: Form };

const isText = (value: unknown): value is string => typeof value === "string";
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
export const isObject = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);

export const TEXT: Form = ["a text", isText];
export const TEXTS: Form = ["a list of texts", (value) => Array.isArray(value) && value.every(isText)];
export const WHOLE: Form = ["a whole number", isWhole];
export const NUMBER: Form = ["a number", (value) => typeof value === "number"];
export const TRUTH: Form = ["true or false", (value) => typeof value === "boolean"];
export const FUNCTION: Form = ["a function", (value) => typeof value === "function"];
export const OBJECT: Form = ["an object", isObject];
export const AMOUNT: Form = ["an amount in arktoshi", (value) => ["bigint", "number", "string"].includes(typeof value)];

/** A value or a list of such values. */
export function oneOrMore([allowed, fits]: Form): Form {
    return [`${allowed} or a list of them`, (value) => (Array.isArray(value) ? value.every(fits) : fits(value))];
}

/** @throws UsageError the argument has another form */
export function checkArgument(call: string, name: string, value: unknown, [allowed, fits]: Form): void {
    if (!fits(value)) throw new UsageError(`${call}: ${name}: found ${shown(value)}, allowed is ${allowed}`);
}

/** @throws UsageError the options are no object, one of them has an unknown name, or one of them has another form */
export function checkOptions(call: string, options: unknown, forms: Readonly<Record<string, Form>>): void {
    const names = Object.keys(forms);
    const allowed = names.map((name) => `'${name}'`).join(", ");
    checkArgument(call, "options", options, [`an object of ${allowed}`, isObject]);
    for (const [name, value] of Object.entries(options as object)) {
        if (!Object.hasOwn(forms, name)) {
            throw new UsageError(`${call}: option '${name}': no such option${nearest(name, names)}, allowed are ${allowed}`);
        }
        if (value !== undefined) checkArgument(call, `option '${name}'`, value, forms[name]!);
    }
}

/** The number of a thing, from the number or from an object with it. */
export function idOf(call: string, name: string, what: unknown, allowed: string): number {
    const id = isObject(what) && "id" in what ? what.id : what;
    checkArgument(call, name, isWhole(id) ? id : what, [allowed, isWhole]);
    return id as number;
}

/** A value in an error: one line, not too long. */
export function shown(value: unknown): string {
    const text = typeof value === "function" ? "a function" : typeof value === "object" ? asJson(value) : String(value);
    const short = text.length > 100 ? `${text.slice(0, 100)}...` : text;
    return isText(value) ? `'${short}'` : short;
}

function asJson(value: unknown): string {
    try {
        return JSON.stringify(value) ?? "an object";
    } catch {
        return "an object";
    }
}

/** The words for the nearest name, if one is near. */
function nearest(name: string, names: readonly string[]): string {
    const far = names.map((each) => [distance(name.toLowerCase(), each.toLowerCase()), each] as const);
    const [letters, near] = far.reduce((best, each) => (each[0] < best[0] ? each : best));
    return letters <= Math.ceil(name.length / 3) ? `, the nearest is '${near}'` : "";
}

/** The smallest number of letters to insert, delete or replace. */
function distance(from: string, to: string): number {
    let row = Array.from({ length: to.length + 1 }, (_, at) => at);
    for (const [line, letter] of [...from].entries()) {
        const next = [line + 1];
        for (let at = 0; at < to.length; at += 1) {
            next.push(Math.min(row[at]! + (letter === to[at] ? 0 : 1), row[at + 1]! + 1, next[at]! + 1));
        }
        row = next;
    }
    return row[to.length]!;
}
