"""The exact numbers behind rounded constants: `0.7071` in f16 is 0.70703125, which a rewrite may replace by sqrt(1/2).

If a pass replaces a rounded constant by the number that it stands for, or the number by a constant, the outputs of the
reference change. `Refit` searches for numbers, within the rounding of such constants, with which the module before the
pass has the same outputs as the module after it. A change that no such numbers explain is a mistake of the pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import scipy.optimize
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64
from xdsl.ir import Operation

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.reference.core import UNROUNDED, Array, element_type_of, storage_dtype

MOST = 32
"""Most uses of replaced constants that are fitted; with more, differences are reported without a fit."""
STEPS = 6
"""Iterations of the fit. Outputs are nearly linear in the numbers, so that each gains about three digits."""

Number = tuple[str, float]
"""The element type of a constant, and its value rounded to that type."""


def replaced_constants(module: ModuleOp, root: Operation, other: ModuleOp, of_other: Operation) -> list[ConstantOp]:
    """The rounded constants of a graph or program that have fewer uses in the other module, before or after a pass;
    empty if there are more than `MOST`.

    It first gives each use its own constant in `module`, as a pass may replace only some uses.
    """
    for op in _constants(module, root):
        for use in list(op.results[0].uses)[1:]:
            copy = op.clone()
            cast(Any, op.parent).insert_op_after(copy, op)
            use.operation.operands[use.index] = copy.results[0]
    fewer = Counter(_uses(module, root))
    fewer.subtract(Counter(_uses(other, of_other)))
    found = [op for op in _constants(module, root) if fewer[_number(op)] > 0]
    return found if len(found) <= MOST else []


def _constants(module: ModuleOp, root: Operation) -> list[ConstantOp]:
    """The rounded constants of one number in a graph, or in all kernels of the module for a program."""
    ops = root.walk() if isinstance(root, GraphOp) else module.walk()
    return [op for op in ops if isinstance(op, ConstantOp) and _is_rounded(op)]


def _uses(module: ModuleOp, root: Operation) -> list[Number]:
    return [_number(op) for op in _constants(module, root) for _ in op.results[0].uses]


def _is_rounded(op: ConstantOp) -> bool:
    element_type = element_type_of(op.results[0].type)
    if not is_float(element_type) or storage_dtype(element_type).itemsize == 8 or np.array(op.values()).size != 1:
        return False
    value = _number(op)[1]
    return math.isfinite(value) and abs(math.frexp(value)[0]) not in (0.0, 0.5)


def _number(op: ConstantOp) -> Number:
    element_type = element_type_of(op.results[0].type)
    return str(element_type), float(np.array(op.values()).reshape(-1)[0].astype(storage_dtype(element_type)))


class Refit:
    """A module with other numbers for some of its constants."""

    def __init__(self, module: ModuleOp, root: Operation, constants: Sequence[ConstantOp]) -> None:
        self.module = module
        self.root = root
        self.constants = constants
        self.center = np.array([_number(op)[1] for op in constants])
        self.reach = np.array([half_step(op) for op in constants])

    def set(self, places: Array) -> None:
        """Set the constants' numbers; -1 and 1 mean half a step of the type below and above the constant."""
        for op, value in zip(self.constants, self.center + places * self.reach, strict=True):
            op.attributes[UNROUNDED] = FloatAttr(float(value), f64)

    def fit(self, evaluate: Callable[[], Mapping[str, Array]], wanted: Mapping[str, Array]) -> None:
        """Set the constants to the numbers whose outputs are nearest to the wanted outputs."""
        places = np.zeros(len(self.constants))

        def outputs(at: Array) -> Array:
            self.set(at)
            found = evaluate()
            return np.concatenate(
                [_scaled(found[name], wanted[name]) for name in wanted if found[name].shape == wanted[name].shape]
                or [np.zeros(0)]
            )

        slopes = np.stack([(outputs(one) - outputs(-one)) / 2 for one in np.eye(len(self.constants))], axis=1)
        if not slopes.size:
            return
        for _ in range(STEPS):
            bounds = (-1 - places - 1e-12, 1 - places + 1e-12)
            places = places + cast(Any, scipy.optimize).lsq_linear(slopes, -outputs(places), bounds=bounds).x
        self.set(places)


def half_step(op: ConstantOp) -> float:
    """Half the distance between neighbouring numbers of the element type at the constant."""
    kind, value = _number(op)
    bits = {"f16": 11, "bf16": 8, "f32": 24}[kind]
    return math.ldexp(1.0, math.frexp(value)[1] - bits - 1)


def _scaled(found: Array, wanted: Array) -> Array:
    """The differences from the wanted elements divided by the largest of them; 0 for infinities, NaN and integers."""
    if wanted.dtype.kind != "f":
        return np.zeros(wanted.size)
    with np.errstate(all="ignore"):
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
        return np.nan_to_num((found - wanted) / scale, nan=0.0, posinf=0.0, neginf=0.0).reshape(-1)
