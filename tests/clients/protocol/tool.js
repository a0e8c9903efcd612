// Our own program, one request a line.
const { spawn } = require("node:child_process");
const readline = require("node:readline");
const path = require("node:path");

class Tool {
    constructor() {
        const root = path.join(__dirname, "../../..");
        const target = process.env.CARGO_TARGET_DIR || path.join(root, "target");
        this.child = spawn(path.join(target, "debug/examples/transaction_tool"), [], { stdio: ["pipe", "pipe", "inherit"] });
        this.waiting = [];
        readline.createInterface({ input: this.child.stdout }).on("line", (line) => this.waiting.shift()(JSON.parse(line)));
    }

    ask(request) {
        return new Promise((resolve) => {
            this.waiting.push(resolve);
            this.child.stdin.write(JSON.stringify(request) + "\n");
        });
    }

    end() {
        this.child.stdin.end();
    }
}

module.exports = { Tool };
