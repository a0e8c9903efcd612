"""Holds the figures of a run's files against those recomputed, each with the precision docs/figures.md gives it."""

import csv
import json
from collections import Counter
from pathlib import Path

# Rows of a table are found by these columns.
KEYS = {
    "rounds": ["round"],
    "elections": ["round"],
    "time": ["first_slot"],
    "delegates": ["round", "public_key"],
    "blocks": ["height"],
    "orphans": ["id"],
}
# Names and what is said of the run in words, which no trace knows.
TOLD = {
    "summary.description", "summary.rules", "summary.notes", "summary.digest", "summary.delivered", "summary.reproduce",
    "summary.assertions",
}
# What `compare_end` looks at.
OF_THE_END = {"summary.ended", "summary.censored", "summary.interrupted", "summary.halt"}


def same_count(found, expected):
    return found == expected


def same_number(found, expected):
    """To nine digits: sums of floats in another order."""
    return abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def same_delay(found, expected):
    """In milliseconds, from a histogram of microseconds with three significant digits: the upper end of the bucket."""
    day = 86_400_000.0
    expected = min(expected, day)
    return expected - 1e-6 <= found <= expected * 1.001 + 0.0011


def precision(name):
    """How a figure of this name is compared."""
    last = name.rsplit(".", 1)[-1]
    if last in ("p50", "p90", "p99", "max") or last.rsplit("_", 2)[-2:-1] in (["p50"], ["p90"], ["p99"]):
        return same_delay
    if last.endswith("_max_ms"):
        return same_delay
    exact = ("_mean", "_min", "agreement_end", "seconds", "_per_second", "seconds_max", "gini", "gini_end")
    return same_number if last.endswith(exact) else same_count


class Comparison:
    """Counts what was compared, by figure, and keeps the first difference of each."""

    def __init__(self):
        self.compared = Counter()
        self.differences = Counter()
        self.first = {}
        self.not_recomputed = set()

    def merge(self, other):
        self.compared.update(other.compared)
        self.differences.update(other.differences)
        for name, first in other.first.items():
            self.first.setdefault(name, first)
        self.not_recomputed |= other.not_recomputed

    def value(self, name, where, found, expected):
        self.compared[name] += 1
        if found is None or expected is None:
            same = found is None and expected is None
        elif isinstance(expected, (str, list, dict)) or isinstance(found, (str, list, dict)):
            same = found == expected
        else:
            same = precision(name)(found, expected)
        if not same:
            self.differ(name, where, found, expected)

    def differ(self, name, where, found, expected):
        self.differences[name] += 1
        self.first.setdefault(name, f"{where}, {name}: {found!r} in the file, {expected!r} by the trace")

    def members(self, prefix, where, found, expected):
        """An object: its members, those that are objects themselves by their own."""
        for name, value in found.items():
            full = f"{prefix}.{name}"
            if full in TOLD:
                self.not_recomputed.add(full)
            elif full in OF_THE_END:
                continue
            elif name not in expected:
                self.differ(full, where, value, "nothing")
            elif isinstance(value, dict) and name not in ("rollbacks_by_cause", "rollbacks_by_depth"):
                # A histogram of nothing says 0 in JSON.
                empty = value.get("count") == 0
                wanted = {key: 0 if empty and of is None else of for key, of in expected[name].items()}
                self.members(full, where, value, wanted)
            else:
                self.value(full, where, value, expected[name])

    def rows(self, table, where, found, expected):
        keys = KEYS[table]
        place = lambda row: tuple(row[key] for key in keys)
        by_place = {place(row): row for row in expected}
        self.value(f"{table}: number of rows", where, len(found), len(expected))
        self.value(f"{table}: number of different rows", where, len({place(row) for row in found}), len(by_place))
        for row in found:
            at = f"{where}, row {dict(zip(keys, place(row)))}"
            wanted = by_place.get(place(row))
            if wanted is None:
                self.differ(f"{table}: rows", at, "a row", "none")
                continue
            for name, value in row.items():
                if name == "username" and wanted[name] is None:
                    self.not_recomputed.add(f"{table}.username of delegates registered in the run")
                elif name in wanted:
                    self.value(f"{table}.{name}", at, value, wanted[name])
                else:
                    # A column of the chain in a row of a round that the winning chain does not have.
                    self.value(f"{table}.{name}", at, value, None)


TEXT = {"username", "public_key", "id", "forger", "status", "broken", "undecided", "digest", "ended", "reproduce"}


def read_table(file):
    """A table's rows, numbers as numbers and empty cells as None."""
    def cell(name, text):
        if text == "":
            return None
        if name in TEXT:
            return text
        try:
            return int(text)
        except ValueError:
            return float(text)

    with open(file, newline="") as lines:
        return [{name: cell(name, text) for name, text in row.items()} for row in csv.DictReader(lines)]


def load(folder):
    """What a run has written: the summary, and the tables by name."""
    folder = Path(folder)
    tables = {table: read_table(folder / f"{table}.csv") for table in KEYS}
    return {"summary": json.loads((folder / "summary.json").read_text()), **tables}


def compare(where, found, figures, last_height):
    """All that a run has written against its figures by the trace."""
    comparison = Comparison()
    expected = figures.summary()
    for name in ("delegates", "heals"):
        compare_list(comparison, name, where, found["summary"][name], expected.pop(name))
    others = {name: value for name, value in found["summary"].items() if name not in ("delegates", "heals")}
    comparison.members("summary", where, others, expected)
    for table in KEYS:
        comparison.rows(table, where, found[table], getattr(figures, table)())
    compare_end(comparison, where, found["summary"], figures, last_height)
    comparison.value("trace.missed", where, figures.replay.wrong_owners, 0)
    return comparison


def compare_end(comparison, where, summary, figures, last_height):
    """How the run ended: what the trace can say of it."""
    said, grown = summary["ended"], figures.grew_last()
    reached = figures.tree.height(figures.tip) >= last_height
    comparison.value("summary.ended", where, said == "complete", reached)
    comparison.value("summary.censored", where, summary["censored"], said in ("stalled", "time", "max-events", "max-time", "max-memory", "restless", "interrupted"))
    comparison.value("summary.interrupted", where, summary["interrupted"], said == "interrupted")
    if reached:
        first = next(sample.slot for sample in figures.replay.samples if sample.height >= last_height)
        comparison.value("summary.ended: last slot", where, figures.end_slot, first + 1)
    if said == "halted":
        halt = summary["halt"]
        between = [block.id for block in figures.forged if halt["first_us"] < block.at <= halt["second_us"]]
        comparison.value("summary.halt: blocks between", where, between, [])
        comparison.value("summary.halt.second_us", where, halt["second_us"], figures.replay.ended_at)
    else:
        comparison.value("summary.halt", where, summary["halt"], None)
    if said == "stalled":
        # The rule's own length is the scenario's; a fault still to come holds it off.
        comparison.value("summary.ended: grown before the end", where, grown < figures.end_slot, True)


def compare_list(comparison, name, where, found, expected):
    """A list of objects of the summary."""
    comparison.value(f"summary.{name}: number", where, len(found), len(expected))
    if name == "delegates":
        by_key = {row["publicKey"]: row for row in expected}
        pairs = [(row, by_key.get(row["publicKey"], {})) for row in found]
    else:
        pairs = list(zip(found, expected))
    for row, wanted in pairs:
        if name == "delegates" and wanted.get("username") is None:
            # Registered by a transaction of the run: its name stands in no line.
            wanted = wanted | {"username": row["username"]}
        at = f"{where}, {name} {row.get('publicKey', row.get('fault'))}"
        for member, value in row.items():
            comparison.value(f"summary.{name}.{member}", at, value, wanted.get(member))
