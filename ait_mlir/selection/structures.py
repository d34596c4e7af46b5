"""The structure of a graph as JSON that is independent of the printed form of ops: the key of a task.

    [[["d0", 768, "f16"]], [["ait.softmax", {"dim": "1 : i64"}, [0], [["d0", 768, "f16"]], []],
                            ["ait.output", {"output_name": "\\"y0\\""}, [1], [], []]]]

A graph is a list: the types of its inputs, its ops and, if some inputs declare strides, a dict of strides by the
input's number. An op is a list: its name, its properties, the numbers of its operands, the types of its results and its
regions, which are like graphs. Values are numbered from 0, inputs first. Dims are integers or expressions; properties
are MLIR's builtin attributes as text, shapes are lists of dims.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, declared_strides
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import IndexOp, IndicesAttr
from ait_mlir.dialects.ait.types import Induction, IterationsAttr, ShapeAttr, TensorType
from ait_mlir.dims import Expr, parse, sym

VERSION = 1
"""Increase it when the same graph gets another structure."""

Structure = Any
"""JSON: lists, strings, integers, and one dict for each op."""
Point = Sequence[int]


def structure_of(graph: GraphOp, values: Mapping[str, Expr | int]) -> str:
    """The structure of a graph as JSON text, with `values` for its dims."""

    def dims(shape: Sequence[Expr]) -> Structure:
        return [_dim(e.substitute(values)) for e in shape]

    laid_out = {str(i): dims(strides) for i, v in enumerate(graph.block.args) if (strides := declared_strides(v))}
    return _text([*_block(graph.block, dims), *([laid_out] if laid_out else [])])


def at_point(structure: str, point: Point) -> str:
    """The structure with numbers for its dims, `d0` first."""
    values = {f"d{i}": n for i, n in enumerate(point)}

    def dims(shape: list[int | str]) -> Structure:
        return [d if isinstance(d, int) else _dim(parse(d).substitute(values)) for d in shape]

    return _text(_mapped(json.loads(structure), dims))


def _text(structure: Structure) -> str:
    return json.dumps(structure, separators=(",", ":"))


def _dim(e: Expr) -> int | str:
    number = e.as_int()
    return str(e) if number is None else number


@dataclass(frozen=True)
class _Around:
    """The values of the outer regions, by number, and the names of their iteration dims, by number."""

    numbers: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    names: Mapping[str, Expr] = field(default_factory=dict[str, Expr])

    def within(self, iterations: Sequence[Induction]) -> _Around:
        """Around the region of a nest with these iteration dims."""
        new = {loop.name: sym(f"n{len(self.names) + i}") for i, loop in enumerate(iterations)}
        return _Around(self.numbers, {**self.names, **new})


def _block(block: Block, dims: Callable[[Sequence[Expr]], Structure], around: _Around = _Around()) -> Structure:
    """The structure of a block. A block without arguments may use outer values; its own numbers continue after theirs.
    """
    numbers: dict[SSAValue, int] = {} if block.args else dict(around.numbers)
    numbers.update({a: i for i, a in enumerate(block.args)})
    ops: list[Structure] = []
    for op in block.ops:
        operands = [numbers[v] for v in op.operands]
        ops.append(_op(op, operands, dims, _Around(dict(numbers), around.names)))
        for result in op.results:
            numbers[result] = len(numbers)
    return [[_type(t, dims) for t in block.arg_types], ops]


def _op(op: Operation, operands: list[int], dims: Callable[[Sequence[Expr]], Structure], around: _Around) -> Structure:
    properties: dict[str, Structure] = {}
    inside = around
    for name, a in sorted({**op.attributes, **op.properties}.items()):
        if isinstance(a, IterationsAttr):
            inside = around.within(a.data)
            properties[name] = {"shape": dims([loop.count for loop in a.data])}
        elif isinstance(a, IndicesAttr) or isinstance(op, IndexOp):  # expressions of iteration dims stay text
            assert isinstance(a, IndicesAttr | ShapeAttr)
            found = ["?" if e is None else str(dims([e.substitute(around.names)])[0]) for e in a.data]
            properties[name] = ", ".join(found)
        else:
            properties[name] = {"shape": dims(a.data)} if isinstance(a, ShapeAttr) else str(a)
    results = [_type(t, dims) for t in op.result_types]
    return [op.name, properties, operands, results, [_region(region, dims, inside) for region in op.regions]]


def _region(region: Region, dims: Callable[[Sequence[Expr]], Structure], around: _Around) -> Structure:
    return _block(region.block, dims, around) if region.blocks else []


def _type(t: Attribute, dims: Callable[[Sequence[Expr]], Structure]) -> Structure:
    """`["d0", 768, "f16"]` for a tensor, `"f32"` for a scalar."""
    return [*dims(t.dims), BY_IR[t.element_type].mlir] if isinstance(t, TensorType) else BY_IR[t].mlir


# ** dims of a structure **


def _mapped(structure: Structure, dims: Callable[[list[int | str]], Structure]) -> Structure:
    """A copy of a graph in which `dims(shape)` replaces each list of dims, in order."""

    def typed(t: Structure) -> Structure:
        if not isinstance(t, list):
            return t
        *shape, element = cast("list[Any]", t)
        return [*dims(shape), element]

    def block(arguments: Structure, ops: Structure, laid_out: Structure = ()) -> Structure:
        inputs = [typed(t) for t in arguments]
        made: list[Structure] = []
        for name, properties, operands, results, regions in ops:
            new = {k: p if isinstance(p, str) else {"shape": dims(p["shape"])} for k, p in properties.items()}
            outputs = [typed(t) for t in results]
            made.append([name, new, operands, outputs, [block(*region) if region else [] for region in regions]])
        return [inputs, made, *([{i: dims(strides) for i, strides in laid_out.items()}] if laid_out else [])]

    return block(*structure)


@functools.lru_cache(maxsize=4096)
def taken_apart(structure: str) -> tuple[str, tuple[int | str, ...]]:
    """The structure as text with a rank in place of each list of dims, and all dims in order (int or expression)."""
    found: list[int | str] = []

    def take(dims: list[int | str]) -> Structure:
        found.extend(dims)
        return [len(dims)]

    text = _text(_mapped(json.loads(structure), take))
    return text, tuple(found)


@functools.lru_cache(maxsize=4096)
def first_output(structure: str) -> tuple[Expr, ...]:
    """The dims of the graph's first output."""
    arguments, ops, *_ = json.loads(structure)
    values = list(arguments)
    for name, _, operands, results, _ in ops:
        if name == "ait.output":
            return tuple(parse(str(d)) for d in values[operands[0]][:-1])
        values += results
    return ()


__all__ = ["VERSION", "at_point", "first_output", "structure_of", "taken_apart"]
