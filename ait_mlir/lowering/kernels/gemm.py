"""Contractions: on cuBLASLt, on OpenBLAS, and natively for every target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.host.cpu import has_bf16_tiles
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, NamesAlgorithms, Strides, Target
from ait_mlir.lowering.kernels.calls import GemmCall, GemmMatrix, call_service
from ait_mlir.lowering.kernels.contraction import (
    LibraryEpilogue,
    Matrix,
    Problem,
    call_template,
    epilogue_functor,
    in_halves,
    is_narrow,
    keeps_f32,
    library_epilogue,
    library_precision,
    library_prefix,
    on_mma,
)
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK, TILES, GemmTile, best_tiles, tile_for_few_rows

__all__ = ["KERNELS", "CublasLtGemm", "NativeGemm", "OpenBlasGemm", "library_epilogue", "library_prefix"]

WORKSPACE_LIMIT = 32 << 20
LARGEST = 2**31 - 1
MAX_CONFIGS = 8

# Operations per second, and what a call costs beside them, as benchmarks/device/gemm_native.py measures them.
LT_RATE = {2: 650e12, 4: 45e12, 8: 45e12}
LT_ODD_RATE = 100e12
"""Where rows start at no 16-byte boundary, which its fast algorithms for elements of 2 bytes need."""
LT_ROUNDED_RATE = {"high": 300e12, "medium": 500e12}
"""Of f32 whose operands are rounded."""
LT_SECONDS, LT_SECONDS_PER_K = 2.6e-6, 1.4e-9
LT_TILES, LT_SPLITS = ((64, 64), (128, 64), (64, 128), (128, 128), (128, 256), (256, 128)), (1, 2, 4, 8)
"""Tiles and splits that its algorithms have, for estimates."""
LT_LONG_K = 2048
"""Longer sums of few tiles are often not split by its first algorithm, and take several times as long."""
LT_FINISH_K = 128
"""The steps along K that a tile costs beside its own."""
SIMT_RATE = {2: 20e12, 4: 20e12, 8: 10e12}
CPU_RATE = 133e9
TILE_RATE, TILE_ROWS = 800e9, 8
"""Of bf16 on AMX, and the rows above which the template uses it."""
OPENBLAS_RATE, OPENBLAS_PACK_SECONDS = 145e9, 0.5e-9
ERF_CYCLES = 0.02
"""Cycles of a multiprocessor for one element of an erf gelu that the tensor cores wait for."""


def _kind(op: ContractionOp) -> Attribute:
    return cast(TensorType, op.a.type).element_type


def _is_unit(stride: Expr) -> bool:
    return stride.as_int() == 1


def _is_matrix(x: Matrix, rows: Expr, cols: Expr, scope: Scope) -> bool:
    """One of the strides is 1, the other at least the length of such a row, which is what `ld` means."""
    if _is_unit(x.col):
        return rows.as_int() == 1 or scope.le(cols, x.row)
    return _is_unit(x.row) and (cols.as_int() == 1 or scope.le(rows, x.col))


def _has_even_pitches(x: Matrix, scope: Scope, chunk: int = 8) -> bool:
    """Whether all rows of a matrix start on 16-byte boundaries, `chunk` elements apart, if the first does."""
    pitch = x.row if _is_unit(x.col) else x.col
    return all(scope.divisible(s, chunk) for s in (pitch, *x.batch))


def _fits(p: Problem, scope: Scope) -> bool:
    return all(scope.bounds(e)[1] <= LARGEST for e in (p.m, p.n, p.k))


def _uses_tiles(op: ContractionOp, target: Target) -> bool:
    """Whether the CPU multiplies these operands, which are contiguous along k, on its matrix unit."""
    bf16 = isinstance(_kind(op), BFloat16Type) and op.layout.data[:2] == "rc"
    return bf16 and target.arch == "native" and has_bf16_tiles()


class ContractionKernel(Kernel[ContractionOp]):
    """What the kernels of contractions share."""

    name = "gemm"
    ops = (ContractionOp,)
    max_batch_loops = 2
    max_sums = 1
    """Sums that it can make a result of: one, or those of both halves of a product."""

    def takes(self, op: ContractionOp, target: Target) -> bool:
        raise NotImplementedError

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if self.max_sums < op.SUMS or not self.takes(op, target):
            return False
        problem = Problem.contiguous(op)
        return len(problem.batch) <= self.max_batch_loops and _fits(problem, scope_of(op))

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        """Estimated seconds of a problem of this size."""
        raise NotImplementedError

    def seconds(self, op: ContractionOp, target: Target) -> float:
        return self.seconds_at(op, *Problem.contiguous(op).sizes(scope_of(op)), target)

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        problem = Problem.contiguous(op, position, strides)
        if len(problem.batch) > self.max_batch_loops:
            return False
        if position < 2:
            mine = next(x for x in (problem.a, problem.b) if x.arg.name == f"a{position}")
            first = mine is problem.a
            rows, cols = (problem.m, problem.k) if first else (problem.k, problem.n)
            return _is_matrix(mine, rows, cols, scope)
        if position == len(op.operands):
            return _is_unit(problem.d.col) and _is_matrix(problem.d, problem.m, problem.n, scope)
        return self.accepts_extra(op, position, problem, scope)

    def accepts_extra(self, op: ContractionOp, position: int, problem: Problem, scope: Scope) -> bool:
        """Whether the epilogue operand at `position` may have the strides that it has in `problem`."""
        return True


class NativeGemm(ContractionKernel):
    """Our own, with any epilogue: mma.sync on CUDA for f16, bf16, and f32 that may be rounded, else plain arithmetic;
    vectors on the CPU."""

    max_sums = 2
    one_instance = True
    optional_keys = frozenset({"small_rows", *TILES[0].config("small_")})

    def takes(self, op: ContractionOp, target: Target) -> bool:
        gates = is_narrow(_kind(op)) and self.uses_tensor_cores(op, target) and op.layout.data[1] == "c"
        return len(op.operands) <= 16 and (op.SUMS == 1 or gates)

    def uses_tensor_cores(self, op: ContractionOp, target: Target) -> bool:
        return on_mma(op, target)

    def _has_even_pitches(self, op: ContractionOp, problem: Problem) -> bool:
        """Whether all rows of a and b start on 16-byte boundaries if the first does."""
        chunk = 16 // BY_IR[_kind(op)].bytes
        return all(_has_even_pitches(x, scope_of(op), chunk) for x in (problem.a, problem.b))

    def configs(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        if not self.uses_tensor_cores(op, target):
            return [{}]
        scope = scope_of(op)
        problem = Problem.contiguous(op)
        m, n, k, batches = problem.sizes(scope)
        n, k = n * op.SUMS, in_halves(k, _kind(op))
        tiles = best_tiles(m, n, k, batches, target)[:MAX_CONFIGS]
        configs = [tile.config() for tile in tiles]
        few = tile_for_few_rows(tiles[0], scope.bounds(problem.m), n, k, target) if batches == 1 else None
        if few is not None:
            configs.insert(0, configs[0] | {"small_rows": few[1]} | few[0].config("small_"))
        return configs

    def every_config(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        if not self.uses_tensor_cores(op, target):
            return [{}]
        m, n, k, batches = Problem.contiguous(op).sizes(scope_of(op))
        return [tile.config() for tile in best_tiles(m, n * op.SUMS, k, batches, target)]

    def ranked(self, op: ContractionOp, target: Target) -> list[tuple[dict[str, int], float]]:
        """The best tile for the largest sizes comes with one for few rows, if the rows are dynamic."""
        found = super().ranked(op, target)
        if not self.uses_tensor_cores(op, target) or any("small_rows" in config for config, _ in found):
            return found
        problem, scope = Problem.contiguous(op), scope_of(op)
        _, n, k, batches = problem.sizes(scope)
        best, seconds = found[0]
        rows = scope.bounds(problem.m)
        few = tile_for_few_rows(GemmTile.of(best), rows, n * op.SUMS, k, target) if batches == 1 else None
        return found if few is None else [(best | {"small_rows": few[1]} | few[0].config("small_"), seconds), *found]

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms | None:
        problem, kind = Problem.contiguous(op), _kind(op)
        m, n, k, batches = problem.sizes(scope_of(op))
        if not self.uses_tensor_cores(op, target):
            rates = SIMT_RATE if target.is_gpu else None
            name = f"{kind} tiles" if not target.is_gpu and _uses_tiles(op, target) else str(kind)
            return plain_terms(m, n, k, batches, BY_IR[kind].bytes, rates, name, target)
        tile = GemmTile.of({key: value for key, value in config.items() if not key.startswith("small_")})
        found = tile.terms(m, n * op.SUMS, in_halves(k, kind), batches, target)
        erf = op.epilogue.blocks and any(o.name in ("ait.gelu", "ait.erf") for o in op.epilogue.block.ops)
        whole = sum(cast(TensorType, v.type).dims == op.output.type.dims for v in op.epilogue_operands)
        each = m * n * batches
        first = {
            "erf": ERF_CYCLES * each / target.multiprocessors / CLOCK if erf else 0.0,
            "operand": whole * BY_IR[kind].bytes * each / target.bandwidth,
        }
        even = self._has_even_pitches(op, problem)
        return Terms({**found.first, **first}, found.work, "" if even else "odd")

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        flops = 2.0 * m * n * k * batches
        if not target.is_gpu:
            rate = TILE_RATE if m > TILE_ROWS and _uses_tiles(op, target) else CPU_RATE
            return target.launch_seconds + flops / rate
        size = BY_IR[_kind(op)].bytes
        if not self.uses_tensor_cores(op, target):
            return target.launch_seconds + flops / SIMT_RATE[size]
        columns = n * op.SUMS
        halves = in_halves(k, _kind(op))
        cycles = best_tiles(m, columns, halves, batches, target)[0].cycles(m, columns, halves, batches, target)
        if op.epilogue.blocks and any(o.name in ("ait.gelu", "ait.erf") for o in op.epilogue.block.ops):
            cycles += ERF_CYCLES * m * n * batches / target.multiprocessors
        whole = [v for v in op.epilogue_operands if cast(TensorType, v.type).dims == op.output.type.dims]
        return cycles / CLOCK + len(whole) * size * m * n * batches / target.bandwidth

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        if self.uses_tensor_cores(op, target):
            for prefix in ("small_", "") if "small_rows" in config else ("",):
                GemmTile.of(config, prefix)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        op, config, target = launch.op, launch.config, launch.target
        problem = Problem.of(op, launch.ins, launch.outs[0])
        definition, functor = epilogue_functor(op, "epilogue_@ID@", launch.place)
        arguments = ",\n      ".join(problem.arguments(launch))
        calls: list[str] = []
        if self.uses_tensor_cores(op, target):
            odd = not self._has_even_pitches(op, problem)
            flags = (_is_unit(problem.a.col), _is_unit(problem.b.row), odd)
            template = ", ".join("true" if flag else "false" for flag in flags)
            early = ", true" if problem.b.arg.constant else ""
            for prefix in ("small_", "") if "small_rows" in config else ("",):
                tile = GemmTile.of(config, prefix)
                more = f"{launch.cpp(const(tile.split))}{early}"
                call = f"gemm_mma<{tile.cpp(op.SUMS)}, {template}, {functor}>({arguments}, {more})"
                few = f"if ({launch.cpp(problem.m)} <= {int(config['small_rows'])}) " if prefix else ""
                calls.append(f"{few}return ait::gpu::{call};")
        else:
            name = "gemm_simt" if target.is_gpu else "gemm"
            calls.append(f"return ait::{launch.place}::{name}<{functor}>({arguments});")
        return Emission(("ait/math.h", launch.header("gemm")), definition, "\n  ".join(calls) + "\n")


def plain_terms(
    m: int, n: int, k: int, batches: int, size: int, rates: Mapping[int, float] | None, kind: str, target: Target
) -> Terms:
    """The parts of the time of a product without tensor cores; `rates`: operations per second by the size of an
    element, those of a CPU if None."""
    rate = CPU_RATE if rates is None else rates[size]
    work = {
        "products": 2.0 * m * n * k * batches / rate,
        "b": size * n * k * batches / target.bandwidth,
        "rest": size * m * (k + n) * batches / target.bandwidth,
    }
    if target.is_gpu:  # blocks of some 64 x 64 results
        waves = -(-(-(-m // 64) * -(-n // 64) * batches) // target.multiprocessors)
        work["waves"] = waves * 64.0 * 64 * 2 * k * target.multiprocessors / rate
    else:
        work["few rows"] = 2.0 * 8 * n * k * batches / rate
    return Terms({"start": target.launch_seconds}, work, kind)


class OpenBlasGemm(ContractionKernel):
    """OpenBLAS for f32 and f64; the epilogue follows over each piece of the result while it is in the cache."""

    provider = "openblas"

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = _kind(op)
        same = op.output.type.element_type == kind
        return target.kind == "cpu" and same and isinstance(kind, Float32Type | Float64Type)

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        packing = OPENBLAS_PACK_SECONDS * n * k * batches
        return target.launch_seconds + 2.0 * m * n * k * batches / OPENBLAS_RATE + packing

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms:
        kind, sizes = _kind(op), Problem.contiguous(op).sizes(scope_of(op))
        return plain_terms(*sizes, BY_IR[kind].bytes, None, str(kind), target)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        return call_template(launch, "gemm", "gemm_library<{epilogue}>")


class CublasLtGemm(ContractionKernel, NamesAlgorithms):
    """cuBLASLt with the epilogues it has: bias, residual, relu, tanh-form gelu.

    Only its Hopper kernels round once where a bias and a residual, or a bias and the gelu, stand together; the older
    ones round to the element type before the second of them (docs/measurements.md). So a 2-byte gemm with both is taken
    only where every row starts on 16 bytes, which those kernels want; the runtime library then picks among them.
    """

    provider = "cublaslt"
    alone = True
    max_batch_loops = 1
    algorithm_keys = ("id", "tile", "split", "reduction", "swizzle", "custom", "stages", "inner", "cluster")
    optional_keys = frozenset(algorithm_keys)

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = _kind(op)
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
        size = BY_IR[_kind(op)].bytes
        moved = size * batches * (m * k + k * n + m * n) / target.bandwidth
        odd = size == 2 and not _has_even_rows(op, Problem.contiguous(op))
        rate = LT_ODD_RATE if odd else LT_RATE[size]
        if not keeps_f32(op, target):
            rate = LT_ROUNDED_RATE[target.precision]
        busy = max(2.0 * m * n * k * batches / rate, moved + LT_SECONDS_PER_K * k)
        epilogue = library_epilogue(op)
        if epilogue is not None and epilogue.activation is not None:
            busy *= 1.13
        if epilogue is not None and epilogue.residual is not None:
            busy += size * m * n * batches / target.bandwidth
        return LT_SECONDS + busy + (0.3e-6 if epilogue != LibraryEpilogue() else 0.0)

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms | None:
        """With the library's first algorithm; its tiles and splits are unknown, so those of several are considered."""
        if config or not keeps_f32(op, target):
            return None
        problem, size = Problem.contiguous(op), BY_IR[_kind(op)].bytes
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
        odd = size == 2 and not _has_even_rows(op, problem)
        return Terms(first, work, "odd" if odd else "" if size == 2 else str(_kind(op)))

    def accepts_extra(self, op: ContractionOp, position: int, problem: Problem, scope: Scope) -> bool:
        found = library_epilogue(op)
        extra = problem.extras[position - 2]
        if found is None or not _is_unit(extra.col):
            return False
        return position == found.bias or scope.le(problem.n, extra.row)

    def workspace(self, op: ContractionOp, config: Config) -> Expr:
        """Room for the partial sums: of the algorithm that is named, else of one that splits k by 8."""
        split = config.get("split", 1) if config else 8
        results = scope_of(op).bounds(op.output.type.num_elements())[1] if split > 1 else 0
        return const(min(WORKSPACE_LIMIT, (1 << 20) + (4 * split * results + 255) // 256 * 256))

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        if "id" not in config:
            raise ValueError(f"{dict(config)} names no algorithm: it has no id")

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        op, config = launch.op, launch.config
        problem = Problem.of(op, launch.ins, launch.outs[0])
        epilogue = library_epilogue(op)
        assert epilogue is not None
        a, b, d = problem.a, problem.b, problem.d
        bias = problem.extras[epilogue.bias - 2] if epilogue.bias is not None else None
        residual = problem.extras[epilogue.residual - 2] if epilogue.residual is not None else None
        dtype = BY_IR[_kind(op)].abi
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
            workspace="ws",
            workspace_bytes=self.workspace(op, config),
            precision=library_precision(op, launch.target),
        )
        return call_service(call, launch, before)


def _library_matrix(x: Matrix, dtype: int) -> GemmMatrix:
    """A matrix whose rows are contiguous, of one batch at most."""
    return GemmMatrix(data=x.arg.name, dtype=dtype, ld=x.row, batch=x.batch[0] if x.batch else None)


def _library_operand(x: Matrix, dtype: int) -> GemmMatrix:
    """A matrix whose rows or columns are contiguous."""
    transposed = not _is_unit(x.col)
    found = _library_matrix(x, dtype)
    return replace(found, transposed=int(transposed), ld=x.col if transposed else x.row)


def _rounds_twice(op: ContractionOp) -> bool:
    """Whether some algorithms of cuBLASLt round the result twice: 2 bytes, bias and one more step but relu."""
    found = library_epilogue(op)
    if found is None or found.bias is None:
        return False
    return (found.residual is not None or found.activation == "ait.fast_gelu") and is_narrow(_kind(op))


def _has_even_rows(op: ContractionOp, problem: Problem) -> bool:
    """Whether all rows of a, b, the result and the residual start on 16-byte boundaries if the first does."""
    epilogue = library_epilogue(op)
    matrices = [problem.a, problem.b, problem.d]
    if epilogue is not None and epilogue.residual is not None:
        matrices.append(problem.extras[epilogue.residual - 2])
    return all(_has_even_pitches(x, scope_of(op)) for x in matrices)


KERNELS = (CublasLtGemm(), NativeGemm(), OpenBlasGemm())
