"""Executors that return jobs of their own and not futures of :mod:`concurrent.futures`, such as submitit's for Slurm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

#: The interval at which jobs are polled [s]. Polling is cheap: submitit itself asks Slurm once a minute at most.
EVERY = 0.2


class Jobs(Executor):
    """An executor over one whose ``submit`` returns an object with ``done()``, ``result()`` and ``cancel()``."""

    def __init__(self, giver: Any) -> None:
        self._giver = giver
        self._waiting: dict[Future[Any], Any] = {}
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Submits ``work`` as a job. Cancelling the returned future cancels the job."""
        job, future = self._giver.submit(work, *arguments, **named), Future[Any]()
        future.add_done_callback(lambda future: job.cancel() if future.cancelled() else None)
        with self._changed:
            self._waiting[future] = job
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for the submitted jobs, or cancels them. The underlying executor stays open."""
        with self._changed:
            futures = list(self._waiting)
        for future in futures if cancel_futures else ():
            future.cancel()
        if wait:
            with self._changed:
                self._changed.wait_for(lambda: not self._waiting)

    def _watch(self) -> None:
        """Collects the results of finished jobs until no job is left."""
        while True:
            with self._changed:
                waiting = dict(self._waiting)
                if not waiting:
                    self._watcher = None
                    return
            done = [(future, job) for future, job in waiting.items() if future.cancelled() or job.done()]
            for future, job in done:
                _hand_over(future, job)
            with self._changed:
                for future, _ in done:
                    del self._waiting[future]
                self._changed.notify_all()
                if not done:
                    self._changed.wait(EVERY)


def _hand_over(future: Future[Any], job: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job.result())
    except BaseException as error:
        future.set_exception(error)


def as_executor(given: Any) -> Executor:
    """Returns the given object if it has the protocol, or an executor over it."""
    return given if isinstance(given, Executor) else Jobs(given)


def is_executor(given: Any) -> bool:
    """Whether the object accepts work. Otherwise it is a callable that makes executors."""
    return isinstance(given, Executor) or (callable(getattr(given, "submit", None)) and not isinstance(given, type))
