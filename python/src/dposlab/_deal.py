"""Deals work out to an executor, and deals lost work out again.

Work is a range of numbers: runs of a sweep, seeds of a search. A range whose worker was lost is halved and dealt out again, down
to the single number. If the executor itself is lost, another one replaces it: a new executor, if the caller can make one,
otherwise threads of this process, which start children like any worker.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar, cast

from ._errors import DposlabError, UsageError
from ._jobs import as_executor, is_executor
from ._process import SIGNALS_EVERY

T = TypeVar("T")
#: The first number of a range, and the number after its last one.
Range = tuple[int, int]
#: The number of times that a single number may be lost with its worker.
ATTEMPTS = 3
#: The largest number of executors that the caller's function is asked to make.
EXECUTORS = 5
#: The time without an answer after which an executor counts as lost, unless the caller gives another [s].
PATIENCE = 600.0

MakeExecutor = Callable[[], Executor]


class Dealer(Generic[T]):
    """Deals ranges out until all are taken.

    The worker calls ``work`` with both ends of a range. ``take`` receives the result and returns the ranges to be done again.
    ``lost`` receives a number whose worker was lost three times. If no result arrives for ``patience`` seconds, the executor
    counts as lost.
    """

    def __init__(
        self,
        executor: Executor | MakeExecutor,
        work: Callable[[int, int], T],
        take: Callable[[Range, T], list[Range]],
        lost: Callable[[int], None],
        patience: float | None,
    ) -> None:
        if not is_executor(executor) and not callable(executor):
            allowed = "allowed is one of concurrent.futures, what has its submit(), or a callable that makes such a one"
            raise UsageError(f"executor: found {executor!r}, {allowed}")
        self._make: MakeExecutor | None = None if is_executor(executor) else cast(MakeExecutor, executor)
        self._executor = as_executor(executor if self._make is None else self._make())
        self._own = self._make is not None
        self._is_local = False
        self._work, self._take, self._lost, self._patience = work, take, lost, patience
        self._made = 1
        self._todo: deque[Range] = deque()
        self._waiting: dict[Future[T], Range] = {}
        self._attempts: dict[int, int] = {}
        self._came = False
        self._told: set[str] = set()

    def deal(self, ranges: Iterable[Range]) -> None:
        """Has all ranges done. Raises :class:`UsageError` as soon as a worker does, and then cancels the remaining work."""
        self._todo.extend(ranges)
        try:
            while self._todo or self._waiting:
                self._give_out()
                self._collect()
        finally:
            for future in self._waiting:
                future.cancel()
            if self._own:
                _shut(self._executor)

    def _give_out(self) -> None:
        while self._todo:
            first, end = self._todo.popleft()
            try:
                future = self._executor.submit(self._work, first, end)
            except Exception as error:
                self._todo.appendleft((first, end))
                self._replace(error)
            else:
                self._waiting[future] = (first, end)

    def _collect(self) -> None:
        # Threads of this process cannot be lost.
        patience = None if self._is_local else self._patience
        done: set[Future[T]] = set()
        began = time.monotonic()
        while not done:
            if patience is not None and time.monotonic() - began >= patience:
                self._replace(TimeoutError(f"nothing came back for {patience} s"))
                return
            left = SIGNALS_EVERY if patience is None else min(SIGNALS_EVERY, patience)
            done, _ = wait(list(self._waiting), timeout=left, return_when=FIRST_COMPLETED)
        broken: Exception | None = None
        for future in done:
            work = self._waiting.pop(future)
            try:
                played = future.result()
            except UsageError:
                raise
            except (BrokenExecutor, CancelledError) as error:
                # This range was lost together with others, so it may not be the cause.
                self._todo.extend(halves(work))
                broken = error
            except Exception as error:
                self._again(work, error)
            else:
                self._came = True
                self._todo.extend(self._take(work, played))
        if broken is not None:
            self._replace(broken)

    def _again(self, work: Range, why: Exception) -> None:
        first, end = work
        if end - first > 1:
            self._todo.extend(halves(work))
            return
        attempts = self._attempts[first] = self._attempts.get(first, 0) + 1
        if attempts < ATTEMPTS:
            self._todo.append(work)
            return
        # Workers without the program or without this package lose all work. No run is the cause of that.
        if not self._came and isinstance(why, (DposlabError, ImportError)):
            raise DposlabError(f"no worker can do the work: {type(why).__name__}: {why}") from why
        told = f"{type(why).__name__}: {why}"
        if told not in self._told:
            self._told.add(told)
            warnings.warn(f"number {first} is given up, lost with its worker {ATTEMPTS} times, the last time by {told}", stacklevel=5)
        self._lost(first)

    def _replace(self, why: Exception) -> None:
        """Replaces the executor. The new one gets all work of the old one."""
        for future, work in self._waiting.items():
            future.cancel()
            self._todo.append(work)
        self._waiting.clear()
        if self._own:
            _shut(self._executor)
        if self._make is not None and self._made < EXECUTORS:
            self._made += 1
            try:
                self._executor = as_executor(self._make())
            except Exception as error:
                why = error
            else:
                return
        warnings.warn(f"the executor is lost ({type(why).__name__}: {why}): the rest is done in this process", stacklevel=5)
        self._executor, self._own, self._is_local = ThreadPoolExecutor(os.cpu_count()), True, True


def _shut(executor: Executor) -> None:
    """Ends an executor without waiting for it. Some, such as Dask's, have the protocol of Python 3.8 and cancel by themselves."""
    try:
        executor.shutdown(wait=False, cancel_futures=True)
    except TypeError:
        executor.shutdown(wait=False)


def halves(work: Range) -> list[Range]:
    """Both halves of a range, or the range itself if it has one number."""
    first, end = work
    middle = (first + end) // 2
    return [(first, middle), (middle, end)] if end - first > 1 else [work]


def cut(ranges: Iterable[Range], cost: Callable[[int], float], parts: int) -> list[Range]:
    """Cuts ranges into about ``parts`` pieces of about the same cost. ``cost`` returns the cost of a number."""
    ranges = list(ranges)
    total = sum(cost(number) for first, end in ranges for number in range(first, end))
    each, pieces = total / max(parts, 1), []
    for first, end in ranges:
        begin, so_far = first, 0.0
        for number in range(first, end):
            so_far += cost(number)
            if so_far >= each:
                pieces.append((begin, number + 1))
                begin, so_far = number + 1, 0.0
        if begin < end:
            pieces.append((begin, end))
    return pieces


def parts_for(executor: Executor | MakeExecutor) -> int:
    """The number of pieces into which work is cut: eight for each worker. An executor of unknown size counts as eight workers."""
    workers = getattr(executor, "_max_workers", None)
    client = getattr(executor, "_client", None)
    if workers is None and client is not None:
        workers = len(client.ncores())
    return 8 * (workers if isinstance(workers, int) and workers > 0 else 8)


def check_effect(
    executor: Executor | MakeExecutor | None,
    jobs: int | None,
    *,
    timeout: float | None,
    patience: float | None,
    shards: int | None = None,
) -> None:
    """Raises :class:`UsageError` for an argument that would have no effect with this executor, or without one."""
    if executor is not None:
        if jobs is not None:
            raise UsageError(f"jobs: found {jobs!r}, allowed is None with an executor: each of its workers plays one run at a time")
        return
    for name, found, default in (("timeout", timeout, None), ("patience", patience, PATIENCE), ("shards", shards, None)):
        if found != default:
            raise UsageError(f"{name}: found {found!r}, allowed is {default} without an executor: any other value needs executor=")
