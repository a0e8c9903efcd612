"""The errors of this package."""

from __future__ import annotations

import shlex
import signal as signals
from collections.abc import Sequence


class DposlabError(Exception):
    """All errors of this module."""


class UsageError(DposlabError):
    """The caller's mistake: a wrong argument, or the program ended with exit code 2. The text names the thing, what was found and what is
    allowed."""


class MissingExtra(DposlabError, ImportError):
    """A feature needs an extra of this package. The text names the extra."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more packages: pip install 'dposlab[{extra}]'")


class HttpError(DposlabError):
    """A testnet answered with an error.

    ``status`` is the HTTP status, ``body`` the text of the answer.
    """

    def __init__(self, method: str, url: str, status: int, body: str) -> None:
        super().__init__(f"{method} {url}: {status}: {body}")
        self.status = status
        self.body = body


class Refused(DposlabError):
    """The node refused submitted transactions. The text names each of them with the reason.

    ``refusals`` are tuples of the id, the type (such as ``ERR_LOW_FEE``) and the message. ``accepted`` are the ids of the transactions
    that the node accepted in the same request.
    """

    def __init__(self, refusals: Sequence[tuple[str, str, str]], accepted: Sequence[str]) -> None:
        self.refusals = tuple(refusals)
        self.accepted = tuple(accepted)
        super().__init__("\n".join(f"the node refused transaction {id_}: {kind}: {why}" for id_, kind, why in refusals))

    def __reduce__(self) -> tuple[type[Refused], tuple[tuple[tuple[str, str, str], ...], tuple[str, ...]]]:
        return (type(self), (self.refusals, self.accepted))


class RunDied(DposlabError):
    """The program ended abnormally: by a signal, or with another exit code than 0, 1 or 2.

    ``signal`` is the number of the signal or ``None``, ``returncode`` that of the process (negative for a signal),
    ``stderr`` the last lines of its standard error, and ``command`` the line that repeats it in a shell.
    """

    def __init__(self, arguments: Sequence[str], returncode: int, stderr: str) -> None:
        self.arguments = tuple(arguments)
        self.returncode = returncode
        self.signal = -returncode if returncode < 0 else None
        self.stderr = stderr
        self.command = shlex.join(["dposlab", *arguments])
        how = f"exit code {returncode}" if self.signal is None else f"signal {self.signal} ({_name(self.signal)})"
        told = f"\n{stderr}" if stderr else ""
        super().__init__(f"dposlab ended by {how}; to repeat: {self.command}{told}")

    def __reduce__(self) -> tuple[type[RunDied], tuple[tuple[str, ...], int, str]]:
        return (type(self), (self.arguments, self.returncode, self.stderr))


def _name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return "unknown"
