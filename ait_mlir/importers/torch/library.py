"""Imports `torch` with type `Any`, because its graphs have no static types."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Generator
from importlib import import_module
from typing import Any

from ait_mlir.errors import CompileError

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise CompileError(f"importing PyTorch models needs PyTorch ({error}); pip install torch") from error


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Suppress PyTorch's messages during tracing; its exceptions contain the errors."""
    loggers = [logging.getLogger("torch")]
    names = [n for n in logging.root.manager.loggerDict if n.startswith("torch.")]
    # the others have the level of their parent; to set a level takes time, because it clears the caches of all loggers
    loggers += [one for one in map(logging.getLogger, names) if one.level != logging.NOTSET]
    levels = [one.level for one in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for one in loggers:
            one.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for one, level in zip(loggers, levels, strict=True):
                one.setLevel(level)
