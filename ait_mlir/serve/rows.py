"""Checks that the rows of a batch do not influence each other, by runs of the model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ait_mlir.dtypes import BY_NAME, numpy_dtype
from ait_mlir.errors import AitError
from ait_mlir.reference.sampling import generator, random_values
from ait_mlir.runtime import Model
from ait_mlir.runtime.from_host import Array, run_on_host
from ait_mlir.serve.joining import BatchDim

_ROUNDING = 8
"""Units in the last place of the largest element by which runs of one shape may differ."""
_OTHER_KERNELS = 0.05
"""Relative error that kernels for other batch sizes may add."""


def random_inputs(model: Model, dims: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Inputs for these dims: normal floats, integers 0 and 1."""
    return {
        name: random_values(generator(seed, name), shape, numpy_dtype(model.get_input_dtype(name)), 2)
        for name, shape in model.input_shapes(dims).items()
    }


def small_dims(model: Model) -> dict[str, int]:
    """Small values of the dims, at least 1 where the range has one."""
    return {name: max(lo, min(hi, 1)) for name, (lo, hi) in model.dims.items()}


def problem_of_rows(model: Model, dim: BatchDim) -> str:
    """How rows along a dim influence each other; "" if runs show no influence.

    A row is run between different other rows, and alone. A model that normalises or attends along the dim, or that adds
    something else at each place, gives it other outputs.
    """
    count = min(dim.hi, max(dim.lo, 3))
    middle = (count - 1) // 2
    dims = {**small_dims(model), dim.name: count}
    alone = {**dims, dim.name: max(dim.lo, 1)}
    first, second = random_inputs(model, dims, 1), random_inputs(model, dims, 2)
    single = random_inputs(model, alone, 3)
    for name, x in single.items():
        if name in dim.of:
            x[:] = first[name][middle]
            second[name][middle] = first[name][middle]
        else:
            x[...] = second[name][...] = first[name]
    try:
        a, b, c = (run_on_host(model, inputs) for inputs in (first, second, single))
    except AitError as error:
        return f"a run with random inputs failed: {error}"
    for name in a:
        if not _are_close(a[name][middle], b[name][middle]):
            return f"output '{name}' of a row depends on other rows"
        if not _are_alike(a[name][middle], c[name][0]):
            return f"output '{name}' of a row depends on its place"
    return ""


def _are_close(x: Array, y: Array) -> bool:
    """Whether arrays differ by rounding alone."""
    if x.dtype.kind in "biu":
        return np.array_equal(x, y)
    eps = 2.0 ** -BY_NAME[x.dtype.name].mantissa
    a, b = x.astype(np.float64), y.astype(np.float64)
    finite = np.abs(a[np.isfinite(a)])
    return np.allclose(a, b, rtol=0, atol=_ROUNDING * eps * float(finite.max(initial=0)), equal_nan=True)


def _are_alike(x: Array, y: Array) -> bool:
    """Whether arrays differ by no more than other kernels for the same numbers may."""
    a, b = (np.nan_to_num(value.astype(np.float64), posinf=0, neginf=0) for value in (x, y))
    eps = 0.0 if x.dtype.kind in "biu" else 2.0 ** -BY_NAME[x.dtype.name].mantissa
    return bool(np.linalg.norm(a - b) <= max(_OTHER_KERNELS, _ROUNDING * eps) * np.linalg.norm(a))
