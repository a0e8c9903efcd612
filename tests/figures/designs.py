"""Studies of many values: the indices by SALib, and the points by scipy's distributions."""

import csv
import io
import math
import warnings

import numpy
from SALib.analyze import sobol
from compare import Comparison
from scipy import stats

# Each value, and its share below a number.
VALUES = {
    "network.loss=uniform(0,0.2)": stats.uniform(0, 0.2).cdf,
    "network.latency.median_ms=integer(20,400)": lambda value: stats.randint(20, 401).cdf(value),
    "network.duplication=log-uniform(0.001,0.1)": stats.loguniform(0.001, 0.1).cdf,
}
# That one is for no run: a time may not be negative.
NORMAL = {"x=normal(3,2)": stats.norm(3, 2).cdf}
PAIRS = 16


def study(dposlab, folder):
    """A study of pairs: what `indices` says of it, and the mean figures of its points."""
    points, out = folder / "pairs.csv", folder / "pairs"
    dposlab("points", "saltelli", "--count", PAIRS, *VALUES, "--out", points)
    lossy = ["scenarios/lossy.toml", "--set", "rounds=2", "--set", "crypto=modelled"]
    dposlab("sweep", *lossy, "--points", points, "--seeds", "0..2", "--out", out)
    found = dposlab("indices", out, "--of", "missed.rate", "--of", "height", "--json").stdout
    with open(out / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    means = {}
    for figure, of in {"missed.rate": lambda row: float(row["missed_slots"]) / float(row["slots"]), "height": lambda row: float(row["height"])}.items():
        means[figure] = numpy.array([of(row) for row in rows]).reshape(-1, 2).mean(axis=1)
    return found, means


def compare(found, means):
    """Each index as SALib has it, to twelve digits; the middle of each interval not far from it."""
    comparison, paths = Comparison(), [value.split("=")[0] for value in VALUES]
    problem = {"num_vars": len(paths), "names": paths, "bounds": [[0, 1]] * len(paths)}
    for report in found["indices"]:
        where = f"indices of {report['figure']}"
        comparison.value("indices.pairs", where, report["pairs"] + report["left_out"], PAIRS)
        comparison.value("indices.seeds", where, report["seeds"], 2)
        comparison.value("indices.paths", where, [value["path"] for value in report["values"]], paths)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = sobol.analyze(problem, means[report["figure"]], calc_second_order=False, num_resamples=1000, seed=1)
        for place, value in enumerate(report["values"]):
            for name, theirs in (("first", "S1"), ("total", "ST")):
                comparison.compared[f"indices.{name}"] += 1
                if abs(value[name] - expected[theirs][place]) > 1e-12 * max(1.0, abs(expected[theirs][place])):
                    comparison.differ(f"indices.{name}", f"{where}: {value['path']}", value[name], expected[theirs][place])
                # SALib's is of the deviation of such samples. Both are drawn.
                ends, half = value[f"{name}_confidence"], expected[f"{theirs}_conf"][place]
                comparison.compared[f"indices.{name}_confidence"] += 1
                width = (ends["high"] - ends["low"]) / 2
                if not (ends["low"] <= value[name] <= ends["high"] and half / 2 - 1e-9 <= width <= 2 * half + 1e-9):
                    comparison.differ(f"indices.{name}_confidence", f"{where}: {value['path']}", ends, half)
    return comparison


def points(dposlab):
    """Of a Latin hypercube each part of each value has a point, by scipy's distribution of it."""
    comparison, count = Comparison(), 128
    values = {**VALUES, **NORMAL}
    table = dposlab("points", "latin", "--count", count, "--seed", 5, *values).stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    for value, share in values.items():
        drawn = [float(row[value.split("=")[0]]) for row in rows]
        if "integer" in value:
            # So many are equal that a part is a range of shares.
            ends = sorted((share(number - 1), share(number)) for number in drawn)
            fits = all(low <= (part + 1) / count and part / count <= high for part, (low, high) in enumerate(ends))
        else:
            fits = sorted(math.floor(share(number) * count) for number in drawn) == list(range(count))
        comparison.value("points.parts", value, fits, True)
    return comparison
