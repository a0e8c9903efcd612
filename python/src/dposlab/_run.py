"""One run of a scenario."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tables
from ._errors import DposlabError
from ._process import Name, call, listed, options, path
from ._progress import Progress
from ._strategy import Strategy, deciding
from ._temporary import Temporary
from ._verdict import Verdict, judged_by

if TYPE_CHECKING:
    import pyarrow


class Report:
    """A page with plots: one file that opens offline. A notebook shows it where it is the value of a cell."""

    def __init__(self, path: Path, keep: object = None) -> None:
        #: The file.
        self.path = path
        # A temporary folder lasts as long as the objects that read it.
        self._keep = keep

    @property
    def html(self) -> str:
        """The page's text."""
        return self.path.read_text(encoding="utf-8")

    def save(self, path: Name) -> Path:
        """Copies the page to a file, and returns the file's path."""
        to = Path(os.fsdecode(path))
        to.write_text(self.html, encoding="utf-8")
        return to

    def figures(self, folder: Name, *, theme: str = "light", width: int | None = None, metrics: Sequence[str] = ()) -> list[Path]:
        """Writes every figure of the page as an SVG file into a folder, and returns the files in the page's order.

        ``theme`` is ``"light"`` or ``"dark"``, ``width`` the width of each file in pixels. ``metrics`` are the metrics that the plots of
        a sweep show, such as ``"agreement_mean"``; by default the metric with which the page opens.
        """
        shown = listed("metrics", metrics, '["agreement_mean"]')
        look = [f"--theme={theme}", *([] if width is None else [f"--width={width}"]), *(f"--metric={metric}" for metric in shown)]
        written = call(["figures", path(self.path), "--out", path(folder), *look, "--json"]).json()
        return [Path(written["folder"]) / figure["file"] for figure in written["figures"]]

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 720px; border: 0"></iframe>'


class Run:
    """The results of a run. Every member of ``summary.json`` is an attribute: ``run.digest``, ``run.ended``, ``run.totals``. The members
    of ``totals`` are attributes, too: ``run.height``, ``run.missed_slots``. ``docs/figures.md`` defines each of them.
    """

    def __init__(self, folder: Path, ok: bool, why: str, keep: Temporary | None) -> None:
        #: The folder with all files.
        self.folder = folder
        #: Whether the run reached its last round and all assertions and claims hold.
        self.ok = ok
        #: The reason why it is not ok, in words; empty if it is.
        self.why = why
        #: ``summary.json``.
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        #: The verdicts on the claims of the caller, in their order.
        self.verdicts: list[Verdict] = []
        self._keep = keep

    def __getattr__(self, name: str) -> Any:
        summary = self.__dict__.get("summary", {})
        for members in (summary, summary.get("totals", {})):
            if name in members:
                return members[name]
        raise AttributeError(f"a run has no '{name}', allowed are the members of its summary and of 'totals'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.summary, *self.summary["totals"]]

    @cached_property
    def rounds(self) -> pyarrow.Table:
        """A row for each round. Raises :class:`MissingExtra` without pyarrow; so do all tables."""
        return _tables.parquet(self.folder / "rounds.parquet")

    @cached_property
    def blocks(self) -> pyarrow.Table:
        """A row for each block of the winning chain, from height 1."""
        return _tables.parquet(self.folder / "blocks.parquet")

    @cached_property
    def orphans(self) -> pyarrow.Table:
        """A row for each block beside the winning chain, 10,000 at most."""
        return _tables.parquet(self.folder / "orphans.parquet")

    @cached_property
    def links(self) -> pyarrow.Table:
        """A row for each link between nodes. A full mesh of more than 128 nodes has no such table."""
        return _tables.parquet(self.folder / "links.parquet")

    @cached_property
    def delegates(self) -> pyarrow.Table:
        """Slots owned, forged and missed: a row for each round and delegate."""
        return _tables.parquet(self.folder / "delegates.parquet")

    @cached_property
    def elections(self) -> pyarrow.Table:
        """Turnover of the active delegates and the spread of their vote weights: a row for each round."""
        return _tables.parquet(self.folder / "elections.parquet")

    @cached_property
    def time(self) -> pyarrow.Table:
        """The samples at the end of each slot, in 2,000 rows at most."""
        return _tables.parquet(self.folder / "time.parquet")

    @cached_property
    def events(self) -> pyarrow.Table:
        """Every event: ``at`` [µs], ``node``, ``kind``, and the whole of it as JSON text in ``event``."""
        return _tables.events(self.folder / "events.jsonl")

    def report(self) -> Report:
        """The page with plots."""
        return Report(self.folder / "report.html", self._keep)

    def __repr__(self) -> str:
        return f"<Run of {self.scenario}, seed {self.seed}: {self.ended}, height {self.height}, digest {self.digest[:16]}>"


def run(
    scenario: Name,
    *,
    seed: int = 1,
    set: Mapping[str, object] | None = None,
    crypto: str | None = None,
    out: Name | None = None,
    memory: str | int | None = None,
    strategies: Sequence[Strategy] = (),
    claims: Sequence[Callable[[Run], object]] = (),
    progress: bool | None = None,
) -> Run:
    """Plays a scenario file.

    ``set`` replaces values by their path, ``crypto`` is ``"real"`` or ``"modelled"``, ``out`` a folder that keeps the files (by default
    a temporary one, which lasts as long as the returned object), ``memory`` the limit of the process (``"8GiB"``), and ``strategies``
    are functions whose kinds of faults the scenario may have (:func:`dposlab.strategy`). Each of ``claims`` is called with the finished
    run. A claim holds if it returns nothing or ``True``. It does not hold if it returns ``False`` or a text with the reason, or if an
    ``assert`` in it fails. Then ``ok`` is false, ``why`` names the claim, and ``verdicts`` has all verdicts. ``ok`` is also false if the
    run ends before its last round or if an assertion does not hold. Raises :class:`UsageError` if the scenario is not valid,
    :class:`StrategyFailed` if one of ``strategies`` failed, and :class:`RunDied` if the process died. Ctrl-C stops the run.
    """
    keep = Temporary() if out is None else None
    folder = Path(path(out)) if out is not None else Path(keep.name if keep else "")
    arguments = ["run", path(scenario), *options(seed, set), "--out", path(folder), "--json", "--progress", "json"]
    arguments += [] if crypto is None else ["--crypto", crypto]
    arguments += [] if memory is None else [f"--max-memory={memory}"]
    claims = listed("claims", claims, "[a_function]")
    with Progress("run", "block", progress) as bar, deciding(strategies) as more:
        ended = call([*arguments, *more], bar.tell)
        # The program prints the result after it has written all files. Before that, files in the folder may be another run's.
        if not ended.stdout.startswith("{"):
            raise DposlabError(ended.stderr or "dposlab run printed nothing")
    played = Run(folder, ended.code == 0, ended.stderr, keep)
    judged_by(claims, played)
    return played
