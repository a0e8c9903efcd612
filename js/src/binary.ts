// Finds the program, in the package for this platform that the package manager has installed beside this one.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { NoBinaryError } from "./errors.js";

const require = createRequire(import.meta.url);

/** The name of this platform as in names of packages: `linux-x64-gnu`, `linux-arm64-musl`, `darwin-arm64`. */
export function platformName(): string {
    const name = `${process.platform}-${process.arch}`;
    return process.platform === "linux" ? `${name}-${isMusl() ? "musl" : "gnu"}` : name;
}

function isMusl(): boolean {
    if (process.report === undefined) return false;
    // Without this a report looks up the names of all open connections.
    Object.assign(process.report, { excludeNetwork: true });
    const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return report.header?.glibcVersionRuntime === undefined;
}

/** The platforms that this release has programs for. */
function supported(): string[] {
    const { optionalDependencies } = require("dposlab/package.json") as { optionalDependencies?: Record<string, string> };
    return Object.keys(optionalDependencies ?? {}).map((name) => name.replace("@dposlab/", ""));
}

/**
 * The path of the program: `DPOSLAB_BIN`, or the program in the package for this platform.
 *
 * @throws NoBinaryError `DPOSLAB_BIN` names no file, or no package fits this platform
 */
export function findBinary(): string {
    const chosen = process.env["DPOSLAB_BIN"];
    if (chosen !== undefined && chosen !== "") {
        if (existsSync(chosen)) return chosen;
        throw new NoBinaryError(`DPOSLAB_BIN: found '${chosen}', which is no file`, platformName());
    }
    const platform = platformName();
    try {
        return require.resolve(`@dposlab/${platform}/bin/dposlab`);
    } catch {
        const all = supported();
        const why = all.includes(platform)
            ? `@dposlab/${platform} is not installed: install without --omit=optional, and not from another platform's node_modules`
            : `there is no program for ${platform}, only for ${all.join(", ") || "none"}`;
        throw new NoBinaryError(`${why}; or build one (cargo build --release) and name it: DPOSLAB_BIN=PATH`, platform);
    }
}
