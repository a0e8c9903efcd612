"""Explanations of failed runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._process import Name, call, listed, options, path, whole
from ._strategy import Strategy, deciding


def explain(
    scenario: Name,
    *,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    repeats: int | None = None,
    budget: int | None = None,
    jobs: int | None = None,
    out: Name | None = None,
    memory: str | int | None = None,
    beside: Sequence[str] = (),
    strategies: Sequence[Strategy] = (),
) -> dict[str, Any]:
    """Explains why a run failed, as ``dposlab explain --json`` does (``docs/explain.md``).

    Returns ``failed``, ``why``, ``chain``, ``curve`` and ``nearest``. ``scenario`` is a scenario, a finding of :func:`dposlab.check` or a
    recorded session. ``set`` replaces values by path, ``repeats`` are copies of the run at each instant, ``budget`` runs are spent on
    changes with which the run does not fail, ``jobs`` runs are played at a time, ``out`` is a file for a page, ``memory`` the limit of
    the process, ``beside`` names rules under which the same run is played, and ``strategies`` are functions whose kinds of faults the
    scenario may have. Raises :class:`UsageError` if ``scenario`` is not valid.
    """
    arguments = ["explain", path(scenario), *options(seed, set), "--json"]
    for name, value, least in (("repeats", repeats, 0), ("budget", budget, 0), ("jobs", jobs, 1)):
        arguments += [] if value is None else [f"--{name}", whole(name, value, least)]
    arguments += [] if memory is None else [f"--max-memory={memory}"]
    arguments += [] if out is None else ["--out", path(out)]
    arguments += ["--beside", ",".join(listed("beside", beside, '["lisk"]'))] if beside else []
    with deciding(strategies) as more:
        told: dict[str, Any] = call([*arguments, *more]).json()
    return told
