"""Groups of elementwise operations between a contraction and one that they all lead to."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.regions import append
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.numbers import element_type_of, splat

LARGEST_GROUP = 16
"""The most operations that join at once: looking for them must not depend on the size of the graph."""


@CONSTRAINTS
def ends_group(root: ElementwiseOp, limit: IntegerAttr) -> bool:
    """Several elementwise operations of one shape, the last of which is `root`, are all that uses a contraction, and
    with them it has at most `limit` operands."""
    return group_of(root, limit.value.data) is not None


@NATIVES
def append_group_to_epilogue(r: Rewriter, root: ElementwiseOp, limit: IntegerAttr) -> None:
    """Let a group of elementwise operations join the epilogue of the contraction they alone use."""
    found = group_of(root, limit.value.data)
    assert found is not None, "append_group_to_epilogue needs ends_group"
    contraction, members = found
    joining = sorted(members, key=r.position)
    r.replace(root, append(r, contraction, joining).results)
    for op in (*reversed(joining[:-1]), contraction):
        r.erase(op)


def group_of(root: ElementwiseOp, limit: int) -> tuple[ContractionOp, list[ElementwiseOp]] | None:
    """A contraction and all that uses it, directly or not, up to `root`; None if something else does."""
    if not isinstance(root.results[0].type, TensorType) or not is_float(element_type_of(root.results[0])):
        return None
    for contraction in contractions_before(root):
        members = users_up_to(contraction, root)
        if members is not None and len(contraction.operands) + len(read_beside(contraction, members)) <= limit:
            return contraction, members
    return None


def contractions_before(root: Operation) -> Iterator[ContractionOp]:
    """The contractions, not selected yet, that elementwise operations before `root` read."""
    pending, seen = [root], {root}
    while pending:
        for operand in pending.pop().operands:
            owner = operand.owner
            if isinstance(owner, ContractionOp) and owner not in seen and "kernel" not in owner.attributes:
                seen.add(owner)
                yield owner
            elif isinstance(owner, ElementwiseOp) and owner not in seen and len(seen) < LARGEST_GROUP:
                seen.add(owner)
                pending.append(owner)


def users_up_to(contraction: ContractionOp, root: ElementwiseOp) -> list[ElementwiseOp] | None:
    """The elementwise operations from a contraction to `root`; None if they are not several, or not all of one shape,
    or one of them has a user that does not lead to `root`."""
    scope, shape = scope_of(root), tensor_type(contraction.results[0]).dims
    members: list[ElementwiseOp] = []
    pending: list[SSAValue] = [contraction.results[0]]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user in members:
                continue
            if not isinstance(user, ElementwiseOp) or len(members) == LARGEST_GROUP:
                return None
            if not same_shape(tensor_type(user.results[0]).dims, shape, scope):
                return None
            members.append(user)
            if user is not root:
                pending.append(user.results[0])
    return members if root in members and len(members) > 1 else None


def read_beside(contraction: ContractionOp, members: list[ElementwiseOp]) -> set[SSAValue]:
    """What the operations read that none of them computes, and that is no number."""
    made = {contraction.results[0], *(m.results[0] for m in members), *contraction.operands[2:]}
    return {value for m in members for value in m.operands if value not in made and splat(value) is None}
