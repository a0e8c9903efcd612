"""Progress, shown by tqdm in a terminal or a notebook."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm


class Progress:
    """A bar that follows the program's progress.

    ``shown`` is ``True``, ``False``, or ``None`` to show it only on a terminal or in a notebook.
    """

    def __init__(self, what: str, unit: str, shown: bool | None) -> None:
        if shown is None:
            shown = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._bar: Any = tqdm(desc=what, unit=unit, disable=not shown, leave=False)

    def tell(self, told: dict[str, Any]) -> None:
        """Takes one report: ``done`` and ``total``, and counts by name."""
        bar = self._bar
        if bar.disable:
            return
        bar.total = told["total"]
        bar.n = told["done"]
        counts = {name: value for name, value in told.items() if name in ("failed", "censored") and value}
        bar.set_postfix(counts, refresh=False)
        bar.refresh()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.close()
