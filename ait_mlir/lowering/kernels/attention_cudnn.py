"""Attention of f16 and bf16 on cuDNN, which the runtime library loads when a model first asks for it."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.calls import AttentionCall, call_service

__all__ = ["KERNELS", "CudnnAttention"]

LARGEST_HEAD = 128
PIECE = 8
"""Elements in 16 bytes. Every stride of q, k, v and the result must be a multiple of it."""
MAX_PLANS = 6
SECONDS, RATE = 4.5e-6, 450e12
"""Fitted to times of an H200; `python -m benchmarks.contractions attention` prints such times."""
WORKSPACE, WORKSPACE_LIMIT = 256, 32 << 20
FEW_ROWS, MOST_SPLITS = 16, 8
"""With few rows, a plan may split the columns; each part has a result, a sum and a maximum in f32."""
LARGEST = 2**31 - 1


def _type(value: Attribute) -> TensorType:
    return cast(TensorType, value)


class CudnnAttention(Kernel[AttentionOp]):
    """cuDNN's fused attention: grouped heads, causal, windows; q, k, v and the result with strides.

    The first run of each shape makes a plan, in up to half a second, and keeps it. The kernel is chosen only by
    measurement or by name: without a card selection cannot know whether cuDNN will be installed.
    """

    provider = "cudnn"
    name = "attention"
    ops = (AttentionOp,)
    only_timed = True
    alone = True

    def matches(self, op: AttentionOp, target: Target) -> bool:
        if target.kind != "cuda" or op.then is not None or op.changes_scores:
            return False
        if op.log_sums is not None or op.no_softmax is not None or op.quantises:
            return False
        q, k, v = _type(op.q.type), _type(op.k.type), _type(op.v.type)
        scope = scope_of(op)
        if not isinstance(q.element_type, Float16Type | BFloat16Type):
            return False
        for width in (q.dims[3].as_int(), v.dims[3].as_int()):
            if width is None or not 0 < width <= LARGEST_HEAD or width % PIECE != 0:
                return False
        rows, cols = q.dims[2], k.dims[2]
        if not scope.positive(cols) or any(scope.bounds(e)[1] > LARGEST for e in (*q.dims[:3], cols)):
            return False
        banded = op.causal is not None or op.window is not None
        if banded and (op.top_left is not None or not scope.le(rows, cols)):
            return False
        return op.mask is None

    def configs(self, op: AttentionOp, target: Target) -> list[dict[str, int]]:
        return [{"algo": i} for i in range(MAX_PLANS)]

    def seconds(self, op: AttentionOp, target: Target) -> float:
        scope = scope_of(op)
        busy = op.flops().evaluate(estimate_env(scope)) / (RATE if op.causal is None else 2 * RATE)
        return SECONDS + max(busy, bytes_moved(op, scope) / target.bandwidth)

    def accepts(self, op: AttentionOp, position: int, strides: Strides, scope: Scope) -> bool:
        steps = strides[:3]
        return strides[-1].as_int() == 1 and all(scope.divisible(s, PIECE) and s.as_int() != 0 for s in steps)

    def workspace(self, op: AttentionOp, config: Config) -> Expr:
        q, scope = _type(op.q.type), scope_of(op)
        if scope.bounds(q.dims[2])[1] > FEW_ROWS:
            return const(WORKSPACE)
        batch, heads, rows, _ = q.dims
        parts = batch * heads * rows * (_type(op.v.type).dims[3] + 2) * 4 * MOST_SPLITS
        return parts + WORKSPACE if scope.bounds(parts)[1] <= WORKSPACE_LIMIT else const(WORKSPACE)

    def emit(self, launch: Launch[AttentionOp]) -> Emission:
        op, (q, k, v), (out,) = launch.op, launch.ins[:3], launch.outs
        batch, heads, rows, depth = q.type.dims
        call = AttentionCall(
            dtype=BY_IR[q.type.element_type].enumerator,
            causal=int(op.causal is not None),
            algo=launch.config.get("algo", 0),
            batch=batch,
            heads=heads,
            groups=k.type.dims[1],
            rows=rows,
            cols=k.type.dims[2],
            depth=depth,
            width=v.type.dims[3],
            window=0 if op.window is None else op.window.value.data,
            strides_q=q.strides[:3],
            strides_k=k.strides[:3],
            strides_v=v.strides[:3],
            strides_o=out.strides[:3],
            q=q.name,
            k=k.name,
            v=v.name,
            o=out.name,
            scale=launch.number(op.scale, Float32Type()),
            workspace="workspace",
            workspace_bytes=self.workspace(op, launch.config),
        )
        return call_service(call, launch)


KERNELS = (CudnnAttention(),)
