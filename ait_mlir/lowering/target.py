"""The targets of code generation and their capabilities: one row for each architecture.

A kernel asks `target.has("wgmma")` and never compares names of architectures. Estimates use the numbers of the row. A
CUDA architecture without a row is treated as the nearest older one. An AMD architecture without a row is refused: the
kernels are written for waves of 64 lanes, and on a card with waves of 32 they would compute wrong results.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal, get_args

from ait_mlir.errors import ToolchainError

TargetKind = Literal["cpu", "cuda", "rocm"]
KINDS: tuple[TargetKind, ...] = get_args(TargetKind)

DEFAULT_ARCH: dict[TargetKind, str] = {"cpu": "native", "cuda": "sm_90a", "rocm": "gfx90a"}
"""The architecture of each kind if the user names none and this machine has no card."""

Precision = Literal["highest", "high", "medium"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""How products of f32 may be computed, named as `torch.set_float32_matmul_precision` names it: exactly in f32; with
operands rounded to TF32 (10 bits of mantissa); with operands rounded to bf16 (7 bits). Sums are f32 always."""


def precision_problem(name: object) -> str | None:
    """The error if this is not the name of a precision."""
    if name in PRECISIONS:
        return None
    return f'precision is {name!r}, expected "highest" (exact f32), "high" (TF32) or "medium" (bf16)'


Capability = Literal["mma", "float8", "clusters", "bulk_copies", "wgmma", "mfma", "mfma_bytes", "stored_panels"]
"""Instructions that kernels need: `mma.sync` of f16 and bf16; of floats of 8 bits; clusters of blocks that read each
other's shared memory; copies by the bulk copy engine (TMA); `wgmma`; AMD's matrix cores, bf16 with four elements a lane
among them; of bytes; kernels of convolutions of bytes, and of products of any number of rows with
weights in few bits, that are faster than those of floats."""


@dataclass(frozen=True)
class Architecture:
    """The properties of one architecture. The numbers are for its largest card; estimates use them."""

    kind: TargetKind
    multiprocessors: int
    """Multiprocessors, or compute units of AMD cards."""
    shared_bytes: int
    """Shared memory that one block may have."""
    l2_bytes: int
    bandwidth: float
    """Bytes of memory traffic per second that a good kernel reaches."""
    flops: float
    """Peak operations per second on f16, dense."""
    launch_seconds: float
    """Seconds of one launch in addition to its work."""
    argument_bytes: int
    """The most bytes of arguments of one launch. CUDA 12.1 accepts 32,764 bytes since sm_70; HIP accepts 4 KiB."""
    capabilities: frozenset[Capability] = frozenset()


def _row(kind: TargetKind, *numbers: float, can: tuple[Capability, ...] = ()) -> Architecture:
    units, shared, l2, bandwidth, flops = numbers
    launch = 2e-6 if kind == "cpu" else 1.5e-6
    arguments = 4096 if kind == "rocm" else 32_764
    return Architecture(kind, int(units), int(shared), int(l2), bandwidth, flops, launch, arguments, frozenset(can))


KiB, MiB = 1 << 10, 1 << 20
_SINCE_90: tuple[Capability, ...] = ("mma", "float8", "clusters", "bulk_copies")

ARCHITECTURES: dict[str, Architecture] = {
    #                    units       shared       l2  bytes/s    flop/s
    "native": _row("cpu", 1, 32 * KiB, 32 * MiB, 20e9, 80e9, can=("stored_panels",)),
    "sm_80": _row("cuda", 108, 163 * KiB, 40 * MiB, 1.5e12, 312e12, can=("mma",)),
    "sm_86": _row("cuda", 84, 99 * KiB, 6 * MiB, 1.5e12, 155e12, can=("mma",)),
    "sm_89": _row("cuda", 142, 99 * KiB, 96 * MiB, 1.5e12, 362e12, can=("mma", "float8")),
    "sm_90": _row("cuda", 132, 227 * KiB, 50 * MiB, 4.2e12, 989e12, can=_SINCE_90),
    "sm_90a": _row("cuda", 132, 227 * KiB, 50 * MiB, 4.2e12, 989e12, can=(*_SINCE_90, "wgmma")),
    "sm_100": _row("cuda", 148, 227 * KiB, 126 * MiB, 4.2e12, 2250e12, can=_SINCE_90),
    "sm_120": _row("cuda", 170, 99 * KiB, 96 * MiB, 1.5e12, 419e12, can=_SINCE_90),
    "gfx906": _row("rocm", 60, 64 * KiB, 4 * MiB, 0.8e12, 26e12),
    "gfx908": _row("rocm", 120, 64 * KiB, 8 * MiB, 1e12, 46e12),
    "gfx90a": _row("rocm", 110, 64 * KiB, 8 * MiB, 1.3e12, 191e12, can=("mfma", "mfma_bytes")),
    "gfx942": _row("rocm", 304, 64 * KiB, 256 * MiB, 4e12, 1307e12, can=("mfma",)),
}
OLDEST_CUDA = 50
"""The number of the oldest CUDA architecture that nvcc 12 knows."""
HOPPER = ARCHITECTURES["sm_90a"]
"""The card whose times the estimates of the CUDA kernels are fitted to (H200)."""


@functools.cache
def architecture(kind: TargetKind, arch: str) -> Architecture:
    """The row of an architecture; for a CUDA architecture without a row, the row of the nearest older architecture.

    Raises `ToolchainError` for an AMD architecture without a row.
    """
    if (found := ARCHITECTURES.get(arch)) is not None and found.kind == kind:
        return found
    if kind == "cuda" and (number := _number(arch)) is not None:
        rows = {n: name for name in ARCHITECTURES if (n := _number(name)) is not None and name == f"sm_{n}"}
        return ARCHITECTURES[rows[max((n for n in rows if n <= number), default=min(rows))]]
    if (problem := architecture_problem(kind, arch)) is not None:
        raise ToolchainError(problem)
    return ARCHITECTURES["native" if kind == "cpu" else "sm_80"]


def architectures(kind: TargetKind) -> tuple[str, ...]:
    """The architectures of a kind that have a row."""
    return tuple(name for name, row in ARCHITECTURES.items() if row.kind == kind)


def architecture_problem(kind: TargetKind, arch: str) -> str | None:
    """The error if the kernels would compute wrong results on this architecture, or it is unknown; else None."""
    if kind == "cuda" and (_number(arch) or 0) < OLDEST_CUDA:
        return f"architecture {arch!r} of target cuda is not supported; expected one like 'sm_90a'"
    if kind != "rocm" or arch in architectures(kind):
        return None
    supported = f"expected one of {', '.join(architectures(kind))}"
    if re.fullmatch(r"gfx1\d[0-9a-f]{2}", arch):
        return (
            f"architecture {arch} of target rocm is not supported: its waves have 32 lanes, the kernels need 64; "
            f"{supported}"
        )
    return f"architecture {arch!r} of target rocm is not supported; {supported}"


def _number(arch: str) -> int | None:
    """The number of a CUDA architecture, 90 for `sm_90a`; None for other text."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    return None if found is None else int(found[1])


@dataclass(frozen=True)
class Target:
    """The target of code generation: `cpu` with `native`, `cuda` with `sm_90a`, `rocm` with `gfx90a`."""

    kind: TargetKind
    arch: str
    precision: Precision = "highest"
    """The precision of products, convolutions and attention of f32."""
    deterministic: bool = True
    """Whether each run must give the same bits. Otherwise kernels may add floats in any order, with atomics."""
    peer_memory: bool = True
    """Whether the cards of ranks may write into each other's memory, for small all-reduces."""

    @property
    def is_gpu(self) -> bool:
        return self.kind != "cpu"

    @property
    def row(self) -> Architecture:
        """The properties of the architecture."""
        return architecture(self.kind, self.arch)

    def has(self, *capabilities: Capability) -> bool:
        """Whether the architecture has all of these."""
        return self.row.capabilities.issuperset(capabilities)

    @property
    def multiprocessors(self) -> int:
        return self.row.multiprocessors

    @property
    def shared_bytes(self) -> int:
        """Shared memory that one block may have."""
        return self.row.shared_bytes

    @property
    def bandwidth(self) -> float:
        """Bytes of memory traffic per second that a good kernel reaches, for estimates."""
        return self.row.bandwidth

    @property
    def launch_seconds(self) -> float:
        """Seconds of one launch in addition to its work, for estimates."""
        return self.row.launch_seconds

    @property
    def argument_bytes(self) -> int:
        """The most bytes of arguments of one launch."""
        return self.row.argument_bytes
