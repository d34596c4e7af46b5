"""One row for each operator name of AITemplate: a call with its documented signature, and PyTorch's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ait_mlir.frontend import IntVar, Tensor, ops

Built = Tensor | Sequence[Tensor]


@dataclass(frozen=True)
class Row:
    """`build(operator, *inputs)` makes tensors, `want(*inputs)` is the same in PyTorch, on float64.

    `inputs` are shapes as `3 x 4`, of float32; `3 x i64 < 5` are indices, `3 x bool` truth values. A dim with a name
    is one of `dims`, where it has a value: it may be up to twice as large.
    """

    name: str
    inputs: Sequence[str]
    build: Callable[..., Any]
    want: Callable[..., Any]
    given: Mapping[int, Sequence[Any]] = field(default_factory=dict[int, Sequence[Any]])
    """The values of inputs that cannot be random: offsets, lengths."""
    dims: Mapping[str, int] = field(default_factory=dict[str, int])

    def tensors(self, prefix: str = "") -> list[Tensor]:
        dims = {name: IntVar([1, 2 * value], name=prefix + name) for name, value in self.dims.items()}
        made: list[Tensor] = []
        for i, text in enumerate(self.inputs):
            shape, dtype, _ = parse(text)
            shape = [int(d) if d.isdigit() else dims[d] for d in shape]
            made.append(Tensor(shape=shape, dtype=dtype, name=f"{prefix}x{i}", is_input=True))
        return made

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.name))
        made: list[np.ndarray] = []
        for i, text in enumerate(self.inputs):
            shape, dtype, below = parse(text)
            shape = [int(d) if d.isdigit() else self.dims[d] for d in shape]
            if i in self.given:
                made.append(np.asarray(self.given[i], dtype).reshape(shape))
            elif dtype == "float32":
                made.append(rng.standard_normal(shape).astype(np.float32))
            else:
                made.append(rng.integers(0, below, shape).astype(dtype))
        return made

    def outputs(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        built = self.build(getattr(ops, self.name), *inputs)
        return [built] if isinstance(built, Tensor) else list(built)

    def wanted(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        tensors = [torch.from_numpy(a.astype(np.float64) if a.dtype.kind == "f" else a) for a in arrays]
        found = self.want(*tensors)
        return [f.numpy() for f in ([found] if isinstance(found, torch.Tensor) else found)]


DTYPES = {"i64": "int64", "i32": "int32", "bool": "bool"}


def parse(text: str) -> tuple[list[str], str, int]:
    """Shape, dtype and, for indices, their upper limit, which is excluded."""
    text, _, below = text.partition(" < ")
    dims = text.split(" x ")
    dtype = DTYPES[dims.pop()] if dims[-1] in DTYPES else "float32"
    return dims, dtype, int(below or 2)
