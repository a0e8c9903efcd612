// Values that replace those of a scenario, in the form that the command and the API accept.

import { isObject, TEXTS, type Form } from "./arguments.js";
import { UsageError } from "./errors.js";
import type { Settings } from "./types.js";

/** The form of `set`. */
export const SETTINGS: Form = [
    'an object such as {"network.loss": 0.05}, or a list of texts \'PATH=VALUE\'',
    (value) => isObject(value) || TEXTS[1](value),
];

/** Texts that the program reads as texts even without quotes. No other value of TOML has this form. */
const WORD = /^(?!(?:true|false|inf|nan)$)[A-Za-z_][A-Za-z0-9_-]*$/;

/** Texts `PATH=VALUE`. */
export function settings(set: Settings = []): string[] {
    if (isList(set)) return [...set];
    return Object.entries(set).map(([path, value]) => {
        const isWord = typeof value === "string" && WORD.test(value);
        return `${path}=${isWord ? value : literal(path, value)}`;
    });
}

/** A value in the syntax of TOML. */
function literal(path: string, value: unknown): string {
    if (Array.isArray(value)) return `[${value.map((item) => literal(path, item)).join(", ")}]`;
    switch (typeof value) {
        case "string":
            return quoted(value);
        case "number":
            return Number.isNaN(value) ? "nan" : String(value).replace("Infinity", "inf");
        case "bigint":
        case "boolean":
            return String(value);
        case "object":
            if (isTable(value)) {
                const members = Object.entries(value).map(([key, item]) => `${quoted(key)} = ${literal(path, item)}`);
                return `{ ${members.join(", ")} }`;
            }
    }
    throw new UsageError(`set '${path}': found ${String(value)}, allowed are texts, numbers, truth values, lists and tables of them`);
}

/** Whether a value is a plain object, from whichever realm. */
function isTable(value: object | null): value is object {
    const prototype: unknown = value === null ? undefined : Object.getPrototypeOf(value);
    return prototype === null || (prototype !== undefined && Object.getPrototypeOf(prototype) === null);
}

/** A text in quotes. TOML's syntax is that of JSON, except that DEL must be escaped. */
function quoted(text: string): string {
    return JSON.stringify(text).replaceAll("\x7f", "\\u007f");
}

function isList(set: Settings): set is readonly string[] {
    return Array.isArray(set);
}
