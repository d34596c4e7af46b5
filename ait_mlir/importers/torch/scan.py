"""Imports `torch.ops.higher_order.scan`, a loop over slices with carried values, as `ait.scan`. PyTorch moves the
scanned dim to the front; a scan in reverse flips its inputs and its stacked results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.importers.torch.call import NotSupported
from ait_mlir.importers.torch.writer import ImportWriter


def is_scan(node: Any) -> bool:
    """Whether a node is PyTorch's scan."""
    return node.op == "call_function" and str(node.target) == "scan" and len(node.args) == 4


def is_reversed(node: Any) -> bool:
    """Whether all inputs of a scan are flipped and all its used stacked results are flipped back."""
    stacked = [u for u in node.users if len(node.args[1]) <= u.args[1]]
    return all(map(_flips, node.args[2])) and all(_flips(user) for item in stacked for user in item.users)


def is_flip_of_scan(node: Any) -> bool:
    """Whether a node flips an input or a result of a scan that runs in reverse."""
    if not _flips(node):
        return False
    source = node.args[0]
    makers = [source.args[0]] if str(source.target).endswith("getitem>") else []
    scans = [scan for scan in (*makers, *node.users) if is_scan(scan)]
    read_by_scans = all(is_scan(user) for user in node.users)
    return bool(scans) and all(map(is_reversed, scans)) and (read_by_scans or bool(makers and is_scan(makers[0])))


def _flips(node: Any) -> bool:
    return str(getattr(node, "target", "")) == "aten.flip.default" and list(node.args[1]) == [0]


def write_scan(
    w: ImportWriter,
    groups: Sequence[Sequence[SSAValue]],
    types: Sequence[TensorType],
    step: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    reverse: bool,
) -> list[SSAValue]:
    """Write a scan along dim 0; returns its results, of these types.

    `groups` are the initial, the scanned and the captured values. `step` writes one step, given its arguments in the
    same order (which is PyTorch's), and returns the carried values, then the slices.
    """
    init, scanned, captured = groups
    if not scanned:
        raise NotSupported("a scan over nothing has no length")
    slices = [TensorType.get(t.dims[1:], t.element_type) for t in map(tensor_type, scanned)]
    arguments: list[Attribute] = [*slices, *(v.type for v in (*init, *captured))]
    block = Block(arg_types=arguments)
    properties: dict[str, Attribute] = {
        "dim": IntegerAttr(0, i64),
        "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(scanned), len(init), len(captured)]),
    }
    if reverse:
        properties["reverse"] = UnitAttr()
    op = ScanOp.create(
        operands=[*scanned, *init, *captured], result_types=types, properties=properties, regions=[Region(block)]
    )
    w.block.add_op(op)
    first, second = len(slices), len(slices) + len(init)
    values: list[SSAValue] = list(block.args)
    with w.inside(block):
        results = step([*values[first:second], *values[:first], *values[second:]])
        block.add_op(YieldOp(*results))
    w.check(op)
    return list(op.results)
