"""Group norm and silu with the channels last, at the sizes of Stable Diffusion's UNet: one launch beside two and three.

    python -m benchmarks.group_norms                   # each way in which blocks may share one launch or two, too
    python -m benchmarks.group_norms --configs 1       # the first guess alone
    python -m benchmarks.group_norms --compile-only    # no card needed

Times as of `benchmarks/kernels.py`: launches in a CUDA graph, in turn on sets of buffers that do not fit the cache
together (`--hot`: on one set, as behind a convolution). "of copy" is the time of a copy of the input at the bandwidth
of a large copy, over ours. PyTorch's time is that of eager's `silu(group_norm(x))` on a channels-last tensor.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch.nn import functional as F

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target, kernel_of
from ait_mlir.lowering.toolchain import default_arch
from benchmarks import kernels, measure, record
from benchmarks.kernel_cases import Measured
from benchmarks.shared import own_folder
from tests.kernels.harness import Case, Library, sources_of
from tests.kernels.library_gemm import on_kernel

SIZES = (
    *((64, channels) for channels in (320, 640, 960)),
    *((32, channels) for channels in (320, 640, 1280, 1920)),
    *((16, channels) for channels in (1280, 2560)),
    *((8, channels) for channels in (1280, 2560)),
)
"""Height and width, and channels: 32 groups each."""
BATCH = 2
BODY = "epilogue() {\n  ^bb0(%0: f32):\n    %1 = ait.silu %0 : f32\n    ait.yield %1 : f32\n  }"


class InParts(Library):
    """A translation unit for each case, so that they compile side by side."""

    def __init__(self, cases: Sequence[Case], workdir: Path, target: Target) -> None:
        self.target = target
        self.index = {id(case): i for i, case in enumerate(cases)}
        self.lib = ctypes.CDLL(str(build_library(sources_of(cases, target, 1), target, workdir)))


def torch_function(x: torch.Tensor, g: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """The same in PyTorch, on a view [N, C, H, W] of channels-last tensors."""
    return F.silu(F.group_norm(x.permute(0, 3, 1, 2), 32, g, h, 1e-5)).permute(0, 2, 3, 1)


def measured(side: int, channels: int, target: Target, configs: int) -> Iterator[Measured]:
    """The times of one size: in three launches, then in one and in two launches, with each division of the work into
    blocks.
    """
    shape, row = f"n x {side} x {side} x {channels} x f16", f"{channels} x f16"
    text = (
        f"ait.graph @g(%x: !ait.tensor<{shape}>, %g: !ait.tensor<{row}>, %h: !ait.tensor<{row}>) "
        f"dims {{n = 1 to 64 hints [{BATCH}]}} {{\n"
        f"  %y = ait.group_norm %x scale %g bias %h dim 3 groups 32 eps 1e-05 {BODY} : !ait.tensor<{shape}>\n"
        f'  ait.output "y" %y : !ait.tensor<{shape}>\n}}'
    )
    case = Case(text)
    ways: list[tuple[str, dict[str, int]]] = [("native", {})]
    for provider in ("cluster", "split"):
        ways += [(provider, c) for c in kernel_of(provider, case.op, target).configs(case.op, target)[:configs]]
    for provider, config in ways:
        label = " ".join([provider, *(f"{key} {value}" for key, value in config.items())])
        chosen = on_kernel(case, provider, config, constants=(1, 2))
        yield Measured(f"{side} x {side} x {channels}", label, chosen, {"n": BATCH}, torch_function, "f16")


def main() -> int:
    parser = argparse.ArgumentParser(description="Group norm and silu: one launch beside three.")
    parser.add_argument("--compile-only", action="store_true", help="compile the kernels and stop")
    parser.add_argument("--configs", type=int, default=3, help="ways to share one launch or two (default: %(default)s)")
    parser.add_argument("--hot", action="store_true", help="one set of buffers, which stays in the cache")
    parser.add_argument("--workdir", default="build/benchmarks/group_norms", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    target = Target("cuda", default_arch("cuda"))
    cases = [m for size in SIZES for m in measured(*size, target, args.configs)]
    library = InParts([m.case for m in cases], own_folder(args.workdir), target)
    if args.compile_only:
        return 0
    if args.hot:
        kernels.CACHE = 0
    bandwidth = measure.ceilings("cuda", torch.float16).bytes
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {bandwidth / 1e9:.0f} GB/s", flush=True)
    rows: list[list[str]] = []
    with torch.inference_mode():
        for m in cases:
            rows.append(kernels.row(m, library, bandwidth))
            torch.cuda.empty_cache()
    record.show(args.save, kernels.HEADS, rows, limits=f"copy {bandwidth / 1e9:.0f} GB/s")
    return 1 if any("FAILED" in r[-1] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
