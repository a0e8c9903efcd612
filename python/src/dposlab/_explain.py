"""A scenario told."""

from __future__ import annotations

import os
from typing import Any

from ._process import call, options


def explain(scenario: str | os.PathLike[str], *, seed: int | None = None) -> dict[str, Any]:
    """What a run of a scenario came to and why, as ``dposlab explain --json`` prints it.

    Raises :class:`UsageError` for what is no scenario, or where the program has no such command.
    """
    told: dict[str, Any] = call(["explain", os.fspath(scenario), *options(seed), "--json"]).json()
    return told
