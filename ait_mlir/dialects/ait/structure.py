"""Comparable values for the computation of an op: ops with equal values compute the same."""

from __future__ import annotations

from xdsl.ir import Operation, Region, SSAValue


def op_key(op: Operation) -> object:
    """A key that is equal for ops that compute the same function on operands of the same types."""
    return (
        op.name,
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(sorted(op.attributes.items(), key=lambda item: item[0])),
        tuple(op.operand_types),
        tuple(op.result_types),
        tuple(region_key(region) for region in op.regions),
    )


def region_key(region: Region) -> object:
    """A key that is equal for regions that compute the same function; `KeyError` if one uses a value from outside."""
    if not region.blocks:
        return ()
    block = region.block
    numbers: dict[SSAValue, int] = {a: i for i, a in enumerate(block.args)}
    out: list[object] = [tuple(block.arg_types)]
    for op in block.ops:
        operands = tuple(numbers[v] for v in op.operands)
        for r in op.results:
            numbers[r] = len(numbers)
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        out.append((op.name, properties, operands, tuple(op.result_types)))
    return tuple(out)
