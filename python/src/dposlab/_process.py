"""The program as a child process: finds it, starts it and makes sure that it ends."""

from __future__ import annotations

import contextlib
import json
import operator
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
from typing import IO, Any, Callable, TypeGuard

from ._errors import DposlabError, RunDied, UsageError

#: The number of lines of standard error that an error shows.
LINES_TOLD = 20
#: The longest time for an orderly stop of a child [s].
PATIENCE = 10.0
SWEEP_PATIENCE = 2.0

#: The longest time that the main thread waits before it checks for signals [s]. Python delivers a Ctrl-C that arrives between its last
#: check and a wait only after that wait.
SIGNALS_EVERY = 0.5

#: Commands that end with the process that started them, however it ends. Testnets do the same, by an option of their own call.
WATCHING = ("check", "explain", "run", "sweep")

#: Texts that the program reads as texts even without quotes, which are easier to read. No other value of TOML has this form.
WORD = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z_][A-Za-z0-9_-]*")

#: The longest argument of a command on Linux, without the byte that ends it [bytes].
WORD_LIMIT = (1 << 17) - 1

Tell = Callable[[dict[str, Any]], None]

#: The name of a file.
Name = str | bytes | os.PathLike[str] | os.PathLike[bytes]

#: The folders into which installers put programs. Read at import, because the first look-up is not safe in two threads at once.
FOLDERS = (
    sysconfig.get_path("scripts"),
    str(Path(sys.executable).parent),
    sysconfig.get_path("scripts", "posix_user"),
)


def binary() -> str:
    """The path of the program: ``DPOSLAB_BIN``, or the program installed with this package, or the one on the ``PATH``.

    Raises :class:`DposlabError` if there is none.
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
    """The result of a child: ``code`` is 0 or 1, ``stdout`` its whole output."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def json(self) -> Any:
        """Its output, as JSON. Raises :class:`DposlabError` with the end of standard error if the output is not JSON."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise DposlabError(self.stderr or "dposlab printed no JSON") from None


def call(arguments: Sequence[str], tell: Tell | None = None, cwd: str | None = None) -> Ended:
    """Starts the program and waits for its end.

    ``tell`` receives its progress: ``{"done": 3, "total": 100, ...}``. Ctrl-C stops the child and waits for its end. Raises
    :class:`UsageError` for exit code 2, and :class:`RunDied` if the child ended by a signal or another code than 0 and 1.
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
            # The child cannot end before its output is read.
            Reader(child.stdout)
        # A sweep saves each row at once, and ends with its current runs, which may take long.
        stop(child, SWEEP_PATIENCE if arguments[0] == "sweep" else PATIENCE)
        raise
    finally:
        if told is not None:
            told.join()
        close(child)
    return judged(arguments, child.returncode, stdout, told.text())


def judged(arguments: Sequence[str], code: int, stdout: str, stderr: str) -> Ended:
    """The result of a child. Raises the error of its exit code."""
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
    """Starts the program in a session of its own, so that a Ctrl-C reaches it only once, through this process.

    If this process ends, even by SIGKILL, the program ends a second later at most. ``memory`` limits its address space, in bytes
    (RLIMIT_AS).
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
    """Raises :class:`UsageError` if the system cannot pass one of these arguments."""
    for before, word in zip(["", *arguments], arguments):
        if not isinstance(word, str):
            raise UsageError(f"found {word!r} as an argument after {before!r}, allowed is a text")
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
    """The prefix that limits a command to ``memory`` bytes of address space.

    A shell sets the limit before it becomes the program. A limit that this process sets after the start would be too late: the
    program's allocator has reserved a gigabyte of addresses by then. If the shell may not set the limit, a lower one is in force.
    """
    return ["/bin/sh", "-c", 'ulimit -v "$0" 2> /dev/null; exec "$@"', str(-(-memory // 1024))]


def stop(child: subprocess.Popen[str], patience: float = PATIENCE) -> None:
    """Stops a child, and kills it if that takes longer than ``patience`` seconds. A second Ctrl-C meanwhile kills it at once.

    A thread must read the child's remaining output, because the child waits for that. :func:`call` has a :class:`Reader` for it.
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
    """Closes the output pipes of a child that has ended."""
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
        """The whole output, once it has ended. A Ctrl-C ends the wait."""
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
        """Reports the progress. After an error it reports no more, but reads on: without a reader the child would wait for ever."""
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
    given = [] if seed is None else ["--seed", whole("seed", seed)]
    if set is not None and not isinstance(set, Mapping):
        raise UsageError(f'set: found {set!r}, allowed is a dict such as {{"network.loss": 0.05}}')
    for path, value in (set or {}).items():
        # One argument, because a value with a leading dash would begin an option.
        given.append(f"--set={path}={literal(value)}")
    return given


def whole(name: str, value: object, least: int = 0) -> str:
    """A whole number as an argument of a command, which knows the greatest one. ``name`` is the caller's name for it."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise UsageError(f"{name}: found {value!r}, allowed is a whole number from {least} on")
    return str(number)


def listed(name: str, values: object, such_as: str) -> list[Any]:
    """The values of a list. Raises :class:`UsageError` for a text, which would be taken letter by letter, and for a single value."""
    if isinstance(values, (str, bytes, bytearray, Mapping)) or not isinstance(values, Iterable):
        raise UsageError(f"{name}: found {values!r}, allowed is a list, such as {such_as}")
    return list(values)


def plain(value: object) -> object:
    """The number of Python that equals a number of numpy. Returns any other value as it is."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of Python. A truth value is none, though ``bool`` is a subclass of ``int``."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def literal(value: object) -> str:
    """A value in the syntax of TOML. Raises :class:`UsageError` for a value that TOML cannot express."""
    value = plain(value)
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
    """A text in quotes. TOML's syntax is that of JSON, except that it has no surrogate pairs and that DEL must be escaped."""
    # The system would pass some of them as bytes that are not UTF-8.
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"set: found {text!r}, allowed is text without lone surrogates")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def path(given: Name) -> str:
    """The name of a file as an argument of a command. A name with a leading dash, which would begin an option, gets ``./``."""
    try:
        name = os.fsdecode(given)
    except TypeError:
        raise UsageError(f"found {given!r}, allowed is the path of a file") from None
    return os.path.join(os.curdir, name) if name.startswith("-") else name
