// Takes the block of README.md that begins with a line `// NAME` out of it: `node example.mjs README.md NAME`.
import { readFileSync } from "node:fs";

const [, , file, name] = process.argv;
const blocks = readFileSync(file, "utf8").matchAll(/^```js\n(.*?)^```$/gms);
const [found] = [...blocks].map(([, code]) => code).filter((code) => code.startsWith(`// ${name}\n`));
if (found === undefined) throw new Error(`${file}: found no block that begins with '// ${name}'`);
process.stdout.write(found);
