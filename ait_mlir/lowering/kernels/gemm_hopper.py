"""Contractions of f16, bf16 and numbers of 8 bits on Hopper's own matrix instruction, with any elementwise epilogue
inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from ait_mlir.dialects.ait.dtypes import is_float8
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Expr, Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Matrix, Problem, arg_name, call_template, in_halves, is_narrow
from ait_mlir.lowering.kernels.gemm import ContractionKernel, element_of, is_of_bytes
from ait_mlir.lowering.kernels.tile import Tile
from ait_mlir.lowering.target import HOPPER

__all__ = ["KERNELS", "HopperGemm", "HopperTile", "ShortSumTile"]

SPAN = 8
"""Columns that a thread finishes at a time; 16 bytes of f16."""
STAGE_K = 64
"""Elements of 2 bytes of a step along K."""
SHARED_LIMIT, SMS = HOPPER.shared_bytes, HOPPER.multiprocessors
CLUSTERED = {4: 120, 8: 112}
"""Multiprocessors that clusters of so many blocks reach, because a cluster stays within one part of the chip."""
MAX_CONFIGS = 8

# Fitted to times of an H200; `python -m benchmarks.contractions gemm --measure` prints such times. Of tiles that take
# at most 1.6 times as long as the best, the estimates are 9 % off on average.
START_SECONDS, SPLIT_SECONDS = 1.77e-6, 1.63e-6
"""Seconds of a launch, and of the exchange of partial sums."""
STEP_RATE = 3.0e12
"""Multiply-adds of a multiprocessor per second."""
COPY_RATE = 110e9
"""Bytes per second that one multiprocessor receives: 64 a cycle."""
STREAM_SHARE = 0.72
"""The share of memory bandwidth at which b arrives if there are few rows."""
STEP_SECONDS = 0.145e-6
"""The least time of a step of 64 along K."""
FINISH_SECONDS, FINISH_SECONDS_OF_TWO_TEAMS = 0.071e-9, 0.032e-9
"""Seconds to finish one result: for a group of warps while no other team computes; for the last tile of two teams."""
ERF_SECONDS, ERF_SECONDS_OF_TWO_TEAMS = 0.165e-9, 0.078e-9
"""Seconds of an erf gelu for one element: for a group of warps, and for a tile while another team computes."""
OPERAND_SECONDS, OPERAND_SECONDS_OF_TWO_TEAMS = 0.147e-9, 0.06e-9
"""The same for an extra operand of the size of the result."""


@dataclass(frozen=True)
class Finish:
    """The cost of an epilogue: the number of extra operands and further results as large as the result (`matrices`),
    and whether it computes an erf."""

    matrices: int
    erf: bool

    @staticmethod
    def of(op: HasEpilogue) -> Finish:
        shapes = [cast(TensorType, v.type).dims for v in op.epilogue_operands]
        rows = sum(all(d.as_int() == 1 for d in dims[:-1]) or dims[-1].as_int() == 1 for dims in shapes)
        names = {o.name for o in op.epilogue.block.ops} if op.epilogue.blocks else set[str]()
        return Finish(len(shapes) - rows + len(op.results) - 1, bool(names & {"ait.gelu", "ait.erf"}))


@dataclass(frozen=True)
class HopperTile(Tile):
    """Template arguments of `ait::gpu::HopperTile`."""

    kernel = "Hopper gemm"
    keys = ("tile_m", "tile_n", "stages", "cluster", "teams", "groups", "split")
    short_sums: ClassVar[bool] = False
    """Whether the sums of a step are kept apart from those of all steps, as of 8-bit floats."""

    m: int
    n: int
    stages: int
    cluster: int
    teams: int
    groups: int
    split: int = 1

    def cpp(self, sums: int = 1, head: int = 0) -> str:
        more = f", false, {head}" if head else ", true" if sums == 2 else ""
        more = f", {str(sums == 2).lower()}, {head}, true" if self.short_sums else more
        return f"ait::gpu::HopperTile<{', '.join(map(str, self.values()))}{more}>"

    @classmethod
    def first(cls) -> HopperTile:
        return TILES[0]

    @property
    def shared_bytes(self) -> int:
        return 2048 + self.stages * (self.m + self.n) * STAGE_K * 2 + self.staging_bytes

    @property
    def staging_bytes(self) -> int:
        """Bytes to stage partial sums from other blocks; without a split, up to two boxes of results for each warp."""
        if self.split > 1:
            return self.m * self.n * 4 // self.split * (self.split - 1)
        columns = 64 if self.n % 64 == 0 else 32
        boxes = min(2, self.results * 2 // columns)
        return boxes * 4 * self.teams * self.groups * 16 * columns * 2

    @property
    def results(self) -> int:
        """The number of results that a thread holds."""
        return self.m * self.n // (128 * self.groups)

    @property
    def held(self) -> int:
        """The number of sums that a thread holds."""
        return self.results * (2 if self.short_sums else 1)

    @property
    def registers(self) -> int:
        """Registers of a thread that computes."""
        return {1: 248, 2: 232, 3: 160}.get(self.teams * self.groups, 112)

    def problems(self) -> Mapping[str, bool]:
        return {
            "1 or 2 teams of 1 to 4 groups, 4 groups in all": self.teams in (1, 2) and self.teams * self.groups <= 4,
            "a group computes a multiple of 64 rows": self.m % (64 * self.groups) == 0,
            "at most 256 rows": self.m <= 256,
            "tile_n is a multiple of 32 up to 256": self.n % 32 == 0 and self.n <= 256,
            "the results of a thread fit in registers": self.held + 40 <= self.registers,
            "cluster is 1, 2 or 4": self.cluster in (1, 2, 4),
            "at least 2 stages": self.stages >= 2,
            "split is 1, 2, 4 or 8": self.split in (1, 2, 4, 8),
            "only blocks of one team in no other cluster split k": self.split == 1 or self.cluster == self.teams == 1,
            "a block finishes a multiple of 8 columns": self.n % (8 * self.split) == 0,
            "at most 227 KiB of shared memory": self.shared_bytes <= SHARED_LIMIT,
        }

    def misfit(self, b_contiguous_in_k: bool, sums: int = 1) -> str | None:
        """The reason why the tile does not fit a problem, None if it fits. An operand with N contiguous is copied in
        pieces of 64 columns, and a gated tile has columns of both halves of b."""
        if not b_contiguous_in_k and self.n % (64 * sums):
            return f"needs tile_n to be a multiple of {64 * sums} where b is contiguous along n"
        if sums == 2 and (self.split > 1 or self.n % 32 or self.n % (16 * self.cluster)):
            return f"is split, or tile_n no multiple of {max(32, 16 * self.cluster)}, as that of a gated product is"
        return None

    def waves(self, m: int, n: int, batches: int) -> tuple[int, int, int]:
        """The number of tiles that a multiprocessor computes in sequence, of tiles at once, and of tiles in all."""
        blocks = -(-m // (self.m * self.cluster)) * self.cluster * -(-n // self.n) * batches * self.split
        rounds = -(-blocks // (CLUSTERED.get(self.cluster * self.split, SMS) * self.resident))
        return rounds, min(self.resident, -(-blocks // SMS)), blocks

    def terms(self, m: int, n: int, k: int, batches: int, finish: Finish, target: Target) -> Terms:
        """The parts of the time of a problem; n counts columns of b. Its operands are of 2 bytes."""
        rounds, side, blocks = self.waves(m, n, batches)
        steps = -(-k // (STAGE_K * self.split))
        results = self.m * self.n
        taken = (self.m + self.n) * STAGE_K * 2
        alone = rounds * results / (self.groups * self.split) * 0.1e-9 if self.teams == 1 else 0.0
        last = results / self.groups * 0.1e-9 if self.teams == 2 else 0.0
        each = rounds * side * results * 0.1e-9
        return Terms(
            {
                "start": 1e-6,
                "round": rounds * 0.1e-6,
                "exchange": rounds * 1e-6 if self.split > 1 else 0.0,
                "exchanged": rounds * side * results * 4 * (1 - 1 / self.split) / 20e9,
                "finish": alone,
                "last finish": last,
                "erf": finish.erf * each,
                "operand": finish.matrices * each,
            },
            {
                "products": rounds * steps * side * results * STAGE_K / STEP_RATE,
                "copies": rounds * steps * side * taken / COPY_RATE,
                "step": rounds * steps * 0.1e-6,
                "latency": rounds * steps * 1e-6 / self.stages,
                "cache": blocks * steps * taken / (2 * target.bandwidth),
                "b": 2.0 * n * k * batches / target.bandwidth,
                "rest": 2.0 * m * (k + n) * batches / target.bandwidth,
            },
        )

    @property
    def resident(self) -> int:
        """Blocks that share a multiprocessor."""
        if self.teams * self.groups > 2 or self.held > 64 or self.shared_bytes > 113 * 1024:
            return 1
        return 3 if self.shared_bytes <= 75 * 1024 and self.teams * self.groups == 1 else 2

    def seconds(self, m: int, n: int, k: int, batches: int, finish: Finish) -> float:
        """Estimated seconds of a problem with such an epilogue; n counts columns of b."""
        rounds, side_by_side, _ = self.waves(m, n, batches)
        results = self.m * self.n
        steps = -(-k // (STAGE_K * self.split))
        products = side_by_side * results * STAGE_K / STEP_RATE
        copies = side_by_side * (self.m + self.n) * STAGE_K * 2 / COPY_RATE
        tile = steps * max(products, copies, STEP_SECONDS)
        if self.teams == 2:
            each = finish.erf * ERF_SECONDS_OF_TWO_TEAMS + finish.matrices * OPERAND_SECONDS_OF_TWO_TEAMS
            tile += (each + (FINISH_SECONDS_OF_TWO_TEAMS / self.groups if rounds == 1 else 0.0)) * results
        else:
            each = FINISH_SECONDS + finish.erf * ERF_SECONDS + finish.matrices * OPERAND_SECONDS
            tile += each * results / (self.groups * self.split)
        return START_SECONDS + rounds * (tile + (SPLIT_SECONDS if self.split > 1 else 0.0))


TILES = (
    HopperTile(128, 128, 5, 1, 2, 1),
    HopperTile(128, 128, 5, 1, 2, 2),
    HopperTile(128, 128, 6, 2, 2, 1),
    HopperTile(128, 128, 5, 1, 1, 2, 2),
    HopperTile(128, 192, 4, 1, 1, 2),
    HopperTile(128, 192, 4, 1, 2, 1),
    HopperTile(192, 128, 4, 1, 1, 3),
    HopperTile(192, 128, 4, 1, 2, 1),
    HopperTile(192, 128, 4, 2, 2, 1),
    HopperTile(192, 192, 3, 1, 1, 3),
    HopperTile(192, 192, 3, 2, 1, 3),
    HopperTile(128, 256, 4, 1, 1, 2),
    HopperTile(128, 256, 4, 2, 1, 2),
    HopperTile(128, 224, 4, 2, 1, 2),
    HopperTile(64, 256, 4, 1, 2, 1),
    HopperTile(192, 64, 6, 1, 1, 3),
    HopperTile(192, 64, 5, 1, 1, 3, 4),
    HopperTile(128, 96, 6, 1, 1, 2),
    HopperTile(128, 96, 6, 1, 1, 2, 4),
    HopperTile(128, 64, 8, 1, 1, 2),
    HopperTile(128, 64, 6, 1, 1, 2, 8),
    HopperTile(64, 128, 8, 1, 1, 1),
    HopperTile(64, 128, 6, 1, 1, 1, 4),
    HopperTile(64, 128, 4, 1, 1, 1, 8),
    HopperTile(64, 96, 6, 1, 1, 1),
    HopperTile(64, 96, 6, 1, 1, 1, 2),
    HopperTile(64, 64, 12, 1, 1, 1),
    HopperTile(64, 64, 8, 1, 1, 1),
    HopperTile(64, 64, 6, 1, 1, 1, 2),
    HopperTile(64, 64, 6, 1, 1, 1, 4),
    HopperTile(64, 32, 8, 1, 1, 1),
    HopperTile(64, 32, 6, 1, 1, 1, 2),
)


@dataclass(frozen=True)
class ShortSumTile(HopperTile):
    """Tiles for 8-bit floats."""

    short_sums: ClassVar[bool] = True

    @classmethod
    def first(cls) -> ShortSumTile:
        return SHORT_SUM_TILES[0]


SHORT_SUM_TILES = (
    ShortSumTile(128, 128, 5, 1, 1, 2),
    ShortSumTile(128, 128, 6, 2, 1, 2),
    ShortSumTile(128, 128, 5, 1, 1, 2, 2),
    ShortSumTile(128, 192, 4, 1, 1, 2),
    ShortSumTile(128, 192, 4, 2, 1, 2),
    ShortSumTile(128, 96, 6, 1, 1, 2),
    ShortSumTile(128, 96, 6, 1, 1, 2, 4),
    ShortSumTile(128, 64, 6, 1, 1, 2),
    ShortSumTile(128, 64, 6, 1, 1, 2, 8),
    ShortSumTile(64, 128, 5, 1, 2, 1),
    ShortSumTile(64, 128, 8, 1, 1, 1),
    ShortSumTile(64, 128, 6, 1, 1, 1, 4),
    ShortSumTile(64, 64, 8, 1, 1, 1),
    ShortSumTile(64, 64, 6, 1, 1, 1, 2),
    ShortSumTile(64, 64, 6, 1, 1, 1, 4),
    ShortSumTile(64, 32, 8, 1, 1, 1),
    ShortSumTile(64, 32, 6, 1, 1, 1, 2),
    ShortSumTile(64, 64, 6, 1, 1, 1, 8),
)


def best_tiles(
    m: int, n: int, k: int, batches: int, finish: Finish, tiles: tuple[HopperTile, ...] = TILES
) -> list[HopperTile]:
    """All tiles whose split of K leaves no part empty, best estimate first. K in elements of 2 bytes."""
    whole = (tile for tile in tiles if tile.split <= max(1, -(-k // STAGE_K)))
    return sorted(whole, key=lambda tile: tile.seconds(m, n, k, batches, finish))


def _is_one(stride: Expr) -> bool:
    return stride.as_int() == 1


def _is_zero(stride: Expr) -> bool:
    return stride.as_int() == 0


def is_aligned(x: Matrix, scope: Scope) -> bool:
    """Whether all rows of a matrix with contiguous rows or columns start on 16-byte boundaries if the first does."""
    if not (_is_one(x.row) or _is_one(x.col)):
        return False
    unit = max(1, 16 // element_bytes(x.arg.type))
    pitch = x.row if _is_one(x.col) else x.col
    return all(scope.divisible(stride, unit) for stride in (pitch, *x.batch))


class HopperGemm(ContractionKernel):
    """wgmma, bulk tensor copies, a persistent grid, for sm_90a; a tile's epilogue overlaps the next tile's products."""

    provider = "hopper"
    max_sums = 2
    one_instance = True
    takes_bytes: ClassVar[bool] = True
    """Whether operands may be integers or floats of 8 bits."""

    def takes(self, op: ContractionOp, target: Target) -> bool:
        bytes_along_k = self.takes_bytes and is_of_bytes(op) and op.layout.data[:2] == "rc"
        return (
            target.kind == "cuda"
            and target.has("wgmma", "bulk_copies")
            and (is_narrow(element_of(op)) or bytes_along_k)
            and len(op.operands) <= 16
            and scope_of(op).positive(op.split_a()[2])
        )

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if not super().matches(op, target):
            return False
        problem, scope = Problem.contiguous(op), scope_of(op)
        return all(self._steps_well(x, problem, scope) for x in problem.matrices()) and self._along_k(op, problem)

    def _along_k(self, op: ContractionOp, problem: Problem) -> bool:
        """Whether K is the contiguous dim of both factors if they have 8 bits."""
        return not is_of_bytes(op) or (_is_one(problem.a.col) and _is_one(problem.b.row))

    def _steps_well(self, x: Matrix, problem: Problem, scope: Scope) -> bool:
        """Whether factor `x` can be copied in 16-byte pieces; results and extra operands need contiguous columns, or an
        extra operand one column."""
        if x is problem.a or x is problem.b:
            return is_aligned(x, scope)
        return _is_one(x.col) or (x in problem.extras and _is_zero(x.col))

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        problem = Problem.contiguous(op, position, strides)
        return self._steps_well(problem.one_of(arg_name(op, position)), problem, scope) and self._along_k(op, problem)

    def configs(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        sizes = Problem.contiguous(op).sizes(scope_of(op))
        return [tile.config() for tile in self._tiles(op, *sizes)][:MAX_CONFIGS]

    def every_config(self, op: ContractionOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self._tiles(op, *Problem.contiguous(op).sizes(scope_of(op)))]

    def _tiles(self, op: ContractionOp, m: int, n: int, k: int, batches: int) -> list[HopperTile]:
        """The tiles that fit, the best estimate first."""
        sums, b_k = op.SUMS, _is_one(Problem.contiguous(op).b.row)
        of_type = SHORT_SUM_TILES if is_float8(element_of(op)) else TILES
        tiles = best_tiles(m, n * sums, in_halves(k, element_of(op)), batches, Finish.of(op), of_type)
        return [tile for tile in tiles if tile.misfit(b_k, sums) is None]

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        columns = n * op.SUMS
        halves = in_halves(k, element_of(op))
        streaming = 2.0 * columns * halves * batches / (STREAM_SHARE * target.bandwidth)
        best = self._tiles(op, m, n, k, batches)[0].seconds(m, columns, halves, batches, Finish.of(op))
        return max(best, START_SECONDS + streaming)

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms:
        return self.terms_of(op, target)(config)

    def terms_of(self, op: ContractionOp, target: Target) -> Callable[[Config], Terms]:
        m, n, k, batches = Problem.contiguous(op).sizes(scope_of(op))
        finish, kind = Finish.of(op), "" if op.SUMS == 1 else "gated"
        tile, halves = tile_class(op), in_halves(k, element_of(op))
        return lambda config: replace(
            tile.of(config).terms(m, n * op.SUMS, halves, batches, finish, target), kind=kind
        )

    def check(self, op: ContractionOp, config: Config, target: Target) -> None:
        _tile_of(config, Problem.contiguous(op), op)

    def emit(self, launch: Launch[ContractionOp]) -> Emission | tuple[Emission, ...]:
        return self.product(launch)

    def product(self, launch: Launch[ContractionOp]) -> Emission:
        """The launch of the product."""
        op, problem = launch.op, Problem.of(launch.op, launch.ins, launch.outs)
        tile = _tile_of(launch.config, problem, op)
        a_k, b_k = _is_one(problem.a.col), _is_one(problem.b.row)
        flags = ", ".join("true" if flag else "false" for flag in (a_k, b_k, has_aligned_rows(problem, launch.scope)))
        early = ", ".join("true" if x.arg.constant else "false" for x in (problem.a, problem.b))
        rows = sum(1 << i for i, x in enumerate(problem.extras) if _is_zero(x.row))
        vectors = rows + sum(1 << 16 + i for i, x in enumerate(problem.extras) if _is_zero(x.col))
        template = f"gemm_wgmma<{tile.cpp(op.SUMS)}, {flags}, {vectors}, {{epilogue}}>"
        return call_template(launch, "gemm_wgmma", template, f", {early}")


def tile_class(op: ContractionOp) -> type[HopperTile]:
    """The class of the tiles of a product."""
    return ShortSumTile if is_float8(element_of(op)) else HopperTile


def _tile_of(config: Config, problem: Problem, op: ContractionOp) -> HopperTile:
    """The tile of a config; `ValueError` if there is no such tile or it does not fit the problem."""
    tile = tile_class(op).of(config)
    if (misfit := tile.misfit(_is_one(problem.b.row), op.SUMS)) is not None:
        raise ValueError(f"the tile {tile.config()} {misfit}")
    return tile


def has_aligned_rows(problem: Problem, scope: Scope) -> bool:
    """Whether rows of the results and of extra operands start on 16-byte boundaries if the first does."""
    rows = (*problem.results(), *(x for x in problem.extras if not _is_zero(x.col)))
    return scope.divisible(problem.n, SPAN) and all(is_aligned(x, scope) for x in rows)


KERNELS = (HopperGemm(),)
