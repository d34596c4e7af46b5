"""Products with weights that stay in 4 or 8 bits: dot products or panels on the CPU, tensor cores on CUDA, plain
arithmetic elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from ait_mlir.dialects.ait.gemm import StoredGemmOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, const
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, PacksWeights, Strides, Target
from ait_mlir.lowering.kernels.contraction import (
    Matrix,
    Problem,
    epilogue_functor,
    extents_fit,
    is_narrow,
    lies_in_rows,
)
from ait_mlir.lowering.kernels.gemm import SIMT_RATE
from ait_mlir.lowering.kernels.gemm_packed import RATE as PANEL_RATE
from ait_mlir.lowering.kernels.gemm_stream import START_SECONDS, FewRowsTile
from ait_mlir.lowering.kernels.loops import broadcast_strides
from ait_mlir.lowering.weights import is_weight

__all__ = ["KERNELS", "MmaStoredGemm", "PackedStoredGemm", "StoredGemm", "StoredTile"]

CPU_RATE = 40e9
"""Operations per second of the dot products of a core with AVX-512."""
UNPACKED, ROWS = 16e9, 256
"""Numbers of panels that a core unpacks in a second, and the rows for which it unpacks them once."""
RATE = 0.8
"""The share of the target's bandwidth that the kernel on tensor cores reaches."""
UNPACK_RATE = 15e12
"""Numbers per second that a card unpacks."""


class StoredGemm(Kernel[StoredGemmOp]):
    """Vectors along k on the CPU; a warp for each column in ordinary arithmetic on a GPU."""

    name = "stored_gemm"
    ops = (StoredGemmOp,)
    one_instance = True

    def matches(self, op: StoredGemmOp, target: Target) -> bool:
        return extents_fit(op)

    def accepts(self, op: StoredGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        return lies_in_rows(op, position, strides, scope, 1)

    def seconds(self, op: StoredGemmOp, target: Target) -> float:
        moved = bytes_moved(op, scope_of(op)) / target.bandwidth
        flops = op.flops().evaluate(estimate_env(scope_of(op)))
        if target.is_gpu:  # a byte at a time
            return target.launch_seconds + max(4 * moved, flops * 8 / SIMT_RATE[4])
        return target.launch_seconds + max(moved, flops / CPU_RATE)

    def template(self, launch: Launch[StoredGemmOp], functor: str) -> tuple[str, str, str]:
        """The stem of the header, the call, and arguments after the common ones."""
        return "gemm_stored", f"gemm_stored<{functor}>", ""

    def emit(self, launch: Launch[StoredGemmOp]) -> Emission:
        op, place, dims = launch.op, launch.place, launch.dims
        own = len(op.own_operands)
        a, numbers, scale, *zero = launch.ins[:own]
        (out,) = launch.outs
        steps = [broadcast_strides(e, out.type.dims) for e in launch.ins[own:]]
        m, n = out.type.dims
        problem = Problem(
            m,
            n,
            a.type.dims[1],
            (),
            _matrix(a, a.strides),
            _matrix(numbers, numbers.strides),
            _matrix(out, out.strides),
            tuple(_matrix(e, step) for e, step in zip(launch.ins[own:], steps, strict=True)),
        )
        kinds = [element_type(scale.type.element_type), element_type(zero[0].type.element_type) if zero else "uint8_t"]
        weight = ", ".join(
            (
                f"reinterpret_cast<const uint8_t*>({numbers.name})",
                scale.name,
                zero[0].name if zero else "nullptr",
                launch.cpp(numbers.type.dims[1], scale.type.dims[1], const(op.group.value.data)),
                "true" if op.is_signed else "false",
            )
        )
        definition, functor = epilogue_functor(op, place)
        header, call, more = self.template(launch, functor)
        arguments = (
            f"ctx, {problem.shape_cpp(place, dims)}, {problem.a.cpp(place, dims)}, "
            f"ait::StoredMatrix<{op.bits}, {', '.join(kinds)}>{{{weight}}}, "
            f"{problem.d.cpp(place, dims, const=False)}, {problem.extras_cpp(place, dims)}{more}"
        )
        headers = ("ait/math.h", launch.header(header))
        return Emission(headers, definition, f"return ait::{place}::{call}({arguments});\n")


class PackedStoredGemm(StoredGemm, PacksWeights):
    """A weight whose bytes lie in panels: a block is unpacked into floats once for all rows of x."""

    provider = "packed"

    def matches(self, op: StoredGemmOp, target: Target) -> bool:
        k, group, word = op.extents().k.as_int(), op.group.value.data, 32 // op.bits
        return (
            target.kind == "cpu"
            and super().matches(op, target)
            and k is not None
            and tensor_type(op.numbers).static_shape() is not None
            and is_weight(op.numbers)
            and (group >= k or group % word == 0)
        )

    def panels(self, op: Operation, position: int) -> str | None:
        return "nk" if position == 1 else None

    def accepts(self, op: StoredGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 1 and super().accepts(op, position, strides, scope)

    def seconds(self, op: StoredGemmOp, target: Target) -> float:
        env, extents = estimate_env(scope_of(op)), op.extents()
        m, n, k = (e.evaluate(env) for e in (extents.m, extents.n, extents.k))
        work = 2.0 * m * n * k / PANEL_RATE + -(-m // ROWS) * n * k / UNPACKED
        return target.launch_seconds + max(bytes_moved(op, scope_of(op)) / target.bandwidth, work)

    def template(self, launch: Launch[StoredGemmOp], functor: str) -> tuple[str, str, str]:
        return "gemm_stored_panels", f"gemm_stored_panels<{functor}>", ""


def _matrix(arg: Arg, strides: Strides) -> Matrix:
    """An operand of two dims."""
    return Matrix(arg, strides[0], strides[1], ())


@dataclass(frozen=True)
class StoredTile(FewRowsTile):
    """Template arguments of `ait::gpu::StoredTile`, and the blocks of a cluster that share k."""

    template = "StoredTile"
    kernel = "gemm of stored weights"
    keys = ("sixteens", "eights", "warps", "ahead", "blocks", "split")

    sixteens: int
    eights: int
    warps: int
    ahead: int
    blocks: int
    split: int

    @classmethod
    def first(cls) -> StoredTile:
        return TILES[0]

    @property
    def width(self) -> int:
        return 16 * self.sixteens

    @property
    def registers(self) -> int:
        """Registers of a thread for the weight on its way, for x, and for the sums of a group and of all groups."""
        return 12 * self.sixteens * self.ahead + 20 * self.eights + 4 * self.sixteens * self.eights

    def problems(self) -> Mapping[str, bool]:
        return {
            "sixteens is 1, 2 or 4": self.sixteens in (1, 2, 4),
            "eights is 1, 2 or 4": self.eights in (1, 2, 4),
            "ahead is 1 to 4": self.ahead <= 4,
            **super().problems(),
        }


TILES = (
    StoredTile(1, 1, 8, 2, 2, 1),
    StoredTile(1, 1, 4, 2, 4, 1),
    StoredTile(1, 1, 8, 3, 2, 1),
    StoredTile(2, 1, 8, 2, 2, 1),
    StoredTile(1, 1, 16, 2, 1, 1),
    StoredTile(1, 1, 8, 2, 2, 2),
    StoredTile(2, 1, 8, 2, 2, 2),
    StoredTile(1, 2, 8, 2, 2, 1),
    StoredTile(2, 2, 8, 1, 1, 1),
    StoredTile(1, 2, 8, 2, 2, 2),
    StoredTile(1, 4, 8, 1, 1, 1),
    StoredTile(2, 4, 8, 1, 1, 1),
    StoredTile(2, 4, 4, 1, 2, 1),
)


class MmaStoredGemm(StoredGemm):
    """Warps that read the weight into registers and unpack it for mma.sync: x of f16 and bf16 on CUDA, sm_80 and
    later. Blocks of a cluster share k from sm_90 on."""

    provider = "stream"

    def matches(self, op: StoredGemmOp, target: Target) -> bool:
        if not super().matches(op, target) or target.kind != "cuda" or not target.has("mma"):
            return False
        k, lane, group = op.extents().k.as_int(), 128 // op.bits, op.group.value.data
        if not k or not is_narrow(tensor_type(op.a).element_type):
            return False
        return k % lane == 0 and (group >= k or group % lane == 0)

    def accepts(self, op: StoredGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        return position != 0 or tensor_type(op.a).dims[0].as_int() == 1 or scope.divisible(strides[0], 8)

    def configs(self, op: StoredGemmOp, target: Target) -> list[dict[str, int]]:
        rows = op.extents().m.evaluate(estimate_env(scope_of(op)))
        eights = 1 if rows <= 8 else 2 if rows <= 16 else 4
        return [t.config() for t in TILES if t.eights == eights and (t.split == 1 or target.has("clusters"))]

    def seconds(self, op: StoredGemmOp, target: Target) -> float:
        scope = scope_of(op)
        extents, env = op.extents(), estimate_env(scope)
        m, n, k = (e.evaluate(env) for e in (extents.m, extents.n, extents.k))
        passes = -(-m // 32)
        unpacked = passes * n * k / UNPACK_RATE
        return START_SECONDS + max(bytes_moved(op, scope) / (RATE * target.bandwidth), unpacked)

    def check(self, op: StoredGemmOp, config: Config, target: Target) -> None:
        StoredTile.of(config)

    def template(self, launch: Launch[StoredGemmOp], functor: str) -> tuple[str, str, str]:
        op, tile = launch.op, StoredTile.of(launch.config)
        group, step = op.group.value.data, 512 // op.bits
        by_word = group < (op.extents().k.as_int() or 0) and group % step != 0
        early = all(arg.constant for arg in launch.ins[1 : len(op.own_operands)])
        call = f"gemm_stored_mma<{tile.cpp}, {'true' if by_word else 'false'}, {functor}>"
        return "gemm_stored_mma", call, f", {launch.cpp(const(tile.split))}, {'true' if early else 'false'}"


KERNELS = (MmaStoredGemm(), StoredGemm(), PackedStoredGemm())
