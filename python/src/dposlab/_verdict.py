"""Claims of a caller about the tables of a run or a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import UsageError


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether it holds."""

    #: The name of the function.
    claim: str
    holds: bool
    #: The reason why it does not hold; empty if it holds or gives no reason.
    why: str


def judged_by(claims: Sequence[Callable[[Any], object]], of: Any) -> None:
    """Calls each claim with a run or a sweep, and stores the verdicts there."""
    of.verdicts = [_verdict(claim, of) for claim in claims]
    broken = [verdict for verdict in of.verdicts if not verdict.holds]
    of.ok = of.ok and not broken
    words = [f"{verdict.claim}: does not hold" + (f": {verdict.why}" if verdict.why else "") for verdict in broken]
    of.why = "\n".join([text for text in (of.why.rstrip("\n"), *words) if text])


def _verdict(claim: Callable[[Any], object], of: Any) -> Verdict:
    name = getattr(claim, "__name__", repr(claim))
    try:
        said = claim(of)
    except AssertionError as error:
        return Verdict(name, False, str(error))
    # Truth values of numpy are allowed, too.
    if said is not None and not isinstance(said, (bool, str)) and hasattr(said, "item"):
        said = said.item()
    if said is None or said is True:
        return Verdict(name, True, "")
    if said is False or isinstance(said, str):
        return Verdict(name, False, said or "")
    raise UsageError(f"claims: {name} answered {said!r}, allowed are a truth value, a text that says why not, and nothing")
