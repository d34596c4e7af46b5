"""What selection writes on an op: one kernel with its configuration, or several, each over a range of sizes.

    kernel = #ait.kernel<"cublaslt", {id = 66 : i64, tile = 20 : i64, stages = 36 : i64}>
    kernel = #ait.kernel<"ranges", {axis = "batch*seq", upto = [512 : i64], ways = [
      {kernels = [#ait.kernel<"hopper", {tile_m = 64 : i64}>]},
      {kernels = [#ait.kernel<"cublaslt", {}>, #ait.kernel<"native", {}>], cut = 1 : i64}]}>

The second reads: while `batch*seq` is at most 512 the first way, else the second. A way with a `cut` runs an epilogue
in two launches, the contraction with the first `cut` of its ops and the rest; what passes between them stands in the
workspace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.types import KernelAttr, scope_of, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.dims import DimError, DimSyntaxError, Expr, Scope, ceildiv, const, maximum, parse, total
from ait_mlir.lowering.fragments import place, standalone
from ait_mlir.lowering.kernels import ALGORITHM_KEYS, Arg, Emission, Kernel, Target, kernel_of
from ait_mlir.lowering.kernels.base import Strides

RANGES = "ranges"
ALIGNMENT = 256
"""Bytes to which a value between two launches is rounded up."""

Config = Mapping[str, int]


@dataclass(frozen=True)
class Way:
    """One way to run an op: where its epilogue is cut, and provider and configuration of each launch."""

    cut: int | None
    steps: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]

    @staticmethod
    def of(cut: int | None, steps: Sequence[tuple[str, Config]]) -> Way:
        return Way(cut, tuple((provider, tuple(sorted(config.items()))) for provider, config in steps))

    @property
    def text(self) -> str:
        """As JSON, always the same for equal ways."""
        return json.dumps([self.cut, [[p, dict(c)] for p, c in self.steps]], separators=(",", ":"))

    @staticmethod
    def read(text: str) -> Way:
        cut, steps = json.loads(text)
        return Way.of(cut, [(p, c) for p, c in steps])

    @cached_property
    def algorithm(self) -> tuple[int, ...]:
        """The library algorithm that the way names, all parts of it; empty where it leaves that to the library."""
        for provider, config in self.steps:
            keys, values = ALGORITHM_KEYS.get(provider, ()), dict(config)
            if any(key in values for key in keys):
                return tuple(values.get(key, 0) for key in keys)
        return ()

    @property
    def asks_a_library(self) -> bool:
        """Whether a launch of it is on a library that has algorithms to name."""
        return any(provider in ALGORITHM_KEYS for provider, _ in self.steps)

    def naming(self, algorithm: Sequence[int]) -> Way:
        """The way with another library algorithm; with none for an empty one."""
        steps: list[tuple[str, Config]] = []
        for provider, config in self.steps:
            keys = ALGORITHM_KEYS.get(provider, ())
            named = {key: part for key, part in zip(keys, algorithm, strict=False) if part or key == keys[0]}
            steps.append((provider, {**{k: v for k, v in config if k not in keys}, **named}))
        return Way.of(self.cut, steps)

    def describe(self) -> str:
        """For people: `cublaslt {id=66, tile=20} + native`."""
        parts = [p + (f" {{{', '.join(f'{k}={v}' for k, v in c)}}}" if c else "") for p, c in self.steps]
        return " + ".join(parts) + ("" if self.cut is None else f" (cut {self.cut})")

    def kernels(self) -> list[KernelAttr]:
        return [KernelAttr(StringAttr(p), config_attr(dict(c))) for p, c in self.steps]


@dataclass(frozen=True)
class Choice:
    """Ways over ranges of `axis`: way i while the axis is at most `upto[i]`, the last beyond; one way needs none."""

    ways: tuple[Way, ...]
    upto: tuple[int, ...] = ()
    axis: Expr | None = None

    @property
    def text(self) -> str:
        """As JSON."""
        axis = None if self.axis is None else str(self.axis)
        return json.dumps([[json.loads(way.text) for way in self.ways], self.upto, axis])

    @staticmethod
    def read(text: str) -> Choice:
        ways, upto, axis = json.loads(text)
        return Choice(tuple(Way.read(json.dumps(w)) for w in ways), tuple(upto), None if axis is None else parse(axis))

    def attr(self) -> KernelAttr:
        """What stands on an op that is not cut."""
        if len(self.ways) == 1:
            return self.ways[0].kernels()[0]
        ways: list[Attribute] = []
        for way in self.ways:
            fields: dict[str, Attribute] = {"kernels": ArrayAttr(way.kernels())}
            ways.append(DictionaryAttr(fields if way.cut is None else fields | {"cut": IntegerAttr(way.cut, i64)}))
        upto = ArrayAttr([IntegerAttr(n, i64) for n in self.upto])
        fields = {"axis": StringAttr(str(self.axis)), "upto": upto, "ways": ArrayAttr(ways)}
        return KernelAttr(StringAttr(RANGES), DictionaryAttr(fields))

    def describe(self) -> str:
        if len(self.ways) == 1:
            return self.ways[0].describe()
        limits = [*(f"to {n}" for n in self.upto), "beyond"]
        return f"{self.axis} " + "; ".join(f"{n}: {w.describe()}" for n, w in zip(limits, self.ways, strict=True))


def config_attr(config: Config) -> DictionaryAttr:
    return DictionaryAttr({key: IntegerAttr(value, i64) for key, value in config.items()})


def config_of(attr: DictionaryAttr) -> dict[str, int]:
    """The configuration of a single kernel; `ValueError` for a value that is no integer."""
    for key, value in attr.data.items():
        if not isinstance(value, IntegerAttr):
            raise ValueError(f"configuration {key!r} of the kernel is {value}, expected an integer")
    return {k: cast(IntegerAttr[Any], v).value.data for k, v in attr.data.items()}


def read_ranges(config: DictionaryAttr) -> Choice:
    """The ways of a `ranges` kernel; `ValueError` says what is wrong with the text."""
    data = config.data
    if set(data) != {"axis", "upto", "ways"}:
        raise ValueError(f"ranges has axis, upto and ways; found {', '.join(sorted(data)) or 'nothing'}")
    axis, upto, ways = data["axis"], _items(data["upto"]), _items(data["ways"])
    if not isinstance(axis, StringAttr) or upto is None or ways is None:
        raise ValueError('expected ranges like {axis = "batch", upto = [8 : i64], ways = [{kernels = [...]}, ...]}')
    try:
        expression = parse(axis.data)
    except (DimSyntaxError, DimError) as error:
        raise ValueError(f"the axis {axis.data!r} of ranges is no dim expression: {error}") from None
    limits = [cast(IntegerAttr[Any], n).value.data for n in upto if isinstance(n, IntegerAttr)]
    if len(limits) != len(upto) or limits != sorted(set(limits)):
        raise ValueError(f"upto of ranges must be integers that grow, found {data['upto']}")
    if len(ways) != len(limits) + 1:
        raise ValueError(f"{len(limits)} limits make {len(limits) + 1} ranges, found {len(ways)} ways")
    return Choice(tuple(_read_way(w) for w in ways), tuple(limits), expression)


def _items(attr: Attribute | None) -> tuple[Attribute, ...] | None:
    return tuple(cast(ArrayAttr[Attribute], attr).data) if isinstance(attr, ArrayAttr) else None


def _read_way(attr: Attribute) -> Way:
    data: Mapping[str, Attribute] = attr.data if isinstance(attr, DictionaryAttr) else {}
    kernels, cut = _items(data.get("kernels")), data.get("cut")
    if kernels is None or not set(data) <= {"kernels", "cut"}:
        raise ValueError(f"a way of ranges is {{kernels = [...]}}, with cut = N where it is cut; found {attr}")
    if cut is not None and not isinstance(cut, IntegerAttr):
        raise ValueError(f"the cut of a way must be an integer, found {cut}")
    steps: list[tuple[str, Config]] = []
    for kernel in kernels:
        if not isinstance(kernel, KernelAttr) or kernel.provider.data == RANGES:
            raise ValueError(f'the kernels of a way are like #ait.kernel<"native", {{}}>, found {kernel}')
        steps.append((kernel.provider.data, config_of(kernel.config)))
    return Way.of(None if cut is None else cast(IntegerAttr[Any], cut).value.data, steps)


@dataclass(frozen=True)
class Step:
    """One launch of a way: the op, its kernel, and where its operands come from.

    Operands are numbered as those of the whole op; -1 is the result of the step before, row-major, of which an operand
    may be a part along the last dim: it begins with the element in `starts`.
    """

    op: Operation
    kernel: Kernel
    config: Config
    sources: tuple[int, ...]
    starts: tuple[Expr, ...]


def steps_of(op: Operation, way: Way, target: Target) -> list[Step]:
    """The launches of a way; `ValueError` when it cannot run this op."""
    if way.cut is None and len(way.steps) == 1:
        provider, config = way.steps[0]
        count = len(op.operands)
        return [Step(op, kernel_of(provider, op, target), dict(config), tuple(range(count)), (const(0),) * count)]
    _, alone = standalone(op, shared=False)
    numbers: dict[SSAValue, int] = {v: i for i, v in enumerate(alone.operands)}
    parts = place(alone, way.cut)
    if len(parts) != len(way.steps) or (way.cut is not None and len(parts) == 1):
        where = "as a whole" if way.cut is None else f"with its epilogue cut after {way.cut} ops"
        raise ValueError(f"{op.name} {where} is {len(parts)} launches, {len(way.steps)} kernels are given")
    steps: list[Step] = []
    for part, (provider, config) in zip(parts, way.steps, strict=True):
        kernel = kernel_of(provider, part, target)
        sources, starts = tuple(numbers.get(v, -1) for v in part.operands), tuple(map(_start, part.operands))
        steps.append(Step(part, kernel, dict(config), sources, starts))
    return steps


def _start(value: SSAValue) -> Expr:
    """The element with which a part of a split along the last dim begins; 0 of all else."""
    split = value.owner
    if not isinstance(split, SplitOp):
        return const(0)
    before = split.results[: list(split.results).index(cast(Any, value))]
    return total(tensor_type(v).dims[-1] for v in before)


def packs(kernel: Kernel, op: Operation) -> bool:
    """Whether the kernel wants a weight in panels, which the other kernels could not read."""
    return any(kernel.panels(op, i) is not None for i in range(len(op.operands)))


class RangesKernel(Kernel):
    """Several ways to run one op, each over a range of an expression of the dims; the host decides at each run."""

    provider = RANGES
    name = "ranges"

    def __init__(self, choice: Choice, op: Operation, target: Target) -> None:
        assert choice.axis is not None
        self.axis, self.upto = choice.axis, choice.upto
        self.ways = [steps_of(op, way, target) for way in choice.ways]
        for step in (s for steps in self.ways for s in steps):
            if packs(step.kernel, step.op):
                raise ValueError(f"{step.kernel.provider} packs a weight, so it cannot be one of several kernels")

    def matches(self, op: Operation, target: Target) -> bool:
        return True

    def heuristic(self, op: Operation, target: Target) -> float:
        return max(sum(s.kernel.heuristic(s.op, target) for s in steps) for steps in self.ways)

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether every way does."""
        return all(
            step.kernel.accepts(step.op, at, strides, scope)
            for steps in self.ways
            for step in steps
            for at in _positions(op, position, step, step is steps[-1])
        )

    def workspace(self, op: Operation, config: Config | None = None) -> Expr:
        """Room for the way that needs most: what passes between its launches, then the scratch memory of each."""
        return _largest([self.way_bytes(steps) for steps in self.ways], scope_of(op))

    def way_bytes(self, steps: Sequence[Step]) -> Expr:
        scratch = _largest([s.kernel.workspace(s.op, s.config) for s in steps], scope_of(steps[0].op))
        return between_bytes(steps) + scratch

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        raise ValueError("ranges is printed way by way")


def _positions(op: Operation, position: int, step: Step, is_last: bool) -> Iterator[int]:
    count = len(op.operands)
    if position < count:
        yield from (i for i, source in enumerate(step.sources) if source == position)
    elif is_last:
        yield len(step.sources) + position - count


def between_bytes(steps: Sequence[Step]) -> Expr:
    """Bytes of what the first launch of a way leaves for the second."""
    if len(steps) == 1:
        return const(0)
    return ceildiv(tensor_type(steps[0].op.results[0]).byte_size(), ALIGNMENT) * ALIGNMENT


def _largest(sizes: Sequence[Expr], scope: Scope) -> Expr:
    best = sizes[0]
    for size in sizes[1:]:
        if not scope.le(size, best):
            best = size if scope.le(best, size) else maximum(best, size)
    return best


def chosen_kernel(provider: str, config: DictionaryAttr, op: Operation, target: Target) -> Kernel:
    """The kernel of a choice that stands in the IR; `ValueError` when there is none."""
    if provider == RANGES:
        return RangesKernel(read_ranges(config), op, target)
    return kernel_of(provider, op, target)


def workspace_of(kernel: Kernel, op: Operation, config: DictionaryAttr) -> Expr:
    """Bytes of scratch memory that a kernel needs with a choice that stands in the IR."""
    return kernel.workspace(op, None if kernel.provider == RANGES else config_of(config))


def choice_problem(provider: str, config: DictionaryAttr, op: Operation, target: Target) -> str | None:
    """Why a choice cannot run the op: an unknown provider, a configuration it does not have, ranges of no dim."""
    try:
        if provider != RANGES:
            return _config_problem(kernel_of(provider, op, target), config_of(config), op, target)
        ranges = RangesKernel(read_ranges(config), op, target)
    except ValueError as error:
        return str(error)
    scope = scope_of(op)
    if unknown := sorted(name for name in ranges.axis.symbols if name not in scope):
        return f"the axis {ranges.axis} of ranges has the dim {unknown[0]!r}, which is not declared"
    for step in (s for steps in ranges.ways for s in steps):
        if (problem := _config_problem(step.kernel, step.config, step.op, target)) is not None:
            return problem
    return None


def _config_problem(kernel: Kernel, config: Config, op: Operation, target: Target) -> str | None:
    problem = kernel.config_problem(op, config, target)
    return None if problem is None else f"{kernel.provider} kernel for {op.name}: {problem}"
