"""A folder that lasts as long as the objects that read it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class Temporary:
    """A new folder. It is deleted with this object, or at the end of the process that made it.

    ``tempfile.TemporaryDirectory`` warns if it is not closed, and the results of this package have no ``close``. Many test suites
    turn warnings into errors.
    """

    def __init__(self) -> None:
        #: Its path.
        self.name = tempfile.mkdtemp(prefix="dposlab-")
        weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(name: str, maker: int) -> None:
    # A forked process has a copy of the object, and may end before its parent.
    if os.getpid() == maker:
        shutil.rmtree(name, ignore_errors=True)
