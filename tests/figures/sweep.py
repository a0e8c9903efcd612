"""Holds what a sweep leaves against single runs and against scipy: rows, distributions, intervals."""

import json
import math
import statistics
import warnings
from collections import Counter
from pathlib import Path

import numpy
from scipy import optimize, special, stats

import others
from compare import Comparison, read_table

CONFIDENCE = 0.95
# Where a column of the sweep's rows stands in a single run's totals, if not under its own name.
OF_TOTALS = {
    "propagation_p50_ms": ("propagation_ms", "p50"),
    "propagation_p99_ms": ("propagation_ms", "p99"),
    "propagation_all_p50_ms": ("propagation_all_ms", "p50"),
    "gossip_p50_ms": ("gossip_ms", "p50"),
    "gossip_p99_ms": ("gossip_ms", "p99"),
    "transaction_latency_p50_ms": ("transaction_latency_ms", "p50"),
    "transaction_latency_p99_ms": ("transaction_latency_ms", "p99"),
}
ABOUT_THE_RUN = {"run", "seed", "status", "ended", "broken", "undecided", "digest"}
FAILED = ("broken", "halted", "died")
# They stand in `converged_seconds`.
TIMES_TO_AN_EVENT = ("converged_seconds_max", "observed_seconds_max")


def of_totals(name, totals):
    """A column's value by a single run's totals."""
    if name.startswith("rollbacks_from_"):
        least = int(name.removeprefix("rollbacks_from_"))
        return sum(count for depth, count in totals["rollbacks_by_depth"].items() if int(depth) >= least)
    if name not in OF_TOTALS:
        return totals[name]
    group, member = OF_TOTALS[name]
    return totals[group][member] if totals[group]["count"] else None


def compare_row(comparison, where, row, columns, totals):
    """A row of `runs.csv` against the totals recomputed from the trace of the same run played alone."""
    for name in columns:
        at = f"{where}: runs.csv, run {row['run']}"
        comparison.value(f"runs.{name}", at, row[name], of_totals(name, totals))


def student(values):
    """The mean's interval: Student's. Where all values are equal there is none."""
    if len(values) < 2 or values[0] == values[-1]:
        return None
    mean, error = statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))
    spread = stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1) * error
    return {"low": mean - spread, "high": mean + spread}


def share(so, of):
    """A share's interval: Wilson's. Where none or all are so it is Clopper's and Pearson's."""
    at_an_end = so in (0, of)
    found = stats.binomtest(so, of).proportion_ci(CONFIDENCE, method="exact" if at_an_end else "wilson")
    return {"of": of, "so": so, "share": so / of, "confidence": {"low": found.low, "high": found.high}}


def near(found, expected):
    return abs(found - expected) <= 1e-7 * max(1.0, abs(expected))


def compare_interval(comparison, name, where, found, expected):
    comparison.compared[name] += 1
    if found is None or expected is None:
        same = found is expected
    else:
        same = all(near(found[end], expected[end]) for end in ("low", "high"))
    if not same:
        comparison.differ(name, where, found, expected)


def compare_share(comparison, name, where, found, so, of):
    expected = share(so, of) if of else None
    if found is None or expected is None:
        comparison.value(name, where, found, expected)
        return
    for member in ("of", "so"):
        comparison.value(f"{name}.{member}", where, found[member], expected[member])
    comparison.value(f"{name}.share_mean", where, found["share"], expected["share"])
    compare_interval(comparison, f"{name}.confidence", where, found["confidence"], expected["confidence"])


def quantile(ordered, percent):
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def compare_distribution(comparison, name, where, found, values):
    """A figure over the runs that have it."""
    ordered = sorted(values)
    mean = statistics.mean(ordered)
    ends = {"count": len(ordered), "min": ordered[0], "max": ordered[-1]}
    for member, expected in ends.items():
        comparison.compared[f"{name}.{member}"] += 1
        if found[member] != expected:
            comparison.differ(f"{name}.{member}", where, found[member], expected)
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    for member, expected in (("mean", mean), ("deviation", deviation)):
        comparison.compared[f"{name}.{member}"] += 1
        if not near(found[member], expected):
            comparison.differ(f"{name}.{member}", where, found[member], expected)
    compare_interval(comparison, f"{name}.confidence", where, found["confidence"], student(ordered))
    for percent in (50, 95):
        interval = stats.quantile_test(ordered, q=0, p=percent / 100).confidence_interval(CONFIDENCE)
        for end in ("low", "high"):
            member, expected = f"p{percent}_{end}", getattr(interval, end)
            comparison.compared[f"{name}.{member}"] += 1
            there = found[member]
            if math.isnan(expected) or there is None:
                same = math.isnan(expected) and there is None
            else:
                # Three significant digits, rounded away from the middle, and never beyond what there was.
                apart = there - expected if end == "high" else expected - there
                same = -1e-6 <= apart <= 1e-3 * abs(expected) + 2e-6 and ordered[0] <= there <= ordered[-1]
            if not same:
                comparison.differ(f"{name}.{member}", where, there, expected)
    # The greatest share of others that would still go unseen in so many.
    unseen = share(0, len(ordered))["confidence"]["high"] if ordered[0] == ordered[-1] else None
    comparison.value(f"{name}.differ_at_most_mean", where, found["differ_at_most"], unseen)
    for percent in (5, 25, 50, 75, 95):
        member, expected = f"p{percent}", quantile(ordered, percent)
        comparison.compared[f"{name}.{member}"] += 1
        # Three significant digits, and never beyond what there was.
        if not expected - 1e-6 <= found[member] <= min(expected * 1.001 + 2e-6, max(ordered[-1], expected)) + 1e-9:
            comparison.differ(f"{name}.{member}", where, found[member], expected)


def times_to_converge(rows):
    """The time that each run was watched, and whether it was censored then."""
    watched = [row for row in rows if row["observed_seconds_max"] is not None]
    times = [row["observed_seconds_max"] for row in watched]
    return times, [row["converged_seconds_max"] is None for row in watched]


# An interval is not defined where all or none are left, and is the share itself then.
defined = lambda end, share: share if math.isnan(end) else end


def survival(rows):
    """Kaplan's and Meier's estimate of the time to converge, by scipy: (time, share, low, high) of each event."""
    times, censored = times_to_converge(rows)
    if not times or all(censored):
        return times, censored, []
    survivors = stats.ecdf(stats.CensoredData.right_censored(times, censored)).sf
    with warnings.catch_warnings():
        # Where all or none are left the interval is not defined.
        warnings.simplefilter("ignore")
        interval = survivors.confidence_interval(CONFIDENCE, method="log-log")
    steps = zip(survivors.quantiles, survivors.probabilities, interval.low.probabilities, interval.high.probabilities)
    events = {time for time, is_censored in zip(times, censored) if not is_censored}
    steps = [(time, share, defined(low, share), defined(high, share)) for time, share, low, high in steps if time in events]
    return times, censored, steps


def compare_survival(comparison, where, found, rows):
    times, censored, steps = survival(rows)
    if found is None or not times:
        comparison.value("sweep.converged_seconds", where, found, None if not times else "times")
        return
    first = lambda most, of: next((step[0] for step in steps if step[of] <= most + 1e-9), None)
    expected = {
        "p25": first(0.75, 1), "p50": first(0.5, 1), "p75": first(0.25, 1), "p95": first(0.05, 1),
        "p50_low": first(0.5, 2), "p50_high": first(0.5, 3), "watched_max": max(times),
    }
    for member, value in {"runs": len(times), "seen": censored.count(False), "censored": censored.count(True)}.items():
        comparison.value(f"sweep.converged_seconds.{member}", where, found[member], value)
    for member, value in expected.items():
        name, there = f"sweep.converged_seconds.{member}", found[member]
        comparison.compared[name] += 1
        # Whole milliseconds, of which four digits count.
        same = there is value if there is None or value is None else abs(there - value) <= 5e-4 * value + 6e-4
        if not same:
            comparison.differ(name, where, there, value)


def compare_curve(comparison, where, found, rows):
    """Each step of the estimate, with its interval."""
    _, _, steps = survival(rows)
    comparison.value("sweep.converged_curve.steps", where, len(found), len(steps))
    for step, (time, left, low, high) in zip(found, steps):
        comparison.compared["sweep.converged_curve"] += 1
        same = abs(step["seconds"] - time) <= 5e-4 * time + 6e-4 and near(step["share"], left)
        if not (same and near(step["low"], low) and near(step["high"], high)):
            comparison.differ("sweep.converged_curve", where, step, (time, left, low, high))
    if not steps:
        return
    # The same by another library, which has code of its own for Greenwood's formula.
    for step, (time, left, low, high) in zip(found, others.survival(*times_to_converge(rows))):
        comparison.compared["sweep.converged_curve.lifelines"] += 1
        ends = defined(low, left), defined(high, left)
        if not (near(step["share"], left) and near(step["low"], ends[0]) and near(step["high"], ends[1])):
            comparison.differ("sweep.converged_curve.lifelines", where, step, (time, left, *ends))


def compare_status(comparison, where, summary, rows, failures):
    """How runs ended, of the whole sweep."""
    failed = [row for row in rows if row["status"] in FAILED]
    by_status = dict(Counter(row["status"] for row in rows))
    expected = {"runs": len(rows), "failed": len(failed), "censored": by_status.get("censored", 0), "died": by_status.get("died", 0), "by_status": by_status}
    for member, value in expected.items():
        comparison.value(f"sweep.{member}", where, summary[member], value)
    about = lambda row: tuple(row.get(name) for name in ("run", "seed", "status", "ended"))
    named = [about(row) for row in failed]
    for name, there, wanted in (("sweep.failures", summary["failures"], named[:100]), ("failures", failures, named)):
        comparison.value(name, where, [about(row) for row in there], wanted)
    ends = {"ok": ["complete"], "halted": ["halted"], "censored": ["stalled", "time", "max-events", "max-time", "max-memory", "restless", "interrupted"], "died": [None]}
    for row in rows:
        is_broken = row["status"] == "broken"
        fits = (is_broken or row["ended"] in ends.get(row["status"], [])) and (row["broken"] is not None) == is_broken
        comparison.value("runs.status", f"{where}, run {row['run']}", fits, True)


def compare_assertions(comparison, where, cell, rows):
    judged = [row for row in rows if row["status"] != "died"]
    among = lambda row, column, assertion: assertion in str(row[column] or "").split("; ")
    for assertion in cell["assertions"]:
        broken = sum(among(row, "broken", assertion["assertion"]) for row in judged)
        undecided = sum(among(row, "undecided", assertion["assertion"]) for row in judged)
        decided = len(judged) - undecided
        comparison.value("sweep.assertions.undecided", where, assertion["undecided"], undecided)
        compare_share(comparison, "sweep.assertions", where, assertion["holds"], decided - broken, decided)
        compare_bounds(comparison, where, assertion["bounds"], decided - broken, undecided, len(judged))


def compare_bounds(comparison, where, found, held, undecided, judged):
    """The shares if it had held in none of the runs that left it open, and in all of them."""
    if found is None or not judged:
        comparison.value("sweep.assertions.bounds", where, found, None if not judged else "bounds")
        return
    least, most = share(held, judged), share(held + undecided, judged)
    comparison.value("sweep.assertions.bounds.low_mean", where, found["low"], least["share"])
    comparison.value("sweep.assertions.bounds.high_mean", where, found["high"], most["share"])
    expected = {"low": least["confidence"]["low"], "high": most["confidence"]["high"]}
    compare_interval(comparison, "sweep.assertions.bounds.confidence", where, found["confidence"], expected)


def load(folder):
    """What a sweep has written."""
    folder = Path(folder)
    summary = json.loads((folder / "summary.json").read_text())
    return {"summary": summary, "runs": read_table(folder / "runs.csv"), "failures": read_table(folder / "failures.csv")}


def compare(where, found, varied, totals):
    """The rows against the totals of single runs, and `summary.json` and `failures.csv` against the rows."""
    comparison, summary, rows = Comparison(), found["summary"], found["runs"]
    columns = [name for name in rows[0] if name not in ABOUT_THE_RUN and name not in varied]
    for row, of_run in zip(rows, totals):
        compare_row(comparison, where, row, columns, of_run)
    where = f"{where}: summary.json"
    compare_status(comparison, where, summary, rows, found["failures"])
    for cell in summary["cells"]:
        some = [row for row in rows if all(str(row[path]) == str(cell_value(cell, path)) for path in varied)]
        at = f"{where}, cell {cell['varied']}"
        told = [row for row in some if row["status"] not in ("censored", "died")]
        comparison.value("sweep.cells.runs", at, cell["runs"], len(some))
        comparison.value("sweep.cells.censored", at, cell["censored"], sum(row["status"] == "censored" for row in some))
        cut_short = sum(row["status"] != "died" and row["ended"] != "complete" for row in some)
        comparison.value("sweep.cells.cut_short", at, cell["cut_short"], cut_short)
        comparison.value("sweep.cells.died", at, cell["died"], sum(row["status"] == "died" for row in some))
        compare_share(comparison, "sweep.ok", at, cell["ok"], sum(row["status"] == "ok" for row in told), len(told))
        compare_assertions(comparison, at, cell, some)
        compare_survival(comparison, at, cell["converged_seconds"], some)
        compare_curve(comparison, at, cell["converged_curve"], some)
        for name in columns:
            values = [row[name] for row in some if row[name] is not None]
            if name in TIMES_TO_AN_EVENT or not values:
                comparison.value(f"sweep.{name}", at, cell["figures"].get(name), None)
            elif name not in cell["figures"]:
                comparison.differ(f"sweep.{name}", at, "nothing", f"{len(values)} values")
            else:
                compare_distribution(comparison, f"sweep.{name}", at, cell["figures"][name], values)
    compare_pairs(comparison, where, summary, rows, varied, columns)
    compare_until(comparison, where, summary, rows, varied)
    return comparison


# The value from 0 to 1 that a row has of each figure by which a sweep may end.
UNTIL = {
    "missed.rate": lambda row: row["missed_slots"] / row["slots"] if row["slots"] else None,
    "forked.rate": lambda row: row["slots_forked"] / row["slots"] if row["slots"] else None,
    "agreement.mean": lambda row: row["agreement_mean"],
    "ok.rate": lambda row: None if row["status"] in ("censored", "died") else float(row["status"] == "ok"),
}


def sequence(values):
    """The confidence sequence of a mean from 0 to 1 after these values: beta-binomial mixture, Jeffreys's prior, by scipy."""
    if not values:
        return {"low": 0.0, "high": 1.0}
    total, count = sum(values), len(values)
    mixed = special.betaln(0.5 + total, 0.5 + count - total) - special.betaln(0.5, 0.5)
    above = lambda mean: mixed - total * math.log(mean) - (count - total) * math.log1p(-mean) - math.log(1 / (1 - CONFIDENCE))
    mean, near_one = total / count, 1.0 - 2**-53
    low = optimize.brentq(above, 1e-300, min(mean, near_one), xtol=1e-16) if total > 0 else 0.0
    high = optimize.brentq(above, max(mean, 1e-300), near_one, xtol=1e-16) if total < count else 1.0
    return {"low": low, "high": high}


def compare_until(comparison, where, summary, rows, varied):
    """The mean by which the sweep ended, and that it ended with the first seed that was enough."""
    until = summary.get("until_ci")
    if until is None:
        return
    widths = {}
    for cell in until["cells"]:
        at = f"{where}, until_ci {cell['varied']}"
        some = [row for row in rows if all(str(row[path]) == str(cell_value(cell, path)) for path in varied)]
        of_row = [UNTIL[until["figure"]](row) for row in sorted(some, key=lambda row: row["seed"])]
        values = [value for value in of_row if value is not None]
        comparison.value("sweep.until_ci.runs", at, cell["runs"], len(values))
        comparison.value("sweep.until_ci.cell_mean", at, cell["mean"], statistics.fmean(values) if values else None)
        compare_interval(comparison, "sweep.until_ci.confidence", at, cell["confidence"], sequence(values))
        for seeds in (len(of_row) - 1, len(of_row)):
            ends = sequence([value for value in of_row[:seeds] if value is not None])
            widths.setdefault(seeds, []).append(ends["high"] - ends["low"])
    before, now = (max(of_cells) < until["width"] for _, of_cells in sorted(widths.items()))
    comparison.value("sweep.until_ci.reached", where, until["reached"], now)
    comparison.value("sweep.until_ci.first", where, before, False)


def compare_pairs(comparison, where, summary, rows, varied, columns):
    """Each combination of values beside the first one, seed by seed."""
    cells = summary["cells"]
    if "compared" not in summary:
        return
    comparison.value("sweep.compared", where, [one["varied"] for one in summary["compared"]], [cell["varied"] for cell in cells[1:]])
    of_cell = lambda cell: {row["seed"]: row for row in rows if all(str(row[path]) == str(cell_value(cell, path)) for path in varied)}
    first = of_cell(cells[0])
    for one in summary["compared"]:
        at, second = f"{where}, compared {one['varied']}", of_cell(one)
        comparison.value("sweep.compared.with", at, one["with"], cells[0]["varied"])
        judged = [seed for seed in first if not {first[seed]["status"], second[seed]["status"]} & {"censored", "died"}]
        comparison.value("sweep.compared.left_out", at, one["left_out"], len(first) - len(judged))
        compare_sooner(comparison, at, one["converged"], [(first[seed], second[seed]) for seed in first])
        for name in columns:
            pairs = [(first[seed][name], second[seed][name]) for seed in judged]
            pairs = [pair for pair in pairs if None not in pair]
            found = one["figures"].get(name)
            if name in TIMES_TO_AN_EVENT or not pairs:
                comparison.value(f"sweep.compared.{name}", at, found, None)
                continue
            if found is None:
                comparison.differ(f"sweep.compared.{name}", at, "nothing", f"{len(pairs)} pairs")
                continue
            for member, value in of_pairs(pairs).items():
                if member == "confidence":
                    compare_interval(comparison, f"sweep.compared.{name}.confidence", at, found[member], value)
                else:
                    comparison.value(f"sweep.compared.{name}.{member}_mean", at, found[member], value)


def compare_sooner(comparison, where, found, pairs):
    """The stratified log-rank test by its definition: expected and observed events in each stratum, at each time."""
    observed, expected, variance, sooner = 0, 0.0, 0.0, [0, 0]
    is_watched = lambda run: run["status"] != "died" and run["observed_seconds_max"] is not None
    pairs = [pair for pair in pairs if all(map(is_watched, pair))]
    for pair in pairs:
        seen = [run["converged_seconds_max"] is not None for run in pair]
        ends = [run["observed_seconds_max"] for run in pair]
        for time in {end for end, event in zip(ends, seen) if event}:
            at_risk = [end >= time for end in ends]
            events = [event and end == time for end, event in zip(ends, seen)]
            n, d = sum(at_risk), sum(events)
            observed += events[1]
            expected += d * at_risk[1] / n
            variance += d * (at_risk[1] / n) * (1 - at_risk[1] / n) * (n - d) / (n - 1) if n > 1 else 0.0
            if n == 2 and d == 1:
                sooner[events[1]] += 1
    if not variance:
        comparison.value("sweep.compared.converged", where, found, None)
        return
    if found is None:
        comparison.differ("sweep.compared.converged", where, found, sooner)
        return
    statistic = (observed - expected) ** 2 / variance
    exact = stats.binomtest(sooner[0], sum(sooner)).pvalue
    for member, value in {"first_sooner": sooner[0], "second_sooner": sooner[1]}.items():
        comparison.value(f"sweep.compared.converged.{member}", where, found[member], value)
    for member, value in {"chi_squared": statistic, "p": exact}.items():
        comparison.value(f"sweep.compared.converged.{member}_mean", where, found[member], value)
    times = [[(run["observed_seconds_max"], run["converged_seconds_max"] is not None) for run in pair] for pair in pairs]
    comparison.value("sweep.compared.converged.statsmodels_mean", where, found["chi_squared"], others.log_rank(times))


def of_pairs(pairs):
    """By numpy and scipy."""
    a, b = (numpy.array(side, dtype=float) for side in zip(*pairs))
    differences = b - a
    deviation = float(differences.std(ddof=1)) if len(pairs) > 1 else 0.0
    vary = lambda values: values.min() < values.max()
    same = not vary(differences)
    interval = None if same else stats.ttest_rel(b, a).confidence_interval(CONFIDENCE)
    alone = a.var(ddof=1) + b.var(ddof=1) if len(pairs) > 1 else 0.0
    return {
        "pairs": len(pairs),
        "difference": float(differences.mean()),
        "confidence": None if same else {"low": float(interval.low), "high": float(interval.high)},
        "deviation": deviation,
        "correlation": float(stats.pearsonr(a, b).statistic) if vary(a) and vary(b) else None,
        "variance_saved": None if same else float(alone / deviation**2),
    }


def cell_value(cell, path):
    """A varied value as the rows say it: numbers as numbers."""
    text = cell["varied"][path]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text.strip('"')

