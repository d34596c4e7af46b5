"""An `ait.loops` op as the generator needs it: axes, reads at offsets, folds and scalar ops.

Offsets are expressions of dims and axes, counted in elements. Axes have unique names. Axes of size 1 are removed, and
neighbouring axes are merged if all reads and results step through them as through one axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ait_mlir.dialects.ait.loops import AtOp, FoldOp, IndexOp, LoopsOp
from ait_mlir.dialects.ait.numbers import Number
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scatter_loops import OrderedLoops
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.types import Induction, in_nest, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const, product, sym, total
from ait_mlir.dims.expr import Monomial

Axis = Induction
"""An axis: `name` and `count`."""
Strides = tuple[Expr, ...]
SHORT = 32
"""An axis along which results are contiguous is not split into parts that are shorter: neighbours share accesses."""


@dataclass(frozen=True, eq=False)
class Gather:
    """An index that is a value: along a dim of `size` elements, `stride` apart."""

    value: SSAValue
    size: Expr
    stride: Expr
    dim: int
    says: str = ""
    """The error if it is outside; empty for the usual one."""


@dataclass(frozen=True, eq=False)
class Read:
    """`result` is the element of operand `tensor` at `offset`, plus the offsets of indices that are values.

    With a `fill`, the result is that number if an index of `guards` is not below its size, or if an index that is a
    value is outside of its dim.
    """

    result: SSAValue
    tensor: int
    element: Attribute
    offset: Expr
    gathers: tuple[Gather, ...] = ()
    guards: tuple[tuple[Expr, Expr], ...] = ()
    fill: Number | None = None

    @property
    def results(self) -> tuple[SSAValue, ...]:
        return (self.result,)

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return tuple(g.value for g in self.gathers)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (self.offset, *(index for index, _ in self.guards))


@dataclass(frozen=True, eq=False)
class Count:
    """`result` is the value of an expression of dims and axes."""

    result: SSAValue
    value: Expr

    @property
    def results(self) -> tuple[SSAValue, ...]:
        return (self.result,)

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return ()


@dataclass(frozen=True, eq=False)
class Scalar:
    """An elementwise op or a constant."""

    op: Operation

    @property
    def results(self) -> tuple[SSAValue, ...]:
        return tuple(self.op.results)

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return tuple(self.op.operands)


@dataclass(frozen=True, eq=False)
class Fold:
    """`results` are the fold of `value` over axes; `argmax` and `argmin` also give its place, and `moments` the sum of
    squared distances from the mean.
    """

    kind: str
    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]
    value: SSAValue
    results: tuple[SSAValue, ...]
    place: Expr
    """The place of the element at the axes, in row-major order."""

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return (self.value,)

    @property
    def points(self) -> Expr:
        """The number of values that are folded."""
        return product(axis.count for axis in self.axes)

    @property
    def has_place(self) -> bool:
        return self.kind in ("argmax", "argmin")


Node = Read | Count | Scalar | Fold


@dataclass(frozen=True, eq=False)
class Nest:
    """The loops of an op: the values `yields` of the nodes are the results at `offsets`."""

    around: Scope
    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]
    yields: tuple[SSAValue, ...]
    offsets: tuple[Expr, ...]
    elements: tuple[Attribute, ...]
    """The element types of the results."""
    scope: Scope
    """The dims around the op and all axes."""

    def walk(self) -> Iterator[Node]:
        return walk(self.nodes)

    def reads(self) -> list[Read]:
        return [node for node in self.walk() if isinstance(node, Read)]

    def once_along(self, position: int) -> tuple[Axis, ...]:
        """The axes along which a result has one element, which is stored at their first index."""
        return tuple(axis for axis in self.axes if axis.name not in self.offsets[position].symbols)

    def folds(self) -> list[Fold]:
        """The outermost folds."""
        return [node for node in self.nodes if isinstance(node, Fold)]

    def users(self) -> dict[SSAValue, frozenset[str]]:
        """For each value, the names of the axes that it depends on; axes of a fold count only for values inside it."""
        found: dict[SSAValue, frozenset[str]] = {}
        _add_axes(self.nodes, {axis.name for axis in all_axes(self.axes, self.nodes)}, found)
        return found


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """All nodes; those inside a fold come before it."""
    for node in nodes:
        if isinstance(node, Fold):
            yield from walk(node.nodes)
        yield node


def axes_text(nest: Nest) -> str:
    """The axes with their sizes, for a comment: `results: a0 < b, a1 < 768; folds: a2 < 768`."""
    of_folds = [axis for axis in all_axes(nest.axes, nest.nodes) if axis not in nest.axes]
    parts = (("results", nest.axes), ("folds", of_folds))
    return "; ".join(f"{of}: {', '.join(f'{a.name} < {a.count}' for a in axes)}" for of, axes in parts if axes)


def all_axes(axes: Sequence[Axis], nodes: Sequence[Node]) -> list[Axis]:
    """The given axes and the axes of all folds."""
    return [*axes, *(axis for node in walk(nodes) if isinstance(node, Fold) for axis in node.axes)]


def _add_axes(nodes: Sequence[Node], names: set[str], found: dict[SSAValue, frozenset[str]]) -> None:
    for node in nodes:
        if isinstance(node, Fold):
            _add_axes(node.nodes, names, found)
            own = {axis.name for axis in node.axes}
            of_results = found.get(node.value, frozenset[str]()) - own
        else:
            of_results = frozenset[str]().union(*(found.get(v, frozenset[str]()) for v in node.operands))
            exprs = node.exprs if isinstance(node, Read) else (node.value,) if isinstance(node, Count) else ()
            for e in exprs:
                of_results |= e.symbols & names
        found.update(dict.fromkeys(node.results, of_results))


def operands_of(node: Node) -> Iterator[SSAValue]:
    """The values that a node uses, including those inside a fold."""
    for inner in walk([node]):
        yield from inner.operands


# ** from the op **


def that_follow(nodes: Sequence[Node], reads: Sequence[Node], is_known: Callable[[Count], bool]) -> list[Node]:
    """Some reads, and the scalars of only these reads, constants, and counts that are known beside them; in order."""
    values, known, found = set[SSAValue](), set[SSAValue](), list[Node]()
    for node in nodes:
        operands = set(node.operands)
        if node in reads or (isinstance(node, Scalar) and operands <= known | values and not operands <= known):
            found.append(node)
            values.update(node.results)
        elif is_known(node) if isinstance(node, Count) else isinstance(node, Scalar) and operands <= known:
            known.update(node.results)
    return found


def nest_of(
    op: LoopsOp | OrderedLoops,
    ins: Sequence[Strides] | None = None,
    outs: Sequence[Strides] | None = None,
    merge: bool = True,
    shortest: int = SHORT,
) -> Nest:
    """The nest of an op whose operands and results have these strides; row-major by default. The result of a scatter is
    the tensor that would hold its values. `shortest` as of `simplified`.
    """
    types = [op.values_type] if isinstance(op, OrderedLoops) else [tensor_type(v) for v in op.results]
    ins = [contiguous_strides(tensor_type(v).dims) for v in op.inputs] if ins is None else ins
    outs = [contiguous_strides(t.dims) for t in types] if outs is None else outs
    around = scope_of(op)
    builder = _Builder(around, {a: i for i, a in enumerate(op.block.args)}, ins)
    axes = builder.axes(op.iterations.data)
    nodes, yields = builder.block(op.block)
    shapes = [t.dims for t in types]
    offsets = tuple(
        total(sym(a.name) * s for a, s, d in zip(axes, strides, dims, strict=True) if d.as_int() != 1)
        for strides, dims in zip(outs, shapes, strict=True)
    )
    elements = tuple(t.element_type for t in types)
    nest = Nest(around, axes, nodes, yields, offsets, elements, in_nest(around, tuple(all_axes(axes, nodes))))
    return simplified(nest, merge, shortest)


@dataclass
class _Builder:
    around: Scope
    tensors: dict[SSAValue, int]
    strides: Sequence[Strides]
    renamed: dict[str, Expr] | None = None
    made: int = 0

    def axes(self, iterations: Sequence[Induction]) -> tuple[Axis, ...]:
        """New axes with unique names, which expressions of the region then use."""
        self.renamed = dict(self.renamed or {})
        found: list[Axis] = []
        for loop in iterations:
            while (name := f"a{self.made}") in self.around:
                self.made += 1
            self.made += 1
            self.renamed[loop.name] = sym(name)
            found.append(Axis(name, loop.count))
        return tuple(found)

    def block(self, block: Block) -> tuple[tuple[Node, ...], tuple[SSAValue, ...]]:
        nodes: list[Node] = []
        for op in block.ops:
            if isinstance(op, YieldOp):
                return tuple(nodes), tuple(op.operands)
            nodes.append(self.node(op))
        raise ValueError("a region ends with ait.yield")

    def node(self, op: Operation) -> Node:
        if isinstance(op, AtOp):
            return self.read(op)
        if isinstance(op, IndexOp):
            return Count(op.output, op.value.substitute(self.renamed or {}))
        if isinstance(op, FoldOp):
            outside = self.renamed
            axes = self.axes(op.iterations.data)
            nodes, (value,) = self.block(op.block)
            self.renamed = outside
            place = total(sym(a.name) * s for a, s in zip(axes, contiguous_strides(op.sizes), strict=True))
            return Fold(op.kind.data, axes, nodes, value, tuple(op.results), place)
        return Scalar(op)

    def read(self, op: AtOp) -> Read:
        number = self.tensors[op.tensor]
        offset: list[Expr] = []
        gathers: list[Gather] = []
        guards: list[tuple[Expr, Expr]] = []
        t = tensor_type(op.tensor)
        scope, texts = scope_of(op), iter(op.texts)
        for dim, (index, size, stride) in enumerate(zip(op.index(), t.dims, self.strides[number], strict=True)):
            if isinstance(index, SSAValue):
                gathers.append(Gather(index, size, stride, dim, next(texts)))
                continue
            here = index.substitute(self.renamed or {})
            offset.append(here * stride)
            if op.number is not None and not (scope.le(0, index) and scope.lt(index, size)):
                guards.append((here, size))
        return Read(op.output, number, t.element_type, total(offset), tuple(gathers), tuple(guards), op.number)


# ** axes that count as one **


def simplified(nest: Nest, merge: bool, shortest: int) -> Nest:
    """The nest without axes of size 1, with axes split where reads divide them, and with neighbouring axes merged if
    every read and result allows it. The axis along which results are contiguous is not split into parts of fewer than
    `shortest` elements.
    """
    nest = _parted(_rewritten(nest, _without_ones), shortest)
    if merge:
        nest = _rewritten(nest, merged)
    scope = in_nest(nest.around, tuple(all_axes(nest.axes, nest.nodes)))
    return replace(nest, scope=scope)


Put = tuple[tuple[Axis, ...], dict[str, Expr]]
"""New axes, and expressions for axes that are gone."""
Rewrite = Callable[[Sequence[Axis], Sequence[Expr], Sequence[Expr], Scope], Put]
"""From axes, the offsets that walk them and other expressions to new axes."""


def _rewritten(nest: Nest, rewrite: Rewrite) -> Nest:
    walked, others = _expressions(nest.nodes)
    axes, put = rewrite(nest.axes, [*nest.offsets, *walked], others, nest.scope)
    nodes = tuple(_node(node, rewrite, put, nest.scope) for node in nest.nodes)
    offsets = tuple(e.substitute(put) for e in nest.offsets)
    return replace(nest, axes=axes, nodes=nodes, offsets=offsets)


def _parted(nest: Nest, shortest: int) -> Nest:
    """The nest with axes of results split in two where reads divide their index: `a floordiv 56` and `a mod 56` become
    axes of their own, so that reads walk them with constant steps.
    """
    numbers = (int(a.name[1:]) for a in all_axes(nest.axes, nest.nodes) if a.name[1:].isdigit())
    made = max(numbers, default=0) + 1
    while (found := _divided(nest, shortest)) is not None:
        axis, by = found
        names: list[str] = []
        while len(names) < 2:
            if (name := f"a{made}") not in nest.around:
                names.append(name)
            made += 1
        parts = (Axis(names[0], nest.scope.simplified(axis.count // by)), Axis(names[1], by))
        at = next(i for i, a in enumerate(nest.axes) if a is axis)
        axes = (*nest.axes[:at], *parts, *nest.axes[at + 1 :])
        scope = in_nest(nest.around, tuple(all_axes(axes, nest.nodes)))
        put = {axis.name: sym(names[0]) * by + sym(names[1])}

        def changed(e: Expr, put: dict[str, Expr] = put, scope: Scope = scope) -> Expr:
            return scope.simplified(e.substitute(put))

        nodes = tuple(_changed(node, changed) for node in nest.nodes)
        nest = replace(nest, axes=axes, nodes=nodes, offsets=tuple(map(changed, nest.offsets)), scope=scope)
    return nest


def _divided(nest: Nest, shortest: int) -> tuple[Axis, Expr] | None:
    """An axis of the results and the largest number that divides both its index in reads and its size; None if there is
    none.
    """
    walked, others = _expressions(nest.nodes)
    lane = best_lane_of_results(nest)
    for axis in nest.axes:
        found = [
            by
            for by in dict.fromkeys(by for e in [*walked, *others] for by in _divisors_of(e, axis.name))
            if is_part(nest, axis.count, by) and not (axis is lane and (by.as_int() or shortest) < shortest)
        ]
        if found:
            return axis, max(found, key=lambda by: nest.around.bounds(by)[1])
    return None


def is_part(nest: Nest, count: Expr, by: Expr) -> bool:
    """Whether `by` divides `count` and is smaller than it."""
    around = nest.around
    if not by.symbols <= {dim.name for dim in around.dims} or not around.positive(by) or around.equal(count, by):
        return False
    return around.equal(count // by * by, count)


def _divisors_of(e: Expr, axis: str) -> Iterator[Expr]:
    """The numbers by which an expression divides the index of an axis."""
    for _, atoms in e.terms():
        for atom in atoms:
            if atom.op is not None and atom.op.infix and atom.args[0] is sym(axis):
                yield atom.args[1]
            for arg in atom.args:
                yield from _divisors_of(arg, axis)


def _changed(node: Node, changed: Callable[[Expr], Expr]) -> Node:
    """A node with other expressions."""
    if isinstance(node, Read):
        guards = tuple((changed(index), size) for index, size in node.guards)
        return replace(node, offset=changed(node.offset), guards=guards)
    if isinstance(node, Count):
        return replace(node, value=changed(node.value))
    if isinstance(node, Fold):
        nodes = tuple(_changed(inner, changed) for inner in node.nodes)
        return replace(node, nodes=nodes, place=changed(node.place))
    return node


def _node(node: Node, rewrite: Rewrite, put: dict[str, Expr], scope: Scope) -> Node:
    if isinstance(node, Read):
        guards = tuple((index.substitute(put), size) for index, size in node.guards)
        return replace(node, offset=node.offset.substitute(put), guards=guards)
    if isinstance(node, Count):
        return replace(node, value=node.value.substitute(put))
    if isinstance(node, Fold):
        walked, others = _expressions(node.nodes)
        axes, own = rewrite(node.axes, [*walked, *([node.place] if node.has_place else [])], others, scope)
        put = {**put, **own}
        nodes = tuple(_node(inner, rewrite, put, scope) for inner in node.nodes)
        return replace(node, axes=axes, nodes=nodes, place=node.place.substitute(put))
    return node


def _expressions(nodes: Sequence[Node]) -> tuple[list[Expr], list[Expr]]:
    """The offsets of reads with the places of folds, and the other expressions: guards and index values."""
    walked: list[Expr] = []
    others: list[Expr] = []
    for node in walk(nodes):
        if isinstance(node, Read):
            walked.append(node.offset)
            others += [index for index, _ in node.guards]
        elif isinstance(node, Count):
            others.append(node.value)
        elif isinstance(node, Fold) and node.has_place:
            walked.append(node.place)
    return walked, others


def _without_ones(axes: Sequence[Axis], walked: Sequence[Expr], others: Sequence[Expr], scope: Scope) -> Put:
    return tuple(a for a in axes if a.count.as_int() != 1), {a.name: const(0) for a in axes if a.count.as_int() == 1}


def merged(axes: Sequence[Axis], walked: Sequence[Expr], others: Sequence[Expr], scope: Scope) -> Put:
    """The axes with neighbouring axes merged into one where possible, and the substitution for the merged axes.

    Two axes are merged if each expression of `walked` advances along them as along one axis, and no expression of
    `others` contains either.
    """
    found: list[Axis] = []
    put: dict[str, Expr] = {}
    fixed = frozenset[str]().union(*(e.symbols for e in others))
    for axis in axes:
        outer = found[-1] if found else None
        if outer is not None and not {outer.name, axis.name} & fixed and continues(outer, axis, walked, scope):
            put[outer.name] = const(0)
            found[-1] = Axis(axis.name, outer.count * axis.count)
        else:
            found.append(axis)
    return tuple(found), put


def continues(outer: Axis, inner: Axis, walked: Sequence[Expr], scope: Scope) -> bool:
    """Whether each expression steps through two axes as through one."""
    for e in walked:
        a, b = step(e, outer.name), step(e, inner.name)
        if a is None or b is None or not scope.equal(a, b * inner.count):
            return False
    return True


# ** offsets **


@lru_cache(maxsize=4096)
def step(e: Expr, axis: str) -> Expr | None:
    """The difference of an expression between neighbouring indices of an axis; None if it is not constant."""
    found: list[Expr] = []
    for coefficient, atoms in e.terms():
        here = [atom for atom in atoms if axis in atom.expr().symbols]
        if not here:
            continue
        if len(here) != 1 or here[0].op is not None:
            return None
        rest = product([const(coefficient), *(atom.expr() for atom in atoms if atom is not here[0])])
        found.append(rest)
    return total(found)


@dataclass(frozen=True)
class Picks:
    """Which elements lanes take from accesses that they share: `starts` are the offsets of the accesses, each of
    `count` elements, and lane j takes element `places[j]` of access `accesses[j]`.
    """

    starts: tuple[Expr, ...]
    count: int
    accesses: tuple[int, ...]
    places: tuple[int, ...]


def picked(nest: Nest, read: Read, lane: str, lanes: int) -> Picks | None:
    """The accesses that lanes share, as in an upsampling, where neighbours read one element, and in a shuffle of
    pixels, where every fourth lane reads neighbours. None if no elements are neighbours, or if accesses would not be
    aligned.
    """
    if read.gathers or lane not in read.offset.symbols or any(lane in index.symbols for index, _ in read.guards):
        return None
    start = lanes * sym(lane)
    first = read.offset.substitute({lane: start})
    axes = frozenset(dim.name for dim in nest.scope.dims if dim.name not in nest.around)
    starts: list[Expr] = []
    taken: list[tuple[int, int]] = []
    for j in range(lanes):
        at = read.offset.substitute({lane: start + j}) - first
        if axes & at.symbols:
            return None
        near = ((i, (at - s).as_int()) for i, s in enumerate(starts))
        found = next(((i, place) for i, place in near if place is not None and abs(place) < lanes), None)
        taken.append(found or (len(starts), 0))
        if found is None:
            starts.append(at)
    lowest = [min(place for i, place in taken if i == access) for access in range(len(starts))]
    places = tuple(place - lowest[i] for i, place in taken)
    count, starts = max(places) + 1, [s + n for s, n in zip(starts, lowest, strict=True)]
    if not 1 < count <= lanes or count & (count - 1) or len(starts) * count > lanes:
        return None
    if count == lanes and places == tuple(range(lanes)):  # one access of all lanes, as `alignment` has it
        return None
    aligned = all(nest.around.divisible(c, count) for s in starts for _, c in grouped(first + s, axes))
    return Picks(tuple(starts), count, tuple(i for i, _ in taken), places) if aligned else None


def grouped(e: Expr, axes: frozenset[str]) -> list[tuple[Monomial, Expr]]:
    """The terms of an expression, grouped by their factors that depend on axes: the factors and their coefficients."""
    groups: dict[Monomial, list[Expr]] = {}
    for coefficient, atoms in e.terms():
        inner = tuple(atom for atom in atoms if not atom.expr().symbols.isdisjoint(axes))
        rest = product([const(coefficient), *(atom.expr() for atom in atoms if atom not in inner)])
        groups.setdefault(inner, []).append(rest)
    return [(atoms, total(found)) for atoms, found in groups.items()]


def alignment(nest: Nest, read: Read | Expr, lane: str, lanes: int) -> list[Expr] | None:
    """The numbers that must be multiples of `lanes`, so that accesses of `lanes` neighbours along `lane` are aligned.

    Numbers that are proved to be multiples are left out. None if one of them is known not to be a multiple.
    """
    offset = read.offset if isinstance(read, Read) else read
    axes = frozenset(dim.name for dim in nest.scope.dims if dim.name not in nest.around)
    numbers = [c for atoms, c in grouped(offset, axes) if [a.name for a in atoms] != [lane]]
    if isinstance(read, Read):
        numbers += [g.stride for g in read.gathers]
    unknown = [c for c in numbers if not nest.around.divisible(c, lanes)]
    return None if any(c.as_int() is not None for c in unknown) else unknown


def are_in_step(nest: Nest, read: Read, lane: str, lanes: int) -> bool:
    """Whether the `lanes` neighbours of each aligned access along `lane` are all within the guards of a read, or all
    outside of the same guard: the index begins on multiples of `lanes`, and the size is one.
    """
    for index, size in read.guards:
        if lane not in index.symbols:
            continue
        by = step(index, lane)
        if by is None or by.as_int() != 1 or alignment(nest, index, lane, lanes) != []:
            return False
        if not nest.around.divisible(size, lanes):
            return False
    return True


def neighbours_of_word(nest: Nest, reads: Sequence[Read], axis: Axis, most: int) -> int:
    """How many neighbours along an axis one access of each of some reads has, at most `most`: the largest power of two
    for which all accesses are proved to be aligned, and within the tensor or outside of it as a whole. 1 if a read does
    not step through neighbours.
    """

    def fits(read: Read, count: int) -> bool:
        by = step(read.offset, axis.name)
        if by is None or by.as_int() != 1 or read.gathers or alignment(nest, read, axis.name, count) != []:
            return False
        ends = any(axis.name in index.symbols for index, _ in read.guards)
        return (ends or nest.around.divisible(axis.count, count)) and are_in_step(nest, read, axis.name, count)

    while most > 1 and not all(fits(read, most) for read in reads):
        most //= 2
    return most


def is_stored(read: Read) -> bool:
    """Whether the value of a read is exact in the type of its tensor, outside of it, too."""
    return not read.guards or (read.fill is not None and float(read.fill) in (0.0, math.inf, -math.inf))


# ** which axis is contiguous **


def best_lane_of_results(nest: Nest) -> Axis | None:
    """The axis along which the results are contiguous."""
    for axis in reversed(nest.axes):
        if any((s := step(e, axis.name)) is not None and s.as_int() == 1 for e in nest.offsets):
            return axis
    return None
