"""Products and attention on a CUDA device at the shapes of the models, beside cuBLASLt and cuDNN.

    python -m benchmarks.contractions                     # all; kernels as selection chooses them without measuring
    python -m benchmarks.contractions --measure bert      # by time; ops with all of these words in their rows
    python -m benchmarks.contractions --compile-only      # no card needed

A row is one op, compiled as a model of its own, and what PyTorch calls for it: `F.linear`, which is cuBLASLt with the
bias as its epilogue, or cuBLAS, and what that lacks as an op of its own; `scaled_dot_product_attention` on its cuDNN
backend. Both run in a CUDA graph, in turn on sets of buffers that do not fit the cache together. Errors are ours over
PyTorch's, both against float64.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model
from benchmarks import measure, record
from benchmarks.kernels import CACHE, DTYPES, captured, seconds
from benchmarks.shared import own_folder

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Contraction:
    """One op: its graph, the shapes of its inputs, its computation in PyTorch, and its number of operations."""

    family: str
    label: str
    dtype: str
    text: str
    shapes: list[tuple[int, ...]]
    torch: Callable[..., torch.Tensor]
    flops: float


def _tensor(shape: Sequence[int], t: str) -> str:
    return f"!ait.tensor<{' x '.join(map(str, shape))} x {t}>"


def _graph(shapes: list[tuple[int, ...]], t: str, body: list[str], result: Sequence[int]) -> str:
    arguments = ", ".join(f"%i{i}: {_tensor(s, t)}" for i, s in enumerate(shapes))
    lines = "".join(f"  {line}\n" for line in body)
    return f'ait.graph @g({arguments}) {{\n{lines}  ait.output "y" %y : {_tensor(result, t)}\n}}'


def product(model: str, t: str, m: int, n: int, k: int, after: str = "") -> Contraction:
    """x [m, k] @ w [n, k]^T; `after` it: bias, gelu of the sum with a bias, a bias and a residual, or a residual."""
    of = _tensor((m, n), t)
    steps = {
        "bias": ["add %i2"],
        "bias gelu": ["add %i2", "gelu"],
        "bias add": ["add %i2", "add %i3"],
        "add": ["add %i2"],
    }
    ops = ["gemm rcr %i0, %i1", *steps.get(after, [])]
    body: list[str] = []
    for i, op in enumerate(ops):
        name, before = "%y" if i == len(ops) - 1 else f"%v{i}", f"%v{i - 1}"
        head, _, operand = op.partition(" ")
        operands = operand if i == 0 else ", ".join([before, *([operand] if operand else [])])
        body.append(f"{name} = ait.{head} {operands} : {of}")
    extra: dict[str, list[tuple[int, ...]]] = {"": [], "bias": [(n,)], "bias gelu": [(n,)], "bias add": [(n,), (m, n)]}
    shapes = [(m, k), (n, k), *extra.get(after, [(m, n)])]

    def run(x: torch.Tensor, w: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, w, rest[0] if after.startswith("bias") else None)
        if after == "bias gelu":
            return F.gelu(y)
        return y + rest[-1] if after.endswith("add") else y

    return Contraction(
        "gemm",
        f"{model} {m} x {n} x {k} {after}".strip(),
        t,
        _graph(shapes, t, body, (m, n)),
        shapes,
        run,
        2.0 * m * n * k,
    )


def attention(
    model: str,
    t: str,
    batch: int,
    heads: int,
    length: int,
    width: int,
    causal: bool = False,
    kv: int = 0,
    groups: int = 0,
) -> Contraction:
    """softmax(q k^T / sqrt(width)) v; `groups` heads of keys and values, `kv` of them a sequence."""
    groups, kv = groups or heads, kv or length
    q, k = (batch, heads, length, width), (batch, groups, kv, width)
    word = " causal" if causal else ""
    body = [f"%y = ait.attention %i0, %i1, %i2 scale {width**-0.5!r}{word} : {_tensor(q, t)}"]

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if q.dtype == torch.float64:
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=groups != heads)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=groups != heads)

    pairs = length * kv / 2 if causal else length * kv
    label = f"{model} {batch} x {heads} x {length} x {width}" + (f" of {kv}" if kv != length else "") + word
    return Contraction(
        "attention", label, t, _graph([q, k, k], t, body, q), [q, k, k], run, 4.0 * batch * heads * pairs * width
    )


def cases() -> Iterator[Contraction]:
    """The products and attentions of BERT-base, ViT-B/16 and Llama (4,096 wide), those of one model together."""
    for t in ("f16", "bf16"):
        for model, rows in (("bert", 128), ("bert", 4096), ("vit", 197), ("vit", 6304)):
            yield product(model, t, rows, 2304, 768, "bias")
            yield product(model, t, rows, 768, 768, "bias add")
            yield product(model, t, rows, 3072, 768, "bias gelu")
            yield product(model, t, rows, 768, 3072, "bias add")
        for rows in (512, 2048):
            yield product("llama", t, rows, 12288, 4096)
            yield product("llama", t, rows, 4096, 4096, "add")
            yield product("llama", t, rows, 22016, 4096)
            yield product("llama", t, rows, 4096, 11008, "add")
        for batch in (1, 32):
            yield attention("bert", t, batch, 12, 128, 64)
            yield attention("bert", t, batch, 12, 384, 64)
            yield attention("vit", t, batch, 12, 197, 64)
        for batch in (1, 4):
            yield attention("llama", t, batch, 32, 512, 128, causal=True)
            yield attention("llama", t, batch, 32, 2048, 128, causal=True)


def compiled(case: Contraction, workdir: Path, by_time: bool) -> Path:
    name = "".join(c if c.isalnum() else "_" for c in f"{case.label}_{case.dtype}")
    folder = workdir / name
    module = parse_text(context(), case.text)
    return compile_module(
        module,
        CompileOptions("cuda", default_arch("cuda"), measure=by_time),
        output=workdir / f"{name}.ait",
        workdir=folder,
    )


def row(case: Contraction, path: Path, ceilings: measure.Ceilings) -> list[str]:
    """Check one op, then time both sides."""
    dtype = DTYPES[case.dtype]

    def buffers() -> list[torch.Tensor]:
        scale = case.shapes[1][-1] ** -0.5 if case.family == "gemm" else 1.0
        made = [torch.randn(s, dtype=torch.float32, device="cuda") for s in case.shapes]
        made[1] *= scale
        return [x.to(dtype) for x in made]

    sets = [buffers()]
    moved = sum(b.nbytes for b in sets[0])
    while len(sets) * moved < CACHE and len(sets) < 24:
        sets.append(buffers())
    with Model(str(path)) as model:
        names = [f"i{i}" for i in range(len(case.shapes))]

        def inputs(of: Tensors) -> dict[str, torch.Tensor]:
            return dict(zip(names, of, strict=True))

        results = [model.run_with_tensors(inputs(s), sync=True)["y"] for s in sets]
        accuracy = measure.accuracy(results[0], case.torch(*sets[0]), case.torch(*(x.double() for x in sets[0])))
        launches = max(4, len(sets))
        turns = [i % len(sets) for i in range(launches)]

        def ours(i: int) -> None:
            model.run_with_tensors(inputs(sets[i]), {"y": results[i]}, sync=False)

        each = seconds(captured([lambda i=i: ours(i) for i in turns]), launches)
        peer = seconds(captured([lambda i=i: case.torch(*sets[i]) for i in turns]), launches)
    floor = ceilings.floor(case.flops, moved + results[0].nbytes)
    return [
        case.family,
        case.label,
        case.dtype,
        f"{case.flops / 1e9:.2f}",
        f"{each * 1e6:.2f}",
        f"{peer * 1e6:.2f}",
        f"{case.flops / each / 1e12:.0f}",
        f"{case.flops / peer / 1e12:.0f}",
        f"{each / peer:.2f}",
        f"{floor / each:.0%}",
        f"{accuracy.max_ratio:.2f}",
        f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
    ]


HEADS = ["family", "op", "dtype", "GFLOP", "us", "library us", "TFLOP/s", "library's", "ours / library", "of floor"]
HEADS += ["max err / library's", "rmse / library's"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Products and attention beside cuBLASLt and cuDNN.")
    parser.add_argument("words", nargs="*", help="families, or words of labels (default: all)")
    parser.add_argument("--measure", action="store_true", help="choose our kernels by time")
    parser.add_argument("--compile-only", action="store_true", help="compile the ops and stop")
    parser.add_argument("--workdir", default="build/benchmarks/contractions", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    wanted = [c for c in cases() if all(w in f"{c.family} {c.label} {c.dtype}".split() for w in args.words)]
    if not wanted:
        parser.error(f"no op of {' '.join(args.words)}; families are gemm and attention")
    workdir = own_folder(args.workdir)
    with ThreadPoolExecutor(1 if args.measure else 8) as pool:
        paths = list(pool.map(lambda c: compiled(c, workdir, args.measure), wanted))
    if args.compile_only:
        return 0
    ceilings = measure.ceilings("cuda", torch.float16)
    limits = f"{ceilings.flops / 1e12:.0f} TFLOP/s, {ceilings.bytes / 1e9:.0f} GB/s"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {limits}")
    work = [functools.partial(row, case, path, ceilings) for case, path in zip(wanted, paths, strict=True)]
    return record.measured(args.save, HEADS, work, limits)


if __name__ == "__main__":
    sys.exit(main())
