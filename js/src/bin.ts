#!/usr/bin/env node
// `npx dposlab ...`: the platform's program, with its signals and its exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { findBinary } from "./binary.js";
import { DposlabError } from "./errors.js";

/** Commands that can watch the process that started them. */
const watching = ["check", "explain", "run", "sweep", "up"];

/** The time between two looks at the parent [ms]. */
const PARENT_EVERY = 250;

/**
 * Whether npx has started this process. SIGTERM ends npx and the shell between it and this process, so the program then ends with that
 * shell. A program that another shell or a script of `npm run` has started may outlive its parent, such as after `nohup`.
 */
const isOfNpx = process.env["npm_lifecycle_event"] === "npx";

function run(binary: string): void {
    const words = process.argv.slice(2);
    const parent = process.ppid;
    // If the process of this number is killed, no other process ends the program.
    const endWith = (pid: number): void => {
        const isAsked = words.some((word) => word.startsWith("--exit-with-parent"));
        if (watching.includes(words[0] ?? "") && !isAsked) words.splice(1, 0, `--exit-with-parent=${pid}`);
    };
    // Newer versions of Node.js can become the program.
    const { execve } = process as { execve?: (file: string, args: string[], env: NodeJS.ProcessEnv) => never };
    if (execve !== undefined) {
        if (isOfNpx) endWith(parent);
        execve(binary, [binary, ...words], process.env);
    }
    endWith(process.pid);
    // A session of its own, so that a signal of the terminal reaches the program only once, through this process. Received twice,
    // Ctrl-C would end the program at once.
    const child = spawn(binary, words, { stdio: "inherit", detached: true });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGCONT"] as const) {
        process.on(signal, () => void child.kill(signal));
    }
    if (isOfNpx) {
        const watch = setInterval(() => {
            if (process.ppid === parent) return;
            // Once: a second signal ends the program wherever it is.
            clearInterval(watch);
            child.kill("SIGTERM");
        }, PARENT_EVERY);
        watch.unref();
    }
    // Ctrl-Z: both stop.
    process.on("SIGTSTP", () => void (child.kill("SIGSTOP"), process.kill(process.pid, "SIGSTOP")));
    child.on("error", (error) => fail(`${binary}: ${error.message}`));
    child.on("exit", (code, signal) => process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
}

function fail(why: string): void {
    console.error(`dposlab: ${why}`);
    process.exitCode = 1;
}

try {
    run(findBinary());
} catch (error) {
    if (!(error instanceof DposlabError)) throw error;
    fail(error.message);
}
