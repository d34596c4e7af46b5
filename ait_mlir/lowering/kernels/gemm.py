"""Contractions: our kernel for every target, OpenBLAS, and the base class of all contraction kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte, is_float8
from ait_mlir.dialects.ait.gemm import BATCH_LOOPS, ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.host.cpu import has_bf16_tiles
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import (
    LARGEST,
    Matrix,
    Problem,
    arg_name,
    call_template,
    epilogue_functor,
    in_halves,
    is_narrow,
    matrices_beside,
    on_mma,
)
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK, TILES, GemmTile, best_tiles, tile_for_few_rows

MAX_CONFIGS = 8

# Operations per second.
SIMT_RATE = {1: 20e12, 2: 20e12, 4: 20e12, 8: 10e12}
CPU_RATE = 133e9
BYTE_RATE = 3 * CPU_RATE
"""Operations per second of integers of 8 bits."""
TILE_RATE, TILE_ROWS = 800e9, 8
"""Operations per second of bf16 on AMX, and the number of rows above which the template uses AMX."""
OPENBLAS_RATE, OPENBLAS_PACK_SECONDS = 145e9, 0.5e-9
ERF_CYCLES = 0.02
"""Cycles of a multiprocessor for one element of an erf gelu; meanwhile the tensor cores wait."""


def element_of(op: ContractionOp) -> Attribute:
    """The element type of the operands."""
    return cast(TensorType, op.a.type).element_type


def is_of_bytes(op: ContractionOp) -> bool:
    """Whether the operands are integers or floats of 8 bits."""
    return is_byte(element_of(op)) or is_float8(element_of(op))


def is_unit(stride: Expr) -> bool:
    return stride.as_int() == 1


def _is_matrix(x: Matrix, rows: Expr, cols: Expr, scope: Scope) -> bool:
    """Whether libraries can read the matrix: one stride is 1, the other, `ld`, at least the length of a row."""
    if is_unit(x.col):
        return rows.as_int() == 1 or scope.le(cols, x.row)
    return is_unit(x.row) and (cols.as_int() == 1 or scope.le(rows, x.col))


def has_even_pitches(x: Matrix, scope: Scope, chunk: int = 8) -> bool:
    """Whether all rows of a matrix start on 16-byte boundaries, `chunk` elements apart, if the first does."""
    pitch = x.row if is_unit(x.col) else x.col
    return all(scope.divisible(s, chunk) for s in (pitch, *x.batch))


def _fits(p: Problem, scope: Scope) -> bool:
    return all(scope.bounds(e)[1] <= LARGEST for e in (p.m, p.n, p.k))


def _uses_tiles(op: ContractionOp, target: Target) -> bool:
    """Whether the CPU multiplies these operands, which are contiguous along k, on its matrix unit."""
    bf16 = isinstance(element_of(op), BFloat16Type) and op.layout.data[:2] == "rc"
    return bf16 and target.arch == "native" and has_bf16_tiles()


class ContractionKernel(Kernel[ContractionOp]):
    """The base class of the kernels of contractions."""

    name = "gemm"
    ops = (ContractionOp,)
    max_batch_loops = BATCH_LOOPS
    max_sums = 1
    """The most accumulators of a result: one, or two for a gated product."""

    def takes(self, op: ContractionOp, target: Target) -> bool:
        raise NotImplementedError

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if self.max_sums < op.SUMS or not self.takes(op, target):
            return False
        problem = self.problem(op)
        return len(problem.batch) <= self.max_batch_loops and _fits(problem, scope_of(op))

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        """Estimated seconds of a problem of this size."""
        raise NotImplementedError

    def seconds(self, op: ContractionOp, target: Target) -> float:
        return self.seconds_at(op, *self.problem(op).sizes(scope_of(op)), target)

    def problem(self, op: ContractionOp, position: int | None = None, strides: Strides = ()) -> Problem:
        """The problem that the kernel solves, with buffers as for `Problem.contiguous`."""
        return Problem.contiguous(op, position, strides)

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        problem = self.problem(op, position, strides)
        if len(problem.batch) > self.max_batch_loops:
            return False
        if position < 2:
            mine = problem.one_of(arg_name(op, position))
            first = mine is problem.a
            rows, cols = (problem.m, problem.k) if first else (problem.k, problem.n)
            return _is_matrix(mine, rows, cols, scope)
        if position == len(op.operands):
            return is_unit(problem.d.col) and _is_matrix(problem.d, problem.m, problem.n, scope)
        return self.accepts_extra(op, position, problem, scope)

    def accepts_extra(self, op: ContractionOp, position: int, problem: Problem, scope: Scope) -> bool:
        """Whether the epilogue operand or further result at `position` may have its strides in `problem`."""
        return True


class NativeGemm(ContractionKernel):
    """Our own contraction, with any epilogue: mma.sync on CUDA for f16, bf16, f32 that may be rounded, and numbers of
    8 bits whose rows lie along k; otherwise plain arithmetic; vectors on the CPU. Floats of 8 bits are for cards that
    multiply them (`multiply-float8` converts them for others)."""

    max_sums = 2
    one_instance = True
    optional_keys = frozenset({"small_rows", *TILES[0].config("small_")})

    def takes(self, op: ContractionOp, target: Target) -> bool:
        if is_float8(element_of(op)) and not target.has("float8"):
            return False
        gates = is_narrow(element_of(op)) and self.uses_tensor_cores(op, target) and op.layout.data[1] == "c"
        return len(op.operands) <= 16 and (op.SUMS == 1 or gates)

    def uses_tensor_cores(self, op: ContractionOp, target: Target) -> bool:
        if is_of_bytes(op):
            return target.has("mma") and op.layout.data[:2] == "rc"
        return on_mma(op, target)

    def _has_even_pitches(self, op: ContractionOp, problem: Problem) -> bool:
        """Whether all rows of a and b start on 16-byte boundaries if the first does."""
        chunk = 16 // BY_IR[element_of(op)].bytes
        return all(has_even_pitches(x, scope_of(op), chunk) for x in (problem.a, problem.b))

    def configs(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        if not self.uses_tensor_cores(op, target):
            return [{}]
        scope = scope_of(op)
        problem = Problem.contiguous(op)
        m, n, k, batches = problem.sizes(scope)
        n, k = n * op.SUMS, in_halves(k, element_of(op))
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
        """The configurations with estimates; with dynamic rows, the best tile gets a second tile for few rows."""
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
        return self.terms_of(op, target)(config)

    def terms_of(self, op: ContractionOp, target: Target) -> Callable[[Config], Terms | None]:
        problem, kind = Problem.contiguous(op), element_of(op)
        m, n, k, batches = problem.sizes(scope_of(op))
        if not self.uses_tensor_cores(op, target):
            rates = SIMT_RATE if target.is_gpu else None
            name = f"{kind} tiles" if not target.is_gpu and _uses_tiles(op, target) else str(kind)
            return lambda _: plain_terms(m, n, k, batches, BY_IR[kind].bytes, rates, name, target)
        erf = op.epilogue.blocks and any(o.name in ("ait.gelu", "ait.erf") for o in op.epilogue.block.ops)
        each = m * n * batches
        first = {
            "erf": ERF_CYCLES * each / target.multiprocessors / CLOCK if erf else 0.0,
            "operand": matrices_beside(op) * BY_IR[kind].bytes * each / target.bandwidth,
        }
        even = self._has_even_pitches(op, problem)
        # Rows that start on 4 bytes, as all of f32 do, are copied in the background, in more instructions.
        words = not even and BY_IR[kind].bytes == 4

        def terms(config: Config) -> Terms:
            tile = GemmTile.of({key: value for key, value in config.items() if not key.startswith("small_")})
            found = tile.terms(m, n * op.SUMS, in_halves(k, kind), batches, target)
            work = {**found.work, "copies": 2 * found.work["copies"]} if words else found.work
            return Terms({**found.first, **first}, work, "" if even or words else "odd")

        return terms

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        flops = 2.0 * m * n * k * batches
        if not target.is_gpu:
            rate = TILE_RATE if m > TILE_ROWS and _uses_tiles(op, target) else CPU_RATE
            rate = BYTE_RATE if is_byte(element_of(op)) else rate
            return target.launch_seconds + flops / rate
        size = BY_IR[element_of(op)].bytes
        if not self.uses_tensor_cores(op, target):
            return target.launch_seconds + flops / SIMT_RATE[size]
        columns = n * op.SUMS
        halves = in_halves(k, element_of(op))
        cycles = best_tiles(m, columns, halves, batches, target)[0].cycles(m, columns, halves, batches, target)
        if op.epilogue.blocks and any(o.name in ("ait.gelu", "ait.erf") for o in op.epilogue.block.ops):
            cycles += ERF_CYCLES * m * n * batches / target.multiprocessors
        return cycles / CLOCK + matrices_beside(op) * size * m * n * batches / target.bandwidth

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        if self.uses_tensor_cores(op, target):
            for prefix in ("small_", "") if "small_rows" in config else ("",):
                GemmTile.of(config, prefix)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        op, config, target = launch.op, launch.config, launch.target
        problem = Problem.of(op, launch.ins, launch.outs)
        definition, functor = epilogue_functor(op, launch.place)
        arguments = ", ".join(problem.arguments(launch))
        calls: list[str] = []
        header = "gemm_bytes" if launch.place == "cpu" and is_byte(element_of(op)) else "gemm"
        along_k = is_unit(problem.a.col) and is_unit(problem.b.row)
        if self.uses_tensor_cores(op, target) and (along_k or not is_of_bytes(op)):
            odd = not self._has_even_pitches(op, problem)
            flags = (is_unit(problem.a.col), is_unit(problem.b.row), odd)
            template = ", ".join("true" if flag else "false" for flag in flags)
            early = ", true" if problem.b.arg.constant else ""
            for prefix in ("small_", "") if "small_rows" in config else ("",):
                tile = GemmTile.of(config, prefix)
                more = launch.size(const(tile.split), f"{prefix}split") + early
                call = f"gemm_mma<{tile.cpp(op.SUMS)}, {template}, {functor}>({arguments}, {more})"
                few = f"if ({launch.size(problem.m, 'm')} <= {int(config['small_rows'])}) " if prefix else ""
                calls.append(f"{few}return ait::gpu::{call};")
        else:
            name = "gemm_simt" if target.is_gpu else header
            calls.append(f"return ait::{launch.place}::{name}<{functor}>({arguments});")
        return Emission(("ait/math.h", launch.header(header)), definition, "\n".join(calls) + "\n")


def plain_terms(
    m: int, n: int, k: int, batches: int, size: int, rates: Mapping[int, float] | None, kind: str, target: Target
) -> Terms:
    """The parts of the time of a product without tensor cores. `rates` maps the bytes of an element to operations per
    second; None means the CPU's rate."""
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
    """OpenBLAS for f32 and f64; the epilogue runs over each piece of the result while the piece is in the cache."""

    provider = "openblas"

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = element_of(op)
        same = op.output.type.element_type == kind
        return target.kind == "cpu" and same and isinstance(kind, Float32Type | Float64Type)

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        packing = OPENBLAS_PACK_SECONDS * n * k * batches
        return target.launch_seconds + 2.0 * m * n * k * batches / OPENBLAS_RATE + packing

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms:
        kind, sizes = element_of(op), Problem.contiguous(op).sizes(scope_of(op))
        return plain_terms(*sizes, BY_IR[kind].bytes, None, str(kind), target)

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        return call_template(launch, "gemm", "gemm_library<{epilogue}>")


KERNELS = (NativeGemm(), OpenBlasGemm())
