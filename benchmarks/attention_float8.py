"""Attention of 8-bit floats on a card of Hopper's, beside ours of f16 and PyTorch's of f16.

    python -m benchmarks.attention_float8                # BERT, ViT and rows of 2 and 16 thousand columns
    python -m benchmarks.attention_float8 --tiles bert   # each tile; shapes with these words in their rows
    python -m benchmarks.attention_float8 --compile-only # no card needed

q, k and v are f8E4M3FN with one scale, and results f16, or f8E4M3FN where the row says so. Each side runs in a CUDA
graph, in turn on sets of buffers that do not fit the cache together. PyTorch runs `scaled_dot_product_attention` on its
cuDNN backend. `limit` is the time of the exponentials, of which a multiprocessor computes 16 in a cycle, or of the
products at the peak of 8-bit floats, whichever is longer. Errors are those against float64 of the numbers that q, k and
v store, over the root mean square of the results; f16 has the same numbers.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.kernels.attention_hopper import FLOAT8_TILES, FlashTile
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model
from benchmarks import measure, record
from benchmarks.kernels import CACHE, captured, seconds
from benchmarks.shared import own_folder

EXPONENTIALS, FLOPS, CLOCK = 16, 8192, 1.755e9
"""Exponentials and operations of 8-bit floats that a multiprocessor has in a cycle, and cycles in a second."""


@dataclass(frozen=True)
class Shape:
    """An attention of a model."""

    model: str
    batch: int
    heads: int
    length: int
    size: int
    causal: bool = False
    to: str = "f16"
    tile: FlashTile | None = None
    """A tile of f8E4M3FN; None is the one that selection chooses by estimate."""

    @property
    def label(self) -> str:
        words = ["causal"] * self.causal + [f"to {self.to}"] * (self.to != "f16")
        if self.tile is not None:
            words.append("x".join(map(str, self.tile.config().values())))
        return " ".join([self.model, f"{self.batch} x {self.heads} x {self.length} x {self.size}", *words])

    def text(self, element: str) -> str:
        t = f"!ait.tensor<{self.batch} x {self.heads} x {self.length} x {self.size} x"
        tile = self.tile if element != "f16" else None
        config = "" if tile is None else ", ".join(f"{name} = {n} : i64" for name, n in tile.config().items())
        kernel = f'{{kernel = #ait.kernel<"hopper", {{{config}}}>}} ' if config else ""
        number = " result_scale 0.01" if self.to != "f16" and element != "f16" else ""
        to = self.to if number else "f16"
        return (
            f"ait.graph @g(%q: {t} {element}>, %k: {t} {element}>, %v: {t} {element}>) {{\n"
            f"  %y = ait.attention %q, %k, %v scale {self.size**-0.5!r}{' causal' * self.causal}{number} "
            f"{kernel}: {t} {to}>\n"
            f'  ait.output "y" %y : {t} {to}>\n}}'
        )

    @property
    def scores(self) -> float:
        pairs = self.length * (self.length + 1) / 2 if self.causal else self.length**2
        return float(self.batch * self.heads * pairs)

    def limit(self) -> float:
        """The least seconds on an H200."""
        units = 132 * CLOCK
        return max(self.scores / (EXPONENTIALS * units), 4 * self.scores * self.size / (FLOPS * units))


SHAPES = (
    Shape("bert", 32, 12, 384, 64),
    Shape("bert", 32, 12, 384, 64, to="f8E4M3FN"),
    Shape("bert", 32, 12, 128, 64),
    Shape("vit", 32, 12, 197, 64),
    Shape("long", 4, 16, 2048, 128),
    Shape("long", 1, 16, 16384, 128),
    Shape("long", 1, 16, 16384, 128, causal=True),
    Shape("long", 1, 16, 16384, 64),
)


def cases(every: bool) -> Iterator[Shape]:
    """Each shape on the tile that selection chooses, or on each tile, and on two with a step more in flight."""
    for shape in SHAPES:
        if not every:
            yield shape
        elif shape.to == "f16":
            tiles = FLOAT8_TILES[shape.size]
            deeper = [replace(tile, stages=3) for tile in tiles[:2]]
            yield from (replace(shape, tile=tile) for tile in (*tiles, *deeper))


def compiled(shape: Shape, element: str, workdir: Path) -> Path:
    name = f"{shape.label.replace(' ', '_')}_{element}"
    module = parse_text(context(), shape.text(element))
    options = CompileOptions("cuda", default_arch("cuda"))
    return compile_module(module, options, output=workdir / f"{name}.ait", workdir=workdir / name)


def error(result: torch.Tensor, exact: torch.Tensor) -> float:
    return float((result.double() - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt())


def row(shape: Shape, narrow: Path, wide: Path) -> list[str]:
    """Time one attention on all sides."""
    size = (shape.batch, shape.heads, shape.length, shape.size)

    def drawn() -> dict[str, torch.Tensor]:
        return {name: torch.randn(size, device="cuda").to(torch.float8_e4m3fn) for name in "qkv"}

    sets = [drawn()]
    moved = sum(x.nbytes for x in sets[0].values())
    while len(sets) * moved < CACHE and len(sets) < 24:
        sets.append(drawn())
    halves = [{name: x.half() for name, x in of.items()} for of in sets]
    launches = max(2, len(sets))
    turns = [i % len(sets) for i in range(launches)]
    times: list[float] = []
    errors: list[float] = []
    few = {name: x[:1, :1].double() for name, x in sets[0].items()}
    exact = F.scaled_dot_product_attention(*few.values(), is_causal=shape.causal)
    for path, given in ((narrow, sets), (wide, halves)):
        with Model(str(path)) as model:
            results = [model.run_with_tensors(of, sync=True)["y"] for of in given]
            first = results[0][:1, :1].double()
            errors.append(error(first if results[0].dtype == torch.float16 else first * 0.01, exact))

            def ours(i: int, model: Model = model, given: object = given, results: object = results) -> None:
                model.run_with_tensors(given[i], {"y": results[i]}, sync=False)  # type: ignore[index]

            times.append(seconds(captured([lambda i=i: ours(i) for i in turns]), launches))

    def library(of: dict[str, torch.Tensor]) -> torch.Tensor:
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
            return F.scaled_dot_product_attention(*of.values(), is_causal=shape.causal)

    times.append(seconds(captured([lambda i=i: library(halves[i]) for i in turns]), launches))
    flops = 4 * shape.scores * shape.size
    return [
        shape.label,
        *(f"{time * 1e6:.2f}" for time in times),
        f"{shape.limit() * 1e6:.2f}",
        *(f"{flops / time / 1e12:.0f}" for time in times),
        f"{times[1] / times[0]:.2f}",
        f"{times[2] / times[0]:.2f}",
        *(f"{e:.4f}" for e in errors),
    ]


HEADS = ["attention", "us", "f16 us", "PyTorch's f16 us", "limit us", "TFLOP/s", "f16's", "PyTorch's", "f16 / f8"]
HEADS += ["PyTorch / f8", "error", "f16's error"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Attention of 8-bit floats beside f16.")
    parser.add_argument("words", nargs="*", help="words of labels (default: any)")
    parser.add_argument("--tiles", action="store_true", help="each tile of the kernel")
    parser.add_argument("--compile-only", action="store_true", help="compile and stop")
    parser.add_argument("--workdir", default="build/benchmarks/attention_float8", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    wanted = [c for c in cases(args.tiles) if all(w in c.label.split() for w in args.words)]
    if not wanted:
        parser.error(f"no attention of {' '.join(args.words)}; models are bert, vit and long")
    workdir = own_folder(args.workdir)
    with ThreadPoolExecutor(8) as pool:
        sides = [list(pool.map(lambda c, e=e: compiled(c, e, workdir), wanted)) for e in ("f8E4M3FN", "f16")]
    if args.compile_only:
        return 0
    ceilings = measure.ceilings("cuda", torch.float16)
    limits = f"{ceilings.flops / 1e12:.0f} TFLOP/s in f16, {ceilings.bytes / 1e9:.0f} GB/s"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {limits}")
    print("  ".join(HEADS), flush=True)
    work = [functools.partial(row, *each) for each in zip(wanted, *sides, strict=True)]
    return record.measured(args.save, HEADS, work, limits)


if __name__ == "__main__":
    sys.exit(main())
