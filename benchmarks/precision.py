"""Networks of f32 beside PyTorch at each precision setting: exact, TF32, bf16.

    python -m benchmarks.precision                          # all rows at highest, high and medium; needs a card
    python -m benchmarks.precision product conv --settings high
    python -m benchmarks.precision --compile-only           # no card needed

PyTorch runs eagerly in a CUDA graph, with `torch.set_float32_matmul_precision` and cuDNN's TF32 as the setting says;
ours is compiled with `precision=` and replays its graph. A ratio below 1 is faster. Errors are root mean squares
against float64, over that of the result.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch import nn

import ait_mlir
from ait_mlir.driver import compile_module
from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.lowering.target import PRECISIONS
from ait_mlir.options import CompileOptions
from benchmarks import measure, record
from benchmarks.models import captured, widened


class Scores(nn.Module):
    """A batched product of two inputs."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k.transpose(-1, -2)


class Attention(nn.Module):
    """softmax(q @ k^T / sqrt(d)) @ v"""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


def _conv(channels: int, kernel: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, channels, kernel, padding=kernel // 2), nn.ReLU())


def _mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def _encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)


Row = tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]
ROWS: dict[str, Row] = {
    "product 4096": (lambda: nn.Linear(4096, 4096), ((4096, 4096),)),
    "product 16 rows": (lambda: nn.Linear(4096, 4096), ((16, 4096),)),
    "product odd": (lambda: nn.Linear(1001, 777), ((500, 1001),)),
    "scores": (Scores, ((96, 512, 64), (96, 512, 64))),
    "mlp 1024": (lambda: _mlp(1024), ((2048, 1024),)),
    "attention": (Attention, ((8, 12, 512, 64),) * 3),
    "conv 3x3": (lambda: _conv(128, 3), ((16, 128, 56, 56),)),
    "encoder 8 x 128": (_encoder, ((8, 128, 768),)),
}


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The root mean square of the errors, over that of the result."""
    return ((found.double() - exact).square().mean() / exact.square().mean()).sqrt().item()


def row(name: str, setting: str, args: argparse.Namespace) -> list[str] | None:
    """One line of the table, with the ratio in the fourth cell."""
    make, shapes = ROWS[name]
    torch.manual_seed(0)
    module = make().eval()
    inputs = [torch.randn(shape) for shape in shapes]
    began = time.perf_counter()
    if args.compile_only:
        with tempfile.NamedTemporaryFile(suffix=".ait") as file:
            imported = from_torch(module, tuple(inputs))
            compile_module(imported.module, CompileOptions("cuda", precision=setting), output=file.name)
        print(f"{name} {setting}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
        return None
    compiled = ait_mlir.compile(
        module,
        tuple(inputs),
        target="cuda",
        precision=setting,
        graph_mode=True,
        measure=args.measure,
        budget=args.tuning,
    )
    seconds = time.perf_counter() - began
    torch.set_float32_matmul_precision(setting)
    torch.backends.cudnn.allow_tf32 = setting != "highest"
    inputs = [x.cuda() for x in inputs]
    exact = copy.deepcopy(module).double().cuda()(*widened(inputs))
    peer = module.cuda()
    eager = peer(*inputs)
    ours = compiled(*inputs)
    errors = relative(ours, exact), relative(eager, exact)
    replay = captured(lambda: peer(*inputs))
    times = measure.median_seconds({"ours": lambda: compiled(*inputs), "eager": replay}, "cuda", budget=args.seconds)
    ratio = times["ours"] / times["eager"]
    cells = [name, setting, *(f"{times[who] * 1e6:.1f}" for who in ("ours", "eager")), f"{ratio:.2f}"]
    cells += [*(f"{e:.1e}" for e in errors), f"{seconds:.1f}"]
    print("  ".join(cells), flush=True)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("words", nargs="*", help="rows whose names contain one of these (default: all)")
    parser.add_argument("--settings", default=",".join(PRECISIONS), help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.3, help="of timing for each row (default: %(default)s)")
    parser.add_argument("--compile-only", action="store_true", help="do not run")
    measure.add_options(parser)
    record.add_save(parser)
    args = parser.parse_args()
    names = [n for n in ROWS if not args.words or any(w in n for w in args.words)]
    lines: list[list[str]] = []
    with torch.inference_mode():
        for setting in args.settings.split(","):
            lines += [cells for name in names if (cells := row(name, setting, args)) is not None]
    if lines:
        heads = ["row", "setting", "ours us", "eager us", "ours / eager", "error", "eager's", "compiled in s"]
        record.show(args.save, heads, lines)
        for setting in dict.fromkeys(cells[1] for cells in lines):
            ratios = [float(cells[4]) for cells in lines if cells[1] == setting]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{setting}: geometric mean {mean:.2f}, largest {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
