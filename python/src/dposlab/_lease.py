"""Shows a worker whether its caller still waits. A worker on the caller's machine notices when the caller was interrupted or has ended,
and stops. A worker on another machine cannot notice that, and ends with its shard.

The sign is a socket, because it leaves no file behind: no client can connect to a socket that is shut down. A forked worker holds
the socket, too, so the end of the caller's process is checked separately.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Lease:
    """The facts by which a worker recognises whether its caller still waits."""

    #: The machine and its namespaces; empty if unknown.
    place: str
    #: The caller's process id and start time. The system reuses process ids.
    pid: int
    born: str
    #: The name of the socket.
    name: str

    def is_over(self) -> bool:
        """Whether the caller waits no more. False if that is unknown."""
        if not self.place or self.place != _place():
            return False
        if _born(self.pid) != self.born:
            return True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.setblocking(False)
            try:
                asking.connect(self.name)
            except ConnectionRefusedError:
                return True
            except OSError:
                return False  # the queue is full, so the socket still listens
        return False


@contextlib.contextmanager
def lease() -> Iterator[Lease]:
    """A lease that is over at the end of the block."""
    name = f"\0dposlab-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(name)
        listening.listen(1)
        try:
            yield Lease(_place(), os.getpid(), _born(os.getpid()), name)
        finally:
            # This shuts the socket down for all processes that hold it.
            listening.shutdown(socket.SHUT_RDWR)


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return " ".join([boot, os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/net")])
    except OSError:
        return ""


def _born(pid: int) -> str:
    """The start time of a process, in ticks; empty if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]
