// Values in place of a scenario's, as the command and the API take them.

import type { Settings } from "./types.js";

/** Texts `PATH=VALUE`. */
export function settings(set: Settings = []): string[] {
    if (isList(set)) return [...set];
    return Object.entries(set).map(([path, value]) => `${path}=${typeof value === "object" ? JSON.stringify(value) : value}`);
}

function isList(set: Settings): set is readonly string[] {
    return Array.isArray(set);
}
