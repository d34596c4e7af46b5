"""Functional collectives of `torch.distributed`. Each result is complete: to wait for it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    ReduceScatterOp,
)
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr

KINDS = {"sum": "sum", "product": "prod", "max": "max", "min": "min", "avg": "sum"}


_OWN = "the messages of one rank, as of permute_tensor, isend and irecv, do not say what the other ranks send"


def put(c: Call, op: type[CollectiveOp], value: SSAValue, **given: Any) -> SSAValue:
    """Write a collective over the group of a call."""
    size = c.arguments.get("group_size")
    axes = c.w.groups.axes(str(c["group_name"]), None if size is None else as_expr(size).as_int())
    return c.w.op(op, value, properties={**given, "axes": axes, "mesh": c.w.groups.mesh})


def joined(c: Call, op: type[CollectiveOp], value: SSAValue, **given: Any) -> SSAValue:
    """A collective that adds, or the mean of what it adds."""
    kind = str(c["reduce_op"]).lower()
    if kind not in KINDS:
        raise NotSupported(f"a collective joins by {kind!r}, expected one of {', '.join(KINDS)}")
    element = tensor_type(value).element_type
    if kind == "avg" and not is_float(element):
        raise NotSupported("the mean over ranks of whole numbers is not supported; convert to floats first")
    if element == i1:
        raise NotSupported(f"a collective joins tensors of bool by {kind!r}; convert to integers first")
    total = put(c, op, value, kind=KINDS[kind], **given)
    return c.w.div(total, _members(total)) if kind == "avg" else total


def _members(total: SSAValue) -> int:
    op = total.owner
    assert isinstance(op, CollectiveOp)
    return op.members()


def all_reduce(c: Call, value: SSAValue) -> SSAValue:
    return joined(c, AllReduceOp, value)


def all_gather(c: Call, value: SSAValue) -> SSAValue:
    return put(c, AllGatherOp, value, dim=0)


def reduce_scatter(c: Call, value: SSAValue) -> SSAValue:
    return joined(c, ReduceScatterOp, value, dim=0)


def all_to_all(c: Call) -> Value:
    """Equal pieces of dim 0 to each member."""
    value = c.tensor("input")
    for name in ("output_split_sizes", "input_split_sizes"):
        sizes: list[Any] = c[name] or []
        if len({as_expr(size) for size in sizes}) > 1:
            raise NotSupported(f"{name} are {sizes}, expected pieces of one size; {_OWN}")
    return put(c, AllToAllOp, value, split=0, concat=0)


def shard_dim_all_to_all(c: Call) -> Value:
    """The rank's pieces along another dim, for a tensor that was divided along one dim before."""
    rank = tensor_type(c.tensor("input")).rank
    split, concat = c.axis("shard_dim", rank), c.axis("gather_dim", rank)
    return put(c, AllToAllOp, c.tensor("input"), split=split, concat=concat)


def broadcast(c: Call) -> Value:
    return put(c, BroadcastOp, c.tensor("input"), root=int(c["src"]))


def point_to_point(c: Call) -> Value:
    """A message of this rank; the programs of the other ranks have other ones."""
    raise NotSupported(f"{_OWN}; write ait.collective_permute in the text, which names all messages")


def one(write: Callable[[Call, SSAValue], SSAValue], name: str = "input") -> Row:
    """A row of one tensor."""
    return lambda c: write(c, c.tensor(name))


def several(write: Callable[[Call, SSAValue], SSAValue]) -> Row:
    """A row of a list of tensors, each of which is written alone."""

    def row(c: Call) -> Sequence[Value]:
        return [write(c, c.w.full(value)) for value in c.arguments["inputs"]]

    return row


_C10D = "_c10d_functional"

ROWS: dict[str, Row] = {
    f"{_C10D}.all_reduce.default": one(all_reduce),
    f"{_C10D}.all_reduce_coalesced.default": several(all_reduce),
    f"{_C10D}.all_gather_into_tensor.default {_C10D}_autograd.all_gather_into_tensor.default": one(all_gather),
    f"{_C10D}.all_gather_into_tensor_coalesced.default": several(all_gather),
    f"{_C10D}.reduce_scatter_tensor.default {_C10D}_autograd.reduce_scatter_tensor.default": one(reduce_scatter),
    f"{_C10D}.reduce_scatter_tensor_coalesced.default": several(reduce_scatter),
    f"{_C10D}.all_to_all_single.default {_C10D}_autograd.all_to_all_single.default": all_to_all,
    f"{_C10D}.broadcast.default": broadcast,
    f"{_C10D}.isend.default {_C10D}.irecv.default {_C10D}.batch_p2p_ops.default": point_to_point,
    f"{_C10D}.wait_tensor.default": lambda c: c.value("tensor"),
    "_dtensor.shard_dim_alltoall.default": shard_dim_all_to_all,
}
