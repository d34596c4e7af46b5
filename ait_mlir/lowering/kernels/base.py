"""What a kernel promises: `Kernel`, and what it is given and returns: `Target`, `Arg`, `Emission`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.target import Target

Strides = tuple[Expr, ...]


def row_major(dims: Sequence[Expr]) -> Strides:
    """The strides of a contiguous tensor of this shape, in elements."""
    strides: list[Expr] = []
    step = const(1)
    for dim in reversed(dims):
        strides.append(step)
        step = step * dim
    return tuple(reversed(strides))


def is_row_major(dims: Sequence[Expr], strides: Sequence[Expr], scope: Scope | None = None) -> bool:
    """Whether the strides are those of a contiguous tensor; the stride of a dim that is literally 1 does not matter."""
    return all(
        dim.as_int() == 1 or have is want or (scope is not None and scope.equal(have, want))
        for dim, have, want in zip(dims, strides, row_major(dims), strict=True)
    )


@dataclass(frozen=True)
class Arg:
    """One buffer as the kernel function sees it: a typed pointer called `name`, strides in elements.

    `constant`: nothing ever writes it, so a kernel may read it before the launch before has ended.
    """

    name: str
    type: TensorType
    strides: Strides
    constant: bool = False

    def is_contiguous(self) -> bool:
        return is_row_major(self.type.dims, self.strides)


@dataclass(frozen=True)
class Emission:
    """The code of one launch.

    `includes` are header paths as in `#include "ait/kernels/cpu/map.h"`; `definitions` stand at namespace scope, with
    `@ID@` for a unique identifier; `body` are the statements of the kernel function, which return a status.
    """

    includes: tuple[str, ...]
    definitions: str
    body: str


class Kernel(ABC):
    """One way to run one op as one launch."""

    provider: ClassVar[str]
    """Who made it: `native`, `openblas`, `cublaslt`."""
    name: ClassVar[str]
    """What it is, for names of C++ functions and dumps: `map`."""
    optional_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of a configuration beside those that `configs` offers."""
    only_timed: ClassVar[bool] = False
    """Never chosen by estimate: what it needs may not be there."""
    alone: ClassVar[bool] = False
    """Its launch neither starts before the one before it has ended nor lets the next one start before that."""
    algorithm_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of a configuration that name an algorithm of a library, in the order of `ait_gemm_algorithm_v1`. The library
    says when it runs which it has, so `configs` offers none; without them it takes its own first."""

    @abstractmethod
    def matches(self, op: Operation, target: Target) -> bool:
        """Whether it can run this op: its types, regions and dims."""

    def configs(self, op: Operation, target: Target) -> list[dict[str, int]]:
        """The tunable choices, best guess first; `[{}]` when there are none."""
        return [{}]

    @abstractmethod
    def heuristic(self, op: Operation, target: Target) -> float:
        """Estimated seconds at the dims' hints or maximum."""

    @abstractmethod
    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether operand `position` (results follow the operands) may have these strides."""

    def panels(self, op: Operation, position: int) -> str | None:
        """The panels (`nk`, `kn`) in which the constant at operand `position` must lie; None: row-major."""
        return None

    def workspace(self, op: Operation, config: Mapping[str, int] | None = None) -> Expr:
        """Bytes of scratch memory with a configuration."""
        return const(0)

    def config_problem(self, op: Operation, config: Mapping[str, int], target: Target) -> str | None:
        """Why this is no configuration of the kernel for `op`: a key it does not have, a value it refuses."""
        if not config:
            return None
        offered = self.configs(op, target)
        known = {key for c in offered for key in c} | self.optional_keys
        if unknown := sorted(set(config) - known):
            keys = f"its keys are {', '.join(sorted(known))}" if known else "it has none"
            return f"unknown configuration {unknown[0]!r}; {keys}"
        for key, value in config.items():
            if value < 0:
                return f"configuration {key!r} is {value}, expected at least 0"
        try:
            self.emit(op, *_contiguous(op), {d.name: d.name for d in scope_of(op).dims}, config, target)
        except ValueError as error:
            return str(error)
        return None

    @abstractmethod
    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        """The code of the launch; `cpp_dims` maps the name of a dim to the C++ variable that holds it."""


def _contiguous(op: Operation) -> tuple[list[Arg], list[Arg]]:
    """The arguments of `emit` when all buffers are row-major."""

    def arg(name: str, t: Attribute) -> Arg:
        type_ = cast(TensorType, t)
        return Arg(name, type_, row_major(type_.dims))

    ins = [arg(f"a{i}", t) for i, t in enumerate(op.operand_types)]
    return ins, [arg(f"o{i}", t) for i, t in enumerate(op.result_types)]


# ** estimates **


def estimate_env(scope: Scope) -> dict[str, int]:
    """The dims at which estimates are made: the largest hint, else the maximum."""
    return {dim.name: max(dim.hints) if dim.hints else dim.hi for dim in scope.dims}


def bytes_moved(op: Operation, scope: Scope) -> int:
    """The bytes that `op` touches, at `estimate_env`."""
    assert isinstance(op, Cost), f"{op.name} does not say what it touches"
    return op.bytes_touched().evaluate(estimate_env(scope))


def element_bytes(t: TensorType) -> int:
    return BY_IR[t.element_type].bytes
