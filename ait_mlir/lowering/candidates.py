"""Candidates: a candidate runs an op on one kernel, or cuts it into several ops with one kernel each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import KernelAttr, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.dims import Expr, const, total
from ait_mlir.lowering.kernels import (
    ALGORITHM_KEYS,
    Arg,
    Cut,
    Emission,
    Kernel,
    Launch,
    Target,
    cuts_of,
    kernel_of,
    kernels_for,
)
from ait_mlir.lowering.kernels.base import Config
from ait_mlir.lowering.weights import is_weight

ZERO = const(0)
_CUT = re.compile(r"(\w+)(?: (\d+))?")


@dataclass(frozen=True)
class Candidate:
    """The cut of an op (None without a cut), and the provider and configuration of each part's kernel.

    `seconds` is the estimate at the dims of the op for which it was made. A candidate that is `only_timed` is never
    chosen by estimate. Comparisons of candidates ignore both fields, so candidates of different ops can be equal.
    """

    cut: str | None
    kernels: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    seconds: float = field(default=math.nan, compare=False)
    only_timed: bool = field(default=False, compare=False)

    @staticmethod
    def of(cut: str | None, kernels: Sequence[tuple[str, Config]]) -> Candidate:
        return Candidate(cut, tuple((provider, tuple(sorted(config.items()))) for provider, config in kernels))

    @property
    def text(self) -> str:
        """As JSON, always the same for equal candidates."""
        return json.dumps([self.cut, [[p, dict(c)] for p, c in self.kernels]], separators=(",", ":"))

    @staticmethod
    def read(text: str) -> Candidate:
        return Candidate.of_parts(json.loads(text))

    @staticmethod
    def of_parts(parts: Any) -> Candidate:
        """The candidate of the value that its text is in JSON."""
        cut, kernels = parts
        return Candidate.of(cut, [(p, c) for p, c in kernels])

    @cached_property
    def algorithm(self) -> tuple[int, ...]:
        """The numbers of the library algorithm that the candidate names; empty if the library chooses."""
        for provider, config in self.kernels:
            keys, values = ALGORITHM_KEYS.get(provider, ()), dict(config)
            if any(key in values for key in keys):
                return tuple(values.get(key, 0) for key in keys)
        return ()

    @property
    def asks_a_library(self) -> bool:
        """Whether one of its kernels calls a library whose algorithm a configuration can name."""
        return any(provider in ALGORITHM_KEYS for provider, _ in self.kernels)

    def naming(self, algorithm: Sequence[int]) -> Candidate:
        """The candidate with another library algorithm; without a named algorithm if `algorithm` is empty."""
        kernels: list[tuple[str, Config]] = []
        for provider, config in self.kernels:
            keys = ALGORITHM_KEYS.get(provider, ())
            named = {key: part for key, part in zip(keys, algorithm, strict=False) if part or key == keys[0]}
            kernels.append((provider, {**{k: v for k, v in config if k not in keys}, **named}))
        return Candidate.of(self.cut, kernels)

    def describe(self) -> str:
        """The candidate as readable text: `cublaslt {id=66, tile=20} + native (epilogue 1)`."""
        parts = [p + (f" {{{', '.join(f'{k}={v}' for k, v in c)}}}" if c else "") for p, c in self.kernels]
        return " + ".join(parts) + ("" if self.cut is None else f" ({self.cut})")

    def attrs(self) -> list[KernelAttr]:
        """The attribute `kernel` of each part."""
        return [KernelAttr(StringAttr(p), config_attr(dict(c))) for p, c in self.kernels]


def config_attr(config: Config) -> DictionaryAttr:
    return DictionaryAttr({key: IntegerAttr(value, i64) for key, value in config.items()})


# ** the candidates of an op **


def candidates_of(op: Operation, target: Target, configs: int = 1, configs_cut: int = 1) -> Iterator[Candidate]:
    """The candidates of `op` with estimates (`Kernel.ranked`).

    They have the first `configs` configurations of each kernel, or the first `configs_cut` if the op is cut.
    """
    names = [(None, configs)] + [
        (cut_name(cut, place), configs if cut.usual else configs_cut)
        for cut in cuts_of(type(op))
        for place in cut.places(op, target)
    ]
    for name, count in names:
        _, alone = standalone(op, keep_weights=not target.is_gpu)
        parts = cut_in_place(alone, name)
        if name is None or len(parts) > 1:
            yield from _combinations(name, parts, target, count)


def _combinations(cut: str | None, parts: Sequence[Operation], target: Target, configs: int) -> Iterator[Candidate]:
    """The candidates with all combinations of kernels for the parts."""
    found: list[tuple[tuple[tuple[Kernel[Any], Config], ...], float]] = [((), 0.0)]
    for part in parts:
        options = [
            (k, c, seconds) for k in kernels_for(part, target) for c, seconds in k.ranked(part, target)[:configs]
        ]
        found = [((*done, (k, c)), cost + more) for done, cost in found for k, c, more in options]
    for kernels, seconds in found:
        plain = Candidate.of(cut, [(k.provider, c) for k, c in kernels])
        yield Candidate(plain.cut, plain.kernels, seconds, any(k.only_timed for k, _ in kernels))


def standalone(op: Operation, keep_weights: bool = False, shared: bool = True) -> tuple[GraphOp, Operation]:
    """A graph that holds only a copy of `op`, with the op's operands as inputs; and the copy.

    With `keep_weights` operands that are weights become params, so that kernels see that they can be packed. An operand
    that occurs twice is one input, unless `shared` is False.
    """
    operands = list(dict.fromkeys(op.operands) if shared else op.operands)
    weights = [v for v in operands if keep_weights and is_weight(v)]
    inputs = [v for v in operands if v not in weights]
    graph = GraphOp("candidate", [(f"x{i}", tensor_type(v)) for i, v in enumerate(inputs)], scope_of(op))
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, graph.block.args, strict=True))
    for i, value in enumerate(weights):
        param = ParamOp(f"w{i}", tensor_type(value))
        graph.block.add_op(param)
        mapping[value] = param.output
    clone = op.clone(mapping)
    for i, value in enumerate([] if shared else graph.block.args):
        clone.operands[i] = value
    clone.attributes.pop("kernel", None)
    graph.block.add_op(clone)
    for i, result in enumerate(clone.results):
        graph.block.add_op(OutputOp(f"y{i}", result))
    return graph, clone


# ** cuts by name **


def cut_name(cut: Cut[Any], place: int) -> str:
    return f"{cut.name} {place}" if place else cut.name


def _find_cut(op: Operation, name: str) -> tuple[Cut[Any], int]:
    """The cut of this name and its place; `ValueError` if ops of this class have none."""
    found = _CUT.fullmatch(name)
    known = {cut.name: cut for cut in cuts_of(type(op))}
    if found is None or found[1] not in known:
        have = f"it can be cut by {', '.join(map(repr, known))}" if known else "it cannot be cut"
        raise ValueError(f"{op.name} has no cut {name!r}; {have}")
    return known[found[1]], int(found[2] or 0)


def is_usual(op: Operation, candidate: Candidate) -> bool:
    """Whether the candidate is usual for the op: without a cut, or with a cut that is usual."""
    return candidate.cut is None or _find_cut(op, candidate.cut)[0].usual


def cut_in_place(op: Operation, name: str | None) -> tuple[Operation, ...]:
    """Replace `op` by the parts of a cut; returns the new ops without views, or only `op` if it cannot be cut.

    Raises `ValueError` if ops of this class have no such cut.
    """
    if name is None or op.parent is None:
        return (op,)
    cut, place = _find_cut(op, name)
    parts = cut.parts(op, place)
    if parts is None:
        return (op,)
    for part in parts:
        part.location = op.location
        op.parent.insert_op_before(part, op)
    for old, new in zip(op.results, parts[-1].results, strict=True):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    op.detach()
    op.erase()
    return tuple(part for part in parts if not isinstance(part, ViewLike))


# ** the steps of a candidate **


@dataclass(frozen=True)
class Source:
    """The source of a step's operand: operand `index` of the whole op, or result `index` of an earlier `step`.

    It may be a part of a result along the last dim, starting at element `start`.
    """

    step: int | None
    index: int
    start: Expr = ZERO


@dataclass(frozen=True)
class Step:
    """One part of an op with its kernel. The results of all steps but the last are row-major; only other steps read
    them."""

    op: Operation
    kernel: Kernel[Any]
    config: Config
    sources: tuple[Source, ...]


def steps_of(op: Operation, candidate: Candidate, target: Target) -> tuple[Step, ...]:
    """The steps of a candidate, in order; `ValueError` when it cannot run this op."""
    if candidate.cut is None and len(candidate.kernels) == 1:
        ((provider, config),) = candidate.kernels
        sources = tuple(Source(None, i) for i in range(len(op.operands)))
        return (Step(op, kernel_of(provider, op, target), dict(config), sources),)
    _, alone = standalone(op, shared=False)
    places: dict[SSAValue, Source] = {v: Source(None, i) for i, v in enumerate(alone.operands)}
    parts = cut_in_place(alone, candidate.cut)
    if candidate.cut is not None and len(parts) == 1:
        raise ValueError(f"{op.name} cannot be cut at {candidate.cut!r}")
    if len(parts) != len(candidate.kernels):
        what = "is not cut" if candidate.cut is None else f"cut at {candidate.cut!r}"
        raise ValueError(f"{op.name} {what}: {len(parts)} kernels are needed, {len(candidate.kernels)} are given")
    steps: list[Step] = []
    for i, (part, (provider, config)) in enumerate(zip(parts, candidate.kernels, strict=True)):
        sources = tuple(_source(v, places) for v in part.operands)
        steps.append(Step(part, kernel_of(provider, part, target), dict(config), sources))
        places.update((result, Source(i, j)) for j, result in enumerate(part.results))
    return tuple(steps)


def estimate(op: Operation, candidate: Candidate, target: Target) -> float:
    """Estimated seconds of a candidate of `op`; `ValueError` when it cannot run it."""
    return sum(s.kernel.estimate(s.op, s.config, target) for s in steps_of(op, candidate, target))


def code_of(step: Step, target: Target) -> str:
    """The C++ of a step on row-major buffers, after the names of its headers."""

    def args(prefix: str, types: Iterable[TensorType]) -> list[Arg]:
        return [Arg(f"{prefix}{i}", t, contiguous_strides(t.dims)) for i, t in enumerate(types)]

    op, dims = step.op, {d.name: d.name for d in scope_of(step.op).dims}
    ins, outs = (args(prefix, map(tensor_type, values)) for prefix, values in (("a", op.operands), ("o", op.results)))
    between = args("b", step.kernel.between(op, step.config, target))
    emitted = step.kernel.emit(Launch(op, ins, outs, dims, step.config, target, between))
    texts: list[str] = []
    for emission in (emitted,) if isinstance(emitted, Emission) else emitted:
        texts += [*(f'#include "{name}"' for name in emission.includes), emission.definitions, emission.body]
    return "\n".join(texts)


def _source(value: SSAValue, places: Mapping[SSAValue, Source]) -> Source:
    """The source of a step's operand; a piece of a split along the last dim is a part of the split tensor."""
    if value in places:
        return places[value]
    split = value.owner
    if (
        not isinstance(split, SplitOp)
        or split.dim.value.data != tensor_type(value).rank - 1
        or split.operands[0] not in places
    ):
        name = split.name if isinstance(split, Operation) else "an argument"
        raise ValueError(f"{name} between two launches of one op is none that a launch can read through")
    before = split.results[: list(split.results).index(cast(Any, value))]
    whole = places[split.operands[0]]
    return Source(whole.step, whole.index, whole.start + total(tensor_type(v).dims[-1] for v in before))
