"""A folder that lasts as long as the objects that read it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class Temporary:
    """A new folder. It goes with this object, or with the process that has made it.

    ``tempfile.TemporaryDirectory`` warns where it is not closed, and answers of this package have nothing to close: where warnings
    are errors, as in many test suites, that would be one.
    """

    def __init__(self) -> None:
        #: Its path.
        self.name = tempfile.mkdtemp(prefix="dposlab-")
        weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(name: str, maker: int) -> None:
    # A fork has the object as well, and ends before its parent does.
    if os.getpid() == maker:
        shutil.rmtree(name, ignore_errors=True)
