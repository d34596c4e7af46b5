"""Contractions on cuBLASLt."""

from __future__ import annotations

from dataclasses import replace

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, NamesAlgorithms, Strides, Target
from ait_mlir.lowering.kernels.calls import GemmCall, GemmMatrix, call_service
from ait_mlir.lowering.kernels.contraction import (
    LibraryEpilogue,
    Matrix,
    Problem,
    is_narrow,
    keeps_f32,
    library_epilogue,
    library_precision,
    precision_of,
)
from ait_mlir.lowering.kernels.gemm import ContractionKernel, element_of, has_even_pitches, is_unit

WORKSPACE_LIMIT = 32 << 20

# Operations per second on an H200 whose operands come from memory, and the seconds that a call takes beside them.
LT_RATE = {2: 650e12, 4: 45e12, 8: 45e12}
LT_ODD_RATE = 100e12
"""Operations per second if rows do not start on 16-byte boundaries, as fast algorithms for 2-byte elements need."""
LT_ROUNDED_RATE = {"high": 300e12, "medium": 500e12}
"""Operations per second for f32 with rounded operands, by precision."""
LT_SECONDS, LT_SECONDS_PER_K = 2.6e-6, 1.4e-9
LT_TILES, LT_SPLITS = ((64, 64), (128, 64), (64, 128), (128, 128), (128, 256), (256, 128)), (1, 2, 4, 8)
"""Tiles and splits of cuBLASLt's algorithms, for estimates."""
LT_LONG_K = 2048
"""Above this K, products of few tiles cost extra: the first algorithm often does not split K, and takes several times
as long."""
LT_FINISH_K = 128
"""The fixed cost of a tile, as a length of K."""


class CublasLtGemm(ContractionKernel, NamesAlgorithms):
    """cuBLASLt with the epilogues it has: bias, residual, relu, tanh-form gelu.

    With a bias and a residual, or a bias and the gelu, only its Hopper kernels round once. The older ones round to the
    element type before the second of them, and so do all that split K with a bias (every algorithm of cuBLASLt 13.1 at
    four shapes, compared with float64). So a 2-byte gemm with both is taken only where every row starts on 16 bytes, as
    the Hopper kernels need; the runtime library picks among them, and takes no split of K beside a bias.
    """

    provider = "cublaslt"
    alone = True
    max_batch_loops = 1
    algorithm_keys = ("id", "tile", "split", "reduction", "swizzle", "custom", "stages", "inner", "cluster")
    optional_keys = frozenset(algorithm_keys)

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = element_of(op)
        k = op.split_a()[2]
        return (
            target.kind == "cuda"
            and op.output.type.element_type == kind
            and library_epilogue(op) is not None
            and scope_of(op).positive(k)
            and (not _rounds_twice(op) or (target.has("clusters") and _has_even_rows(op, Problem.contiguous(op))))
        )

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        return not _rounds_twice(op) or _has_even_rows(op, Problem.contiguous(op, position, strides))

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        size = BY_IR[element_of(op)].bytes
        moved = size * batches * (m * k + k * n + m * n) / target.bandwidth
        rate = LT_ODD_RATE if self.is_odd(op) else LT_RATE[size]
        if not keeps_f32(op, target):
            rate = LT_ROUNDED_RATE[precision_of(op, target)]
        busy = max(2.0 * m * n * k * batches / rate, moved + LT_SECONDS_PER_K * k)
        epilogue = library_epilogue(op)
        if epilogue is not None and epilogue.activation is not None:
            busy *= 1.13
        if epilogue is not None and epilogue.residual is not None:
            busy += size * m * n * batches / target.bandwidth
        return LT_SECONDS + busy + (0.3e-6 if epilogue != LibraryEpilogue() else 0.0)

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms | None:
        """Terms for the library's first algorithm; its tile and split are unknown: the best of several is assumed."""
        if config or not keeps_f32(op, target):
            return None
        problem, size = Problem.contiguous(op), BY_IR[element_of(op)].bytes
        m, n, k, batches = problem.sizes(scope_of(op))
        units = target.multiprocessors
        waves: list[float] = []
        for rows, columns in LT_TILES:
            for split in LT_SPLITS:
                count = -(-(-(-m // rows) * -(-n // columns) * batches * split) // units)
                waves.append(count * rows * columns * (-(-k // (64 * split)) * 64 + LT_FINISH_K))
        few = size == 2 and -(-m // 128) * -(-n // 128) * batches < units / 2
        epilogue = library_epilogue(op)
        each = size * m * n * batches / target.bandwidth
        first = {
            "start": 1e-6,
            "epilogue": 1e-6 if epilogue != LibraryEpilogue() else 0.0,
            "activation": each if epilogue is not None and epilogue.activation is not None else 0.0,
            "residual": each if epilogue is not None and epilogue.residual is not None else 0.0,
        }
        work = {
            "products": 2.0 * m * n * k * batches / LT_RATE[size],
            "waves": 2.0 * min(waves) * units / LT_RATE[size],
            "step": k * 1e-9,
            "few tiles": k * 5e-9 if few and k > LT_LONG_K else 0.0,
            "b": size * n * k * batches / target.bandwidth,
            "rest": size * m * (k + n) * batches / target.bandwidth,
        }
        return Terms(first, work, "odd" if self.is_odd(op) else "" if size == 2 else str(element_of(op)))

    def is_odd(self, op: ContractionOp) -> bool:
        """Whether rows of 2-byte elements start on any address, so that the library has slow kernels only."""
        return is_narrow(element_of(op)) and not _has_even_rows(op, Problem.contiguous(op))

    def accepts_extra(self, op: ContractionOp, position: int, problem: Problem, scope: Scope) -> bool:
        found = library_epilogue(op)
        extra = problem.extras[position - 2]
        if found is None or not is_unit(extra.col):
            return False
        return position == found.bias or scope.le(problem.n, extra.row)

    def workspace(self, op: ContractionOp, config: Config) -> Expr:
        """Bytes for the partial sums of the named algorithm; without a name, of an algorithm that splits k by 8."""
        split = config.get("split", 1) if config else 8
        results = scope_of(op).bounds(op.output.type.num_elements())[1] if split > 1 else 0
        return const(min(WORKSPACE_LIMIT, (1 << 20) + (4 * split * results + 255) // 256 * 256))

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        if "id" not in config:
            raise ValueError(f"{dict(config)} names no algorithm: it has no id")

    def emit(self, launch: Launch[ContractionOp]) -> Emission | tuple[Emission, ...]:
        return self.product(launch)

    def product(self, launch: Launch[ContractionOp]) -> Emission:
        """The call of the library."""
        op, config = launch.op, launch.config
        problem = Problem.of(op, launch.ins, launch.outs)
        epilogue = library_epilogue(op)
        assert epilogue is not None
        a, b, d = problem.a, problem.b, problem.d
        bias = problem.extras[epilogue.bias - 2] if epilogue.bias is not None else None
        residual = problem.extras[epilogue.residual - 2] if epilogue.residual is not None else None
        dtype = BY_IR[element_of(op)].enumerator
        before = ""
        if config:
            parts = ", ".join(str(int(config.get(key, 0))) for key in self.algorithm_keys)
            before = f"static const ait_gemm_algorithm_v1 algorithm = {{{{{parts}}}}};"
        call = GemmCall(
            batch=problem.batch[0] if problem.batch else 1,
            m=problem.m,
            n=problem.n,
            k=problem.k,
            a=_library_operand(a, dtype),
            b=_library_operand(b, dtype),
            c=None if residual is None else _library_matrix(residual, dtype),
            d=_library_matrix(d, dtype),
            bias=None if bias is None else bias.arg.name,
            bias_dtype=None if bias is None else dtype,
            epilogue=epilogue.flags,
            alpha="1.f",
            beta="0.f" if residual is None else "1.f",
            algorithm="&algorithm" if config else None,
            workspace="workspace",
            workspace_bytes=self.workspace(op, config),
            precision=library_precision(op, launch.target),
        )
        return call_service(call, launch, before)


def _library_matrix(x: Matrix, dtype: str) -> GemmMatrix:
    """The library's description of a matrix with contiguous rows and at most one batch dim."""
    return GemmMatrix(data=x.arg.name, dtype=dtype, ld=x.row, batch=x.batch[0] if x.batch else None)


def _library_operand(x: Matrix, dtype: str) -> GemmMatrix:
    """The library's description of an operand with contiguous rows or columns."""
    transposed = not is_unit(x.col)
    found = _library_matrix(x, dtype)
    return replace(found, transposed=int(transposed), ld=x.col if transposed else x.row)


def _rounds_twice(op: ContractionOp) -> bool:
    """Whether some algorithms of cuBLASLt round the result twice: 2-byte elements, a bias, and a residual or gelu."""
    found = library_epilogue(op)
    if found is None or found.bias is None:
        return False
    return (found.residual is not None or found.activation == "ait.fast_gelu") and is_narrow(element_of(op))


def _has_even_rows(op: ContractionOp, problem: Problem) -> bool:
    """Whether all rows of a, b, the result and the residual start on 16-byte boundaries if the first does."""
    epilogue = library_epilogue(op)
    matrices = [problem.a, problem.b, problem.d]
    if epilogue is not None and epilogue.residual is not None:
        matrices.append(problem.extras[epilogue.residual - 2])
    return all(has_even_pitches(x, scope_of(op)) for x in matrices)


KERNELS = (CublasLtGemm(),)
