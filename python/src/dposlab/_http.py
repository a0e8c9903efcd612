"""Requests to a testnet on this machine, without the proxies that the environment names."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from ._errors import HttpError, UsageError

#: The longest time that an answer may take [s]. An advance of many slots takes long.
TIMEOUT = 300.0

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def asked(method: str, url: str, body: object) -> bytes:
    """The bytes of an answer. Raises :class:`HttpError` for an error of the testnet."""
    try:
        data = None if body is None else json.dumps(body).encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"{method} {url}: found a body that is no JSON: {error}") from None
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as error:
        raise HttpError(method, url, error.code, error.read().decode(errors="replace")) from None
