"""The stream of a network's events: server-sent events, read as they come."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from types import TracebackType
from typing import Any
from urllib.parse import urlencode, urlsplit

from ._errors import HttpError
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
    out. The stream ends with its limit, with its testnet, or by :meth:`close`. It is a context manager that closes itself.
    """

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)
        try:
            self._connection.request("GET", f"{place.path}?{place.query}" if place.query else place.path)
            # http.client drops its reference to the socket if the answer ends with the connection.
            self._socket: socket.socket | None = self._connection.sock
            self._answer: HTTPResponse = self._connection.getresponse()
            if self._answer.status >= 400:
                raise HttpError("GET", url, self._answer.status, self._answer.read().decode(errors="replace"))
        except BaseException:
            self._connection.close()
            raise
        if self._socket is not None:
            # The next event may take any time.
            self._socket.settimeout(None)
        self._events = self._read()

    def _read(self) -> Iterator[dict[str, Any]]:
        fields: dict[str, str] = {}
        try:
            # The stream was closed here or by the end of the testnet, so no more events follow.
            with contextlib.suppress(OSError, HTTPException, ValueError, AttributeError):
                while line := self._answer.readline().decode():
                    name, _, value = line.rstrip("\r\n").partition(":")
                    if line.strip():
                        fields[name] = value.removeprefix(" ")
                        continue
                    data, fields = fields, {}
                    if "data" in data:
                        yield _event(data)
        finally:
            self.close()

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
        return next(self._events)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # A stream that never began has nothing to close.
        if getattr(self, "_answer", None) is not None:
            self.close()


def _event(fields: dict[str, str]) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(fields["data"])
    if "event" in fields:
        return {"id": None, "kind": fields["event"], **members}
    return {"id": int(fields["id"]), **members}
