"""Which named tests notice a planted fault: a test notices it if it passes without the fault and fails with it.

    measure.py --hold                        sees that the tests of noticed.txt notice what is said of them
    measure.py [--in LIST] [--only WORD]... FAULT...
                                             all tests that notice these faults, by binary: LIST is some of lib, api, runs;
                                             only tests whose names hold a WORD; 'missed' stands for the faults of
                                             tests/data/missed-faults.txt

Builds what is missing first, in the copy that build.sh makes. Tests that compare recorded output are left out (RECORDED): they fail with
every change, so they tell nobody what is wrong. Of drawn values the seed is fixed, so that what is noticed once is noticed
always.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target/planted-source"
NOTICED = ROOT / "tests/planted/noticed.txt"
MISSED = ROOT / "tests/data/missed-faults.txt"
BINARIES = ("lib", "api", "runs")
RECORDED = (
    "determinism::",
    "readme::",
    "layering::",
    "searching::",
    "checking::each_shipped_finding",
    "checking::the_table_of_findings",
    "scenarios::every_assertion_holds_and_the_index",
)
# Seconds until a test, or a binary, counts as hanging.
PATIENCE = 420
DRAWN = {"PROPTEST_RNG_SEED": "1", "PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}


def built(binaries):
    """Builds test binaries, and answers where each is; 'dposlab' is the command that they were built with."""
    wanted = [word for name in binaries for word in (["--lib"] if name == "lib" else ["--test", name])]
    command = ["bash", "tests/planted/build.sh", "test", "--no-run", "--message-format", "json", *wanted]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    found = {}
    for line in told.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"]:
            kind, name = message["target"]["kind"][0], message["target"]["name"]
            found["lib" if kind == "lib" else name] = message["executable"]
    return found


def lines(path):
    """The words of each line that says something."""
    text = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in text if line.strip() and not line.startswith("#")]


def environment(fault):
    return {**os.environ, **DRAWN, "DPOSLAB_PLANTED": fault, "RUST_BACKTRACE": "0"}


def failed(executable, fault, words):
    """The tests that fail with a fault in force; '(hangs)' stands for those that never end."""
    command = [executable, "--test-threads", "2", *words, *(word for name in RECORDED for word in ("--skip", name))]
    tests = subprocess.Popen(
        command, cwd=COPY, env=environment(fault), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        output, _ = tests.communicate(timeout=PATIENCE)
        hangs = []
    except subprocess.TimeoutExpired:
        tests.kill()
        output, _ = tests.communicate()
        hangs = ["(hangs)"]
    return re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED", output, re.MULTILINE) + hangs


def passes(found, where, name, fault):
    """Whether one test passes with a fault in force, or without any. It must be there."""
    if where == "figures":
        command = [sys.executable, "tests/figures/suite.py", name]
        known = {**environment(fault), "DPOSLAB_BIN": found["dposlab"]}
        done = subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode not in (0, 1) or "compared" not in done.stdout:
            raise RuntimeError(f"{name}: exit code {done.returncode}\n{done.stderr}")
        return done.returncode == 0
    command = [found[where], "--exact", name]
    done = subprocess.run(
        command, cwd=COPY, env=environment(fault), capture_output=True, text=True, timeout=PATIENCE
    )
    if "running 1 test\n" not in done.stdout:
        raise RuntimeError(f"{where} has no test {name}")
    return done.returncode == 0


def hold():
    """Every missed fault has a line, and what it says is so. Answers the exit code."""
    rows = lines(NOTICED)
    unnamed = {row[0] for row in lines(MISSED)} - {row[0] for row in rows}
    rows = [(fault, *test) for fault, *test in rows if test != ["-"]]
    found = built(dict.fromkeys(["runs", *(row[1] for row in rows if row[1] != "figures")]))
    began, wrong = time.monotonic(), [f"{name} is missed, and no test is said to notice it" for name in sorted(unnamed)]
    tests = sorted({(where, name) for _, where, name in rows})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (where, name), sound in zip(tests, pool.map(lambda test: passes(found, *test, ""), tests)):
            if not sound:
                wrong.append(f"{where} {name} fails without any fault")
        for (fault, where, name), sound in zip(rows, pool.map(lambda row: passes(found, *row[1:], row[0]), rows)):
            print(f"{fault}: {'NOT noticed' if sound else 'noticed'} by {where} {name}", flush=True)
            if sound:
                wrong.append(f"{fault} is not noticed by {where} {name}")
    print(f"{len(tests)} tests, {len(rows)} faults: {time.monotonic() - began:.0f} s")
    for one in wrong:
        print(f"  {one}")
    print(f"{len(tests) + len(rows) + len(unnamed) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--in", dest="binaries", default=",".join(BINARIES))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("faults", nargs="*")
    asked = parser.parse_args()
    if asked.hold:
        return hold()
    faults = [row[0] for row in lines(MISSED)] if asked.faults == ["missed"] else asked.faults
    names = asked.binaries.split(",")
    found = built(names)
    for name in names:
        usual = failed(found[name], "", asked.only)
        for fault in faults:
            noticed = [test for test in failed(found[name], fault, asked.only) if test not in usual]
            print(f"{fault} {name}: {' '.join(noticed) or 'nothing'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
