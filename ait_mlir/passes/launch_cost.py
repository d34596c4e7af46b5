"""Estimates the time of a launch and the share of the card that it fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.lowering.candidates import Step
from ait_mlir.lowering.choices import Selected
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Config

THREADS = 2048
"""The threads of a multiprocessor."""
ELEMENTS = 8
"""The approximate number of elements that a thread computes."""
TILE = 64
"""Rows and columns of a block of a product, if its configuration does not give them."""


@dataclass(frozen=True)
class LaunchCost:
    """The seconds of a launch that runs alone, and its share of the card, at most 1."""

    seconds: float
    share: float


def launch_cost(kernel: KernelOp, target: Target) -> LaunchCost:
    """The cost with each dim at its hint or else its maximum; `ValueError` if the kernel cannot run its op."""
    op = kernel.compute_op()
    selected = Selected.of(kernel.provider.data, kernel.config, op, target)
    env, choice = estimate_env(scope_of(op)), selected.choice
    size = 0 if choice.axis is None else choice.axis.evaluate(env)
    candidate = selected.candidates[sum(size > limit for limit in choice.upto)]
    costs = [_cost(step, env, target) for step in candidate]
    seconds = sum(cost.seconds for cost in costs)
    return LaunchCost(seconds, sum(cost.share * cost.seconds for cost in costs) / seconds if seconds else 0.0)


def _cost(step: Step, env: Mapping[str, int], target: Target) -> LaunchCost:
    seconds = step.kernel.estimate(step.op, step.config, target)
    blocks = _blocks(step.op, step.config, env) / target.multiprocessors
    traffic = bytes_moved(step.op, scope_of(step.op)) / target.bandwidth
    work = step.op.flops().evaluate(env) / target.row.flops if isinstance(step.op, Cost) else 0.0
    return LaunchCost(seconds, min(1.0, max(blocks, max(traffic, work) / seconds if seconds else 0.0)))


def _blocks(op: Operation, config: Config, env: Mapping[str, int]) -> float:
    """The approximate number of blocks of an op, where each block fills a multiprocessor."""
    sizes = [[d.evaluate(env) for d in tensor_type(v).dims] for v in (*op.operands, *op.results)]
    if isinstance(op, ContractionOp | ConvOp):
        columns = sizes[-1][-1] if sizes[-1] else 1
        rows = _product(sizes[-1]) / max(columns, 1)
        tile_m, tile_n = config.get("tile_m", TILE), config.get("tile_n", config.get("columns", TILE))
        return -(-rows // max(tile_m, 1)) * -(-columns // max(tile_n, 1)) * max(1, config.get("split", 1))
    return max(_product(s) for s in sizes) / (ELEMENTS * THREADS)


def _product(sizes: Sequence[int]) -> float:
    found = 1.0
    for size in sizes:
        found *= size
    return found
