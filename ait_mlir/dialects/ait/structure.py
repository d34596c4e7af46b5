"""Comparable values for the computation of an op: ops with equal values compute the same."""

from __future__ import annotations

from collections.abc import Mapping

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


def region_key(region: Region, around: Mapping[SSAValue, int] | None = None) -> object:
    """A key that is equal for regions that compute the same function; `KeyError` if one uses a value from outside.

    A region in a region may use the values `around` it, by their numbers.
    """
    if not region.blocks:
        return ()
    block = region.block
    numbers: dict[SSAValue, int] = {**(around or {})}
    numbers.update({a: len(numbers) + i for i, a in enumerate(block.args)})
    out: list[object] = [tuple(block.arg_types)]
    for op in block.ops:
        operands = tuple(numbers[v] for v in op.operands)
        inner = tuple(region_key(r, numbers) for r in op.regions)
        for r in op.results:
            numbers[r] = len(numbers)
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        out.append((op.name, properties, operands, tuple(op.result_types), *inner))
    return tuple(out)
