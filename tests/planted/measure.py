"""Says of each planted fault which named tests notice it: a test notices a fault if it fails while the fault is in force.

    python3 tests/planted/measure.py [--binaries lib,api] [--filter pool] [--jobs 2] FAULT... | all | missed

Builds the tests with the feature `planted` first. Tests that compare recorded output are left out (SKIPPED): they fail with
every change, so they tell nobody what is wrong. Prints a line a fault and binary; nothing is written.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = ("lib", "protocol", "api", "runs")
SKIPPED = (
    "determinism::",
    "readme::",
    "layering::",
    "searching::",
    "checking::each_shipped_finding",
    "checking::the_table_of_findings",
    "scenarios::every_assertion_holds_and_the_index",
)
# Seconds until a binary counts as hanging.
PATIENCE = 420


def executables():
    """The test binaries, by name; the library's own is 'lib'."""
    command = ["cargo", "test", "--features", "planted", "--locked", "--no-run", "--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    found = {}
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]:
            kind, name = message["target"]["kind"][0], message["target"]["name"]
            found["lib" if kind == "lib" else name] = message["executable"]
    return {name: found[name] for name in BINARIES}


def faults(which):
    """The names of all faults, of those that the search misses, or those given."""
    if which == ["all"]:
        text = (ROOT / "src/planted.rs").read_text(encoding="utf-8")
        names = re.findall(r"^        ([A-Z]\w+): \"", text, re.MULTILINE)
        return [re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in names]
    if which == ["missed"]:
        lines = (ROOT / "tests/data/missed-faults.txt").read_text(encoding="utf-8").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return which


def failed(executable, fault, only, patience=PATIENCE):
    """The tests that fail with the fault in force; 'hangs' stands for those that never end."""
    arguments = [executable, "--test-threads", "2", *only]
    for skipped in SKIPPED:
        arguments += ["--skip", skipped]
    environment = {**os.environ, "DPOSLAB_PLANTED": fault, "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1", "RUST_BACKTRACE": "0"}
    said = subprocess.Popen(
        arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        output, _ = said.communicate(timeout=patience)
        ended = []
    except subprocess.TimeoutExpired:
        said.kill()
        output, _ = said.communicate()
        ended = ["(hangs)"]
    return re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED", output, re.MULTILINE) + ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", default=",".join(BINARIES))
    parser.add_argument("--filter", action="append", default=[], help="only tests whose names hold this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("faults", nargs="+")
    chosen = parser.parse_args()
    built = executables()
    names = chosen.binaries.split(",")
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        jobs = [(fault, name) for fault in faults(chosen.faults) for name in names]
        told = pool.map(lambda job: failed(built[job[1]], job[0], chosen.filter), jobs)
        for (fault, name), tests in zip(jobs, told):
            print(f"{fault} {name}: {' '.join(tests) or 'nothing'}", flush=True)


if __name__ == "__main__":
    main()
