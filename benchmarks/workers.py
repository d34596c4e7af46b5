"""Tasks in processes of their own: a task that crashes or takes too long ends its process, and the others go on."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

Work = Callable[[Any], Any]
"""What a process does with a task. It and its results are pickled."""


class _Worker:
    """A process, the task that it has, and when it must be done."""

    def __init__(self, context: Any, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
        self.pipe, theirs = context.Pipe()
        self.arguments = arguments
        self.process = context.Process(target=_serve, args=(theirs, start, arguments))
        self.process.start()
        theirs.close()
        self.task: Any = None
        self.until = 0.0

    def end(self, kill: bool) -> None:
        """End the process; without `kill`, it ends by itself because no task comes."""
        self.pipe.close()
        if kill:
            self.process.kill()
        self.process.join()


def _serve(pipe: Connection, start: Callable[..., Work], arguments: Sequence[Any]) -> None:
    """Do tasks until none comes; an exception ends the process after it has reported it."""
    with contextlib.suppress(ConnectionError):
        try:
            work = start(*arguments)
            while True:
                pipe.send(("done", work(pipe.recv())))
        except EOFError:
            return
        except (Exception, SystemExit) as error:
            pipe.send(("failed", f"{type(error).__name__}: {error}".strip()[:2000]))


def outcomes(
    tasks: Sequence[Any], start: Callable[..., Work], workers: Sequence[Sequence[Any]], limit: float
) -> Generator[tuple[Any, Any, str]]:
    """Do each task in one of several processes; yields (task, result, error) as they end.

    `workers` has the arguments of `start` for each process, which returns the function that does a task. A task that
    raises an exception, ends its process, or takes more than `limit` seconds has an error, and its process is replaced.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([start.__module__])
    left = list(tasks)[::-1]
    running: list[_Worker] = []

    def give(worker: _Worker) -> None:
        worker.task, worker.until = left.pop(), time.monotonic() + limit
        worker.pipe.send(worker.task)

    try:
        for arguments in workers[: len(left)]:
            running.append(_Worker(context, start, arguments))
            give(running[-1])
        while running:
            ready = wait([w.pipe for w in running], max(0.0, min(w.until for w in running) - time.monotonic()))
            for worker in [w for w in running if w.pipe in ready or time.monotonic() > w.until]:
                task, (result, error) = worker.task, _received(worker, limit, worker.pipe in ready)
                if error or not left:
                    worker.end(bool(error))
                    running.remove(worker)
                    if left:
                        running.append(worker := _Worker(context, start, worker.arguments))
                if left:
                    give(worker)
                yield task, result, error
    finally:
        for worker in running:
            worker.end(True)


def _received(worker: _Worker, limit: float, is_ready: bool) -> tuple[Any, str]:
    """The result of a process, or an error."""
    if not is_ready:
        return None, f"not done after {limit:g} s"
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        return None, f"the process ended with {worker.process.exitcode}"
    return (value, "") if kind == "done" else (None, value)
