"""The attribute that selection sets on an op: one kernel with its configuration, or candidates over ranges of sizes.

    kernel = #ait.kernel<"cublaslt", {id = 66 : i64, tile = 20 : i64, stages = 36 : i64}>
    kernel = #ait.kernel<"ranges", {axis = "batch*seq", upto = [512 : i64], candidates = [
      {kernels = [#ait.kernel<"hopper", {tile_m = 64 : i64}>]},
      {kernels = [#ait.kernel<"cublaslt", {}>, #ait.kernel<"native", {}>], cut = "epilogue 1"}]}>

The second attribute means: the first candidate if `batch*seq` is at most 512, otherwise the second. With a `cut` the op
runs as several ops, here the contraction with the first op of its epilogue, then the rest. The workspace holds the
values between them. A family offers the cuts of its ops (lowering/kernels/cuts.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait.types import KernelAttr, TensorType, scope_of, tensor_type
from ait_mlir.dims import DimError, DimSyntaxError, Expr, Scope, ceildiv, const, maximum, parse
from ait_mlir.lowering.candidates import Candidate, Step, steps_of
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.base import Config, Strides, panels_for

RANGES = "ranges"
ALIGNMENT = 256
"""Bytes to which a value between two launches is rounded up."""


@dataclass(frozen=True)
class Choice:
    """Candidates over ranges of `axis`: `candidates[i]` runs while `axis <= upto[i]`, the last one beyond.

    With one candidate `upto` is empty.
    """

    candidates: tuple[Candidate, ...]
    upto: tuple[int, ...] = ()
    axis: Expr | None = None

    @property
    def text(self) -> str:
        """As JSON."""
        axis = None if self.axis is None else str(self.axis)
        return json.dumps([[json.loads(candidate.text) for candidate in self.candidates], self.upto, axis])

    @staticmethod
    def read(text: str) -> Choice:
        candidates, upto, axis = json.loads(text)
        found = tuple(Candidate.read(json.dumps(w)) for w in candidates)
        return Choice(found, tuple(upto), None if axis is None else parse(axis))

    def attr(self) -> KernelAttr:
        """The attribute `kernel` of an op with this choice, if the op is not cut in the IR."""
        if len(self.candidates) == 1:
            return self.candidates[0].attrs()[0]
        candidates: list[Attribute] = []
        for candidate in self.candidates:
            fields: dict[str, Attribute] = {"kernels": ArrayAttr(candidate.attrs())}
            candidates.append(
                DictionaryAttr(fields if candidate.cut is None else fields | {"cut": StringAttr(candidate.cut)})
            )
        upto = ArrayAttr([IntegerAttr(n, i64) for n in self.upto])
        fields = {"axis": StringAttr(str(self.axis)), "upto": upto, "candidates": ArrayAttr(candidates)}
        return KernelAttr(StringAttr(RANGES), DictionaryAttr(fields))

    def describe(self) -> str:
        if len(self.candidates) == 1:
            return self.candidates[0].describe()
        limits = [*(f"to {n}" for n in self.upto), "beyond"]
        return f"{self.axis} " + "; ".join(f"{n}: {w.describe()}" for n, w in zip(limits, self.candidates, strict=True))


# ** text **


def config_of(attr: DictionaryAttr) -> dict[str, int]:
    """The configuration of a single kernel; `ValueError` for a value that is no integer."""
    for key, value in attr.data.items():
        if not isinstance(value, IntegerAttr):
            raise ValueError(f"configuration {key!r} of the kernel is {value}, expected an integer")
    return {k: cast(IntegerAttr[Any], v).value.data for k, v in attr.data.items()}


def read_choice(provider: str, config: DictionaryAttr) -> Choice:
    """The choice in the IR text; `ValueError` if the text is wrong."""
    if provider == RANGES:
        return _read_ranges(config.data)
    return Choice((Candidate.of(None, [(provider, config_of(config))]),))


def _read_ranges(data: Mapping[str, Attribute]) -> Choice:
    if set(data) != {"axis", "upto", "candidates"}:
        raise ValueError(f"ranges has axis, upto and candidates; found {', '.join(sorted(data)) or 'nothing'}")
    axis, upto, candidates = data["axis"], _items(data["upto"]), _items(data["candidates"])
    if not isinstance(axis, StringAttr) or upto is None or candidates is None:
        expected = '{axis = "batch", upto = [8 : i64], candidates = [{kernels = [...]}, ...]}'
        raise ValueError(f"expected ranges like {expected}")
    try:
        expression = parse(axis.data)
    except (DimSyntaxError, DimError) as error:
        raise ValueError(f"the axis {axis.data!r} of ranges is no dim expression: {error}") from None
    limits = [cast(IntegerAttr[Any], n).value.data for n in upto if isinstance(n, IntegerAttr)]
    if len(limits) != len(upto) or limits != sorted(set(limits)):
        raise ValueError(f"upto of ranges must be integers that grow, found {data['upto']}")
    if len(candidates) != len(limits) + 1:
        raise ValueError(f"{len(limits)} limits make {len(limits) + 1} ranges, found {len(candidates)} candidates")
    return Choice(tuple(_read_candidate(w) for w in candidates), tuple(limits), expression)


def _items(attr: Attribute | None) -> tuple[Attribute, ...] | None:
    return tuple(cast(ArrayAttr[Attribute], attr).data) if isinstance(attr, ArrayAttr) else None


def _read_candidate(attr: Attribute) -> Candidate:
    data: Mapping[str, Attribute] = attr.data if isinstance(attr, DictionaryAttr) else {}
    kernels, cut = _items(data.get("kernels")), data.get("cut")
    if kernels is None or not set(data) <= {"kernels", "cut"}:
        raise ValueError(f"a candidate of ranges is {{kernels = [...]}}, with a cut where it is cut; found {attr}")
    if cut is not None and not isinstance(cut, StringAttr):
        raise ValueError(f'the cut of a candidate must be a string like "epilogue 1", found {cut}')
    found: list[tuple[str, Config]] = []
    for kernel in kernels:
        if not isinstance(kernel, KernelAttr) or kernel.provider.data == RANGES:
            raise ValueError(f'the kernels of a candidate are like #ait.kernel<"native", {{}}>, found {kernel}')
        found.append((kernel.provider.data, config_of(kernel.config)))
    return Candidate.of(None if cut is None else cut.data, found)


# ** a choice for its op **


@dataclass(frozen=True)
class Buffer:
    """A place in the workspace of a launch: a row-major tensor from the byte `offset` on."""

    type: TensorType
    offset: Expr


@dataclass(frozen=True)
class Selected:
    """A choice for a given op: the steps of its candidates, and their requirements on the buffers of the launch."""

    op: Operation
    choice: Choice
    target: Target
    candidates: tuple[tuple[Step, ...], ...]
    accepted: dict[tuple[int, Strides, Scope], bool] = field(
        default_factory=dict[tuple[int, Strides, Scope], bool], compare=False, repr=False
    )
    """A cache of `accepts`, which many launches ask with equal arguments."""

    @staticmethod
    def of(provider: str, config: DictionaryAttr, op: Operation, target: Target) -> Selected:
        """The choice in the IR for `op`; `ValueError` if it cannot run the op."""
        choice = read_choice(provider, config)
        candidates = tuple(steps_of(op, candidate, target) for candidate in choice.candidates)
        found = Selected(op, choice, target, candidates)
        if (
            provider == RANGES
            and (packing := next((s for candidate in candidates for s in candidate if packs(s)), None)) is not None
        ):
            raise ValueError(f"{packing.kernel.provider} packs a weight, so it cannot be one of several kernels")
        return found

    @staticmethod
    def checked(provider: str, config: DictionaryAttr, op: Operation, target: Target) -> Selected:
        """The choice in the IR for `op`; `ValueError` if it cannot run the op or its configuration is refused."""
        found = Selected.of(provider, config, op, target)
        if (problem := found.problem()) is not None:
            raise ValueError(problem)
        return found

    def accepts(self, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether operand `position` (results follow the operands) may have these strides, in every candidate."""
        key = position, strides, scope
        if key not in self.accepted:
            self.accepted[key] = self._accepts(position, strides, scope)
        return self.accepted[key]

    @property
    def any_order(self) -> bool:
        """Whether each candidate writes results as fast if a dim other than the last has neighbours side by side."""
        return all(candidate[-1].kernel.any_order for candidate in self.candidates)

    def _accepts(self, position: int, strides: Strides, scope: Scope) -> bool:
        count = len(self.op.operands)
        return all(
            step.kernel.accepts(step.op, at, strides, scope)
            for candidate in self.candidates
            for step in candidate
            for at in (
                [i for i, s in enumerate(step.sources) if s.step is None and s.index == position]
                if position < count
                else [len(step.sources) + position - count]
                if step is candidate[-1]
                else []
            )
        )

    def masks(self) -> bool:
        """Whether all kernels of the choice can read the value of a bound dim from device memory."""
        (*others, candidate) = self.candidates
        return not others and len(candidate) == 1 and candidate[0].kernel.masks(candidate[0].op, self.target)

    def panels(self, position: int) -> str | None:
        """The panels in which the constant at operand `position` must lie; None: row-major."""
        return panels_for(self.candidates[0][0].kernel, self.op, position)

    @cached_property
    def workspace(self) -> Expr:
        """Bytes of scratch memory: the maximum over all candidates."""
        return _largest([self._candidate_bytes(candidate) for candidate in self.candidates], scope_of(self.op))

    def _candidate_bytes(self, candidate: Sequence[Step]) -> Expr:
        start = _after(step_results(candidate), const(0))
        own = [self.beside(s, candidate)[1] - start + s.kernel.workspace(s.op, s.config) for s in candidate]
        return start + _largest(own, scope_of(candidate[0].op))

    def beside(self, step: Step, candidate: Sequence[Step]) -> tuple[list[Buffer], Expr]:
        """The buffers between the launches of a step's kernel, and the offset of its scratch memory in the workspace.

        Both come after the results of all steps.
        """
        start = _after(step_results(candidate), const(0))
        buffers = _laid_out(step.kernel.between(step.op, step.config, self.target), start)
        return buffers, _after(buffers, start)

    def problem(self) -> str | None:
        """The reason why the choice cannot run: an invalid configuration, or ranges of an unknown dim; else None."""
        axis, scope = self.choice.axis, scope_of(self.op)
        if unknown := sorted(name for name in (axis.symbols if axis is not None else ()) if name not in scope):
            return f"the axis {axis} of ranges has the dim {unknown[0]!r}, which is not declared"
        for step in (s for candidate in self.candidates for s in candidate):
            if (problem := step.kernel.config_problem(step.op, step.config, self.target)) is not None:
                return f"{step.kernel.provider} kernel for {step.op.name}: {problem}"
        return None


def packs(step: Step) -> bool:
    """Whether the step's kernel requests a weight in panels, which other kernels cannot read."""
    return any(panels_for(step.kernel, step.op, i) is not None for i in range(len(step.op.operands)))


def step_results(candidate: Sequence[Step]) -> list[Buffer]:
    """The buffers of the results of all steps but the last, at the start of the workspace."""
    return _laid_out([tensor_type(r) for step in candidate[:-1] for r in step.op.results], const(0))


def _laid_out(types: Sequence[TensorType], start: Expr) -> list[Buffer]:
    found: list[Buffer] = []
    for t in types:
        found.append(Buffer(t, start))
        start = _after(found, start)
    return found


def _after(buffers: Sequence[Buffer], start: Expr) -> Expr:
    """The offset of the first byte after the buffers."""
    if not buffers:
        return start
    return buffers[-1].offset + ceildiv(buffers[-1].type.byte_size(), ALIGNMENT) * ALIGNMENT


def _largest(sizes: Sequence[Expr], scope: Scope) -> Expr:
    best = sizes[0]
    for size in sizes[1:]:
        if not scope.le(size, best):
            best = size if scope.le(best, size) else maximum(best, size)
    return best
