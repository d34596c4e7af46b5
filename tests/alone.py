"""Work in processes of their own: one that crashes, hangs or leaves children behind does not disturb the others."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[str, T], R]
Failed = Callable[[str, str], R]

PR_SET_PDEATHSIG = 1
"""The request of prctl(2) for a signal at the death of the parent."""


def _child(work: Work[T, R], failed: Failed[R], name: str, item: T, card: int | None, parent: int, pipe: Connection) -> None:
    os.setsid()  # a group of its own, which ends with it
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request
        return
    if card is not None:  # the first use of CUDA in this process
        os.environ["CUDA_VISIBLE_DEVICES"] = str(card)
    try:
        outcome = work(name, item)
    except Exception as error:
        outcome = failed("traceback", f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    pipe.send(outcome)


def _end(process: BaseProcess) -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()  # before it made its group
    process.join()


def each_alone(
    items: Mapping[str, T],
    work: Work[T, R],
    failed: Failed[R],
    jobs: int = 1,
    cards: int = 0,
    limit: float = 600,
    until: float = float("inf"),
) -> Iterator[tuple[str, R]]:
    """The result of `work` for each item in a process of its own, which may end or take longer than `limit` seconds;
    `jobs` of them run at once, each with one of `cards`. None starts after `until`, a moment of `time.monotonic`, and
    all end then. Processes end with their children, and with this one. `failed` makes the result of a process without
    one, of the stage (`crash`, `time` or `traceback`) and an error.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(enumerate(items.items()))
    running: dict[Connection, tuple[str, BaseProcess, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs and time.monotonic() < until:
                at, (name, item) = waiting.pop(0)
                ours, theirs = context.Pipe()
                card = at % cards if cards else None
                process = context.Process(target=_child, args=(work, failed, name, item, card, os.getpid(), theirs))
                process.start()
                theirs.close()
                running[ours] = name, process, time.monotonic() + limit
            if not running:
                return
            ready = wait(list(running), timeout=1)
            for pipe, (name, process, end) in list(running.items()):
                if pipe in ready:
                    try:
                        outcome = pipe.recv()
                    except EOFError:
                        outcome = failed("crash", "the process ended")
                elif time.monotonic() > min(end, until):
                    outcome = failed("time", f"not done after {limit:.0f} s")
                else:
                    continue
                _end(process)
                pipe.close()
                del running[pipe]
                yield name, outcome
    finally:
        for _, process, _ in running.values():
            _end(process)
