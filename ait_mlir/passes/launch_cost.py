"""Estimates the time of a launch, the share of the card that it fills, and the shortest time that its work can take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.recurrence import RecurrenceOp
from ait_mlir.dialects.ait.traits import Collective, Cost
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.lowering.candidates import Step
from ait_mlir.lowering.choices import Selected
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config
from ait_mlir.lowering.kernels.contraction import keeps_f32

THREADS = 2048
"""The threads of a multiprocessor."""
ELEMENTS = 8
"""The approximate number of elements that a thread computes."""
VECTOR_SHARE = 16
"""The peak of products of f16 over that of f32 on vector units."""
TILE = 64
"""Rows and columns of a block of a product, if its configuration does not give them."""
STEP_SECONDS = 4e-7
"""The shortest time of a step that waits for the step before."""
SLOW = 5.0
"""A launch that is estimated above so many times its floor is slow."""
NOTABLE = 0.01
"""The share of the estimated time of its program from which on a slow launch matters."""


@dataclass(frozen=True)
class LaunchCost:
    """The seconds of a launch that runs alone, and its share of the card, at most 1."""

    seconds: float
    share: float


@dataclass(frozen=True)
class SlowLaunch:
    """A launch whose kernel is estimated far above the floor of its work; times in seconds."""

    launch: LaunchOp
    kernel: KernelOp
    seconds: float
    floor: float


def launch_cost(kernel: KernelOp, target: Target) -> LaunchCost:
    """The cost with each dim at its hint or else its maximum; `ValueError` if the kernel cannot run its op."""
    return cost_of(kernel.compute_op(), kernel.provider.data, kernel.config, target)


def cost_of(op: Operation, provider: str, config: DictionaryAttr, target: Target) -> LaunchCost:
    """The cost of an op on a kernel, as `launch_cost`."""
    selected = Selected.of(provider, config, op, target)
    env, choice = estimate_env(scope_of(op)), selected.choice
    size = 0 if choice.axis is None else choice.axis.evaluate(env)
    candidate = selected.candidates[sum(size > limit for limit in choice.upto)]
    costs = [_cost(step, env, target) for step in candidate]
    seconds = sum(cost.seconds for cost in costs)
    return LaunchCost(seconds, sum(cost.share * cost.seconds for cost in costs) / seconds if seconds else 0.0)


def floor_seconds(op: Operation, target: Target) -> float:
    """The shortest time of a launch of an op, at `estimate_env`: of each byte once at the rate of a copy, or of its
    operations at the peak rate, whichever takes longer. Steps of a recurrence take `STEP_SECONDS` at least."""
    assert isinstance(op, Cost), f"{op.name} does not say what it costs"
    scope = scope_of(op)
    work = op.flops().evaluate(estimate_env(scope)) / _peak(op, target)
    steps = op.steps.evaluate(estimate_env(scope)) if isinstance(op, RecurrenceOp) else 0
    return target.launch_seconds + max(bytes_moved(op, scope) / target.bandwidth, work, steps * STEP_SECONDS)


def _peak(op: Operation, target: Target) -> float:
    """Operations a second: those of the matrix units for products of narrow floats, and half of them for f32 that is
    rounded; else those of the vector units."""
    is_product = isinstance(op, ContractionOp | ConvOp | AttentionOp | RecurrenceOp)
    if not target.is_gpu or (is_product and element_bytes(tensor_type(op.operands[0])) <= 2):
        return target.row.flops
    if is_product and not keeps_f32(op, target):
        return target.row.flops / 2
    return target.row.flops / VECTOR_SHARE


def share_of_floor(kernel: KernelOp, target: Target) -> float | None:
    """The floor of a kernel's op over its estimated time, at most 1; None for a kernel without an estimate."""
    try:
        seconds = launch_cost(kernel, target).seconds
    except ValueError:
        return None
    return min(1.0, floor_seconds(kernel.compute_op(), target) / seconds) if seconds else None


def slow_launches(module: ModuleOp, program: ProgramOp, target: Target) -> Iterator[SlowLaunch]:
    """The slow launches of a planned program that matter for its time, the first of each kernel.

    Collectives are left out: the floor has no time of a link between ranks.
    """
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    launches = [op for op in program_ops(program.block) if isinstance(op, LaunchOp)]
    seconds: dict[str, float] = {}
    for name in {launch.kernel_name for launch in launches}:
        try:
            seconds[name] = launch_cost(kernels[name], target).seconds
        except ValueError:
            seconds[name] = 0.0
    least = NOTABLE * sum(seconds[launch.kernel_name] for launch in launches)
    for name, launch in {launch.kernel_name: launch for launch in reversed(launches)}.items():
        op = kernels[name].compute_op()
        if isinstance(op, Collective):
            continue
        floor = floor_seconds(op, target)
        if seconds[name] > max(SLOW * floor, least):
            yield SlowLaunch(launch, kernels[name], seconds[name], floor)


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
    if isinstance(op, RecurrenceOp):
        return -(-op.batch.evaluate(env) // config.get("rows", 8)) * config.get("cluster", 1)
    return max(_product(s) for s in sizes) / (ELEMENTS * THREADS)


def _product(sizes: Sequence[int]) -> float:
    found = 1.0
    for size in sizes:
        found *= size
    return found
