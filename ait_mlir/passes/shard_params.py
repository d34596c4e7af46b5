"""A plan for the weights of a model: which are divided by columns, and which by rows.

The plan has names of params or of the modules that own them, as in `layers.*.up=colwise,layers.*.down=rowwise`. The
param `layers.0.up.weight` belongs to the module `layers.0.up`; a `*` matches within one part of a name. A divided
weight gets a sharding, and `partition` does the rest.

`colwise` divides the columns of a product's result, or of the rows of an embedding; `rowwise` divides the dim that a
product sums over, or the rows of an embedding's table. A param of one dim is a bias: `colwise` divides it, `rowwise`
leaves it whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.data import GraphOp, ParamOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.index import EmbeddingOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp
from ait_mlir.dialects.sdy import SHARDING, Mesh, MeshOp, Sharding, ShardingAttr, parse_axes
from ait_mlir.errors import AitError
from ait_mlir.ir.pipeline import PassError, TellingPass
from ait_mlir.passes.partition import declare_mesh
from ait_mlir.rewrites.engine.errors import unknown

COLWISE, ROWWISE = "colwise", "rowwise"
STYLES: Mapping[str, str] = {
    COLWISE: COLWISE,
    ROWWISE: ROWWISE,
    **dict.fromkeys(("colwise_rep", "colwise_gather_output"), COLWISE),
    **dict.fromkeys(("rowwise_rep", "embedding_rowwise"), ROWWISE),
}
"""The styles, and the names of `transformers` for them: where a result is joined follows from its readers."""
AXIS = "tp"
"""The axis of the mesh that divides weights, where the mesh has several."""

Plan = tuple[tuple[str, str], ...]
"""Patterns of names with their styles."""


def parse_plan(text: str) -> Plan:
    """The plan of `layers.*.up=colwise,layers.*.down=rowwise`; `AitError` for another text."""
    found: list[tuple[str, str]] = []
    for part in filter(None, map(str.strip, text.split(","))):
        pattern, equals, style = map(str.strip, part.partition("="))
        if not pattern or not equals or style not in STYLES:
            raise AitError(
                f"plan: {part!r}, expected NAME=STYLE, as in layers.*.up=colwise; the styles are {', '.join(STYLES)}"
            )
        found.append((pattern, STYLES[style]))
    return tuple(found)


def plan_text(plan: Mapping[str, object]) -> str:
    """The text of a plan that is given as a mapping: styles by name, or objects of PyTorch such as `ColwiseParallel()`.

    Raises `AitError` for a style that is none.
    """
    styles = {"ColwiseParallel": COLWISE, "RowwiseParallel": ROWWISE}
    found: list[str] = []
    for pattern, style in plan.items():
        named = style if isinstance(style, str) else styles.get(type(style).__name__, "")
        if not re.fullmatch(r"[^=,\s]+", str(pattern)) or named not in STYLES:
            raise AitError(
                f"plan: {pattern!r} has {style!r}, expected the name of a module and one of {', '.join(STYLES)}, "
                f"or an object of {', '.join(styles)}"
            )
        found.append(f"{pattern}={named}")
    return ",".join(found)


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is that of a param or of the module that owns it."""
    parts = pattern.split(".")
    return any(
        len(parts) == len(own) and all(fnmatchcase(a, b) for a, b in zip_longest(own, parts))
        for own in (name.split("."), name.split(".")[:-1])
    )


def readers(value: SSAValue, order: Sequence[int]) -> Iterator[tuple[ContractionOp | EmbeddingOp, int, Sequence[int]]]:
    """The products and embeddings that read a weight, the operand's position, and for each dim there the weight's."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, PermuteOp):
            yield from readers(op.output, [order[axis] for axis in op.order()])
        elif isinstance(op, ContractionOp | EmbeddingOp) and use.index < (2 if isinstance(op, ContractionOp) else 1):
            yield op, use.index, order


def divided_dim(param: ParamOp, style: str) -> int | None:
    """The dim of a param that a style divides; None for a bias that stays whole. Raises `PassError`."""
    rank = tensor_type(param.output).rank
    if rank == 1:
        return 0 if style == COLWISE else None
    found: set[int] = set()
    for op, position, order in readers(param.output, range(rank)):
        if isinstance(op, EmbeddingOp):
            return order[1] if style == COLWISE else order[0]
        row, column = op.matrix_axes(position)
        summed, kept = (column, row) if position == 0 else (row, column)
        found.add(order[kept if style == COLWISE else summed])
    if len(found) != 1:
        name = f"param '{param.param_name.data}'"
        if found:
            raise PassError(f"{name} is a factor of products along different dims; give it a sharding instead", param)
        raise PassError(
            f"no product and no embedding reads {name}, so that {style} has no meaning; give it a sharding instead",
            param,
        )
    return found.pop()


def shard(module: ModuleOp, plan: Plan, mesh_name: str, mesh: Mesh) -> None:
    """Give the params of a module's graphs the shardings of a plan. Raises `PassError` at the param that does not fit,
    and `AitError` for a name that no param has.
    """
    if AXIS not in mesh.names and len(mesh.axes) != 1:
        raise AitError(f'plan: the mesh {mesh} has several axes, expected one of them to be "{AXIS}"')
    axis = AXIS if AXIS in mesh.names else mesh.names[0]
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    params = [op for graph in graphs for op in graph.block.ops if isinstance(op, ParamOp)]
    used: set[str] = set()
    for param in params:
        name = param.param_name.data
        fitting = [(pattern, style) for pattern, style in plan if matches(pattern, name)]
        used |= {pattern for pattern, _ in fitting}
        if len({style for _, style in fitting}) > 1:
            patterns = " and ".join(f"'{pattern}={style}'" for pattern, style in fitting)
            raise PassError(f"param '{name}' is divided by {patterns}; leave out one of them", param)
        if not fitting or SHARDING in param.attributes or (dim := divided_dim(param, fitting[0][1])) is None:
            continue
        rank = tensor_type(param.output).rank
        dims = tuple((axis,) if i == dim else () for i in range(rank))
        param.attributes[SHARDING] = ShardingAttr(Sharding(mesh_name, dims, (False,) * rank))
    if unused := [pattern for pattern, _ in plan if pattern not in used]:
        names = [n for op in params for n in (op.param_name.data, op.param_name.data.rpartition(".")[0]) if n]
        raise AitError(f"plan: {unknown('module or param', unused[0], names)}")


@dataclass(frozen=True)
class ShardParamsPass(TellingPass):
    """Give the params of a plan, such as "*.up=colwise,*.down=rowwise", shardings; `mesh` is as for `partition`."""

    name = "shard-params"

    plan: str = ""
    mesh: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        if not (plan := parse_plan(self.plan)):
            return False
        if self.mesh:
            declare_mesh(module, parse_axes(self.mesh))
        meshes = [op for op in module.ops if isinstance(op, MeshOp)]
        if len(meshes) != 1:
            graph = next((op for op in module.ops if isinstance(op, GraphOp)), None)
            found = f"the module declares {len(meshes)}"
            raise PassError(f'a plan needs one mesh, {found}: give one, as in mesh="tp=2"', graph)
        shard(module, plan, meshes[0].sym_name.data, meshes[0].mesh.data)
        return True
