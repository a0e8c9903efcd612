"""The program as a child process: where it is, how it is started, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import IO, Any, Callable

from ._errors import DposlabError, RunDied, UsageError

#: Lines of standard error that an error shows.
LINES_TOLD = 20
#: How long a child may take to stop in good order [s].
PATIENCE = 10.0
SWEEP_PATIENCE = 2.0

#: How long the main thread waits at most before it looks for signals [s]. Python holds back a Ctrl-C that comes between its last look
#: and a wait until that wait is over.
SIGNALS_EVERY = 0.5

#: Commands that end with the process that started them, however it ends. Testnets do, too, and name it themselves.
WATCHING = ("check", "explain", "run", "sweep")

#: Texts that the program takes for texts without quotes, as they are easier to read. None of TOML's other values is like this.
WORD = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z_][A-Za-z0-9_-]*")

#: The longest word of a command on Linux, without the byte that ends it [bytes].
WORD_LIMIT = (1 << 17) - 1

Tell = Callable[[dict[str, Any]], None]

#: The name of a file.
Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]

#: Where installers put programs. Found at the import: the first look-up is not safe where two threads make it.
FOLDERS = (
    sysconfig.get_path("scripts"),
    str(Path(sys.executable).parent),
    sysconfig.get_path("scripts", "posix_user"),
)


def binary() -> str:
    """The path of the program: that of ``DPOSLAB_BIN``, or the one installed with this package, or that of the ``PATH``.

    Raises :class:`DposlabError` where there is none.
    """
    named = os.environ.get("DPOSLAB_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise DposlabError(f"DPOSLAB_BIN: found '{named}', allowed is a program that can be started")
        return os.path.abspath(named)
    for folder in FOLDERS:
        path = os.path.join(folder, "dposlab")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("dposlab")
    if found is None:
        raise DposlabError(f"no program dposlab in {FOLDERS[0]} nor on the PATH; DPOSLAB_BIN names it")
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
        """Its output, as JSON. Raises :class:`DposlabError` with the end of standard error where it printed none."""
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
    told: Listener | None = None
    printed: Reader | None = None
    try:
        told = Listener(child.stderr, tell)
        printed = Reader(child.stdout)
        stdout = printed.text()
        child.wait()
    except BaseException:
        if printed is None:
            # It waits until its output is read.
            Reader(child.stdout)
        # A sweep keeps each row as it comes, and ends when the runs that it is at have; these may take long.
        stop(child, SWEEP_PATIENCE if arguments[0] == "sweep" else PATIENCE)
        raise
    finally:
        if told is not None:
            told.join()
        close(child)
    return judged(arguments, child.returncode, stdout, told.text())


def judged(arguments: Sequence[str], code: int, stdout: str, stderr: str) -> Ended:
    """The result of a child, or the error that its code stands for."""
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
    _check(arguments)
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


def _check(arguments: Sequence[str]) -> None:
    """Raises :class:`UsageError` where the system does not hand one of these words over."""
    for word in arguments:
        shown = repr(word if len(word) <= 100 else word[:100] + "...")
        try:
            length = len(os.fsencode(word))
        except UnicodeEncodeError:
            raise UsageError(f"found {shown}, allowed is text without lone surrogates") from None
        if "\0" in word:
            raise UsageError(f"found {shown}, allowed is text without NUL")
        if length > WORD_LIMIT:
            raise UsageError(f"found {shown}, which has {length} bytes, allowed are {WORD_LIMIT}: write it into the scenario's file")


def limited(memory: int) -> list[str]:
    """The prefix of a command that may have ``memory`` bytes of address space.

    A shell sets the limit before it becomes the program. Set from here, after the start, it would come too late: the program's
    allocator has taken a gigabyte of addresses by then. Where the shell must not set it, a lower one is in force already.
    """
    return ["/bin/sh", "-c", 'ulimit -v "$0" 2> /dev/null; exec "$@"', str(-(-memory // 1024))]


def stop(child: subprocess.Popen[str], patience: float = PATIENCE) -> None:
    """Ends a child, in good order if that takes no longer than ``patience`` seconds. A second Ctrl-C meanwhile ends it at once.

    A thread has to read its remaining output, because it waits for that. :func:`call` has a :class:`Reader` for it.
    """
    try:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(patience)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def close(child: subprocess.Popen[str]) -> None:
    """Closes what a child that has ended printed to."""
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


class Reader:
    """Reads all that a child prints, on a thread."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._text = ""
        self._over = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile
                self._text = self._stream.read() if self._stream is not None else ""
        finally:
            self._over.set()

    def text(self) -> str:
        """All of it, once there is no more. A Ctrl-C ends the wait."""
        while not self._over.wait(SIGNALS_EVERY):
            pass
        return self._text


class Listener:
    """Reads a child's standard error on a thread. Reports progress, and keeps the last of all other lines."""

    def __init__(self, stream: IO[str] | None, tell: Tell | None) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_TOLD)
        self._tell = tell
        self._thread = threading.Thread(target=self._listen, args=(stream,), daemon=True)
        self._thread.start()

    def _listen(self, stream: IO[str] | None) -> None:
        for line in stream or ():
            if line.startswith('{"progress":'):
                self._progress(line)
            else:
                self._lines.append(line.rstrip("\n"))

    def _progress(self, line: str) -> None:
        """Tells it. Where it cannot be shown, the rest is not: the child would wait for ever without a reader."""
        if self._tell is None:
            return
        try:
            self._tell(json.loads(line)["progress"])
        except Exception as error:
            self._tell = None
            self._lines.append(f"the progress cannot be shown: {type(error).__name__}: {error}")

    def join(self) -> None:
        """Waits until the child has closed its standard error."""
        self._thread.join()

    def text(self) -> str:
        """The last lines."""
        return "\n".join(self._lines)


def options(seed: int | None = None, set: Mapping[str, object] | None = None) -> list[str]:
    """The options that many commands share; ``set`` is by path, such as ``{"network.loss": 0.05}``."""
    given = [] if seed is None else ["--seed", str(seed)] if not str(seed).startswith("-") else [f"--seed={seed}"]
    for path, value in (set or {}).items():
        # One word, or a dash in front would begin an option.
        given.append(f"--set={path}={literal(value)}")
    return given


def literal(value: object) -> str:
    """A value as TOML has it. Raises :class:`UsageError` for what TOML has no form for."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # a number of numpy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        text = value if isinstance(value, str) else os.fsdecode(value)
        return text if WORD.fullmatch(text) else _text(text)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(str(key))} = {_inner(item)}" for key, item in value.items()) + " }"
    # Sets have no order.
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, AbstractSet)):
        return "[" + ", ".join(map(_inner, value)) + "]"
    raise UsageError(f"set: found {value!r}, allowed are texts, numbers, truth values, lists and tables of them")


def _inner(value: object) -> str:
    return _text(value) if isinstance(value, str) else literal(value)


def _text(text: str) -> str:
    """A text in quotes. JSON's are TOML's, but for two things: TOML knows no pairs of surrogates, and DEL has to be escaped."""
    # The system would hand some of them over as bytes that are no UTF-8.
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"set: found {text!r}, allowed is text without lone surrogates")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def path(given: Name) -> str:
    """The name of a file as a word of a command, where a dash in front would begin an option."""
    try:
        name = os.fsdecode(given)
    except TypeError:
        raise UsageError(f"found {given!r}, allowed is the path of a file") from None
    return os.path.join(os.curdir, name) if name.startswith("-") else name
