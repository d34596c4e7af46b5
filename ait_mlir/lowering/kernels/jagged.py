"""Ops on sequences of different lengths, laid end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ait_mlir.dialects.ait.jagged import (
    EmbeddingBagOp,
    JaggedToPaddedOp,
    JaggedVectorProductOp,
    PaddedToJaggedOp,
    jagged_dim,
)
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Scope, product
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides

NO_PADDING = -1


class EmbeddingBagKernel(Kernel[EmbeddingBagOp]):
    """`ait.embedding_bag`: a row of threads, or a CPU thread, computes one bag at a time."""

    name = "embedding_bag"
    ops = (EmbeddingBagOp,)

    def accepts(self, op: EmbeddingBagOp, position: int, strides: Strides, scope: Scope) -> bool:
        return strides[-1].as_int() == 1

    def emit(self, launch: Launch[EmbeddingBagOp]) -> Emission:
        op, (table, ids, offsets, *weights), (out,) = launch.op, launch.ins, launch.outs
        rows, width = table.type.dims
        sizes = launch.cpp(op.bags, ids.type.dims[0], rows, width, table.strides[0], out.strides[0])
        padding = NO_PADDING if op.padding is None else op.padding.value.data
        given = weights[0].name if weights else f"static_cast<decltype({table.name})>(nullptr)"
        space = f"ait::BagSpace{{{sizes}, {padding}, {'true' if op.closed is not None else 'false'}}}"
        return launch.call(
            "jagged",
            f"embedding_bag<ait::Bag::{op.kind.data}>(ctx, {space}, {table.name}, {ids.name}, {offsets.name}, "
            f"{given}, {out.name})",
        )


def space_of(launch: Launch[Any], t: TensorType, offsets: Sequence[Arg]) -> str:
    """The offsets and limits of a jagged dim as the templates take them: `ait::jagged_space<...>`."""
    jagged = jagged_dim(launch.op, t, "the tensor")
    levels = len(offsets)
    pointers = ", ".join(arg.name for arg in offsets)
    sequences = [arg.type.dims[0] - 1 for arg in offsets]
    longest = launch.cpp(*(longest for _, longest in jagged.levels))
    return (
        f"ait::jagged_space<{levels}>({{{pointers}}}, {{{launch.cpp(*sequences)}}}, {{{longest}}}, "
        f"{launch.cpp(t.dims[0])})"
    )


class PadKernel(Kernel[JaggedToPaddedOp]):
    """`ait.jagged_to_padded`: finds for each row of the result its place in the sequences."""

    name = "jagged_pad"
    ops = (JaggedToPaddedOp,)
    row_major = True

    def emit(self, launch: Launch[JaggedToPaddedOp]) -> Emission:
        (x, *offsets), (out,) = launch.ins, launch.outs
        width = product(x.type.dims[1:])
        value = launch.op.value.value.data
        number = repr(value) if value == value and abs(value) != float("inf") else _special(value)
        return launch.call(
            "jagged",
            f'jagged_pad(ctx, "jagged_to_padded", {space_of(launch, x.type, offsets)}, {launch.cpp(width)}, {x.name}, '
            f"{number}, {out.name})",
        )


def _special(value: float) -> str:
    return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"


class UnpadKernel(Kernel[PaddedToJaggedOp]):
    """`ait.padded_to_jagged`: each row of the result finds its sequence by bisection."""

    name = "jagged_unpad"
    ops = (PaddedToJaggedOp,)
    row_major = True

    def emit(self, launch: Launch[PaddedToJaggedOp]) -> Emission:
        (x, *offsets), (out,) = launch.ins, launch.outs
        width = product(out.type.dims[1:])
        partial = ", true" if launch.op.partial is not None else ""
        return launch.call(
            "jagged",
            f'jagged_unpad(ctx, "padded_to_jagged", {space_of(launch, out.type, offsets)}, {launch.cpp(width)}, '
            f"{x.name}, {out.name}{partial})",
        )


class JaggedProductKernel(Kernel[JaggedVectorProductOp]):
    """`ait.jagged_vector_product`: a row of threads, or a CPU thread, computes one head of a sequence at a time."""

    name = "jagged_vector_product"
    ops = (JaggedVectorProductOp,)
    row_major = True

    def emit(self, launch: Launch[JaggedVectorProductOp]) -> Emission:
        (vectors, matrices, offsets), (out,) = launch.ins, launch.outs
        heads, width = matrices.type.dims[1:]
        return launch.call(
            "jagged",
            f'jagged_vector_product(ctx, "jagged_vector_product", {space_of(launch, matrices.type, [offsets])}, '
            f"{launch.cpp(heads, width)}, {vectors.name}, {matrices.name}, {out.name})",
        )


KERNELS = (EmbeddingBagKernel(), PadKernel(), UnpadKernel(), JaggedProductKernel())
