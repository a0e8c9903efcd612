"""The program as a child process: where it is, how it is started, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Callable

from ._errors import DposlabError, RunDied, UsageError

#: Lines of standard error that an error shows.
LINES_TOLD = 20
#: How long a child may take to stop in good order [s].
PATIENCE = 10.0

#: Commands that end with the process that started them, however it ends. Testnets do, too, and name it themselves.
WATCHING = ("check", "explain", "run", "sweep")

Tell = Callable[[dict[str, Any]], None]


def binary() -> str:
    """The path of the program: that of ``DPOSLAB_BIN``, or the one installed with this package, or that of the ``PATH``.

    Raises :class:`DposlabError` where there is none.
    """
    named = os.environ.get("DPOSLAB_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise DposlabError(f"DPOSLAB_BIN: found '{named}', allowed is a program that can be started")
        return os.path.abspath(named)
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent), sysconfig.get_path("scripts", "posix_user")]
    for folder in folders:
        path = os.path.join(folder, "dposlab")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("dposlab")
    if found is None:
        raise DposlabError(f"no program dposlab in {folders[0]} nor on the PATH; DPOSLAB_BIN names it")
    return found


def version() -> str:
    """The version of the program, such as ``0.1.0``."""
    return call(["--version"]).stdout.split()[-1]


class Ended:
    """How a child ended: ``code`` is 0 or 1, ``stdout`` all that it printed."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def json(self) -> Any:
        """What it printed, as JSON. Raises :class:`DposlabError` with the end of standard error where it printed none."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise DposlabError(self.stderr or "dposlab printed no JSON") from None


def call(arguments: Sequence[str], tell: Tell | None = None, cwd: str | None = None) -> Ended:
    """Starts the program and waits for its end.

    ``tell`` hears of its progress: ``{"done": 3, "total": 100, ...}``. Ctrl-C stops the child, and waits for that. Raises
    :class:`UsageError` for exit code 2, and :class:`RunDied` where it ended by a signal or another code than 0 and 1.
    """
    child = start(arguments, cwd=cwd)
    told = Listener(child.stderr, tell)
    try:
        assert child.stdout is not None
        stdout = child.stdout.read()
        child.wait()
    except BaseException:
        stop(child)
        raise
    finally:
        told.join()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    return judged(arguments, child.returncode, stdout, told.text())


def judged(arguments: Sequence[str], code: int, stdout: str, stderr: str) -> Ended:
    """What came of a child, or the error that it stands for."""
    if code == 2:
        raise UsageError(stderr.removeprefix("dposlab: "))
    if code not in (0, 1):
        raise RunDied(arguments, code, stderr)
    return Ended(code, stdout, stderr)


def start(
    arguments: Sequence[str],
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
    memory: int | None = None,
) -> subprocess.Popen[str]:
    """Starts the program in a session of its own, so that a Ctrl-C reaches it through this process alone, and once.

    Where this process ends, by SIGKILL too, the program ends a second later at most. ``memory`` are the bytes of address space that
    it may have (RLIMIT_AS).
    """
    pipe = subprocess.PIPE
    watching = [f"--exit-with-parent={os.getpid()}"] if arguments[0] in WATCHING else []
    return subprocess.Popen(
        [*([] if memory is None else limited(memory)), binary(), *arguments, *watching],
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=cwd,
        env=None if environment is None else dict(environment),
        start_new_session=True,
    )


def limited(memory: int) -> list[str]:
    """What stands before a command that may have so many bytes of address space.

    A shell sets the limit before it becomes the program. Set from here, after the start, it would come too late: the program's
    allocator has taken a gigabyte of addresses by then. Where the shell must not set it, a lower one is in force already.
    """
    return ["/bin/sh", "-c", 'ulimit -v "$0" 2> /dev/null; exec "$@"', str(-(-memory // 1024))]


def stop(child: subprocess.Popen[str]) -> None:
    """Ends a child, in good order if that takes no longer than ten seconds."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if child.poll() is not None:
            return
        try:
            child.send_signal(number)
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            continue


class Listener:
    """Reads a child's standard error on a thread: progress is told, the last of all other lines are kept."""

    def __init__(self, stream: IO[str] | None, tell: Tell | None) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_TOLD)
        self._tell = tell
        self._thread = threading.Thread(target=self._listen, args=(stream,), daemon=True)
        self._thread.start()

    def _listen(self, stream: IO[str] | None) -> None:
        for line in stream or ():
            if line.startswith('{"progress":'):
                if self._tell is not None:
                    self._tell(json.loads(line)["progress"])
            else:
                self._lines.append(line.rstrip("\n"))

    def join(self) -> None:
        """Waits until the child has closed its standard error."""
        self._thread.join()

    def text(self) -> str:
        """The last lines."""
        return "\n".join(self._lines)


def options(seed: int | None = None, set: Mapping[str, object] | None = None) -> list[str]:
    """The options that many commands share; ``set`` is by path, such as ``{"network.loss": 0.05}``."""
    given = [] if seed is None else ["--seed", str(seed)]
    for path, value in (set or {}).items():
        given += ["--set", f"{path}={literal(value)}"]
    return given


def literal(value: object) -> str:
    """A value as TOML has it: texts stay as they are, which the program takes for texts where they are nothing else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(json.dumps(item) if isinstance(item, str) else literal(item) for item in value) + "]"
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{key} = {json.dumps(item) if isinstance(item, str) else literal(item)}" for key, item in value.items()
        )
        return "{ " + inner + " }"
    return str(value)
