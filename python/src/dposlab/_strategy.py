"""Strategies as functions: this process decides how actors depart from the protocol."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Callable, Literal

from ._errors import DposlabError, UsageError
from ._process import listed

NAME = re.compile(r"[a-z0-9-]+")


class Turn:
    """One turn of one actor of one run. A strategy must decide from its turn alone, because runs are copied, saved and reverted."""

    def __init__(self, asked: Mapping[str, Any], below: Callable[[str, int], int]) -> None:
        #: ``"begins"``, ``"hears"``, ``"sends"``, ``"wakes"``, ``"ends"`` or ``"learns"``.
        self.turn: str = asked["turn"]
        #: The parameters of the fault; lists of nodes are numbers, ascending.
        self.parameters: dict[str, Any] = asked["parameters"]
        #: The strategy's memory for this actor, any JSON; ``None`` at first. A strategy may set or change it.
        self.state: Any = asked["state"]
        #: The last value that any actor of the fault wrote by :meth:`share`; ``None`` at first.
        self.memory: Any = asked["memory"]
        #: Microseconds of the node's clock since the epoch.
        self.now: int = asked["now"]
        #: The number of the node.
        self.node: int = asked["node"]
        #: The numbers of the nodes that it is connected to, ascending.
        self.peers: list[int] = asked["peers"]
        #: The block that a peer stands on: ``id``, ``height``, ``timestamp``, ``previous``, ``generator``, ``transactions``.
        self.tip: dict[str, Any] | None = asked["tip"]
        #: The message that is heard or sent: its ``type`` and its content. ``None`` in other turns.
        self.message: dict[str, Any] | None = asked.get("message")
        #: The node that sent the message: its own node, if another actor of this node sent it.
        self.sender: int | None = asked.get("from")
        #: The nodes that a message goes to.
        self.to: list[int] = asked.get("to", [])
        #: The number of the wake-up.
        self.number: int | None = asked.get("number")
        self._below = below
        self._answer: dict[str, Any] = {}
        self._effects: list[dict[str, Any]] = []

    def below(self, purpose: str, count: int) -> int:
        """A number below ``count``, drawn for this actor, fault, instant and purpose. A repeated draw gives the same number."""
        if not 0 < count < 1 << 64:
            raise UsageError(f"count: found {count}, allowed are 1 to {(1 << 64) - 1}")
        return self._below(purpose, count)

    def swallow(self) -> None:
        """Drops the message."""
        self._answer["swallow"] = True

    def without(self, ids: Iterable[str]) -> None:
        """Removes these transactions from the message."""
        self._answer["without"] = list(ids)

    def keep(self, number: int) -> None:
        """Keeps the message under a number, for :meth:`send`. It replaces an earlier message under this number."""
        self._answer["keep"] = number

    def forget(self, number: int) -> None:
        """Discards a kept message."""
        self._answer.setdefault("forget", []).append(number)

    def send(self, to: Iterable[int], *, kept: int | None = None, after_ms: int = 0) -> None:
        """Sends this message or a kept one to the peers of nodes: a block, transactions, a status or a list of peers."""
        self._effects.append({"send": {"to": list(to), "kept": kept, "after_ms": after_ms}})

    def wake(self, after_ms: int, number: int = 0) -> None:
        """Schedules a turn ``"wakes"`` with this number."""
        self._effects.append({"wake": {"after_ms": after_ms, "number": number}})

    def share(self, value: object) -> None:
        """Writes the common memory of all actors of this fault, any JSON. The other actors then get a turn ``"learns"``."""
        self._effects.append({"share": value})
        self.memory = value

    def _json(self) -> str:
        return json.dumps({"answer": {**self._answer, "state": self.state, "effects": self._effects}}, allow_nan=False)


@dataclass(frozen=True)
class Strategy:
    """A kind of fault that a function decides. :func:`strategy` makes one."""

    name: str
    decide: Callable[[Turn], None]
    said: Mapping[str, Any] = field(repr=False)

    def __call__(self, turn: Turn) -> None:
        self.decide(turn)


def strategy(
    name: str,
    *,
    actor: Literal["peer", "pool", "delegate"],
    on: Sequence[str],
    breaks: Literal["nothing", "rules", "forging"],
    example: Mapping[str, Any],
    lists: Sequence[str] = ("delegates",),
) -> Callable[[Callable[[Turn], None]], Strategy]:
    """Makes a function a kind of fault, for ``strategies=`` of :func:`dposlab.run`, :func:`dposlab.check` and others.

    ``name`` is the ``kind`` in a file, ``actor`` the actor that follows the strategy on each node of the first of ``lists``, and ``on``
    the turns that the strategy needs: ``"begins"``, ``"wakes"``, ``"ends"``, ``"learns"``, and ``"hears ..."`` or ``"sends ..."`` with a
    type of message, such as ``"sends block"``. ``breaks`` tells the checker which departures it accepts from these nodes: omissions only
    (``"nothing"``), broken ``"rules"``, or broken rules of ``"forging"``. ``example`` has a value for each parameter, in a network of
    five delegates. A fault's parameters must have the same types. The function's docstring is the kind's description.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"strategy: found {name!r}, allowed are small letters, digits and dashes")

    def made(decide: Callable[[Turn], None]) -> Strategy:
        said = {
            "name": name,
            "about": (decide.__doc__ or name).strip(),
            "actor": actor,
            "breaks": breaks,
            "lists": list(lists),
            "example": dict(example),
            "on": list(on),
        }
        try:
            json.dumps(said, allow_nan=False)
        except (TypeError, ValueError) as why:
            raise UsageError(f"strategy {name!r}: {why}") from None
        return Strategy(name, decide, said)

    return made


class StrategyFailed(DposlabError):
    """A strategy raised an error, which is the cause of this one, or decided something impossible."""


class Deciding:
    """A server on this machine that answers with the decisions of strategies. Each connection has a thread."""

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        strategies = listed("strategies", strategies, "[a_strategy]")
        strange = next((one for one in strategies if not isinstance(one, Strategy)), None)
        if strange is not None:
            raise UsageError(f"strategies: found {strange!r}, allowed are functions that dposlab.strategy has made a kind of fault")
        self._kinds = {one.name: one for one in strategies}
        if len(self._kinds) < len(strategies):
            raise UsageError(f"strategies: two have one name, found {', '.join(one.name for one in strategies)}")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self._closed = False
        #: The name of the first strategy that raised an error, and the error.
        self.failed: tuple[str, BaseException] | None = None
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> str:
        """The address for the program: ``127.0.0.1:4100``."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection = self._listener.accept()[0]
                with self._lock:
                    if self._closed:
                        connection.close()
                        return
                    self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rw", encoding="utf-8", newline="\n") as lines:
                # Refuses other clients, such as browsers.
                if json.loads(lines.readline()) != {"dposlab": 1}:
                    return
                _write(lines, json.dumps({"kinds": [one.said for one in self._kinds.values()]}))
                for line in lines:
                    self._turn(lines, json.loads(line))

    def _turn(self, lines: IO[str], asked: dict[str, Any]) -> None:
        def below(purpose: str, count: int) -> int:
            _write(lines, json.dumps({"below": {"purpose": purpose, "count": count}}))
            drawn: int = json.loads(lines.readline())
            return drawn

        turn = Turn(asked, below)
        try:
            self._kinds[asked["kind"]](turn)
            answer = turn._json()
        except Exception as error:
            if self.failed is None:
                self.failed = (asked["kind"], error)
            answer = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        _write(lines, answer)

    def close(self) -> None:
        """Stops the server."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        # Closing the socket does not wake the thread that waits for a connection, so a last connection does.
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname()).close()
        self._accepting.join()
        self._listener.close()


def _write(lines: IO[str], line: str) -> None:
    lines.write(line + "\n")
    lines.flush()


@contextlib.contextmanager
def deciding(strategies: Sequence[Strategy]) -> Iterator[list[str]]:
    """The options that make strategies known to a command. Raises :class:`StrategyFailed` if one of them fails meanwhile."""
    if not strategies:
        yield []
        return
    made = Deciding(strategies)
    try:
        yield [f"--strategies={made.address}"]
    except DposlabError as error:
        if made.failed is not None:
            raise StrategyFailed(f"the strategy '{made.failed[0]}' failed") from made.failed[1]
        if "the strategy '" in str(error):
            raise StrategyFailed(str(error)) from None
        raise
    finally:
        made.close()
    if made.failed is not None:
        raise StrategyFailed(f"the strategy '{made.failed[0]}' failed") from made.failed[1]
