"""Attention that does not materialise scores, for every target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import f32, f64

from ait_mlir.dialects.ait.attention import AttentionOp, RaggedAttentionOp
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import keeps_f32, on_mma
from ait_mlir.lowering.kernels.loops import broadcast_strides
from ait_mlir.lowering.regions import functor
from ait_mlir.lowering.target import HOPPER

LARGEST_HEAD, LARGEST_TF32 = 256, 128
"""The most columns of q, k and v on the tensor cores; and for f32, whose fragments take twice the registers."""
LARGEST_QUANTISED = 128
"""The most columns of a head that plain arithmetic stores in 8 bits: a row has one scale, and is read at once."""
SIMT_DEPTHS = (256, 128, 64, 32)
"""Choices for the most columns that plain arithmetic reads at once: the first that fits in shared memory is used."""
SIMT_RATE, CPU_RATE = 8e12, 80e9
"""Operations per second that the kernels reach, for estimates."""
MMA_START, MMA_ROWS, MMA_RATE = 2.2e-6, 64, 1.7e12
"""On the tensor cores: seconds of a launch, rows of q of a block, operations per second of a multiprocessor."""
EXACT_PRODUCTS = 3
"""Products of parts of TF32 that make a product of f32."""


def sizes_of(op: AttentionOp) -> tuple[tuple[Expr, ...], Expr, Expr, Expr]:
    """Batch, heads and rows; columns; depth; width."""
    q, v = cast(TensorType, op.q.type).dims, cast(TensorType, op.v.type).dims
    return q[:3], op.length, q[3], v[3]


def is_score_operand(op: AttentionOp, position: int) -> bool:
    """Whether operand `position` broadcasts to the scores: the mask, or an operand of the scores region."""
    first = len(op.own_operands) - (op.mask is not None)
    return first <= position < len(op.operands)


def reads_whole_lines(op: AttentionOp, position: int, strides: Strides) -> bool:
    """Whether neighbouring columns of a score operand lie side by side, or only one row or column is read.

    A bias that was computed as [rows, columns, heads] costs less as a copy than in place: a kernel that reads it would
    fetch a whole line of memory for each element.
    """
    dims = tensor_type(op.operands[position]).dims
    return len(dims) < 2 or 1 in (dims[-1].as_int(), dims[-2].as_int()) or strides[-1].as_int() in (0, 1)


def accepts_strides(op: AttentionOp, position: int, strides: Strides, scope: Scope, multiple: int) -> bool:
    """Whether kernels take these strides: columns are contiguous, rows begin at multiples of `multiple`."""
    if is_score_operand(op, position):
        return reads_whole_lines(op, position, strides)
    if position > len(op.operands):  # the logarithms of sums, and scales
        return True
    return strides[-1].as_int() == 1 and all(scope.divisible(s, multiple) for s in strides[:-1])


def is_changed(op: AttentionOp) -> bool:
    """Whether the op does more to scores than multiply them by a positive number and take the softmax."""
    if op.no_softmax is not None:
        return True
    return op.mask is not None or op.changes_scores or ((scale := known_number(op.scale)) is not None and scale <= 0)


@dataclass(frozen=True)
class AttentionSizes:
    """The sizes of an op at `estimate_env`."""

    rows: int
    cols: int
    instances: int
    """Heads of q in all batches."""
    group: int
    """Heads of q that share one head of k and v."""
    seen: float
    """Columns that a row attends to, on average."""
    causal: bool
    """Whether some rows attend to more columns than others."""
    bytes: int
    """Bytes of all operands and the result."""
    kv_bytes: int

    @staticmethod
    def of(op: AttentionOp) -> AttentionSizes:
        scope = scope_of(op)
        env = estimate_env(scope)
        lead, columns, _, _ = sizes_of(op)
        batch, heads, rows = (max(1, e.evaluate(env)) for e in lead)
        cols = max(1, columns.evaluate(env))
        kv = [cast(TensorType, x.type) for x in (op.k, op.v, *(op.then or ()))]
        seen = columns_seen(op, rows, cols)
        kv_bytes = sum(t.byte_size().evaluate(env) for t in kv)
        group = heads // max(1, kv[0].dims[1].evaluate(env))
        causal = op.causal is not None and op.window is None
        return AttentionSizes(rows, cols, batch * heads, max(1, group), seen, causal, bytes_moved(op, scope), kv_bytes)

    def decisive(self, rounds: int) -> float:
        """The number of columns that decides the time: that of the longest tile if all tiles run at once, else nearer
        the mean.
        """
        return self.seen + (self.cols - self.seen) / rounds if self.causal else self.seen


def columns_seen(op: AttentionOp | RaggedAttentionOp, rows: int, cols: int) -> float:
    """The number of columns, of `cols`, that a row attends to on average."""
    seen = cols - (min(rows, cols) - 1) / 2 if op.causal is not None else float(cols)
    return seen if op.window is None else min(seen, (1 if op.causal is not None else 2) * op.window.value.data)


@dataclass(frozen=True)
class AttentionCall:
    """The arguments, as C++ text, that the functions of all attention kernels take."""

    definition: str
    """The definition of the functor that changes scores, if the op needs one."""
    sizes: str
    qkv: str
    result: str
    scores: str
    log_sums: str
    pieces: tuple[str, ...]
    """The second piece of k and v, if there is one."""

    @staticmethod
    def of(launch: Launch[AttentionOp]) -> AttentionCall:
        op, ins, outs, place = launch.op, launch.ins, launch.outs, launch.place
        (batch, heads, rows), cols, depth, width = sizes_of(op)
        element = ins[0].type.element_type
        sizes = launch.cpp(batch, heads, rows, cols, depth, width)
        groups = ins[1].type.dims[1]
        group = f"{launch.cpp(heads)} / {launch.cpp(groups)}"
        window = "ait::kNoWindow" if op.window is None else str(op.window.value.data)
        scale = launch.number(op.scale, f32 if launch.target.is_gpu else f64)
        flags = f", {str(op.top_left is not None).lower()}, true" if op.nan_rows is not None else ""
        flags = flags or ("" if op.top_left is None else ", true")
        if op.value_scale is not None:
            flags = f", {str(op.top_left is not None).lower()}, {str(op.nan_rows is not None).lower()}"
            flags += f", {launch.number(op.value_scale, f32)}"

        def heads_of(arg: Arg, const: str) -> str:
            return f"ait::{place}::Heads<{const}{element_type(element)}>{{{arg.name}, {launch.cpp(*arg.strides[:3])}}}"

        pieces: list[str] = []
        if op.then is not None:
            second = ", ".join([*(heads_of(arg, "const ") for arg in ins[3:5]), launch.cpp(ins[1].type.dims[2])])
            pieces.append(f"ait::{place}::SecondPiece<{element_type(element)}>{{{second}}}")
        log_sums = f"ait::{place}::LogSums<{element_type(compute_type(element))}>{{"
        if op.log_sums is not None:
            log_sums += f"{outs[1].name}, {launch.cpp(*outs[1].strides)}"
        definition, scores = _scores(launch)
        is_apart = op.quantises or op.reads_float8
        result = f"ait::{place}::Heads<{element_type(element)}>{{}}" if is_apart else heads_of(outs[0], "")
        return AttentionCall(
            definition,
            f"ctx, ait::{place}::AttentionShape{{{sizes}, {scale}, {group}, {window}{flags}}}",
            ", ".join(heads_of(arg, "const ") for arg in ins[:3]),
            result,
            scores,
            log_sums + "}",
            tuple(pieces),
        )

    def emission(self, launch: Launch[AttentionOp], header: str, call: str, more: str = "") -> Emission:
        """The code that calls a function of `header`; `more` is an argument before the pieces."""
        parts = (self.sizes, self.qkv, self.result, self.scores, self.log_sums, *([more] if more else []), *self.pieces)
        text = ", ".join(parts)
        body = f"return ait::{launch.place}::{call}({text});\n"
        return Emission(("ait/math.h", launch.header(header)), self.definition, body)


def rows_apart(launch: Launch[AttentionOp]) -> str | None:
    """The C++ value that tells a kernel how to store rows of another type than that of q; None if q has their type."""
    op, outs, place = launch.op, launch.outs, launch.place
    if not (op.quantises or op.reads_float8):
        return None
    element = element_type(outs[0].type.element_type)
    heads = f"ait::{place}::Heads<{element}>{{{outs[0].name}, {launch.cpp(*outs[0].strides[:3])}}}"
    if not op.quantises:
        return f"ait::{place}::RoundedRows<{element}>{{{heads}}}"
    numbers = [launch.number(n, f32) for n in (op.result_scale, op.largest, op.least) if n is not None]
    fields = f"{heads}, {numbers[0]}"
    if op.largest is not None:
        scales = f"ait::{place}::LogSums<float>{{{outs[-1].name}, {launch.cpp(*outs[-1].strides)}}}"
        fields = f"{heads}, 0.0f, {numbers[0]}, {numbers[1]}, {scales}"
    by_row = str(op.largest is not None).lower()
    return f"ait::{place}::NumberRows<{element}, {by_row}>{{{fields}}}"


def _scores(launch: Launch[AttentionOp]) -> tuple[str, str]:
    """The definition of the functor that changes scores, and the C++ value that holds it with its operands."""
    op, place = launch.op, launch.place
    if not is_changed(op):
        return "", f"ait::{place}::PlainScores{{}}"
    own = len(op.own_operands)
    args = [*launch.ins[own:], *([] if op.mask is None else [launch.ins[own - 1]])]
    name, definition = "ait::SameScores" if op.mask is None else "ait::AddMask", ""
    if op.changes_scores:
        name = "scores_@ID@"
        definition = functor(op.scores, name)
        if op.mask is not None:
            definition += _then_mask(op, name, "masked_@ID@")
            name = "masked_@ID@"
    if op.no_softmax is not None:
        name = f"ait::NoSoftmax<{name}>"
    operands = ", ".join(_score_operand(launch, arg) for arg in args)
    return definition, f"ait::{place}::changed_scores<{name}>({operands})"


def _then_mask(op: AttentionOp, inner: str, name: str) -> str:
    """The C++ of a functor that applies `inner`, then adds the mask, which is the last operand."""
    assert op.mask is not None
    score, *others = (element_type(a.type) for a in op.scores.block.args)
    others.append(element_type(compute_type(tensor_type(op.mask).element_type)))
    parameters = "".join(f", {t} x{i}" for i, t in enumerate(others))
    passed = "".join(f", x{i}" for i in range(len(others) - 1))
    return (
        f"struct {name} {{\n  static AIT_FN void apply({score} score{parameters}, {score}& out) {{\n"
        f"    {score} changed;\n    {inner}::apply(score{passed}, changed);\n"
        f"    ait::AddMask::apply(changed, x{len(others) - 1}, out);\n  }}\n}};\n"
    )


def _score_operand(launch: Launch[AttentionOp], arg: Arg) -> str:
    (batch, heads, rows), cols, _, _ = sizes_of(launch.op)
    steps = broadcast_strides(arg, (batch, heads, rows, cols))
    along = {0: "kNone", 1: "kUnit"}.get(-1 if (step := steps[3].as_int()) is None else step, "kAny")
    varies = "false" if steps[2].as_int() == 0 else "true"
    kind = f"{element_type(arg.type.element_type)}, {varies}, ait::ScoreColumns::{along}"
    return f"ait::{launch.place}::ScoreOperand<{kind}>{{{arg.name}, {launch.cpp(*steps)}}}"


def tile_bytes(size: int, config: Mapping[str, int], element: int) -> int:
    """The bytes of shared memory of `ait::gpu::AttentionTile`."""
    rows = 16 * config.get("warps", 4) + 4 * config.get("cols", 64)
    return rows * ((-(-size // 16) * 16) * element + 16)


def check_tile(size: int, config: Mapping[str, int], element: int = 2) -> None:
    """Raise `ValueError` where the static assertions of `ait::gpu::AttentionTile` would fail."""
    warps, cols = config.get("warps", 4), config.get("cols", 64)
    problems = {
        "1 to 16 warps": 1 <= warps <= 16,
        "cols is a multiple of 16": cols > 0 and cols % 16 == 0,
        "at most 227 KiB of shared memory": tile_bytes(size, config, element) <= HOPPER.shared_bytes,
    }
    if wrong := [what for what, holds in problems.items() if not holds]:
        raise ValueError(f"no attention has {dict(config)} for heads of {size}: {'; '.join(wrong)}")


def simt_tile(size: int, t: TensorType, target: Target) -> str:
    """The C++ tile for plain arithmetic and heads of up to `size` columns: whole heads, or equal parts of them."""
    element = max(4, element_bytes(t))  # bytes of the type of computation

    def fits(depth: int) -> bool:
        return element * (2 * 32 * (depth + 1) + 32 * 33) <= target.shared_bytes

    parts = -(-size // next(depth for depth in SIMT_DEPTHS if fits(depth)))
    depth = -(-size // (4 * parts)) * 4
    return f"ait::gpu::AttentionSimtTile<{depth}>"


def _bytes(op: AttentionOp) -> int:
    """The bytes of an element."""
    return element_bytes(tensor_type(op.q))


class AttentionKernel(Kernel[AttentionOp]):
    """`ait.attention`: tensor cores on CUDA for f16, bf16, and f32 as TF32 or as sums of products of two parts of TF32;
    plain arithmetic, which f32 may have on CUDA, too; vectors on the CPU."""

    name = "attention"
    ops = (AttentionOp,)
    one_instance = True
    numbers_on_tensor_cores: ClassVar[bool] = False
    """Whether the kernel for tensor cores also stores results of 8 bits with a scale."""

    def takes_numbers(self, op: AttentionOp, target: Target) -> bool:
        """Whether the kernel stores the result in 8 bits with a scale: plain arithmetic does, of whole heads."""
        return target.is_gpu and op.then is None and self.head_size(op, scope_of(op)) <= LARGEST_QUANTISED

    def takes_float8(self, op: AttentionOp, target: Target) -> bool:
        """Whether the kernel reads q, k and v of 8 bits: plain arithmetic does."""
        return target.is_gpu

    def matches(self, op: AttentionOp, target: Target) -> bool:
        if op.quantises and not self.takes_numbers(op, target):
            return False
        if op.reads_float8 and not self.takes_float8(op, target):
            return False
        (batch, heads, rows), cols, _, _ = sizes_of(op)
        scope = scope_of(op)
        if any(scope.bounds(e)[1] > 2**31 - 1 for e in (batch, heads, rows, cols)):
            return False
        return op.window is None or scope.bounds(rows + cols)[1] <= 2**30

    def head_size(self, op: AttentionOp, scope: Scope) -> int:
        """The largest number of columns of q, k and v."""
        _, _, depth, width = sizes_of(op)
        return max(scope.bounds(depth)[1], scope.bounds(width)[1], 1)

    def uses_tensor_cores(self, op: AttentionOp, target: Target) -> bool:
        if op.reads_float8 or (op.quantises and not self.numbers_on_tensor_cores):
            return False
        largest = LARGEST_HEAD if _bytes(op) == 2 else LARGEST_TF32
        return on_mma(op, target) and self.head_size(op, scope_of(op)) <= largest

    def has_parts(self, op: AttentionOp, target: Target) -> bool:
        """Whether the tensor cores can multiply f32 that must not be rounded, in parts of TF32."""
        exact = tensor_type(op.q).element_type == f32 and keeps_f32(op, target) and not op.quantises
        return exact and target.has("mma") and self.head_size(op, scope_of(op)) <= LARGEST_TF32

    def configs(self, op: AttentionOp, target: Target) -> list[dict[str, int]]:
        if self.has_parts(op, target):
            size = self.head_size(op, scope_of(op))
            tiles = [{"warps": w, "cols": c} for w, c in ((4, 32), (8, 32), (2, 32), (4, 16))]
            return [*(t for t in tiles if tile_bytes(size, t, _bytes(op)) <= target.shared_bytes), {}]
        if not self.uses_tensor_cores(op, target):
            return [{}]
        (batch, heads, rows), _, _, _ = sizes_of(op)
        env = estimate_env(scope_of(op))
        length = rows.evaluate(env)
        instances = max(1, batch.evaluate(env) * heads.evaluate(env))
        if _bytes(op) == 4:
            return [{"warps": w, "cols": c} for w, c in ((4, 32), (4, 64), (8, 32), (2, 32))]
        if self.head_size(op, scope_of(op)) > 128:
            return [{"warps": w, "cols": 32} for w in (4, 2, 8)]
        # Longer steps leave room for fewer blocks side by side; they pay where there are few blocks.
        few = instances * -(-length // 64) < 2 * target.multiprocessors
        options = [(4, 128), (4, 64), (8, 64), (2, 64)] if few else [(4, 64), (4, 128), (8, 64), (2, 64)]
        return [{"warps": warps, "cols": cols} for warps, cols in options]

    def seconds(self, op: AttentionOp, target: Target) -> float:
        scope = scope_of(op)
        problem = AttentionSizes.of(op)
        _, _, depth, width = sizes_of(op)
        a_row = 2.0 * problem.seen * (depth + width).evaluate(estimate_env(scope))  # operations
        has_parts = self.has_parts(op, target)
        if has_parts or self.uses_tensor_cores(op, target):
            rounds = -(-(-(-problem.rows // MMA_ROWS) * problem.instances) // target.multiprocessors)
            products = EXACT_PRODUCTS if has_parts else 1
            compute = rounds * MMA_ROWS * a_row * products * _bytes(op) / 2 / MMA_RATE
            start = MMA_START
        else:
            start = 2 * target.launch_seconds
            compute = problem.instances * problem.rows * a_row / (SIMT_RATE if target.is_gpu else CPU_RATE)
        return start + max(compute, problem.bytes / target.bandwidth)

    def terms(self, op: AttentionOp, config: Config, target: Target) -> Terms | None:
        p = AttentionSizes.of(op)
        _, _, depth, width = sizes_of(op)
        env = estimate_env(scope_of(op))
        columns = depth.evaluate(env) + width.evaluate(env)
        moved = p.bytes / target.bandwidth
        if self.has_parts(op, target):
            return None
        if not self.uses_tensor_cores(op, target):
            products = 2.0 * p.instances * p.rows * p.seen * columns / (SIMT_RATE if target.is_gpu else CPU_RATE)
            return Terms({"start": target.launch_seconds}, {"products": products, "bytes": moved}, "plain")
        columns *= _bytes(op) / 2
        warps, step = config.get("warps", 4), config.get("cols", 64)
        rows = 16 * warps
        blocks = -(-p.rows // rows) * p.instances
        side = max(1, min(8 // warps, -(-blocks // target.multiprocessors)))
        waves = -(-blocks // (target.multiprocessors * side))
        steps = math.ceil(p.decisive(waves) / step)
        work = {
            "products": waves * side * rows * steps * step * 2.0 * columns / MMA_RATE,
            "step": waves * steps * 0.1e-6,
            "copies": waves * side * steps * step * 2.0 * columns / 50e9,
            "scores": waves * side * steps * step * rows * 0.1e-9,
            "cache": 2.0 * blocks * p.seen * columns / (2 * target.bandwidth),
            "bytes": moved,
        }
        return Terms({"start": 1e-6, "round": waves * 1e-6}, work)

    def accepts(self, op: AttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        return accepts_strides(op, position, strides, scope, 1)

    def check(self, op: AttentionOp, config: Config, target: Target) -> None:
        if self.uses_tensor_cores(op, target) or (config and self.has_parts(op, target)):
            check_tile(self.head_size(op, scope_of(op)), config, _bytes(op))

    def emit(self, launch: Launch[AttentionOp]) -> Emission:
        op, ins, config, target = launch.op, launch.ins, launch.config, launch.target
        causal = "true" if op.causal is not None else "false"
        if target.is_gpu:
            flags = f"{causal}, {'false' if op.window is None else 'true'}"
            size = self.head_size(op, launch.scope)
            in_parts = bool(config) and self.has_parts(op, target)
            if in_parts or self.uses_tensor_cores(op, target):
                element = _bytes(op)
                check_tile(size, config, element)
                tile = (-(-size // 16) * 16, config.get("warps", 4), config.get("cols", 64))
                rows = ins[: len(op.own_operands) - (op.mask is not None)]
                tile += (() if element == 2 else (element,)) + (("true",) if in_parts else ())
                odd = not all(launch.scope.divisible(s, 16 // element) for arg in rows for s in arg.strides[:3])
                flags += ", true" if odd else ", false"
                call = f"attention_mma<ait::gpu::AttentionTile<{', '.join(map(str, tile))}>, {flags}>"
            else:
                call = f"attention_simt<{simt_tile(size, ins[0].type, target)}, {flags}>"
        else:
            call = f"attention<{causal}>"
        rows = rows_apart(launch)
        more = "" if rows is None else f"ait::gpu::OnePiece{{}}, {rows}"
        return AttentionCall.of(launch).emission(launch, "attention", call, more)


KERNELS = (AttentionKernel(),)
