"""Several problems in one launch: products and norms of different sizes, and groups of rows with ends in a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.grouped import GroupedGemmOp, GroupedNormOp, RaggedGemmOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import (
    LARGEST,
    Matrix,
    Problem,
    epilogue_functor,
    in_halves,
    on_mma,
)
from ait_mlir.lowering.kernels.gemm import CPU_RATE, SIMT_RATE
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK, TILES, GemmTile, best_tiles
from ait_mlir.lowering.kernels.loops import (
    ONE,
    ZERO,
    Loop,
    broadcast_strides,
    collapse,
    nest,
    operand,
    pack,
    single,
    sizes,
)
from ait_mlir.lowering.kernels.norm import row_template
from ait_mlir.lowering.regions import functor, identity_functor

MAX_OPERANDS = 16
MAX_CONFIGS = 8
KEYS = tuple(key for key in TILES[0].config() if key != "split")


OpT = TypeVar("OpT", GroupedGemmOp, RaggedGemmOp)


class TiledKernel(Kernel[OpT]):
    """The base class of grouped and ragged products: tensor-core tiles on CUDA for f16, bf16, and f32 as TF32, ordinary
    arithmetic on other GPUs, vectors on the CPU."""

    def matrices(self, op: OpT) -> Sequence[SSAValue]:
        """The factors of the products."""
        raise NotImplementedError

    def largest(self, op: OpT) -> tuple[int, int, int, int]:
        """M, N, K of the largest product at `estimate_env`, and the number of products."""
        raise NotImplementedError

    def uses_tensor_cores(self, op: OpT, target: Target) -> bool:
        return on_mma(op, target)

    def matches(self, op: OpT, target: Target) -> bool:
        scope = scope_of(op)
        dims = [d for v in (*self.matrices(op), *op.results) for d in tensor_type(v).dims]
        return len(op.epilogue_operands) // len(op.results) + 2 <= MAX_OPERANDS and all(
            scope.bounds(d)[1] <= LARGEST for d in dims
        )

    def accepts(self, op: OpT, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether operand `position` may have these strides: tiles are copied along the contiguous dim of a factor."""
        factors = len(self.matrices(op))
        return position >= factors or any(s.as_int() == 1 for s in strides[-2:])

    def in_tiles(self, op: OpT) -> tuple[int, int, int, int]:
        """`largest`, with K in elements of 2 bytes."""
        m, n, k, count = self.largest(op)
        return m, n, in_halves(k, tensor_type(op.operands[0]).element_type), count

    def tiles(self, op: OpT, target: Target) -> list[GemmTile]:
        """The tiles that do not split K, best estimate first."""
        return [tile for tile in best_tiles(*self.in_tiles(op), target) if tile.split == 1]

    def configs(self, op: OpT, target: Target) -> list[dict[str, int]]:
        if not self.uses_tensor_cores(op, target):
            return [{}]
        tiles = self.tiles(op, target)
        return [{key: tile.config()[key] for key in KEYS} for tile in tiles[:MAX_CONFIGS]]

    def seconds(self, op: OpT, target: Target) -> float:
        moved = bytes_moved(op, scope_of(op)) / target.bandwidth
        flops = op.flops().evaluate(estimate_env(scope_of(op)))
        if not target.is_gpu:
            return target.launch_seconds + max(moved, flops / CPU_RATE)
        if not self.uses_tensor_cores(op, target):
            return target.launch_seconds + max(moved, flops / SIMT_RATE[element_bytes(tensor_type(op.operands[0]))])
        return max(moved, self.tiles(op, target)[0].cycles(*self.in_tiles(op), target) / CLOCK)

    def check(self, op: OpT, config: Config, target: Target) -> None:
        if self.uses_tensor_cores(op, target):
            GemmTile.of(config)

    def template(self, launch: Launch[OpT], k_of_a: bool, k_of_b: bool, functor: str) -> str:
        """The template arguments of the GPU functions: the tile, which dims are contiguous, the epilogue."""
        cores = self.uses_tensor_cores(launch.op, launch.target)
        tile = GemmTile.of(launch.config).cpp() if cores else "ait::gpu::SimtTile"
        flags = [("true" if flag else "false") for flag in (k_of_a or not cores, k_of_b or not cores)]
        return ", ".join((tile, *flags, functor))


def problem(layout: str, a: Arg, b: Arg, out: Arg, extras: Sequence[Arg]) -> Problem:
    """One product of matrices with a row-major result; for B [G, K, N], the batch stride is the step between its
    matrices.
    """
    a_mk = a.strides if layout[0] == "r" else tuple(reversed(a.strides))
    b_kn = b.strides[-2:] if layout[1] == "r" else tuple(reversed(b.strides[-2:]))
    steps = [broadcast_strides(e, out.type.dims) for e in extras]
    return Problem(
        m=out.type.dims[0],
        n=out.type.dims[1],
        k=a.type.dims[1 if layout[0] == "r" else 0],
        batch=(),
        a=Matrix(a, a_mk[0], a_mk[1], ()),
        b=Matrix(b, b_kn[0], b_kn[1], b.strides[:-2]),
        d=Matrix(out, out.strides[0], out.strides[1], ()),
        extras=tuple(Matrix(arg, step[0], step[1], ()) for arg, step in zip(extras, steps, strict=True)),
    )


class GroupedKernel(TiledKernel[GroupedGemmOp]):
    """`ait.grouped_gemm`. On a GPU one launch computes as many problems as fit into its arguments."""

    name = "grouped_gemm"
    ops = (GroupedGemmOp,)

    def matrices(self, op: GroupedGemmOp) -> Sequence[SSAValue]:
        return op.factors

    def largest(self, op: GroupedGemmOp) -> tuple[int, int, int, int]:
        env = estimate_env(scope_of(op))
        found = [tuple(e.evaluate(env) for e in op.sizes(i)) for i in range(op.count)]
        m, n, k = max(found, key=lambda sizes: sizes[0] * sizes[1] * sizes[2])
        return m, n, k, op.count

    def accepts(self, op: GroupedGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether operand `position` may have these strides: the layout gives the contiguous dim of all A and all B."""
        if position >= len(op.factors):
            return True
        return strides[1].as_int() == 1

    def emit(self, launch: Launch[GroupedGemmOp]) -> Emission:
        op, place, dims = launch.op, launch.place, launch.dims
        layout, each = op.layout.data, len(op.epilogue_operands) // op.count
        factors, extras = launch.ins[: 2 * op.count], launch.ins[2 * op.count :]
        definition, functor = epilogue_functor(op, place)
        parts: list[str] = []
        for i, out in enumerate(launch.outs):
            p = problem(layout, factors[2 * i], factors[2 * i + 1], out, extras[i * each : (i + 1) * each])
            operands = ", ".join((p.a.cpp(place, dims), p.b.cpp(place, dims), p.d.cpp(place, dims, const=False)))
            parts.append(f"{p.shape_cpp(place, dims)}, {operands}, {p.extras_cpp(place, dims)}")
        if not launch.target.is_gpu:
            calls = [f"ait::cpu::gemm<{functor}>(ctx, {part})" for part in parts]
            body = "".join(f"if (const int32_t status = {call}) return status;\n" for call in calls) + "return 0;\n"
            return Emission(("ait/math.h", launch.header("gemm")), definition, body)
        made = ",\n    ".join(f"ait::gpu::grouped_problem({part})" for part in parts)
        template = self.template(launch, layout[0] == "r", layout[1] == "c", functor)
        body = f"return ait::gpu::gemm_grouped<{template}>(ctx, {{\n    {made}}});\n"
        return Emission(("ait/math.h", launch.header("gemm_grouped")), definition, body)


class RaggedKernel(TiledKernel[RaggedGemmOp]):
    """`ait.ragged_gemm`. The blocks of a GPU read `ends` to find their group and its rows, so nothing waits for the
    host.
    """

    name = "ragged_gemm"
    ops = (RaggedGemmOp,)

    def matrices(self, op: RaggedGemmOp) -> Sequence[SSAValue]:
        return (op.a, op.b)

    def largest(self, op: RaggedGemmOp) -> tuple[int, int, int, int]:
        """The sizes, assuming that all groups have equally many rows, at least one."""
        env, e = estimate_env(scope_of(op)), op.extents()
        rows, n, k = (size.evaluate(env) for size in (e.m, e.n, e.k))
        groups = max(1, min(rows, tensor_type(op.b).dims[0].evaluate(env)))
        return -(-rows // groups), n, k, groups

    def accepts(self, op: RaggedGemmOp, position: int, strides: Strides, scope: Scope) -> bool:
        if position == 2:
            return strides[0].as_int() == 1
        return super().accepts(op, position, strides, scope) if position < 2 else True

    def emit(self, launch: Launch[RaggedGemmOp]) -> Emission:
        place = launch.place
        a, b, ends, *extras = launch.ins
        p = problem("rrr", a, b, launch.outs[0], extras)
        definition, functor = epilogue_functor(launch.op, place)
        context, factors, result = p.arguments(launch)
        arguments = f"{context}, {factors}, {result}, {ends.name}, {launch.cpp(ends.type.dims[0])}"
        if not launch.target.is_gpu:
            call = f"return ait::cpu::gemm_ragged<{functor}>({arguments});\n"
        else:
            template = self.template(launch, p.a.col.as_int() == 1, p.b.row.as_int() == 1, functor)
            call = f"return ait::gpu::gemm_ragged<{template}>({arguments});\n"
        return Emission(("ait/math.h", launch.header("gemm_grouped")), definition, call)


class GroupedNormKernel(Kernel[GroupedNormOp]):
    """`ait.grouped_norm`. On a GPU one launch normalises as many inputs as fit into its arguments; a CPU normalises
    them in sequence.
    """

    name = "grouped_norm"
    ops = (GroupedNormOp,)

    def matches(self, op: GroupedNormOp, target: Target) -> bool:
        """Whether the operands fit in a launch, and each epilogue operand has the same form in all norms: whole rows,
        or one element for each row."""
        return len(op.epilogue_operands) // op.count + 2 <= MAX_OPERANDS and len(set(_widths(op))) == 1

    def accepts(self, op: GroupedNormOp, position: int, strides: Strides, scope: Scope) -> bool:
        return not strides or strides[-1].as_int() == 1

    def emit(self, launch: Launch[GroupedNormOp]) -> Emission:
        op, scope, dims, count = launch.op, launch.scope, launch.dims, launch.op.count
        factors = len(op.scales) + len(op.biases)
        inputs, extras = launch.ins[:count], launch.ins[count + factors :]
        given = launch.ins[count : count + factors]
        each = len(extras) // count
        kind = element_type(inputs[0].type.element_type)
        null = f"static_cast<const {kind}*>(nullptr)"
        scales = [a.name for a in given[: len(op.scales)]] or [null] * count
        biases = [a.name for a in given[len(op.scales) :]] or [null] * count
        nests: list[list[Loop]] = []
        for i, out in enumerate(launch.outs):
            shape = out.type.dims
            steps = [inputs[i].strides, out.strides]
            steps += [_row_strides(e, shape) for e in extras[i * each : (i + 1) * each]]
            *outer, row = nest(shape, steps)
            nests.append([*collapse(outer or [single(len(steps))], scope), row])
        rank = max(map(len, nests))
        parts: list[str] = []
        for i, (out, loops) in enumerate(zip(launch.outs, nests, strict=True)):
            nested = [*[single(each + 2)] * (rank - len(loops)), *loops]
            beside = pack(extras[i * each : (i + 1) * each], nested, 2, dims)
            own = operand(inputs[i].name, nested, 0, dims), operand(out.name, nested, 1, dims)
            parts.append(self._call(launch, sizes(nested, dims), own, (scales[i], biases[i]), beside))
        stored = [launch.outs[0].type.element_type] if launch.target.is_gpu else []
        definitions = functor(op.epilogue, "epilogue_@ID@", stored) if op.epilogue.blocks else ""
        if not launch.target.is_gpu:
            definitions += identity_functor(inputs[0].type.element_type, "norm_@ID@")
            body = "".join(f"if (const int32_t status = {part}) return status;\n" for part in parts) + "return 0;\n"
            return Emission(("ait/math.h", launch.header("row")), definitions, body)
        rows = [row_template([out.type.dims[-1]], scope) for out in launch.outs]
        high, step = max(high for _, high, _ in rows), min(step for _, _, step in rows)
        flags = ["true" if flag else "false" for flag in (op.kind.data == "layer", all(a.constant for a in given))]
        template = f"{flags[0]}, {high}, {step}, {flags[1]}" + (", epilogue_@ID@" if op.epilogue.blocks else "")
        made = ",\n    ".join(parts)
        body = f"return ait::gpu::norm_grouped<{template}>(ctx, {{\n    {made}}}, {launch.number(op.eps, f64)});\n"
        return Emission(("ait/math.h", launch.header("row_grouped")), definitions, body)

    def _call(
        self, launch: Launch[GroupedNormOp], shape: str, own: tuple[str, str], factors: tuple[str, str], beside: str
    ) -> str:
        """The C++ of one norm: its call on a CPU, its description on a GPU."""
        if launch.target.is_gpu:
            return f"ait::gpu::grouped_norm({shape}, {own[0]}, {own[1]}, {factors[0]}, {factors[1]}, {beside})"
        template, finish = "norm_@ID@, 1", ""
        if launch.op.epilogue.blocks:
            template, finish = f"{template}, epilogue_@ID@", f", {beside}"
        packs = f"ait::pack({own[0]}), ait::pack({own[1]})"
        arguments = f"ctx, {shape}, {packs}, {factors[0]}, {factors[1]}, {launch.number(launch.op.eps, f64)}{finish}"
        return f"ait::cpu::{launch.op.kind.data}_norm<{template}>({arguments})"


def _row_strides(arg: Arg, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of an epilogue operand over a shape; the last is 1 if the operand has whole rows, otherwise 0."""
    *outer, _ = broadcast_strides(arg, shape)
    return (*outer, ONE if has_rows(arg.type.dims, shape) else ZERO)


def has_rows(dims: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    """Whether a tensor that broadcasts to a shape has the shape's last dim, rather than one element in its place."""
    return bool(dims) and dims[-1] is shape[-1]


def _widths(op: GroupedNormOp) -> list[tuple[bool, ...]]:
    shapes = [tensor_type(r).dims for r in op.results]
    return [tuple(has_rows(tensor_type(v).dims, shape) for v in op.extras_of(i)) for i, shape in enumerate(shapes)]


KERNELS = (GroupedKernel(), GroupedNormKernel(), RaggedKernel())
