"""A testnet of one's own, the chains in it, and views of its past."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeVar

from ._errors import DposlabError, HttpError, RunDied, Stopped, UsageError
from ._lab import Asked, Lab, Pace
from ._process import Listener, Name, close, is_number, judged, listed, options, path, start, stop, whole
from ._strategy import Deciding, Strategy

#: The time for which a failed request waits for the end of the process, to report how the process ended [s].
ENDING_PATIENCE = 0.5


@dataclass(frozen=True)
class Delegate:
    """A delegate that forges, for tests only."""

    username: str
    address: str
    passphrase: str
    public_key: str


class Within:
    """A chain or a view in the process of a testnet. A context manager that deletes it."""

    #: Its number.
    id: int
    _net: Testnet
    _list: ClassVar[Literal["chains", "views"]]

    def close(self) -> None:
        """Deletes it. Harmless if that was done before."""
        try:
            self._net._lab("DELETE", f"{self._list}/{self.id}")
        except Stopped:
            pass  # the testnet deleted it
        except HttpError as error:
            if error.status != 404:
                raise

    def _gone(self) -> DposlabError | None:
        return self._net._gone()

    def __enter__(self: W) -> W:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


W = TypeVar("W", bound=Within)


class Chain(Within, Lab):
    """An isolated chain in the process of a testnet. It forges on demand by default. A context manager that deletes it."""

    _list = "chains"

    def __init__(self, net: Testnet, made: Mapping[str, Any]) -> None:
        super().__init__(made["url"], made["lab"], made["seed"], made["nethash"], made["accounts"])
        self.id = made["id"]
        self._net = net

    def close(self) -> None:
        """Deletes it. Harmless if that was done before."""
        super().close()
        self._close_streams()


class View(Within, Asked):
    """The network of a testnet as it was at an instant. It is read-only. A context manager that closes it."""

    _list = "views"

    def __init__(self, net: Testnet, made: Mapping[str, Any]) -> None:
        super().__init__(made["url"], made["lab"])
        self.id = made["id"]
        #: The instant, in microseconds since the network's epoch, as events have it.
        self.at: int = made["at"]
        #: The height of the chain then.
        self.height: int = made["height"]
        #: The testnet's description of the view: ``node``, ``now``, ``slot``, ``round``, ``tip`` and more.
        self.made = dict(made)
        self._net = net

    def lab(self, path: str = "") -> Any:
        """The ``data`` of a route of the lab at that instant: ``lab("round")``."""
        return self._lab("GET", path)

    def step(self, step: Literal["event", "slot", "block", "round"], *, back: bool = False) -> View:
        """Opens a view one step on, or back."""
        return View(self._net, self._net._lab("POST", "views", {"view": self.id, "step": step, "back": back}))

    def chain(self) -> Chain:
        """Makes an isolated chain that continues from this instant, at a manual pace."""
        return Chain(self._net, self._net._lab("POST", f"views/{self.id}/chain"))


class Testnet(Lab):
    """A process with a testnet on a free port of this machine. By default it forges on demand: the clock stands, and a transaction is in
    a block when its POST answers.

    A context manager that stops it, as :meth:`stop` does. The testnet ends with this process, even if SIGKILL ends that.
    """

    __test__ = False  # pytest: it is no test

    def __init__(
        self,
        scenario: Name | None = None,
        *,
        delegates: int | None = None,
        seed: int = 1,
        pace: Pace = "on-demand",
        stage: Literal["inline", "ractor"] = "inline",
        set: Mapping[str, object] | None = None,
        record: Name | None = None,
        strategies: Sequence[Strategy] = (),
        arguments: Sequence[str] = (),
    ) -> None:
        """Starts a testnet. Returns when its API answers.

        ``set`` replaces values of the scenario by path, ``record`` is a new file for the recording, ``strategies`` are functions whose
        kinds of faults the testnet accepts (:func:`dposlab.strategy`), and ``arguments`` are more options of ``dposlab up``. Both stages
        have the same outcome. Raises :class:`UsageError` if the arguments describe no testnet."""
        more = listed("arguments", arguments, '["--api-nodes", "2"]')
        deciders = listed("strategies", strategies, "[a_strategy]")
        given = ["up"] + ([] if scenario is None else [path(scenario)])
        given += ["--json", "--port", "0", "--stage", stage, f"--exit-with-parent={os.getpid()}", *options(seed, set)]
        given += _pace(pace)
        given += [] if delegates is None else ["--delegates", whole("delegates", delegates, 1)]
        given += [] if record is None else ["--record", path(record)]
        self._deciding = Deciding(deciders) if deciders else None
        given += [] if self._deciding is None else [f"--strategies={self._deciding.address}"]
        self._arguments = [*given, *more]
        #: Whether :meth:`stop` was called while the process ran.
        self._is_stopped = False
        #: The file of ``record``.
        self.record = record
        #: The process.
        self.process: subprocess.Popen[str] = start(self._arguments)
        self._told = Listener(self.process.stderr, None)
        ready = self._ready()
        lab_url = ready["url"].removesuffix("/api") + "/lab"
        super().__init__(ready["url"], lab_url, ready["seed"], ready["nethash"], ready["accounts"])
        #: The delegates that forge, with their passphrases.
        self.delegates: list[Delegate] = [_delegate(delegate) for delegate in ready["delegates"]]
        #: The base URLs of the public APIs: one for each node of ``--api-nodes``, the first of them ``url``.
        self.urls: list[str] = ready["urls"]
        #: The number of its process.
        self.pid: int = ready["pid"]
        #: The version of its program.
        self.version: str = ready["version"]
        #: The line that ``dposlab up --json`` prints when the testnet is ready.
        self.ready = ready
        self._drain = threading.Thread(target=deque, args=(self.process.stdout, 0), daemon=True)
        self._drain.start()

    def _ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                message: dict[str, Any] = json.loads(line)
                if message["event"] == "ready":
                    return message
        except BaseException:
            stop(self.process)
            raise
        code = self.process.wait()
        self._told.join()
        close(self.process)
        judged(self._arguments, code, "", self._told.text())
        raise DposlabError(self._told.text() or f"dposlab up ended with code {code} before it was ready")

    def chain(
        self,
        *,
        seed: int | None = None,
        delegates: int | None = None,
        scenario: Name | None = None,
        set: Mapping[str, object] | None = None,
        pace: Pace = "on-demand",
    ) -> Chain:
        """Makes an isolated chain, in some milliseconds. This process reads the file of ``scenario`` and sends its text, which cannot
        include other files."""
        text = None if scenario is None else _text(scenario)
        wish: dict[str, Any] = {"seed": seed, "delegates": delegates, "scenario": text, "pace": str(pace)}
        wish["set"] = [value.removeprefix("--set=") for value in options(set=set)] or None
        chain = Chain(self, self._lab("POST", "chains", {name: value for name, value in wish.items() if value is not None}))
        # The answer for a chain comes before its first block is forged on demand. Its lab answers after that.
        chain.pace()
        return chain

    @property
    def chains(self) -> list[Chain]:
        """The isolated chains of this process."""
        return [Chain(self, made) for made in self._lab("GET", "chains")]

    def view(self, at: int | None = None, *, node: int | None = None, delivered: int | None = None, inputs: int | None = None) -> View:
        """Opens a view of the network at the last moment when its clock showed ``at``, in microseconds since its epoch, or of the present
        without ``at``. ``node`` names the node whose API the view has. ``delivered`` and ``inputs`` name a place within the instant, as
        in :attr:`View.made`."""
        wish = {"at": at, "node": node, "delivered": delivered, "inputs": inputs}
        return View(self, self._lab("POST", "views", {name: value for name, value in wish.items() if value is not None}))

    @property
    def views(self) -> list[View]:
        """The views that are open."""
        return [View(self, made) for made in self._lab("GET", "views")["views"]]

    def stop(self) -> None:
        """Stops the testnet cleanly. Raises :class:`RunDied` if it had already ended by a signal or a failure. Requests after it raise
        :class:`Stopped`."""
        before = self.process.poll()
        self._is_stopped = self._is_stopped or before is None
        stop(self.process)
        if self._deciding is not None:
            self._deciding.close()
        self._close_streams()
        self._told.join()
        self._drain.join()
        close(self.process)
        if before is not None and before not in (0, 130):
            raise RunDied(self._arguments, before, self._told.text())

    def _gone(self) -> DposlabError | None:
        try:
            code = self.process.wait(ENDING_PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        # 130 is the exit code after a second Ctrl-C.
        if self._is_stopped or code in (0, 130):
            return Stopped(f"the testnet at {self.url} was stopped")
        if code is None:
            return None
        self._told.join()
        return RunDied(self._arguments, code, self._told.text())

    def __enter__(self) -> Testnet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _pace(pace: Pace) -> list[str]:
    """The options for a pace."""
    if pace in ("manual", "on-demand"):
        return ["--pace", str(pace)]
    if pace == "max" or (is_number(pace) and 0.001 <= pace <= 1_000_000):
        return ["--speed", str(pace)]
    raise UsageError(f'pace: found {pace!r}, allowed are "manual", "on-demand", "max" and a number from 0.001 to 1000000')


def _text(scenario: Name) -> str:
    """The text of a scenario file."""
    name = path(scenario)
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"scenario: found {name!r}, allowed is a file of text that can be read: {error}") from None


def _delegate(delegate: Mapping[str, Any]) -> Delegate:
    return Delegate(delegate["username"], delegate["address"], delegate["passphrase"], delegate["publicKey"])
