"""The files of the program in a folder, as Arrow tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow


def parquet(file: Path) -> pyarrow.Table:
    """The table of a Parquet file. Raises :class:`MissingExtra` without pyarrow."""
    try:
        from pyarrow import parquet as reader
    except ImportError:
        raise MissingExtra("a table", "tables") from None
    return reader.read_table(str(file))


def events(file: Path) -> pyarrow.Table:
    """A trace as a table: ``at`` [µs], ``node``, ``kind``, and the whole event as JSON text in ``event``."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("a table", "tables") from None
    import json

    columns: dict[str, list[Any]] = {"at": [], "node": [], "kind": [], "event": []}
    with file.open(encoding="utf-8") as lines:
        next(lines)  # the header
        for line in lines:
            event = json.loads(line)
            for name in ("at", "node", "kind"):
                columns[name].append(event.get(name))
            columns["event"].append(line.rstrip("\n"))
    kinds = [("at", pyarrow.int64()), ("node", pyarrow.int64()), ("kind", pyarrow.string()), ("event", pyarrow.string())]
    return pyarrow.table(columns, schema=pyarrow.schema(kinds))
