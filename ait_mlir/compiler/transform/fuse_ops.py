"""Elementwise operators become one pass over memory; norms keep what follows them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import fused_elementwise
from ait_mlir.frontend.ops.norm import group_norm, group_norm_swish
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = [
    "FusedElementwiseInfo",
    "fuse_elementwise",
    "fused_elementwise",
    "group_norm",
    "group_norm_swish",
    "process_singleton_elementwise",
    "toposort",
]


@dataclass
class FusedElementwiseInfo:
    """Elementwise operators that become one, what they read and make, and which of that others see."""

    partitioned_ops: list[Operator]
    inputs: list[Tensor]
    outputs: list[Tensor]
    external_inputs: list[Tensor]
    external_outputs: list[Tensor]


def fuse_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Connected elementwise operators of one shape as `fused_elementwise`; `_attrs["elementwise_ops"]` has them."""
    return apply("fuse_elementwise", sorted_graph, workdir)


def process_singleton_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Each elementwise operator as a `fused_elementwise` by itself."""
    return apply("process_singleton_elementwise", sorted_graph, workdir)


def ends(operators: Collection[Operator]) -> tuple[list[Tensor], list[Tensor]]:
    """What a group of operators reads from outside, and the results that are outputs or that others read."""
    inside = set(operators)
    made = [t for op in operators for t in op.outputs]
    read = [t for op in operators for t in op.inputs if t not in made]
    seen = [t for t in made if t.is_output or not t.users or any(user not in inside for user in t.users)]
    return list(dict.fromkeys(read)), seen


def _get_inputs_outputs(  # pyright: ignore[reportUnusedFunction]
    partitioned_ops: Collection[Operator], all_ops: Collection[Operator]
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """The inputs and outputs of operators that are to be one, then those that come from and go to others than
    `all_ops`."""
    inputs = list(dict.fromkeys(t for op in partitioned_ops for t in op.inputs))
    outputs = [t for op in partitioned_ops for t in op.outputs]
    read, made = ends(all_ops)
    return inputs, outputs, [t for t in inputs if t in read], [t for t in outputs if t in made]
