"""Reads the sweeps of study.sh, plays their runs again for the figures of each delegate, and writes tables and figure."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import matplotlib
import numpy as np
from scipy import stats

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NAMES = ["reference", "solar", "tron", "lisk", "eos", "eos-short-turns"]
FIRST, SECOND = "genesis_1", "genesis_2"
VARIED = "fault[0].delegates"
OUT = Path("out")


def played(name, row):
    """The figures of one run of a sweep: those of its delegates, which a sweep does not keep."""
    sweep = json.loads((OUT / "sweeps" / name / "summary.json").read_text())
    sets = [part for value in [*sweep["set"], f"{VARIED}={row[VARIED]}"] for part in ("--set", value)]
    folder = OUT / "run"
    without = "events,rounds,delegates,elections,time,blocks,report"
    command = ["dposlab", "run", "withholding.toml", "--seed", row["seed"], *sets, "--json"]
    command += ["--out", str(folder), "--without", without]
    answer = json.loads(subprocess.run(command, check=False, capture_output=True, text=True).stdout)
    assert answer["digest"] == row["digest"], "the same run has the same digest"
    forged = {one["username"]: one["forged"] for one in answer["delegates"]}
    missed = {one["username"]: one["missed"] for one in answer["delegates"]}
    assert sum(missed.values()) == answer["totals"]["missed_slots"] == int(row["missed_slots"])
    with open(folder / "orphans.csv", newline="") as file:
        lost_at = [int(orphan["node"]) for orphan in csv.DictReader(file)]  # node 0 is genesis_1, node 1 genesis_2
    assert len(lost_at) == int(row["orphaned"])
    shutil.rmtree(folder)
    slots = answer["totals"]["slots"]
    return {
        "second": forged[SECOND],
        "pair": forged[FIRST] + forged[SECOND],
        "second_rate": 100 * forged[SECOND] / slots,
        "honest_rate": 100 * (answer["totals"]["blocks"] - forged[FIRST] - forged[SECOND]) / slots,
        "pair_missed": missed[FIRST] + missed[SECOND],
        "honest_missed": sum(missed.values()) - missed[FIRST] - missed[SECOND],
        "suspended": answer["totals"]["forging_suspended"],
        "pair_lost": sum(node < 2 for node in lost_at),
        "honest_lost": sum(node >= 2 for node in lost_at),
    }


def interval(values):
    """Student's interval of the mean at 95 %; none where all values are equal, as a sweep has it."""
    mean, n = np.mean(values), len(values)
    if len(set(values)) == 1:
        return mean, None, None
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def differences(name):
    """For each measure, the pair's run minus the run of the first alone, seed by seed."""
    with open(OUT / "sweeps" / name / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["status"] == "ok" for row in rows), "a censored run would need a rule of its own"
    arms = {}
    for row in rows:
        arms.setdefault(row["seed"], {})["pair" if SECOND in row[VARIED] else "alone"] = (row, played(name, row))
    keys = next(iter(arms.values()))["alone"][1]
    measures = {key: [arm["pair"][1][key] - arm["alone"][1][key] for arm in arms.values()] for key in keys}
    alone = {key: float(np.mean([arm["alone"][1][key] for arm in arms.values()])) for key in keys}
    swept = {
        key: [int(arm["pair"][0][key]) - int(arm["alone"][0][key]) for arm in arms.values()]
        for key in ("missed_slots", "orphaned")
    }
    return measures, swept, alone


def text(value):
    return "" if value is None else f"{value + 0.0:.4f}"


gains, checks = [], []
for name in NAMES:
    measures, swept, alone = differences(name)
    for measure, values in measures.items():
        mean, low, high = interval(values)
        signs = [sum(value > 0 for value in values), sum(value < 0 for value in values)]
        ends = [text(mean), text(low), text(high)]
        gains.append([name, measure, len(values), *ends, *signs, text(alone[measure])])
    [compared] = json.loads((OUT / "sweeps" / name / "summary.json").read_text())["compared"]
    for column, values in swept.items():
        program = compared["figures"][column]
        theirs = program["confidence"] or {"low": None, "high": None}
        ours = interval(values)
        same = all(
            (a is None and b is None) or np.isclose(a, b, rtol=1e-12, atol=1e-12)
            for a, b in zip(ours, (program["difference"], theirs["low"], theirs["high"]))
        )
        answers = [*ours, program["difference"], theirs["low"], theirs["high"]]
        checks.append([name, column, *map(text, answers), "equal" if same else "DIFFERENT"])

with open("gains.csv", "w", newline="") as file:
    table = csv.writer(file, lineterminator="\n")
    head = "protocol measure seeds difference low high seeds_more seeds_fewer alone_mean"
    table.writerow(head.split())
    table.writerows(gains)
with open("intervals.csv", "w", newline="") as file:
    table = csv.writer(file, lineterminator="\n")
    head = "protocol figure numpy_mean numpy_low numpy_high dposlab_mean dposlab_low dposlab_high verdict"
    table.writerow(head.split())
    table.writerows(checks)
assert all(check[-1] == "equal" for check in checks), "numpy and dposlab disagree"

plt.rcParams |= {"svg.hashsalt": "withholding", "svg.fonttype": "none"}
figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.1), layout="constrained", sharey=True)
titles = {
    "second": "blocks of the second delegate\non a chain of the same height",
    "honest_rate": "blocks of the nine honest delegates\nin 100 slots",
}
for axes, (measure, title) in zip(panels, titles.items()):
    for place, name in enumerate(NAMES):
        row = next(row for row in gains if row[0] == name and row[1] == measure)
        mean = float(row[3])
        if row[4]:
            axes.plot([float(row[4]), float(row[5])], [place, place], color="black", linewidth=1.2)
        axes.plot(mean, place, "o", color="black" if row[4] else "white", markeredgecolor="black", markersize=5)
    axes.axvline(0, color="gray", linestyle="--", linewidth=1)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("pair minus first alone, mean and 95 %", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_yticks(range(len(NAMES)), NAMES)
panels[0].invert_yaxis()
figure.savefig("figure.svg", metadata={"Date": None})
print("wrote gains.csv, intervals.csv and figure.svg")
