// Packs the npm packages: `node pack.mjs --out DIR --binary linux-x64-gnu=PATH ...`. Each program becomes a package of its own,
// and the main package names them as optional dependencies, so npm installs the one that fits and no script has to run.
// The version is that of Cargo.toml. The same sources and programs give the same bytes.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const { values } = parseArgs({ options: { out: { type: "string" }, binary: { type: "string", multiple: true } } });
if (values.out === undefined || values.binary === undefined) {
    console.error("usage: node pack.mjs --out DIR --binary PLATFORM=PATH [--binary ...], such as linux-x64-gnu=target/release/dposlab");
    process.exit(2);
}
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const version = /^\[package\][^[]*?^version = "(.+?)"/ms.exec(readFileSync(join(here, "../Cargo.toml"), "utf8"))[1];

/** Packs a folder that `fill` fills, and has the same modes wherever it was made. */
function pack(manifest, fill) {
    const folder = mkdtempSync(join(tmpdir(), "dposlab-pack-"));
    try {
        fill(folder);
        copyFileSync(join(here, "../LICENSE"), join(folder, "LICENSE"));
        writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
        for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
            const program = /(^|\/)bin$/.test(file.parentPath ?? file.path) || file.name === "bin.js";
            chmodSync(join(file.parentPath ?? file.path, file.name), file.isDirectory() || program ? 0o755 : 0o644);
        }
        const words = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", out];
        const name = execFileSync("npm", words, { cwd: folder, encoding: "utf8" }).trim();
        console.log(join(out, name));
    } finally {
        rmSync(folder, { recursive: true });
    }
}

/** What says which machines a package is for, from `linux-x64-gnu`. */
function machines(platform) {
    const [os, cpu, libc] = platform.split("-");
    return { os: [os], cpu: [cpu], ...(libc && { libc: [libc === "gnu" ? "glibc" : libc] }) };
}

function packProgram(word) {
    const [platform, path] = word.split(/=(.*)/s);
    // That of another machine cannot be asked.
    const isOurs = platform.startsWith(`${process.platform}-${process.arch}`);
    const said = isOurs ? execFileSync(path, ["--version"], { encoding: "utf8" }).trim() : `dposlab ${version}`;
    if (said !== `dposlab ${version}`) throw new Error(`${path}: found '${said}', expected 'dposlab ${version}' as in Cargo.toml`);
    const name = `@dposlab/${platform}`;
    const description = `The program of dposlab for ${platform}; install the package dposlab`;
    const manifest = { name, version, description, license: "MIT", ...machines(platform), files: ["bin"], preferUnplugged: true };
    pack(manifest, (folder) => {
        mkdirSync(join(folder, "bin"));
        copyFileSync(path, join(folder, "bin/dposlab"));
    });
    return name;
}

const programs = values.binary.map(packProgram).sort();
rmSync(join(here, "dist"), { recursive: true, force: true });
execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", here], { stdio: "inherit" });
const { scripts, devDependencies, ...kept } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const optionalDependencies = Object.fromEntries(programs.map((name) => [name, version]));
pack({ ...kept, version, optionalDependencies }, (folder) => {
    cpSync(join(here, "dist"), join(folder, "dist"), { recursive: true });
    copyFileSync(join(here, "README.md"), join(folder, "README.md"));
});
