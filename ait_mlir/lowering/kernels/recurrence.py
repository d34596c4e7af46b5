"""Recurrences in one launch: on a card, clusters of blocks keep the weight and exchange the state; on a CPU, threads
keep their columns of the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import ClassVar

from xdsl.dialects.builtin import bf16, f16, f32, f64

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.recurrence import RecurrenceOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.amounts import element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.gemm_packed import RATE
from ait_mlir.lowering.kernels.loops import broadcast_strides, nest, pack
from ait_mlir.lowering.regions import functor, functor_name

CLUSTERS = (1, 2, 4, 8, 16)
ROWS = (8, 16, 32)
MOST_WARPS = 8
MOST_FRAGMENTS = 160
"""The most fragments of the weight of a warp: their products are one straight piece of code."""
MOST_VALUES = 128
"""The most inputs, states and results of its elements that a thread keeps in registers."""
IN_REGISTERS = {2: 32, 4: 24}
"""By bytes of an element: the most fragments that a thread keeps in registers, as `RecurrencePlan` says."""
CHUNK = 32
"""Columns of h that a warp reads at a time."""
CONFIGS = 6
# Estimates, in cycles of a multiprocessor.
CLOCK = 1.7e9
PRODUCT = 6.5
"""A product of a tile on a quarter of a multiprocessor."""
MULTIPLICATIONS = 36
"""The same of floats: 4 multiplications with each of 8 rows."""
CHAIN = 34
"""A product that waits for the sum of the one before."""
WAIT = 120
"""Reading the state, and the barrier of a block."""
EXCHANGE = 1100
"""The barrier of a cluster, and reading the shared memory of others."""
COPIED = 24
"""Bytes that a block reads of the shared memory of others in a cycle."""
JOIN = 150
"""Adding up the sums of several warps."""
SCALAR = 14
"""A scalar op of the cell."""
START_SECONDS = 3e-6
"""Reading the weight."""
SPREAD = 0.85
"""The share of the multiprocessors that clusters can use."""
# Estimates of a CPU.
FEW_ROWS = 4
"""Rows of the batch that are multiplied as fast as by the packed product: both wait for the weight."""
DOT_RATE = 0.6 * RATE
"""Operations per second of more rows."""
STEP_SECONDS = 1e-6
"""Threads that wait for each other, and the cell."""


def _parts(size: int, part: int) -> int:
    """The number of parts that cover a size."""
    return -(-size // part)


@dataclass(frozen=True)
class Plan:
    """How a recurrence is shared out: the numbers of `RecurrencePlan` in the template."""

    gates: int
    hidden: int
    cluster: int
    rows: int
    across: int
    split: int
    bytes: int
    """Bytes of an element of the weight: 2 on tensor cores, or 4."""

    @property
    def parts(self) -> int:
        return 1 if self.gates % 2 == 0 else 2

    @property
    def own(self) -> int:
        """The sets of columns of a warp."""
        return _parts(_parts(self.hidden, self.cluster), 8 * self.parts * self.across)

    @property
    def columns(self) -> int:
        """The columns of a block."""
        return self.own * self.across * 8 * self.parts

    @property
    def tiles(self) -> int:
        return self.own * self.gates * self.parts // 2

    @property
    def chunks(self) -> int:
        return _parts(_parts(self.hidden, CHUNK), self.split)

    @property
    def fragments(self) -> int:
        return self.tiles * self.chunks * self.bytes

    @property
    def in_shared(self) -> int:
        return max(0, self.fragments - IN_REGISTERS[self.bytes])

    @property
    def warps(self) -> int:
        return self.across * self.split

    @property
    def elements(self) -> int:
        """The elements of the state of a thread."""
        return self.own * self.parts * self.rows // 8 * 2

    @property
    def shared_bytes(self) -> int:
        sums = (self.split - 1) * self.across * self.tiles * (self.rows // 8) * 512
        whole = 0 if self.cluster == 1 else self._pitch(self.cluster * self.columns)
        return self.rows * (2 * self._pitch(self.columns) + whole) + self.warps * self.in_shared * 512 + sums

    def _pitch(self, columns: int) -> int:
        return _parts(self.bytes * columns, 128) * 128 + 64

    def cycles(self, scalars: int) -> float:
        """The estimated cycles of a step, with a cell of so many scalar ops."""
        batches = self.rows // 8
        tiles = self.tiles * batches
        chains = 1 if tiles >= 4 else 2 if tiles >= 2 else 4
        busy = (
            (PRODUCT if self.bytes == 2 else MULTIPLICATIONS)
            * self.fragments
            * batches
            * self.warps
            / min(4, self.warps)
        )
        reads = (self.in_shared * 4 + self.chunks * batches * (4 if self.bytes == 2 else 16)) * self.warps
        sums = max(busy, CHAIN * self.chunks * 2 / chains, reads)
        join = 0 if self.split == 1 else JOIN + self.tiles * batches * 16 * (self.split - 1)
        cell = SCALAR * scalars * max(1.0, self.elements * self.across / 16)
        copied = self.rows * self.hidden * self.bytes / COPIED
        return WAIT + sums + join + cell + (EXCHANGE + copied if self.cluster > 1 else 0)


class RecurrenceKernel(Kernel[RecurrenceOp]):
    """`ait.recurrence` on CUDA, all steps in one launch: of f16 and bf16 on tensor cores, of f32 by multiplications."""

    name = "recurrence"
    ops = (RecurrenceOp,)
    gpu_only = True
    KEYS: ClassVar[tuple[str, ...]] = ("cluster", "rows", "across", "split")

    def matches(self, op: RecurrenceOp, target: Target) -> bool:
        types = [tensor_type(v) for v in (*op.operands, *op.results)]
        if not target.has("mma") or tensor_type(op.weight).element_type not in (f16, bf16, f32):
            return False
        if any(compute_type(t.element_type) == f64 for t in types):
            return False
        return next(self._plans(op, target), None) is not None

    def _plans(self, op: RecurrenceOp, target: Target) -> Iterator[Plan]:
        """The plans that fit."""
        hidden = op.hidden.as_int()
        if hidden is None:
            return
        least = 8 if op.gates % 2 == 0 else 16
        for cluster in CLUSTERS:
            sets = _parts(_parts(hidden, cluster), least)
            if cluster > 1 and (not target.has("clusters") or least * (cluster // 2) >= hidden):
                continue
            for across in (n for n in (8, 4, 2, 1) if n <= sets or n == 1):
                for split in [n for n in (8, 4, 2, 1) if n * across <= MOST_WARPS and n <= _parts(hidden, CHUNK)][:2]:
                    for rows in ROWS:
                        plan = Plan(
                            op.gates, hidden, cluster, rows, across, split, element_bytes(tensor_type(op.weight))
                        )
                        if self._problem(op, plan, target) is None:
                            yield plan

    def _problem(self, op: RecurrenceOp, plan: Plan, target: Target) -> str | None:
        """The reason why a plan cannot be compiled; None if it can."""
        kept = plan.elements * (len(op.operands) - 1 + len(op.results))
        most = MOST_FRAGMENTS if plan.bytes == 2 else MOST_FRAGMENTS // 2
        if plan.fragments > most:
            return f"a warp has {plan.fragments} fragments of the weight, at most {most} are supported"
        if plan.bytes == 4 and plan.tiles * plan.rows > 4 * 8:
            return f"a warp has {plan.tiles} tiles of {plan.rows} rows of the batch, at most 32 rows in all for f32"
        if kept > MOST_VALUES:
            return f"a thread keeps {kept} values, at most {MOST_VALUES} are supported; take fewer rows"
        if plan.shared_bytes > target.shared_bytes:
            return f"a block needs {plan.shared_bytes} bytes of shared memory, at most {target.shared_bytes} are there"
        if _parts(plan.hidden, CHUNK) < plan.split:
            return f"split is {plan.split}, more than there are parts of 32 columns of h"
        return None

    def _seconds(self, op: RecurrenceOp, plan: Plan, target: Target) -> float:
        env = estimate_env(scope_of(op))
        clusters = _parts(max(1, op.batch.evaluate(env)), plan.rows)
        at_a_time = max(1, int(target.multiprocessors * (SPREAD if plan.cluster > 1 else 1) / plan.cluster))
        steps = op.steps.evaluate(env) * _parts(clusters, at_a_time)
        return target.launch_seconds + START_SECONDS + steps * plan.cycles(op.region_ops()) / CLOCK

    def configs(self, op: RecurrenceOp, target: Target) -> list[dict[str, int]]:
        plans = sorted(self._plans(op, target), key=lambda plan: self._seconds(op, plan, target))
        return [{key: getattr(plan, key) for key in self.KEYS} for plan in plans[:CONFIGS]]

    def _plan(self, op: RecurrenceOp, config: Config, target: Target) -> Plan:
        numbers = {**self.configs(op, target)[0], **config}
        hidden = op.hidden.as_int()
        assert hidden is not None, "asked only about what it matches"
        size = element_bytes(tensor_type(op.weight))
        cluster, rows, across, split = (numbers[key] for key in self.KEYS)
        return Plan(op.gates, hidden, cluster, rows, across, split, size)

    def seconds(self, op: RecurrenceOp, target: Target) -> float:
        return self._seconds(op, self._plan(op, {}, target), target)

    def check(self, op: RecurrenceOp, config: Config, target: Target) -> None:
        numbers = {**self.configs(op, target)[0], **config}
        allowed = {"cluster": CLUSTERS, "rows": ROWS, "across": (1, 2, 4, 8), "split": (1, 2, 4, 8)}
        for key, choices in allowed.items():
            if numbers[key] not in choices:
                raise ValueError(f"{key} is {numbers[key]}, expected one of {', '.join(map(str, choices))}")
        plan = self._plan(op, config, target)
        if plan.cluster > 1 and not target.has("clusters"):
            raise ValueError(f"cluster is {plan.cluster}, but blocks of {target.arch} form no clusters")
        if plan.warps > MOST_WARPS:
            raise ValueError(f"across times split is {plan.warps}, at most {MOST_WARPS} warps are supported")
        if (problem := self._problem(op, plan, target)) is not None:
            raise ValueError(problem)

    def accepts(self, op: RecurrenceOp, position: int, strides: Strides, scope: Scope) -> bool:
        return accepts_strides(op, position, strides, scope)

    def emit(self, launch: Launch[RecurrenceOp]) -> Emission:
        op, weight = launch.op, launch.ins[0]
        plan = self._plan(op, launch.config, launch.target)
        name = functor_name(op.body.block.ops)
        numbers = ", ".join(map(str, astuple(plan)))
        constant = "true" if weight.constant else "false"
        return launch.call(
            "recurrence",
            f"recurrence<{name}, ait::gpu::RecurrencePlan<{numbers}>, {constant}>(ctx, "
            f"{launch.cpp(op.steps, op.batch)}, {_operands(launch)})",
            functor(op.body, name),
        )


class CpuRecurrence(Kernel[RecurrenceOp]):
    """`ait.recurrence` on a CPU: threads share the columns of the state, and wait for each other after each step."""

    name = "recurrence"
    ops = (RecurrenceOp,)

    def matches(self, op: RecurrenceOp, target: Target) -> bool:
        return target.kind == "cpu" and tensor_type(op.weight).element_type in (f16, bf16, f32, f64)

    def seconds(self, op: RecurrenceOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        batch, hidden = op.batch.evaluate(env), op.hidden.evaluate(env)
        rate = RATE if batch <= FEW_ROWS else DOT_RATE
        step = STEP_SECONDS + 2.0 * batch * op.gates * hidden * hidden / rate
        return target.launch_seconds + op.steps.evaluate(env) * step

    def accepts(self, op: RecurrenceOp, position: int, strides: Strides, scope: Scope) -> bool:
        return accepts_strides(op, position, strides, scope)

    def emit(self, launch: Launch[RecurrenceOp]) -> Emission:
        op = launch.op
        name = functor_name(op.body.block.ops)
        return launch.call(
            "recurrence",
            f"recurrence<{name}, {op.gates}>(ctx, {launch.cpp(op.steps, op.batch, op.hidden)}, {_operands(launch)})",
            functor(op.body, name),
        )


def accepts_strides(op: RecurrenceOp, position: int, strides: Strides, scope: Scope) -> bool:
    """Whether a kernel reads an operand with these strides: the weight is row-major."""
    return position != 0 or is_contiguous(tensor_type(op.weight).dims, strides, scope)


def _operands(launch: Launch[RecurrenceOp]) -> str:
    """The direction, the weight, and the lists of initial states, inputs, last states and stacked results."""
    op, dims, states = launch.op, launch.dims, len(launch.op.init)
    weight, init, inputs = launch.ins[0], launch.ins[1 : 1 + states], launch.ins[1 + states :]
    shape = (op.steps, op.batch, op.hidden)

    def listed(args: Sequence[Arg], rank: int) -> str:
        loops = nest(shape[3 - rank :], [broadcast_strides(a, shape[3 - rank :]) for a in args])
        return pack(args, loops, 0, dims)

    lists = (
        listed(init, 2),
        listed(inputs, 3),
        listed(launch.outs[:states], 2),
        listed(launch.outs[states:], 3),
    )
    backward = "true" if op.reverse is not None else "false"
    return f"{backward}, {weight.name}, {', '.join(lists)}"


KERNELS = (RecurrenceKernel(), CpuRecurrence())
