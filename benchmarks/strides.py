"""Tensors with strides: a model that declares them, a model that copies them, and PyTorch, on the same tensors.

    python -m benchmarks.strides                     # on a CUDA device, replays of CUDA graphs in turns
    python -m benchmarks.strides --device cpu --dtype f32

The rows: a product on a third of the columns of a matrix; a convolution in the order N, C, H, W on images that lie
channels last, to a result that lies so; a product to a result that lies columns first; and a sum of two transposed
matrices. Kernels are chosen by estimate.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

from ait_mlir.runtime import Model
from benchmarks import measure, record
from benchmarks.artifacts import compile_text
from benchmarks.models import DTYPES, captured

ROWS, WIDTH, IMAGES, CHANNELS, SIZE = 4096, 1024, 32, 64, 56

PART = f"""ait.graph @part(%x: !ait.tensor<{ROWS} x {WIDTH} x T> strides [{3 * WIDTH}, 1]) {{
  %w = ait.param "w" : !ait.tensor<{WIDTH} x {WIDTH} x T>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<{ROWS} x {WIDTH} x T>
  ait.output "y" %0 : !ait.tensor<{ROWS} x {WIDTH} x T>
}}
"""
_PLANE = CHANNELS * SIZE * SIZE
_LAST = f"strides [{_PLANE}, 1, {CHANNELS * SIZE}, {CHANNELS}]"
CONV = f"""ait.graph @conv(%x: !ait.tensor<{IMAGES} x {CHANNELS} x {SIZE} x {SIZE} x T> {_LAST}) {{
  %w = ait.param "w" : !ait.tensor<{CHANNELS} x 3 x 3 x {CHANNELS} x T>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<{IMAGES} x {SIZE} x {SIZE} x {CHANNELS} x T>
  %1 = ait.conv %0, %w pad [1, 1] : !ait.tensor<{IMAGES} x {SIZE} x {SIZE} x {CHANNELS} x T>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<{IMAGES} x {CHANNELS} x {SIZE} x {SIZE} x T>
  ait.output "y" %2 {_LAST} : !ait.tensor<{IMAGES} x {CHANNELS} x {SIZE} x {SIZE} x T>
}}
"""
TURNED = f"""ait.graph @turned(%x: !ait.tensor<{ROWS} x {WIDTH} x T>) {{
  %w = ait.param "w" : !ait.tensor<{WIDTH} x {WIDTH} x T>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<{ROWS} x {WIDTH} x T>
  %1 = ait.permute %0 [1, 0] : !ait.tensor<{WIDTH} x {ROWS} x T>
  ait.output "y" %1 strides [1, {WIDTH}] : !ait.tensor<{WIDTH} x {ROWS} x T>
}}
"""
SUM = f"""ait.graph @sum(%x: !ait.tensor<{WIDTH} x {ROWS} x T> strides [1, {WIDTH}], \
%z: !ait.tensor<{WIDTH} x {ROWS} x T> strides [1, {WIDTH}]) {{
  %0 = ait.add %x, %z : !ait.tensor<{WIDTH} x {ROWS} x T>
  ait.output "y" %0 strides [1, {WIDTH}] : !ait.tensor<{WIDTH} x {ROWS} x T>
}}
"""


New = Callable[..., torch.Tensor]
"""Makes a random tensor of some sizes."""


@dataclass(frozen=True)
class Case:
    """A graph that declares strides, the tensors of a run, and the same in PyTorch."""

    name: str
    text: str
    tensors: Callable[[New], tuple[list[torch.Tensor], list[torch.Tensor]]]
    """Inputs and weights, from a function that makes random ones."""
    eager: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _images(new: New) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    x = new(IMAGES, CHANNELS, SIZE, SIZE).to(memory_format=torch.channels_last)
    return [x], [new(CHANNELS, 3, 3, CHANNELS)]


CASES = (
    Case("product on a part", PART, lambda new: ([new(ROWS, 3 * WIDTH)[:, :WIDTH]], [new(WIDTH, WIDTH)]), F.linear),
    Case("convolution", CONV, _images, lambda x, w: F.conv2d(x, w.permute(0, 3, 1, 2), padding=1)),
    Case(
        "turned product",
        TURNED,
        lambda new: ([new(ROWS, WIDTH)], [new(WIDTH, WIDTH)]),
        lambda x, w: F.linear(x, w).t(),
    ),
    Case("sum", SUM, lambda new: ([new(ROWS, WIDTH).t(), new(ROWS, WIDTH).t()], []), torch.add),
)


def without_strides(text: str) -> str:
    """The same graph, row-major."""
    return re.sub(r" strides \[[^]]*\]", "", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", choices=("f16", "bf16", "f32"), default="f16", help="default: %(default)s")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--workdir", type=Path, default=Path("build/benchmarks/strides"), help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args(argv)
    args.workdir.mkdir(parents=True, exist_ok=True)
    on_gpu = args.device == "cuda"

    def new(*shape: int) -> torch.Tensor:
        return (torch.randn(*shape, device=args.device) / 8).to(DTYPES[args.dtype])

    rows: list[list[str]] = []
    for case in CASES:
        torch.manual_seed(0)
        inputs, weights = case.tensors(new)
        expected = case.eager(*inputs, *weights)

        def eager(c: Case = case, i: list[torch.Tensor] = inputs, w: list[torch.Tensor] = weights) -> torch.Tensor:
            return c.eager(*i, *w)

        runs: dict[str, measure.Run] = {"PyTorch": captured(eager) if on_gpu else eager}
        copies: dict[str, int] = {}
        for way, text in (("declared", case.text), ("copied", without_strides(case.text))):
            text = text.replace(" x T>", f" x {args.dtype}>")
            path = compile_text(text, args.workdir / f"{case.name.replace(' ', '_')}_{way}.ait", args.device)
            model = Model(str(path))
            if weights:
                model.set_constant("w", weights[0])
            outputs = [torch.empty_like(expected)]  # in the order of PyTorch's result
            model.run_with_tensors(inputs, outputs)
            torch.testing.assert_close(outputs[0], expected, rtol=2e-2, atol=2e-2)
            copies[way] = model.stats()["copies"]
            runs[way] = lambda m=model, i=inputs, o=outputs: m.run_with_tensors(i, o, sync=False, graph_mode=on_gpu)
        with measure.alone(args.device), torch.no_grad():
            seconds = measure.median_seconds(runs, args.device, args.budget, warmup=4)
        ours = seconds["declared"]
        rows.append(
            [
                case.name,
                *(text for way in ("declared", "copied") for text in (f"{seconds[way] * 1e6:.1f}", str(copies[way]))),
                f"{seconds['PyTorch'] * 1e6:.1f}",
                f"{ours / seconds['copied']:.2f}",
                f"{ours / seconds['PyTorch']:.2f}",
            ]
        )
        print("  ".join(rows[-1]), flush=True)
    heads = ["op", "declared us", "copies", "copied us", "its copies", "PyTorch us", "declared / copied", "/ PyTorch"]
    record.show(args.save, heads, rows, args.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
