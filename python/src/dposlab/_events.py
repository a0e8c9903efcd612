"""The stream of a network's events: server-sent events, read as they come."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterable
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any
from urllib.parse import urlencode, urlsplit

from ._errors import DposlabError, HttpError, NoEvent, Stopped
from ._http import TIMEOUT


def query(kind: str | Iterable[str] | None, node: int | Iterable[int] | None, last_event_id: int | None, limit: int | None) -> str:
    """The query of the request for a stream."""
    asked: dict[str, object] = {"last_event_id": last_event_id, "limit": limit}
    asked["kind"] = kind if kind is None or isinstance(kind, str) else ",".join(kind)
    asked["node"] = node if node is None or isinstance(node, int) else ",".join(map(str, node))
    text = urlencode({name: value for name, value in asked.items() if value is not None})
    return f"?{text}" if text else ""


class EventStream:
    """Events as they arrive, each the dict of a line of a trace: ``docs/trace.md``. The stream is open from its construction on.

    ``id`` is the number of an event in the run. It is ``None`` for the kind ``gap``, whose ``missed`` is the number of events left
    out. The stream ends with its limit, with its chain, with an orderly stop of its testnet, or by :meth:`close`. If the testnet died,
    the next event is a :class:`RunDied` instead. It is a context manager that closes itself.
    """

    def __init__(self, url: str, timeout: float | None = None, gone: Callable[[], DposlabError | None] = lambda: None) -> None:
        #: The longest real time that ``next`` waits for an event before it raises :class:`NoEvent` [s]; ``None`` for any time.
        self.timeout = timeout
        self._url = url
        self._gone = gone
        place = urlsplit(url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)
        try:
            self._connection.request("GET", f"{place.path}?{place.query}" if place.query else place.path)
            # http.client drops its reference to the socket if the answer ends with the connection.
            reader = self._connection.sock
            self._answer: HTTPResponse = self._connection.getresponse()
            if self._answer.status >= 400:
                raise HttpError("GET", url, self._answer.status, self._answer.read().decode(errors="replace"))
            # The first bytes may have come with the head of the answer. All others are read from the socket.
            reader.setblocking(False)
            self._came: bytes = self._answer.fp.peek()
            self._socket: socket.socket | None = reader
            # The next event may take any time.
            reader.settimeout(None)
        except BaseException:
            self._connection.close()
            raise
        #: The text that came in whole chunks, from the first event on that was not returned.
        self._text = b""

    def _take_chunk(self) -> bool:
        """Takes a chunk (RFC 9112, 7.1) of the bytes that came. Returns whether there was a whole one. The last chunk ends the stream."""
        size, found, rest = self._came.partition(b"\r\n")
        if not found:
            return False
        try:
            length = int(size.partition(b";")[0], 16)
        except ValueError:
            raise DposlabError(f"{self._url}: found a chunk of {size!r} bytes, allowed is a hexadecimal number") from None
        if len(rest) < length + 2:
            return False
        self._text += rest[:length]
        self._came = rest[length + 2 :]
        if length == 0:
            self.close()
        return True

    def _receive(self, reader: socket.socket, end: float | None) -> None:
        """Waits for more bytes, until the time ``end`` at most. If none follow, it raises the reason, or closes the stream."""
        try:
            if end is not None:
                poll = select.poll()
                poll.register(reader, select.POLLIN)
                if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                    raise NoEvent(f"no event of {self._url} came within {self.timeout} s")
            came = reader.recv(1 << 16)
        except ConnectionError:
            came = b""
        except (OSError, ValueError):
            if self._socket is None:  # closed by another thread
                return
            raise
        self._came += came
        if not came and self._socket is not None:
            self.close()
            error = self._gone()
            if not isinstance(error, Stopped):
                raise error or DposlabError(f"the testnet broke off the events of {self._url}")

    def close(self) -> None:
        """Ends the stream, even while another thread waits for its next event."""
        reader, self._socket = self._socket, None
        if reader is not None:
            with contextlib.suppress(OSError):  # the other side was faster
                reader.shutdown(socket.SHUT_RDWR)
            self._answer.close()
            self._connection.close()

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> dict[str, Any]:
        end = None if self.timeout is None else time.monotonic() + self.timeout
        while (reader := self._socket) is not None:
            text, found, rest = self._text.partition(b"\n\n")
            if found:
                self._text = rest
                event = _event(text)
                if event is not None:
                    return event
            elif not self._take_chunk():
                self._receive(reader, end)
        raise StopIteration

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # A stream that never began has nothing to close.
        if getattr(self, "_socket", None) is not None:
            self.close()


def _event(text: bytes) -> dict[str, Any] | None:
    """The event of a block of lines, or ``None`` for a block of comments."""
    lines = (line.rstrip("\r").partition(":") for line in text.decode(errors="replace").split("\n"))
    fields = {name: value.removeprefix(" ") for name, _, value in lines}
    if "data" not in fields:
        return None
    try:
        members: dict[str, Any] = json.loads(fields["data"])
        if "event" in fields:
            return {"id": None, "kind": fields["event"], **members}
        return {"id": int(fields["id"]), **members}
    except (KeyError, TypeError, ValueError):
        raise DposlabError(f"found {text!r}, allowed is an event with an id and the members of a JSON object") from None
