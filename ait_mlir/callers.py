"""The caller: the line of the user's program that called this package."""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType

BETWEEN = {"ait_mlir", "torch", "concurrent", "contextlib", "functools", "threading"}
"""Packages whose frames lie between the user's program and ours."""


def caller() -> tuple[str, int]:
    """The file and line of the innermost frame of the user's program."""
    frame = _frame()
    return frame.f_code.co_filename, frame.f_lineno


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn as `warnings.warn` does, at the line of the user's program that called this package."""
    frame = _frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__")
    warnings.warn_explicit(text, kind, frame.f_code.co_filename, frame.f_lineno, name, registry)


def _frame() -> FrameType:
    """The innermost frame of the user's program in this thread; in a thread of ours, that of the main thread."""
    own = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    starts: list[FrameType | None] = [own]
    if threading.current_thread() is not threading.main_thread():  # else it is a frame that would refer to itself
        starts.append(sys._current_frames().get(threading.main_thread().ident or 0))  # pyright: ignore[reportPrivateUsage]
    for start in starts:
        frame = start
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in BETWEEN:
            frame = frame.f_back
        if frame is not None:
            return frame
    return own
