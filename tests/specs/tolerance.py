"""How close results must be to the reference, by class of op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.kernels.harness import Case, Library, assert_close, random_inputs, reference

Env = Mapping[str, int]
Array = np.ndarray[Any, Any]


# ** special values **

FLOATS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6e-8, -6e-8, 88.0, -88.0, 1e4, -1e4, 0.5, 3.0, 2.0)
TIES = (0, 3, 3, 2, 3, 1, 1)


def special_inputs(case: Case, env: Env, ties: bool) -> list[Array]:
    """NaN, infinities, zeros of both signs, small and large numbers, of integers the ends of their range; or equal ones."""
    arrays: list[Array] = []
    for i, drawn in enumerate(random_inputs(case, env)):
        values = np.array(TIES if ties else FLOATS)
        if drawn.dtype.kind in "iu" and not ties:
            ends = np.iinfo(drawn.dtype)
            values = np.array([ends.min, ends.max, 0, 1, -1, 3, -7])
        if i in case.below or drawn.dtype.kind == "b":
            arrays.append(drawn)
            continue
        with np.errstate(over="ignore"):
            arrays.append(np.resize(np.roll(values, 5 * i).astype(drawn.dtype), drawn.shape))
    return arrays


# ** tolerances **


@dataclass(frozen=True)
class Tolerance:
    """Per element type of the spec: `ulps` of each value, and `floor` times the largest value."""

    ulps: Mapping[str, float]
    floor: Mapping[str, float]
    terms: bool = False
    """Whether results are sums of numbers of both signs, which lose what the size of their terms loses."""
    gpu_floor: Mapping[str, float] | None = None
    """Where tensor cores round on the way."""

    def on_gpu(self) -> Tolerance:
        return self if self.gpu_floor is None else replace(self, floor=self.gpu_floor)

    def floor_of(self, want: Array, t: str, inputs: Sequence[Array]) -> float:
        """The floor for some results."""
        floor = self.floor.get(t, 0.0)
        if self.terms and floor:
            terms = max(1.0, inputs[0].size / max(1, want.size))
            scale = np.abs(want[np.isfinite(want)].astype(np.float64)).max(initial=1e-30)
            floor *= max(1.0, np.sqrt(terms) / scale)
        return floor

    def compare(self, got: Array, want: Array, t: str, inputs: Sequence[Array]) -> None:
        assert_close(got, want, self.ulps.get(t, 0.0), self.floor_of(want, t, inputs))

    def check_special(self, library: Library, case: Case, env: Env, t: str) -> None:
        """A case on special values: NaN and infinities in the same places, integers equal, limits to an ulp."""
        for ties in (False, True):
            inputs = special_inputs(case, env, ties)
            for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
                finite = np.ones(want.shape, np.bool_)
                for array in inputs:
                    fits = all(n in (1, m) for n, m in zip(array.shape[::-1], want.shape[::-1], strict=False))
                    if fits and array.ndim <= want.ndim:
                        finite &= np.isfinite(array.astype(np.float64))
                assert_close(got[finite], want[finite], 16, max(1e-6, self.floor_of(want, t, inputs)))
                with np.errstate(over="ignore", invalid="ignore"):
                    assert_close(got[~finite], want[~finite].astype(got.dtype).astype(want.dtype), ulps=1)

    def check(self, library: Library, case: Case, t: str) -> None:
        """Run a case at each of its dims and compare with the reference."""
        for env in case.envs:
            inputs = random_inputs(case, env)
            for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
                self.compare(got, want, t, inputs)


@dataclass(frozen=True)
class Bitwise(Tolerance):
    """Elements only move: every bit of them."""

    def compare(self, got: Array, want: Array, t: str, inputs: Sequence[Array]) -> None:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


MAPS = Tolerance(
    {"f16": 0.51, "bf16": 0.51, "f32": 4, "f64": 8},
    {"f16": 3e-7, "bf16": 3e-7, "f32": 3e-7, "f64": 1e-15},
)
"""Functions of a difference (the tail of gelu is 1 + erf) lose what float32 loses there."""
ROUNDED = Tolerance({"f16": 0.51, "bf16": 0.51, "f32": 0.51, "f64": 0.51}, {})
"""One operation that is rounded once."""
BITS = Bitwise({}, {})
ROWS = Tolerance(
    {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}, {"f16": 1e-6, "bf16": 1e-6, "f32": 1e-6, "f64": 1e-14}
)
SUMS = Tolerance(
    {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64},
    {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-15},
    terms=True,
)
PARTIAL_SUMS = Tolerance(
    {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}, {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14}
)
"""Each sum has the roundings of all before it: their error is measured against the largest of them."""
PRODUCTS = Tolerance(
    {"f16": 0.6, "bf16": 0.6, "f32": 2, "f64": 2, "i8": 2, "ui8": 2, "f8E4M3FN": 0.6, "f8E5M2": 0.6},
    {"f16": 1e-6, "bf16": 1e-6, "f32": 6e-7, "f64": 1e-14},
    gpu_floor={"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14, "f8E4M3FN": 5e-4, "f8E5M2": 5e-4},
)
"""Sums of products cancel: their error is measured against the largest result. Tensor cores keep 14 bits of sums of 128
products of 8-bit floats."""
ATTENTION = Tolerance(
    {"f16": 0.6, "bf16": 0.6, "f32": 2, "f64": 2},
    {"f16": 1e-5, "bf16": 1e-5, "f32": 1e-5, "f64": 3e-14},
    gpu_floor={"f16": 1e-3, "bf16": 8e-3, "f32": 2e-5, "f64": 3e-14},
)
"""Scores reach a few tens, so their rounding alone changes the weights by some 1e-6; tensor cores round the weights."""
QUANTISED_ATTENTION = replace(ATTENTION, ulps=dict.fromkeys(("f16", "bf16", "f32"), 1.1))
"""A value that is nearly a tie may become either of its neighbours in 8 bits."""
