"""Whether the caller of a work still waits for it. A worker on the caller's machine sees when that was interrupted or has ended, and
stops then; one on another machine cannot, and ends with its shard.

A socket shows it, because it leaves no file behind: no client can connect to one that is shut down. A worker that was forked
holds the socket, too, so the end of the caller's process is looked for apart from it.
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
    """A worker's knowledge of a caller."""

    #: The machine, its namespaces among it; empty where that cannot be known.
    place: str
    #: The caller's process, and when it was started, since numbers of processes are used again.
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
                return False  # its queue is full, which only one that listens has
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
            # For all processes that hold it.
            listening.shutdown(socket.SHUT_RDWR)


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return " ".join([boot, os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/net")])
    except OSError:
        return ""


def _born(pid: int) -> str:
    """When a process was started, in ticks; empty where it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]
