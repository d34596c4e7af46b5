"""Attention beyond the plain case on a CUDA device: biases, ALiBi, soft-capping, windows, odd heads, beside PyTorch.

    python -m benchmarks.attention_scores                    # the kernel that the estimate chooses
    python -m benchmarks.attention_scores --kernel native    # the kernel for sm_80 (or hopper, split)
    python -m benchmarks.attention_scores --flex --seconds 60 alibi window
    python -m benchmarks.attention_scores --compile-only     # no card needed

The peer is `scaled_dot_product_attention` with the backend that PyTorch takes; what it has no argument for is given to
it as an additive mask that exists already. With `--flex` the peer is a compiled `flex_attention` instead, which gets
the same scores as a function. Soft-capping, which SDPA lacks, is written as products and a softmax for it. Times are of
CUDA graphs, side by side in one run; errors are ours over the peer's, both against float64.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.nn import functional as F

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model
from benchmarks import measure, record
from benchmarks.kernels import DTYPES, captured, seconds
from benchmarks.shared import own_folder

Change = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Problem:
    """Attention of q [batch, heads, rows, depth] over `cols` columns; `extras` are further inputs by shape."""

    label: str
    batch: int
    heads: int
    rows: int
    depth: int
    cols: int = 0
    groups: int = 0
    width: int = 0
    dtype: str = "f16"
    flags: str = ""
    """What stands behind `scale` in the IR."""
    extras: tuple[tuple[int, ...], ...] = ()
    clause: str = ""
    """The mask or the region; `%e0`, `%e1` are the extras."""
    mask: Callable[..., torch.Tensor] | None = None
    """The same as an additive mask, from the extras."""
    change: Change | None = None
    """What the region does to scores before the mask, where no mask says it."""
    flex: Change | None = None
    """The same for `flex_attention`: (score, batch, head, row, column, *extras)."""
    inputs: Mapping[int, Callable[[], torch.Tensor]] = field(default_factory=dict[int, Callable[[], torch.Tensor]])
    """Extras that are not random."""

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        cols, groups = self.cols or self.rows, self.groups or self.heads
        width = self.width or self.depth
        q = (self.batch, self.heads, self.rows, self.depth)
        return [q, (self.batch, groups, cols, self.depth), (self.batch, groups, cols, width), *self.extras]

    def text(self, kernel: str) -> str:
        def tensor(shape: tuple[int, ...]) -> str:
            return f"!ait.tensor<{' x '.join(map(str, shape))} x {self.dtype}>"

        names = ["q", "k", "v", *(f"e{i}" for i in range(len(self.extras)))]
        arguments = ", ".join(f"%{n}: {tensor(s)}" for n, s in zip(names, self.shapes, strict=True))
        result = tensor((*self.shapes[0][:3], self.shapes[2][3]))
        types = f"{result}, !ait.tensor<{self.batch} x {self.heads} x {self.rows} x f32>"
        sums = "log_sums" in self.flags
        mask, region = ("", self.clause) if self.clause.startswith("scores") else (self.clause, "")
        chosen = f' {{kernel = #ait.kernel<"{kernel}", {{}}>}}' if kernel else ""
        return (
            f"ait.graph @g({arguments}) {{\n"
            f"  %y{', %sums' if sums else ''} = ait.attention %q, %k, %v {mask} scale {self.depth**-0.5!r} "
            f"{self.flags} {region}{chosen} : {types if sums else result}\n"
            f'  ait.output "y" %y : {result}\n'
            + (f'  ait.output "sums" %sums : {types.split(", ")[1]}\n' if sums else "")
            + "}"
        )

    def visible(self) -> torch.Tensor | None:
        """The columns that each row sees, None for all."""
        rows, cols = self.rows, self.cols or self.rows
        words = self.flags.split()
        if not {"causal", "window"} & set(words):
            return None
        place = torch.arange(rows, device="cuda")[:, None] + (0 if "top_left" in words else cols - rows)
        column = torch.arange(cols, device="cuda")
        seen = torch.ones(rows, cols, dtype=torch.bool, device="cuda")
        if "causal" in words:
            seen &= column <= place
        if "window" in words:
            window = int(words[words.index("window") + 1])
            seen &= (column > place - window) & (column < place + window)
        return seen

    def tensors(self) -> list[torch.Tensor]:
        made = [torch.randn(s, device="cuda") for s in self.shapes]
        for at, make in self.inputs.items():
            made[3 + at] = make().cuda()
        return [x.to(DTYPES[self.dtype]) for x in made]

    def by_products(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *extras: torch.Tensor) -> torch.Tensor:
        k, v = (x.repeat_interleave(self.heads // x.shape[1], 1) for x in (k, v))
        s = q @ k.mT * self.depth**-0.5
        if self.change is not None:
            s = self.change(s, *extras)
        if self.mask is not None:
            s = s + self.mask(*extras)
        if (seen := self.visible()) is not None:
            s = s.masked_fill(~seen, float("-inf"))
        return s.softmax(-1) @ v

    def sdpa(self, tensors: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
        """PyTorch's attention, with a mask that is made before the timing."""
        q, k, v, *extras = tensors
        if self.change is not None:
            return lambda: self.by_products(*tensors)
        mask = None if self.mask is None else self.mask(*extras)
        seen = self.visible()
        square = self.rows == (self.cols or self.rows) or "top_left" in self.flags
        causal = mask is None and "window" not in self.flags and "causal" in self.flags and square
        if seen is not None and not causal:
            hidden = torch.zeros(seen.shape, device="cuda", dtype=q.dtype).masked_fill(~seen, float("-inf"))
            mask = hidden if mask is None else mask + hidden
        if mask is not None and mask.dim() == 3:
            mask = mask[None]
        grouped = k.shape[1] != q.shape[1]
        return lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)

    def flex_attention(self, tensors: list[torch.Tensor]) -> Callable[[], torch.Tensor]:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        q, k, v, *extras = tensors
        seen, flex = self.visible(), self.flex

        def score(s: torch.Tensor, b: int, h: int, i: int, j: int) -> torch.Tensor:
            return s if flex is None else flex(s, b, h, i, j, *extras)

        blocks = None
        if seen is not None:
            blocks = create_block_mask(lambda b, h, i, j: seen[i, j], None, None, *seen.shape)
        compiled = torch.compile(flex_attention, dynamic=False)
        grouped = k.shape[1] != q.shape[1]
        return lambda: compiled(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=grouped)

    def flops(self) -> float:
        seen = self.visible()
        pairs = self.rows * (self.cols or self.rows) if seen is None else int(seen.sum())
        return 2.0 * self.batch * self.heads * pairs * (self.depth + (self.width or self.depth))


def region(arguments: int, body: str) -> str:
    """A region whose last value is `%y`; `%0`, `%1` are the elements of the extras."""
    names = ", ".join(f"%e{i}" for i in range(arguments))
    elements = "".join(f", %{i}: f32" for i in range(arguments))
    return f"scores({names}) {{\n  ^bb0(%s: f32{elements}):\n{body}    ait.yield %y : f32\n  }}"


ADD = region(1, "    %y = ait.add %s, %0 : f32\n")
ADD_BOTH = region(2, "    %t = ait.add %s, %0 : f32\n    %y = ait.add %t, %1 : f32\n")
ALIBI = region(2, "    %t = ait.mul %0, %1 : f32\n    %y = ait.add %s, %t : f32\n")
CAP = region(
    0,
    "    %c = ait.constant 0.02 : f32\n    %t = ait.mul %s, %c : f32\n    %h = ait.tanh %t : f32\n"
    "    %d = ait.constant 50.0 : f32\n    %y = ait.mul %h, %d : f32\n",
)


def slopes(heads: int) -> torch.Tensor:
    return torch.tensor([2.0 ** (-8 * (i + 1) / heads) for i in range(heads)]).reshape(heads, 1, 1)


def padding(batch: int, cols: int) -> torch.Tensor:
    """0 for the first columns of each batch, -10000 for the others."""
    lengths = torch.linspace(cols // 2, cols, batch).long()
    return torch.where(torch.arange(cols) < lengths[:, None], 0.0, -10000.0).reshape(batch, 1, 1, cols)


def problems() -> Iterator[Problem]:
    """The problems: attention as networks use it, beyond the plain case."""
    for t in ("f16", "bf16"):
        yield Problem(
            "bias of each head", 8, 12, 512, 64, dtype=t, extras=((1, 12, 512, 512),), clause=ADD,
            mask=lambda e: e, flex=lambda s, b, h, i, j, e: s + e[0, h, i, j],
        )  # fmt: skip
    yield Problem(
        "bias and padding", 8, 12, 512, 64, extras=((8, 1, 1, 512), (1, 12, 512, 512)), clause=ADD_BOTH,
        mask=lambda e, f: e + f, flex=lambda s, b, h, i, j, e, f: s + e[b, 0, 0, j] + f[0, h, i, j],
        inputs={0: lambda: padding(8, 512)},
    )  # fmt: skip
    yield Problem(
        "bias of each batch", 8, 12, 512, 64, extras=((8, 12, 512, 512),), clause="mask %e0", mask=lambda e: e
    )
    yield Problem(
        "padding", 16, 16, 384, 64, extras=((16, 1, 1, 384),), clause="mask %e0", mask=lambda e: e,
        inputs={0: lambda: padding(16, 384)},
    )  # fmt: skip
    yield Problem("swin windows", 512, 6, 49, 32, extras=((6, 49, 49),), clause="mask %e0", mask=lambda e: e)
    yield Problem(
        "alibi", 2, 32, 2048, 128, extras=((32, 1, 1), (2048,)), flags="causal", clause=ALIBI,
        mask=lambda e, f: e * f, flex=lambda s, b, h, i, j, e, f: s + e[h, 0, 0] * f[j],
        inputs={0: lambda: slopes(32), 1: lambda: torch.arange(2048) - 2047.0},
    )  # fmt: skip
    yield Problem(
        "soft cap", 2, 16, 2048, 256, groups=8, flags="causal", clause=CAP, change=lambda s: 50 * torch.tanh(s / 50),
        flex=lambda s, b, h, i, j: 50 * torch.tanh(s / 50),
    )  # fmt: skip
    yield Problem("window 1024", 1, 32, 4096, 128, groups=8, flags="causal window 1024")
    for depth in (80, 96, 192, 256):
        yield Problem(f"heads of {depth}", 4, 16, 1024, depth, flags="causal")
    yield Problem("wide keys", 4, 16, 1024, 192, width=128, flags="causal")
    yield Problem("last rows", 2, 32, 512, 128, cols=2048, groups=4, flags="causal")
    yield Problem("first columns", 2, 32, 1024, 128, cols=768, flags="causal top_left")
    yield Problem("sums", 8, 12, 512, 64, flags="log_sums")


def row(problem: Problem, path: Path, flex: bool) -> list[str]:
    """Check one problem, then time both sides."""
    tensors = problem.tensors()
    names = ["q", "k", "v", *(f"e{i}" for i in range(len(problem.extras)))]
    with Model(str(path)) as model:
        inputs = dict(zip(names, tensors, strict=True))
        results = model.run_with_tensors(inputs, sync=True)
        peer = problem.flex_attention(tensors) if flex else problem.sdpa(tensors)
        accuracy = measure.accuracy(results["y"], peer(), problem.by_products(*(x.double() for x in tensors)))
        torch.cuda.empty_cache()

        def ours() -> None:
            model.run_with_tensors(inputs, results, sync=False)

        each, theirs = seconds(captured([ours] * 8), 8), seconds(captured([peer] * 8), 8)
    return [
        problem.label,
        problem.dtype,
        f"{each * 1e6:.1f}",
        f"{theirs * 1e6:.1f}",
        f"{problem.flops() / each / 1e12:.0f}",
        f"{each / theirs:.2f}",
        f"{accuracy.max_ratio:.2f}",
        f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
    ]


HEADS = ["scores", "dtype", "us", "peer us", "TFLOP/s", "ours / peer", "max err / peer's", "rmse / peer's"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Attention beyond the plain case, beside PyTorch.")
    parser.add_argument("words", nargs="*", help="words of labels (default: all)")
    parser.add_argument("--kernel", default="", help="hopper, native or split (default: by estimate)")
    parser.add_argument("--flex", action="store_true", help="compare with a compiled flex_attention")
    parser.add_argument("--seconds", type=float, default=600, help="start no row after so long (default: %(default)s)")
    parser.add_argument("--compile-only", action="store_true", help="compile the ops and stop")
    parser.add_argument("--workdir", default="build/benchmarks/attention_scores", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    start = time.monotonic()
    wanted = [p for p in problems() if not args.words or set(args.words) & set(p.label.split())]
    if args.flex:
        wanted = [p for p in wanted if p.flex is not None or not (p.mask or p.change)]
    if not wanted:
        parser.error(f"no problem of {' '.join(args.words)}")
    workdir = own_folder(args.workdir)

    def compiled(problem: Problem) -> Path:
        name = "_".join([*problem.label.split(), problem.dtype, args.kernel or "estimate"])
        module = parse_text(context(), problem.text(args.kernel))
        return compile_module(
            module, CompileOptions("cuda", default_arch("cuda")), output=workdir / f"{name}.ait", workdir=workdir / name
        )

    paths = [compiled(wanted[0])]  # by itself: passes and kernels are loaded once
    with ThreadPoolExecutor(8) as pool:
        paths += pool.map(compiled, wanted[1:])
    if args.compile_only:
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, kernel: {args.kernel or 'by estimate'}")
    rows: list[list[str]] = []
    with torch.inference_mode():
        for problem, path in zip(wanted, paths, strict=True):
            if time.monotonic() - start > args.seconds:
                print(f"stopped before {problem.label}: {args.seconds} s are over")
                break
            rows.append(row(problem, path, args.flex))
            print("  ".join(rows[-1]), flush=True)
            torch.cuda.empty_cache()
    record.show(args.save, HEADS, rows)
    return 1 if any("FAILED" in r[-1] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
