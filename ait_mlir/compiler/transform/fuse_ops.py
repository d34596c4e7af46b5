"""Fuses elementwise operators into one pass over memory, and into norms before them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.ir import Operation

from ait_mlir.compiler.transform.apply import apply, transform
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import fused_elementwise
from ait_mlir.frontend.ops.norm import group_norm, group_norm_swish
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = [
    "FusedElementwiseInfo",
    "fuse_elementwise",
    "fuse_ops",
    "fused_elementwise",
    "group_norm",
    "group_norm_swish",
    "process_singleton_elementwise",
    "toposort",
]


@dataclass
class FusedElementwiseInfo:
    """A group of elementwise operators to fuse, its inputs and outputs, and those shared with other operators."""

    partitioned_ops: list[Operator]
    inputs: list[Tensor]
    outputs: list[Tensor]
    external_inputs: list[Tensor]
    external_outputs: list[Tensor]


def fuse_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with connected elementwise operators of one shape fused; `_attrs["elementwise_ops"]` lists them."""
    return apply("fuse_elementwise", sorted_graph, workdir)


def fuse_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with elementwise operators that alone read a norm fused into it: `layernorm_sigmoid_mul`."""
    return transform("fuse_ops", sorted_graph, workdir, "fuse-epilogue", only=_is_no_product)


def _is_no_product(op: Operation) -> bool:
    return not isinstance(op, HasEpilogue) or op.name in ("ait.layer_norm", "ait.group_norm")


def process_singleton_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with each elementwise operator as its own `fused_elementwise`."""
    return apply("process_singleton_elementwise", sorted_graph, workdir)


def ends(operators: Collection[Operator]) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors that a group of operators reads from outside, and its results that are outputs or used outside."""
    inside = set(operators)
    made = [t for op in operators for t in op.outputs]
    read = [t for op in operators for t in op.inputs if t not in made]
    seen = [t for t in made if t.is_output or not t.users or any(user not in inside for user in t.users)]
    return list(dict.fromkeys(read)), seen


def _get_inputs_outputs(  # pyright: ignore[reportUnusedFunction]
    partitioned_ops: Collection[Operator], all_ops: Collection[Operator]
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """The inputs and the outputs of the operators to fuse; then the inputs from outside of `all_ops` and the outputs
    used outside of it."""
    inputs = list(dict.fromkeys(t for op in partitioned_ops for t in op.inputs))
    outputs = [t for op in partitioned_ops for t in op.outputs]
    read, made = ends(all_ops)
    return inputs, outputs, [t for t in inputs if t in read], [t for t in outputs if t in made]
