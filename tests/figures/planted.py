"""Can the comparison fail? Changes one value of each column and member that a run has written, and sees each reported."""

import copy
import random

import designs
import sweep
import validation
from compare import KEYS, TOLD, compare


def other(value):
    """Another value than this one: beyond what a histogram of three digits may round."""
    if value is None:
        return 1
    if isinstance(value, str):
        return value + "0"
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return value + [{"run": -1, "seed": -1, "status": "ok"}]
    if isinstance(value, dict):
        return {**value, "other": 1}
    return value + 1 if isinstance(value, int) else value + max(0.01 * abs(value), 0.01)


def places(value, path=()):
    """All plain values within, by their path."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*path, name))
    else:
        yield path


def put(value, path, changed):
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = changed


def get(value, path):
    for name in path:
        value = value[name]
    return value


def spots(found, draw):
    """A place of each column of each table and of each member of the summary."""
    for table in KEYS:
        for column in found[table][0]:
            yield (table, draw.randrange(len(found[table])), column)
    for name in ("delegates", "heals"):
        for member in found["summary"][name][0]:
            yield ("summary", name, draw.randrange(len(found["summary"][name])), member)
    for path in places(found["summary"]):
        if f"summary.{path[0]}" not in TOLD and path[0] not in ("delegates", "heals"):
            yield ("summary", *path)


def unseen(found, paths, differences):
    """The paths at which a change goes unseen; and how many were tried."""
    assert not differences(found), "what to plant changes in differs already"
    missed, tried = [], 0
    for path in paths:
        changed = copy.deepcopy(found)
        put(changed, path, other(get(found, path)))
        tried += 1
        if not differences(changed):
            missed.append(path)
    return missed, tried


def unseen_in_run(found, figures, last_height):
    """In what a run has written."""
    empty = [table for table in KEYS if not found[table]]
    assert not empty and found["summary"]["heals"], f"the run to plant changes in has nothing in {empty or 'heals'}"
    differences = lambda changed: compare("planted", changed, figures, last_height).differences
    return unseen(found, spots(found, random.Random(24)), differences)


def unseen_in_pairs(where, found, varied, totals):
    """In the comparison of a sweep's combinations."""
    compared = found["summary"]["compared"][0]
    paths = [("summary", "compared", 0, "left_out")]
    paths += [("summary", "compared", 0, "figures", *path) for path in places(compared["figures"])]
    paths += [("summary", "compared", 0, "converged", member) for member in compared["converged"] or ()]
    until = found["summary"]["until_ci"]
    paths += [("summary", "until_ci", "cells", 0, *path) for path in places({**until["cells"][0], "varied": {}})]
    paths.append(("summary", "until_ci", "reached"))
    return unseen(found, paths, lambda changed: sweep.compare(where, changed, varied, totals).differences)


def unseen_in_sweep(where, found, varied, totals):
    """In what a sweep has written."""
    draw = random.Random(24)
    told = {"run", "seed", "ended", "undecided", "digest", *varied}
    paths = [("runs", draw.randrange(len(found["runs"])), column) for column in found["runs"][0] if column not in told]
    paths += [("summary", member) for member in ("runs", "failed", "censored", "died", "by_status", "failures")]
    for name, member in found["summary"]["cells"][0].items():
        if name == "assertions":
            paths += [("summary", "cells", 0, name, 0, *path) for path in places(member[0]) if path != ("assertion",)]
        elif name not in ("varied", "notes"):
            paths += [("summary", "cells", 0, name, *path) for path in places(member)]
    return unseen(found, paths, lambda changed: sweep.compare(where, changed, varied, totals).differences)


def unseen_in_indices(found, means):
    """In the indices of a study; their intervals are drawn, and held within a factor."""
    paths = []
    for report, of in enumerate(found["indices"]):
        paths += [("indices", report, name) for name in ("pairs", "left_out", "seeds")]
        paths += [("indices", report, "values", value, name) for value in range(len(of["values"])) for name in ("path", "first", "total")]
    return unseen(found, paths, lambda changed: designs.compare(changed, means).differences)


def unseen_in_validation(figures):
    """In the figures of `dposlab validate` that nothing draws."""
    found = {"figures": figures}
    paths = [("figures", place, "found") for place, figure in enumerate(figures) if figure["study"] in validation.exact()]
    return unseen(found, paths, lambda changed: validation.compare(changed["figures"]).differences)
