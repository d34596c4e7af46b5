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
    logger = logging.getLogger("torch")
    level = logger.level
    names = [n for n in logging.root.manager.loggerDict if n.startswith("torch.")]
    levels = {n: logging.getLogger(n).level for n in names}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for one in (logger, *map(logging.getLogger, names)):
            one.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            logger.setLevel(level)
            for n, old in levels.items():
                logging.getLogger(n).setLevel(old)
