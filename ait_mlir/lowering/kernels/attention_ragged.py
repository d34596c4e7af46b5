"""Attention of sequences of different lengths: padded, packed, or in pages."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64

from ait_mlir.dialects.ait.attention import RaggedAttentionOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.attention import (
    CPU_RATE,
    LARGEST_HEAD,
    LARGEST_TF32,
    MMA_RATE,
    SIMT_RATE,
    AttentionSizes,
    check_tile,
    columns_seen,
    simt_tile,
)
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import on_mma

MOST = 2**31 - 1


def ragged_sizes(op: RaggedAttentionOp) -> AttentionSizes:
    """The sizes at `estimate_env`, assuming sequences of the maximal length, or of equal lengths if packed."""
    scope = scope_of(op)
    env = estimate_env(scope)
    heads, rows = (max(1, d.evaluate(env)) for d in tensor_type(op.qkv[0]).dims[1:3])
    sequences, cols = (max(1, e.evaluate(env)) for e in (op.sequences, op.length))
    if op.segments is not None:
        rows, cols = -(-rows // sequences), -(-cols // sequences)
    seen = columns_seen(op, rows, cols)
    group = max(1, heads // max(1, tensor_type(op.qkv[1]).dims[1].evaluate(env)))
    kv_bytes = sum(tensor_type(x).byte_size().evaluate(env) for x in op.qkv[1:])
    causal = op.causal is not None and op.window is None
    return AttentionSizes(rows, cols, heads * sequences, group, seen, causal, bytes_moved(op, scope), kv_bytes)


class RaggedAttention(Kernel[RaggedAttentionOp]):
    """`ait.ragged_attention`: tensor cores on CUDA, as for `ait.attention`; plain arithmetic on other GPUs and for
    wider heads; vectors on a CPU."""

    name = "attention_ragged"
    ops = (RaggedAttentionOp,)

    def matches(self, op: RaggedAttentionOp, target: Target) -> bool:
        scope, q = scope_of(op), tensor_type(op.qkv[0])
        if any(scope.bounds(e)[1] > MOST for e in (*q.dims[:3], op.sequences, op.length)):
            return False
        return op.window is None or scope.bounds(q.dims[2] + op.length)[1] <= 2**30

    def head_size(self, op: RaggedAttentionOp) -> int:
        """The largest number of columns of q, k and v."""
        scope = scope_of(op)
        return max(scope.bounds(tensor_type(x).dims[3])[1] for x in op.qkv) or 1

    def uses_tensor_cores(self, op: RaggedAttentionOp, target: Target) -> bool:
        largest = LARGEST_HEAD if element_bytes(tensor_type(op.qkv[0])) == 2 else LARGEST_TF32
        return on_mma(op, target) and self.head_size(op) <= largest

    def configs(self, op: RaggedAttentionOp, target: Target) -> list[dict[str, int]]:
        if not self.uses_tensor_cores(op, target):
            return [{}]
        rows = tensor_type(op.qkv[0]).dims[2].evaluate(estimate_env(scope_of(op)))
        wide = self.head_size(op) > 128 or element_bytes(tensor_type(op.qkv[0])) == 4
        few = [2] if op.segments is None and rows <= 32 else []
        return [{"warps": w, "cols": 32 if wide else 64} for w in dict.fromkeys([*few, 4, 2, 8])]

    def seconds(self, op: RaggedAttentionOp, target: Target) -> float:
        rate, p = SIMT_RATE if target.is_gpu else CPU_RATE, ragged_sizes(op)
        if self.uses_tensor_cores(op, target):
            rate = MMA_RATE * target.multiprocessors * 2 / element_bytes(tensor_type(op.qkv[0]))
        env = estimate_env(scope_of(op))
        columns = sum(tensor_type(x).dims[3].evaluate(env) for x in (op.qkv[0], op.qkv[2]))
        busy = p.instances * p.rows * p.seen * (2 * columns + op.WORK) / rate
        return target.launch_seconds + max(busy, p.bytes / target.bandwidth)

    def check(self, op: RaggedAttentionOp, config: Config, target: Target) -> None:
        if self.uses_tensor_cores(op, target):
            check_tile(self.head_size(op), config, element_bytes(tensor_type(op.qkv[0])))

    def accepts(self, op: RaggedAttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if 3 <= position < len(op.operands):
            dims = tensor_type(op.operands[position]).dims
            return strides[-1].as_int() == 1 and (len(dims) == 1 or scope.equal(strides[0], dims[1]))
        return strides[-1].as_int() == 1

    def emit(self, launch: Launch[RaggedAttentionOp]) -> Emission:
        op = launch.op
        call = f"attention_ragged<{flag(op.causal)}>"
        if launch.target.is_gpu:
            flags = ", ".join(map(flag, (op.causal, op.window, op.pages)))
            size = self.head_size(op)
            call = f"attention_ragged<{simt_tile(size, launch.ins[0].type, launch.target)}, {flags}>"
            if self.uses_tensor_cores(op, launch.target):
                call = f"attention_ragged_mma<{self.tile(launch)}, {flags}, {self.odd_pitches(launch)}>"
        return launch.call("attention_ragged", f"{call}({self.arguments(launch)})")

    def arguments(self, launch: Launch[RaggedAttentionOp]) -> str:
        """The arguments, as C++ text, that the functions of all ragged attention kernels take."""
        op, place, cpp = launch.op, launch.place, launch.cpp
        (q, k, v), (out,) = launch.ins[:3], launch.outs
        given = dict(zip(op.integers(), launch.ins[3:], strict=True))
        element, index = (element_type(x.type.element_type) for x in (q, launch.ins[3]))
        _, heads, rows, depth = q.type.dims
        batch = op.sequences
        scale = launch.number(op.scale, f32 if launch.target.is_gpu else f64)
        window = "ait::kNoWindow" if op.window is None else str(op.window.value.data)
        group = f"{cpp(heads)} / {cpp(k.type.dims[1])}"
        sizes = f"{cpp(batch, heads, rows, op.length, depth, v.type.dims[3])}, {scale}, {group}, {window}"
        pointers = ", ".join(
            given[n].name if n in given else "nullptr" for n in ("columns", "rows", "pages", "segments")
        )
        table, page, pool = const(0), const(1), const(0)
        if "pages" in given:
            table, page, pool = given["pages"].type.dims[1], k.type.dims[2], k.type.dims[0]
        ragged = f"ait::Ragged<{index}>{{{pointers}, {cpp(batch, table, page, pool)}}}"

        def heads_of(arg: Arg, qualifier: str = "const ") -> str:
            return f"ait::{place}::Heads<{qualifier}{element}>{{{arg.name}, {cpp(*arg.strides[:3])}}}"

        arguments = (
            f"ctx, ait::{place}::AttentionShape{{{sizes}}}",
            ", ".join(map(heads_of, (q, k, v))),
            heads_of(out, ""),
            ragged,
        )
        return ", ".join(arguments)

    def tile(self, launch: Launch[RaggedAttentionOp]) -> str:
        element, size = element_bytes(launch.ins[0].type), self.head_size(launch.op)
        check_tile(size, launch.config, element)
        numbers = (-(-size // 16) * 16, launch.config.get("warps", 4), launch.config.get("cols", 64), element)
        return f"ait::gpu::AttentionTile<{', '.join(map(str, numbers))}>"

    def odd_pitches(self, launch: Launch[RaggedAttentionOp]) -> str:
        """Whether rows of q, k or v may start off 16-byte boundaries."""
        unit = 16 // element_bytes(launch.ins[0].type)
        even = all(launch.scope.divisible(s, unit) for arg in launch.ins[:3] for s in arg.strides[:3])
        return "false" if even else "true"


def flag(given: object) -> str:
    """Whether an optional property or operand is there, in C++."""
    return "false" if given is None else "true"


KERNELS = (RaggedAttention(),)
