"""Helpers of tests of bad input: small graphs, and the expected exception."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ait_mlir.graph as cudnn

HALF, FLOAT, INT32 = cudnn.data_type.HALF, cudnn.data_type.FLOAT, cudnn.data_type.INT32
NotSupported = cudnn.cudnnGraphNotSupportedError
Graph, Step, Input, Damaged = cudnn.GraphError, cudnn.StepError, cudnn.InputError, cudnn.ArtifactError


def new(**options: Any) -> Any:
    options = {"io_data_type": FLOAT, "intermediate_data_type": FLOAT, "compute_data_type": FLOAT, **options}
    return cudnn.pygraph(name="g", handle=cudnn.create_handle(device="cpu"), **options)


def raises(kind: type[Exception], *words: str) -> Any:
    """The exception, whose message has these words in this order."""
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, words)))


def product(g: Any, a: tuple[int, ...] = (4, 8), b: tuple[int, ...] = (8, 2), **types: Any) -> Any:
    return g.matmul(g.tensor(a, name="a", **types), g.tensor(b, name="b", **types), name="mm")
