"""Partitioning: a graph whose params, inputs and outputs have shardings becomes the graph that each rank runs.

Shardings are followed from params and inputs through the graph in its order. An op computes on pieces where a rule of
`sharding_rules.py` allows it; a sum over a dim that the ranks divide is followed by an `ait.all_reduce`. Where operands
need another sharding, collectives make it: the larger operand keeps its sharding. A param without a sharding is divided
as its first reader needs it, and a value that nothing divides is the same on each rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    CollectiveOp,
    ReduceScatterOp,
    divided,
)
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.elementwise import CompareOp, WhereOp
from ait_mlir.dialects.ait.index import EmbeddingOp
from ait_mlir.dialects.ait.ranks import Part, Ranks, check_sharding
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dialects.sdy import SHARDING, Mesh, MeshAttr, MeshOp, Sharding, ShardingAttr, parse_axes
from ait_mlir.dims import Scope
from ait_mlir.ir.pipeline import PassError, TellingPass
from ait_mlir.passes.sharding_rules import Rule, rule_of

Axes = tuple[str, ...]
Dims = tuple[Axes, ...]
"""For each dim of a value, the axes that divide it."""


@dataclass
class Piece:
    """What a rank has of a value of the graph."""

    dims: Dims
    local: SSAValue | None = None
    """None for a param that nothing has read yet."""
    is_open: tuple[bool, ...] = ()
    """The dims of such a param that its first reader may divide."""


@dataclass
class Partitioner:
    """Writes the graph of one rank."""

    graph: GraphOp
    mesh_name: str
    mesh: Mesh
    writer: Writer
    pieces: dict[SSAValue, Piece] = field(default_factory=dict[SSAValue, Piece])
    shardings: dict[tuple[Part, str], Sharding] = field(default_factory=dict[tuple[Part, str], Sharding])
    moved: dict[tuple[SSAValue, Dims], SSAValue] = field(default_factory=dict[tuple[SSAValue, Dims], SSAValue])
    """Values in other shardings, so that each is moved once."""

    @property
    def scope(self) -> Scope:
        return self.graph.scope

    # ** types **

    def given(self, op: AitOp, what: str, sharding: Attribute | None, value: SSAValue) -> Sharding | None:
        """A sharding that the text gives, checked; `PassError` at the op if it does not fit."""
        if sharding is None:
            return None
        if not isinstance(sharding, ShardingAttr):
            raise PassError(f"{what} has {SHARDING} = {sharding}, expected a #sdy.sharding", op)
        if sharding.data.mesh != self.mesh_name:
            raise PassError(
                f"the sharding of {what} names the mesh @{sharding.data.mesh}, but the module declares "
                f"@{self.mesh_name}",
                op,
            )
        check_sharding(op, what, self.mesh, sharding.data, tensor_type(value))
        for axis, axes in enumerate(sharding.data.dims):
            if not self.divides(tensor_type(value), axis, axes):
                raise PassError(
                    f"dim {axis} of {what}, {tensor_type(value).dims[axis]}, is not proved to be a multiple of "
                    f"{self.mesh.extent(axes)}, the number of ranks over {', '.join(axes)}; "
                    "write it as a multiple, such as (2*n), or leave the dim whole",
                    op,
                )
        return sharding.data

    def divides(self, t: TensorType, axis: int, axes: Axes) -> bool:
        return self.scope.divisible(t.dims[axis], self.mesh.extent(axes))

    def local_type(self, t: Attribute, dims: Dims) -> TensorType:
        """The type of a piece."""
        t = cast(TensorType, t)
        parts: Shape = tuple(divided(d, self.mesh.extent(axes)) for d, axes in zip(t.dims, dims, strict=True))
        return TensorType.get(parts, t.element_type)

    def record(self, part: Part, name: str, dims: Dims) -> None:
        """Note the sharding of an input, param or output."""
        if any(dims):
            self.shardings[part, name] = Sharding(self.mesh_name, dims, (False,) * len(dims))

    # ** values **

    def run(self) -> None:
        block = self.graph.block
        given = self.graph.shardings()
        for (name, value), argument in zip(self.graph.inputs(), self.writer.block.args, strict=True):
            piece = Piece(given[name].dims if name in given else whole(value), argument)
            self.record("inputs", name, piece.dims)
            self.pieces[value] = piece
        for op in block.ops:
            if isinstance(op, ParamOp):
                sharding = self.given(op, f"param '{op.param_name.data}'", op.attributes.get(SHARDING), op.output)
                rank = tensor_type(op.output).rank
                is_open = (True,) * rank if sharding is None else sharding.open
                self.pieces[op.output] = Piece(whole(op.output) if sharding is None else sharding.dims, None, is_open)
            elif isinstance(op, OutputOp):
                self.output(op)
            else:
                self.compute(cast(AitOp, op))

    def output(self, op: OutputOp) -> None:
        """Bring an output to its sharding: its own, that of the input whose place it takes, or none."""
        name = op.output_name.data
        sharding = self.given(op, f"output '{name}'", op.attributes.get(SHARDING), op.value)
        dims = whole(op.value) if sharding is None else sharding.dims
        if op.in_place_of is not None:
            kept = self.pieces[op.in_place_of].dims
            if sharding is not None and dims != kept:
                raise PassError(f"output '{name}' has another sharding than the input whose place it takes", op)
            dims = kept
        if any(dims) and op.strides is not None:
            raise PassError(f"output '{name}' has a sharding and strides; leave out one of them", op)
        self.record("outputs", name, dims)
        places = [self.local(op.value, dims)]
        places += [] if op.in_place_of is None else [self.local(op.in_place_of, dims)]
        self.copy(op, places, [])

    def compute(self, op: AitOp) -> None:
        """Write an op on pieces of its operands."""
        if isinstance(op, ConstantOp) and op.splat() is not None:
            self.pieces[op.output] = Piece(whole(op.output), None, (True,) * tensor_type(op.output).rank)
            return
        if isinstance(op, EmbeddingOp) and (rows := self.pieces[op.table].dims[0]):
            self.look_up(op, rows)
        else:
            rule = rule_of(op)
            axes = self.axes_of(op, rule)
            operands = [
                self.local(v, tuple(axes.get(label, ()) if label else () for label in labels))
                for v, labels in zip(op.operands, rule.operands, strict=True)
            ]
            results = [tuple(axes.get(x, ()) if x else () for x in labels) for labels in rule.results]
            made = self.copy(
                op, operands, [self.local_type(r.type, d) for r, d in zip(op.results, results, strict=True)]
            )
            kept = {label for labels in rule.results for label in labels}
            sums = tuple(axis for label, found in axes.items() if label not in kept for axis in found)
            for result, local, dims in zip(op.results, made.results, results, strict=True):
                value: SSAValue = local
                if sums:
                    value = self.put(op, AllReduceOp, local, sums, kind=rule.kind)
                self.pieces[result] = Piece(dims, value)
        if (wanted := op.attributes.get(SHARDING)) is not None and len(op.results) == 1:
            sharding = self.given(op, f"the result of {op.name}", wanted, op.results[0])
            assert sharding is not None
            self.pieces[op.results[0]] = Piece(sharding.dims, self.local(op.results[0], sharding.dims))

    def axes_of(self, op: AitOp, rule: Rule) -> dict[str, Axes]:
        """The mesh axes that divide each label, as in the largest operand in which the label is divided.

        An axis divides only one label, and only if the number of ranks divides all dims with this label.
        """
        values = [*zip(op.operands, rule.operands, strict=True), *zip(op.results, rule.results, strict=True)]
        extents: dict[str, list[tuple[TensorType, int]]] = {}
        for value, labels in values:
            for axis, label in enumerate(labels):
                if label is not None:
                    extents.setdefault(label, []).append((tensor_type(value), axis))
        usual = {dim.name: dim.usual for dim in self.scope}
        found: dict[str, Axes] = {}
        order = sorted(
            range(len(op.operands)),
            key=lambda i: -tensor_type(op.operands[i]).byte_size().evaluate(self.scope.complete(usual)),
        )
        for i in order:
            for label, axes in zip(rule.operands[i], self.pieces[op.operands[i]].dims, strict=True):
                if label is None or label in found or not axes:
                    continue
                taken = {axis for other in found.values() for axis in other}
                if not taken & set(axes) and all(self.divides(t, axis, axes) for t, axis in extents[label]):
                    found[label] = axes
        return found

    def look_up(self, op: EmbeddingOp, rows: Axes) -> None:
        """Rows of a table of which each rank has some: the sum over ranks of the rows that a rank has, and zeros."""
        table = self.local(op.table, (rows, ()))
        ids_dims = tuple(tuple(axis for axis in axes if axis not in rows) for axes in self.pieces[op.ids].dims)
        ids, w = self.local(op.ids, ids_dims), self.writer
        element = tensor_type(ids).element_type
        count, parts = tensor_type(table).dims[0].as_int(), self.mesh.extent(rows)
        assert count is not None, "a param has a static shape"
        starts = w.constant([count * part for part in range(parts)], (parts,), i64)
        start = w.cast(self.put(op, AllSliceOp, starts, rows, dim=0), element)
        own = w.sub(ids, w.reshape(start, ()))
        near = w.minimum(w.maximum(own, 0), count - 1)
        found = w.put(EmbeddingOp(table, near))
        t = tensor_type(found)
        inside = w.op(CompareOp, own, near, properties={"predicate": "eq"})
        mask = w.reshape(inside, (*tensor_type(ids).dims, 1))
        kept = w.op(WhereOp, mask, found, w.scalar(0, t.element_type))
        total = self.put(op, AllReduceOp, kept, rows, kind="sum")
        self.pieces[op.output] = Piece((*ids_dims, ()), total)

    def local(self, value: SSAValue, dims: Dims) -> SSAValue:
        """A rank's piece of a value in a sharding."""
        piece = self.pieces[value]
        if piece.local is None:
            self.define(value, piece, dims)
        assert piece.local is not None
        if piece.dims == dims:
            return piece.local
        key = (piece.local, dims)
        if key not in self.moved:
            self.moved[key] = self.move(value, piece.local, piece.dims, dims)
        return self.moved[key]

    def define(self, value: SSAValue, piece: Piece, dims: Dims) -> None:
        """Write a param or constant where its first reader needs it, in that reader's sharding."""
        op = cast(ParamOp | ConstantOp, value.owner)
        t, taken = tensor_type(value), {axis for axes in piece.dims for axis in axes}
        found: list[Axes] = []
        for axis, (own, wanted, is_open) in enumerate(zip(piece.dims, dims, piece.is_open, strict=True)):
            free = not own and is_open and not taken & set(wanted) and self.divides(t, axis, wanted)
            found.append(wanted if free else own)
        piece.dims = tuple(found)
        piece.local = self.copy(op, [], [self.local_type(t, piece.dims)]).results[0]
        if isinstance(op, ParamOp):
            name = op.param_name.data
            known = self.shardings.get(("params", name))
            if (() if known is None else known.dims) not in ((), piece.dims):
                raise PassError(f"param '{name}' is read twice, in two shardings; give both the same", op)
            self.record("params", name, piece.dims)

    def move(self, value: SSAValue, local: SSAValue, now: Dims, wanted: Dims) -> SSAValue:
        """A value in another sharding: pieces are joined first, then cut."""
        by = value.owner if isinstance(value.owner, Operation) else self.graph
        kept = [common(a, b) for a, b in zip(now, wanted, strict=True)]
        joins = {i: a[len(k) :] for i, (a, k) in enumerate(zip(now, kept, strict=True)) if a[len(k) :]}
        cuts = {i: b[len(k) :] for i, (b, k) in enumerate(zip(wanted, kept, strict=True)) if b[len(k) :]}
        if len(joins) == len(cuts) == 1:
            (join, axes), (cut, others) = *joins.items(), *cuts.items()
            if axes == others and join != cut:
                return self.put(by, AllToAllOp, local, axes, split=cut, concat=join)
        if not joins and len(cuts) == 1 and isinstance(total := local.owner, AllReduceOp):
            ((cut, axes),) = cuts.items()
            if axes == total.group_axes():
                return self.put(by, ReduceScatterOp, total.input, axes, kind=total.kind, dim=cut)
        for axis, axes in joins.items():
            local = self.put(by, AllGatherOp, local, axes, dim=axis)
        for axis, axes in cuts.items():
            local = self.put(by, AllSliceOp, local, axes, dim=axis)
        return local

    # ** ops **

    def put(self, by: Operation, op_class: type[CollectiveOp], value: SSAValue, axes: Axes, **given: Any) -> SSAValue:
        """Write a collective that an op needs."""
        result = self.writer.op(op_class, value, properties={**given, "axes": axes, "mesh": self.mesh})
        cast(Operation, result.owner).location = by.location
        return result

    def copy(self, op: AitOp, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> Operation:
        """Write an op of the graph on other operands."""
        made = type(op).create(
            operands=operands,
            result_types=types,
            properties=op.properties,
            attributes={name: value for name, value in op.attributes.items() if name != SHARDING},
            regions=[region.clone() for region in op.regions],
        )
        made.location = op.location
        self.writer.insert(made)
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
        return made


def whole(value: SSAValue) -> Dims:
    return ((),) * tensor_type(value).rank


def common(a: Axes, b: Axes) -> Axes:
    """The axes with which both begin."""
    count = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:count]


def partition(graph: GraphOp, mesh: MeshOp) -> None:
    """Replace a graph by the graph of each rank."""
    axes, name = mesh.mesh.data, mesh.sym_name.data
    types: list[tuple[str, TensorType]] = []
    made = GraphOp(graph.sym_name.data, [], graph.scope)
    worker = Partitioner(graph, name, axes, Writer(made.block))
    strided = graph.strides()
    for input_name, value in graph.inputs():
        given = None if graph.input_shardings is None else graph.input_shardings.data.get(input_name)
        sharding = worker.given(graph, f"input '{input_name}'", given, value)
        dims = whole(value) if sharding is None else sharding.dims
        if any(dims) and input_name in strided:
            raise PassError(f"input '{input_name}' has a sharding and strides; leave out one of them", graph)
        types.append((input_name, worker.local_type(value.type, dims)))
        made.block.insert_arg(types[-1][1], len(types) - 1).name_hint = value.name_hint
    made.properties.update({key: p for key, p in graph.properties.items() if key != "input_shardings"})
    made.attributes.update(graph.attributes)
    made.location = graph.location
    block = graph.parent
    assert block is not None
    block.insert_op_before(made, graph)
    worker.run()
    for op in reversed(list(made.block.ops)):
        if isinstance(op, CollectiveOp) and not list(op.output.uses):
            op.detach()
            op.erase()
    made.ranks = Ranks(axes, worker.shardings).attribute()
    graph.detach()
    graph.erase()


def is_sharded(graph: GraphOp) -> bool:
    """Whether the text of a graph gives a sharding, and nothing has partitioned it yet."""
    return graph.ranks is None and (
        graph.input_shardings is not None or any(SHARDING in op.attributes for op in graph.block.ops)
    )


def declare_mesh(module: ModuleOp, mesh: Mesh) -> None:
    """Let the module's mesh be this one; a module without a mesh gets @mesh."""
    declared = [op for op in module.ops if isinstance(op, MeshOp)]
    for op in declared:
        op.mesh = MeshAttr(mesh)
    if not declared:
        op = MeshOp.create(properties={"sym_name": StringAttr("mesh"), "mesh": MeshAttr(mesh)})
        first = module.body.block.first_op
        if first is None:
            module.body.block.add_op(op)
        else:
            module.body.block.insert_op_before(op, first)


@dataclass(frozen=True)
class PartitionPass(TellingPass):
    """Make of each graph with shardings the graph that one rank runs. `mesh`, such as "tp=2", replaces the module's."""

    name = "partition"

    mesh: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        graphs = [op for op in module.ops if isinstance(op, GraphOp) and is_sharded(op)]
        if self.mesh and graphs:
            declare_mesh(module, parse_axes(self.mesh))
        meshes = [op for op in module.ops if isinstance(op, MeshOp)]
        for graph in graphs:
            if len(meshes) != 1:
                raise PassError(
                    f"graph @{graph.sym_name.data} has shardings, and the module declares {len(meshes)} meshes, "
                    'expected one: sdy.mesh @mesh = <["tp"=2]>',
                    graph,
                )
            partition(graph, meshes[0])
        return bool(graphs)
