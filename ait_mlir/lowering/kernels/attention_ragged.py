"""Attention of sequences of different lengths; on GPUs in ordinary arithmetic."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64

from ait_mlir.dialects.ait.attention import RaggedAttentionOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.cpp import element_type, literal
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.attention import CPU_RATE, SIMT_RATE, simt_tile
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides, Target

MOST = 2**31 - 1


class RaggedAttention(Kernel[RaggedAttentionOp]):
    """`ait.ragged_attention`: vector instructions on a CPU; on a GPU a block for 32 rows of a head."""

    name = "attention_ragged"
    ops = (RaggedAttentionOp,)

    def matches(self, op: RaggedAttentionOp, target: Target) -> bool:
        scope, q = scope_of(op), tensor_type(op.qkv[0])
        if any(scope.bounds(e)[1] > MOST for e in (*q.dims[:3], op.sequences, op.length)):
            return False
        return op.window is None or scope.bounds(q.dims[2] + op.length)[1] <= 2**30

    def seconds(self, op: RaggedAttentionOp, target: Target) -> float:
        scope = scope_of(op)
        busy = op.flops().evaluate(estimate_env(scope)) / (SIMT_RATE if target.is_gpu else CPU_RATE)
        return target.launch_seconds + max(busy, bytes_moved(op, scope) / target.bandwidth)

    def accepts(self, op: RaggedAttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if 3 <= position < len(op.operands):
            dims = tensor_type(op.operands[position]).dims
            return strides[-1].as_int() == 1 and (len(dims) == 1 or scope.equal(strides[0], dims[1]))
        return strides[-1].as_int() == 1

    def emit(self, launch: Launch[RaggedAttentionOp]) -> Emission:
        op, place, cpp = launch.op, launch.place, launch.cpp
        (q, k, v), (out,) = launch.ins[:3], launch.outs
        given = dict(zip(op.integers(), launch.ins[3:], strict=True))
        element, index = (element_type(x.type.element_type) for x in (q, launch.ins[3]))
        _, heads, rows, depth = q.type.dims
        batch = op.sequences
        scale = literal(op.scale.value.data, f32 if launch.target.is_gpu else f64)
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
        causal = "true" if op.causal is not None else "false"
        call = f"attention_ragged<{causal}>"
        if launch.target.is_gpu:
            size = max(launch.scope.bounds(e)[1] for e in (depth, v.type.dims[3], const(1)))
            flags = f"{causal}, {'false' if op.window is None else 'true'}"
            call = f"attention_ragged<{simt_tile(size, q.type, launch.target)}, {flags}>"
        text = ",\n      ".join(arguments)
        return launch.call("attention_ragged", f"{call}(\n      {text})")


KERNELS = (RaggedAttention(),)
