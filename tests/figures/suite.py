"""Plays scenarios, computes every figure again from their traces, and compares. The last line is `N passed, M failed`.

With arguments it plays those scenarios only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import designs
import others
from others import false_rates
import planted
import provenance
import sweep
import validation
from compare import Comparison, compare, load
from figures import Figures
from replay import Replay

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("DPOSLAB_BIN", ROOT / "target/release/dposlab")).resolve()
SEED = 7
# Slots with several owners, or turns of several slots: the replay of a trace knows neither. validation.py has the laws of both.
OTHER_TURNS = {"lottery", "turns-meet"}
# Drawn scenarios: by rules and first seed, so many of each.
DRAWN = [("reference", 1, 50), ("corrected", 51, 50)]
DRAWN_ROUNDS = 12
# Scenario, seeds, what is set, what is varied, and the mean by which it ends.
SWEEPS = [
    # Some of its runs are censored: they end before the network has converged.
    ("tests/figures/rich.toml", "0..10", ["rounds=5", "time_limit_seconds=800"], [], "ok.rate<0.05"),
    ("scenarios/missed-slots.toml", "0..6", ["rounds=4"], ["network.latency.max_ms=100,300"], "missed.rate<0.99"),
    ("scenarios/findings/a-rollback-keeps-what-is-pending.toml", "0..8", [], [], None),
    # Many of its runs are censored, and pairs tell which is sooner.
    ("tests/figures/healing.toml", "0..24", [], ["fault[0].share.share=0.4,0.3"], "missed.rate<0.05"),
]
# One that leaves something in every table, to plant changes in.
RICH = "rich.toml"


def dposlab(*arguments):
    """Runs the binary in the project's folder; what it was asked for must be well-formed."""
    done = subprocess.run([BINARY, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"dposlab {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done


def replayed(folder):
    with open(Path(folder) / "events.jsonl") as lines:
        return Figures(Replay(lines), groups_of(folder))


def groups_of(folder):
    """The delegates of each group of agents, by username, as the scenario that the run has written down lists them."""
    groups = []
    for file in Path(folder, "scenario").glob("*.toml"):
        for group in tomllib.loads(file.read_text()).get("agents", []):
            nodes = group.get("delegates", [])
            number = lambda name: name + 1 if isinstance(name, int) else int(name.removeprefix("genesis_"))
            if isinstance(nodes, dict):
                nodes = range(number(nodes["from"]) - 1, number(nodes["to"]))
            groups.append({f"genesis_{number(node)}" for node in nodes})
    return groups


def play(scenario, seed, folder, *more):
    """One run into a folder, and its figures by the trace."""
    dposlab("run", scenario, "--seed", seed, "--stage", "inline", "--out", folder, *more)
    return replayed(folder)


def last_height(scenario, more=()):
    """The height that ends the last round: rounds by the scenario file, or as set, each of as many blocks as its milestone says."""
    with open(ROOT / scenario, "rb") as file:
        content = tomllib.load(file)
    for setting in more:
        if setting.startswith("rounds="):
            content["rounds"] = int(setting.split("=")[1])
    network, height = content["network"], 0
    changes = [change for change in network.get("milestones", []) if "delegates" in change]
    for _ in range(content["rounds"]):
        # The round that begins with the next block has the members that the milestone in force there says.
        past = [change["delegates"] for change in changes if change["height"] <= height + 1]
        height += past[-1] if past else network["delegates"]
    return height


def one(job):
    """Plays a scenario, compares, and leaves nothing."""
    scenario, seed, more, where = job
    folder = tempfile.mkdtemp(prefix="figures-")
    try:
        figures = play(scenario, seed, folder, *more)
        return compare(where, load(folder), figures, last_height(scenario, more))
    finally:
        shutil.rmtree(folder)


def row_of_sweep(job):
    """Plays the run of a sweep's row alone; answers its totals by the trace."""
    scenario, seed, more = job
    folder = tempfile.mkdtemp(prefix="figures-")
    try:
        return play(scenario, seed, folder, *more).totals()
    finally:
        shutil.rmtree(folder)


def swept(pool, folder, scenario, seeds, settings, vary, until):
    """A sweep: what it has written, what was varied, and by the trace the totals of each of its runs, played alone."""
    out = Path(folder) / Path(scenario).stem
    always = [word for setting in settings for word in ("--set", setting)]
    arguments = [word for path in vary for word in ("--vary", path)]
    compared = ["--compare"] if vary else []
    compared += ["--until-ci", until] if until else []
    dposlab("sweep", scenario, "--seeds", seeds, "--out", out, *always, *arguments, *compared)
    found, varied = sweep.load(out), [path.split("=")[0] for path in vary]
    sets = [[word for path in varied for word in ("--set", f"{path}={row[path]}")] for row in found["runs"]]
    jobs = [(scenario, row["seed"], [*always, *more]) for row, more in zip(found["runs"], sets)]
    return f"sweep of {scenario}", found, varied, list(pool.map(row_of_sweep, jobs))


def jobs_in(folder):
    """The runs to play: all shipped scenarios, two of our own, and the drawn ones."""
    folders = ["scenarios", "scenarios/findings", "tests/figures"]
    shipped = sorted(file for name in folders for file in ROOT.glob(f"{name}/*.toml") if file.stem not in OTHER_TURNS)
    names = [str(file.relative_to(ROOT)) for file in shipped]
    jobs = [(name, SEED, [], f"{name} --seed {SEED}") for name in names]
    for rules, seed, count in DRAWN:
        out, frame = Path(folder) / rules, ["--rules", rules, "--delegates", "7", "--rounds", "3"]
        dposlab("check", "--draw", "--runs", count, "--seed", seed, *frame, "--out", out)
        drawn = sorted(out.glob("*.toml"))
        assert len(drawn) == count, f"{len(drawn)} of {count} scenarios drawn"
        setting = ["--set", f"rounds={DRAWN_ROUNDS}"]
        jobs += [(str(file), 1, setting, f"{file.name} of check --draw {' '.join(frame)}") for file in drawn]
    return jobs


def tell(comparison):
    """Per figure, how many values were compared, and the first difference."""
    for name in sorted(comparison.compared | comparison.differences):
        print(f"  {name}: {comparison.compared[name]} compared, {comparison.differences[name]} differ")
        if name in comparison.first:
            print(f"    {comparison.first[name]}")
    print(f"  not recomputed: {', '.join(sorted(comparison.not_recomputed))}")


def told(what, began):
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def some(scenarios):
    """Only these scenarios."""
    total = Comparison()
    for scenario in scenarios:
        total.merge(one((scenario, SEED, [], f"{scenario} --seed {SEED}")))
    tell(total)
    return 1 if any(total.differences.values()) else 0


def main():
    began = time.monotonic()
    total, folder = Comparison(), tempfile.mkdtemp(prefix="figures-")
    try:
        if sys.argv[1:]:
            return some(sys.argv[1:])
        with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
            jobs = jobs_in(folder)
            for comparison in pool.map(one, jobs):
                total.merge(comparison)
            told(f"{len(jobs)} runs", began)
            sweeps = [swept(pool, folder, *swept_scenario) for swept_scenario in SWEEPS]
            for done in sweeps:
                total.merge(sweep.compare(*done))
            told(f"{len(SWEEPS)} sweeps", began)
        total.merge(false_rates())
        told("studies without an effect", began)
        validated = json.loads(dposlab("validate", "--json").stdout)["figures"]
        total.merge(validation.compare(validated))
        told(f"{len(validated)} figures of others", began)
        indices, means = designs.study(dposlab, Path(folder))
        indices = json.loads(indices)
        total.merge(designs.compare(indices, means))
        total.merge(designs.points(dposlab))
        told("a study of many values", began)
        total.merge(provenance.check(dposlab, Path(folder) / "provenance"))
        told("what studies say of themselves", began)
        tell(total)
        out = Path(folder) / "rich-run"
        rich = Path(__file__).parent / RICH
        figures = play(rich, SEED, out)
        missed, tried = planted.unseen_in_run(load(out), figures, last_height(rich))
        of_sweeps = [planted.unseen_in_sweep(*sweeps[0]), *(planted.unseen_in_pairs(*sweeps[place]) for place in (1, 3))]
        for others in (*of_sweeps, planted.unseen_in_validation(validated), planted.unseen_in_indices(indices, means)):
            missed, tried = missed + others[0], tried + others[1]
        for path in missed:
            print(f"  a change at {'.'.join(map(str, path))} goes unseen")
        print(f"  {tried} changes planted, {tried - len(missed)} seen")
    finally:
        shutil.rmtree(folder)
    failed = sum(count > 0 for count in total.differences.values()) + len(missed)
    print(f"{len(total.compared) + tried - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
