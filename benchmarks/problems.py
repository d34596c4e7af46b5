"""Random problems for kernels: products, batched products, convolutions, attention, reductions and rows of all sizes.

A problem is a family, an element type and sizes. Sizes are spread evenly over the logarithm of their range, so small
ones are as frequent as large ones. The same seed gives the same problems.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.tasks import Task, make_task

Sizes = dict[str, int]

MOST_FLOPS, MOST_BYTES = 1e12, 5e8
"""Of a problem: larger ones take milliseconds, and say no more than smaller ones."""


@dataclass(frozen=True)
class Problem:
    """One op with random operands."""

    family: str
    dtype: str
    sizes: tuple[tuple[str, int], ...]

    @staticmethod
    def of(family: str, dtype: str, sizes: Mapping[str, int]) -> Problem:
        return Problem(family, dtype, tuple(sizes.items()))

    @property
    def text(self) -> str:
        """As JSON, always the same for equal problems."""
        return json.dumps([self.family, self.dtype, dict(self.sizes)], separators=(",", ":"))

    @staticmethod
    def read(text: str) -> Problem:
        family, dtype, sizes = json.loads(text)
        if family not in FAMILIES:
            raise ValueError(f"{family!r} is no family of problems; known are {', '.join(FAMILIES)}")
        return Problem.of(family, dtype, sizes)

    @property
    def title(self) -> str:
        return f"{self.family} {self.dtype} " + " ".join(f"{k}={v}" for k, v in self.sizes)

    def task(self) -> Task:
        """The task of choosing a kernel for it."""
        graph = FAMILIES[self.family].graph(self.dtype, dict(self.sizes))
        (found,) = (op for op in parse_text(context(), graph).ops if isinstance(op, GraphOp))
        (op,) = (op for op in found.block.ops if needs_kernel(op))
        return make_task(op)


@dataclass(frozen=True)
class Family:
    """Problems of one kind: what their graph is, how sizes are drawn, which element types they have, and how many
    there are among a hundred."""

    graph: Callable[[str, Sizes], str]
    draw: Callable[[random.Random], Sizes]
    dtypes: tuple[str, ...]
    share: int
    all_candidates: bool = False
    """Whether all tiles are timed; otherwise few of each provider, so that fewer are compiled."""
    cuts: bool = False
    """Whether the op is timed as several launches, too."""
    libraries: int = 0
    """How many plans are timed of a library that is never chosen by estimate."""


# ** sizes **


def spread(rng: random.Random, low: int, high: int, step: int = 1) -> int:
    """A multiple of `step` between two numbers; one as likely to be of any magnitude as of any other."""
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return max(step, round(value / step) * step)


def product_sizes(rng: random.Random, low: int = 32, high: int = 28_672, step: int = 8, rows: int = 16_384) -> Sizes:
    while True:
        m = spread(rng, 1, rows) if rng.random() < 0.5 else 1 << rng.randrange(0, rows.bit_length())
        n, k = (spread(rng, low, high, 64 if rng.random() < 0.6 and step == 8 else step) for _ in range(2))
        if 2.0 * m * n * k <= MOST_FLOPS and 2 * (m * k + n * k + m * n) <= MOST_BYTES:
            return {"m": m, "n": n, "k": k}


def odd_sizes(rng: random.Random) -> Sizes:
    while True:
        sizes = product_sizes(rng, high=8192, step=1, rows=4096)
        if sizes["n"] % 8 or sizes["k"] % 8:
            return sizes


def batched_sizes(rng: random.Random) -> Sizes:
    while True:
        b = spread(rng, 2, 512)
        m, n, k = spread(rng, 1, 2048), spread(rng, 16, 2048, 8), spread(rng, 16, 2048, 8)
        if 2.0 * b * m * n * k <= MOST_FLOPS and 2 * b * (m * k + n * k + m * n) <= MOST_BYTES:
            return {"b": b, "m": m, "n": n, "k": k}


def attention_sizes(rng: random.Random, widths: Sequence[int] = (64, 128)) -> Sizes:
    while True:
        b, heads, width = spread(rng, 1, 64), rng.choice((4, 8, 12, 16, 32)), rng.choice(widths)
        group = rng.choice((1, 1, 4))
        cols = spread(rng, 16, 8192)
        rows = rng.choice((1, cols, cols, cols, spread(rng, 1, 16)))
        if 4.0 * b * heads * rows * cols * width <= MOST_FLOPS and 4 * b * heads * (rows + cols) * width <= MOST_BYTES:
            return {"b": b, "heads": heads, "group": group, "rows": min(rows, cols), "cols": cols, "width": width}


def conv_sizes(rng: random.Random, depthwise: bool = False) -> Sizes:
    while True:
        batch, size, taps = (
            spread(rng, 1, 64),
            spread(rng, 7, 112),
            rng.choice((1, 3, 3, 5, 7) if depthwise else (1, 3, 3)),
        )
        c, o = spread(rng, 16, 1024, 8), spread(rng, 16, 1024, 8)
        o = c if depthwise else o
        flops = 2.0 * batch * size * size * taps * taps * o * (1 if depthwise else c)
        if flops <= MOST_FLOPS and 2 * batch * size * size * (c + o) <= MOST_BYTES:
            return {"b": batch, "size": size, "c": c, "o": o, "taps": taps, "stride": rng.choice((1, 1, 2))}


def grouped_conv_sizes(rng: random.Random) -> Sizes:
    """Groups of 4 to 64 channels."""
    while True:
        batch, size, groups = spread(rng, 1, 64), spread(rng, 7, 112), rng.choice((2, 4, 8, 16, 32, 64))
        c, o = (4 * groups * rng.choice((1, 2, 4, 8, 16)) for _ in range(2))
        if rng.random() < 0.7:
            o = c
        if max(c, o) <= 2048 and 2 * batch * size * size * (c + o) <= MOST_BYTES:
            return {
                "b": batch,
                "size": size,
                "c": c,
                "o": o,
                "taps": 3,
                "stride": rng.choice((1, 1, 2)),
                "groups": groups,
            }


def row_sizes(rng: random.Random) -> Sizes:
    while True:
        rows, cols = spread(rng, 1, 65_536), spread(rng, 32, 65_536, 8)
        if rows * cols <= 1 << 28:
            return {"rows": rows, "cols": cols}


def norm_sizes(rng: random.Random) -> Sizes:
    return {"rows": spread(rng, 1, 32_768), "cols": rng.choice((384, 768, 1024, 4096))}


# ** graphs **

_ADD = "%2 = ait.add %acc, %1 : f32"
EPILOGUES = {
    "": ("", ""),
    "bias": (
        '  %v = ait.param "v" : !ait.tensor<{n} x {t}>\n',
        f" epilogue(%v) {{\n  ^bb0(%acc: f32, %1: f32):\n    {_ADD}\n    ait.yield %2 : f32\n  }}",
    ),
    "gelu": (
        '  %v = ait.param "v" : !ait.tensor<{n} x {t}>\n',
        f" epilogue(%v) {{\n  ^bb0(%acc: f32, %1: f32):\n    {_ADD}\n    %3 = ait.gelu %2 : f32\n"
        "    ait.yield %3 : f32\n  }",
    ),
    "residual": (
        '  %v = ait.param "v" : !ait.tensor<{n} x {t}>\n',
        f" epilogue(%v, %r) {{\n  ^bb0(%acc: f32, %1: f32, %r1: f32):\n    {_ADD}\n    %3 = ait.add %2, %r1 : f32\n"
        "    ait.yield %3 : f32\n  }",
    ),
}


def gemm(epilogue: str, layout: str = "rcr") -> Callable[[str, Sizes], str]:
    """x [m, k] times a weight."""

    def graph(t: str, s: Sizes) -> str:
        param, region = EPILOGUES[epilogue]
        weight = f"{s['n']} x {s['k']}" if layout == "rcr" else f"{s['k']} x {s['n']}"
        residual = f", %r: !ait.tensor<{s['m']} x {s['n']} x {t}>" if epilogue == "residual" else ""
        result = f"!ait.tensor<{s['m']} x {s['n']} x {t}>"
        return (
            f"ait.graph @g(%x: !ait.tensor<{s['m']} x {s['k']} x {t}>{residual}) {{\n"
            f'  %w = ait.param "w" : !ait.tensor<{weight} x {t}>\n{param.format(n=s["n"], t=t)}'
            f'  %0 = ait.gemm {layout} %x, %w{region} : {result}\n  ait.output "y" %0 : {result}\n}}\n'
        )

    return graph


def gated(t: str, s: Sizes) -> str:
    result = f"!ait.tensor<{s['m']} x {s['n']} x {t}>"
    return (
        f"ait.graph @g(%x: !ait.tensor<{s['m']} x {s['k']} x {t}>) {{\n"
        f'  %w = ait.param "w" : !ait.tensor<{2 * s["n"]} x {s["k"]} x {t}>\n'
        "  %0 = ait.gated_gemm rcr %x, %w epilogue() {\n  ^bb0(%g: f32, %u: f32):\n    %1 = ait.silu %g : f32\n"
        f'    %2 = ait.mul %1, %u : f32\n    ait.yield %2 : f32\n  }} : {result}\n  ait.output "y" %0 : {result}\n}}\n'
    )


def bmm(t: str, s: Sizes) -> str:
    result = f"!ait.tensor<{s['b']} x {s['m']} x {s['n']} x {t}>"
    return (
        f"ait.graph @g(%x: !ait.tensor<{s['b']} x {s['m']} x {s['k']} x {t}>, "
        f"%z: !ait.tensor<{s['b']} x {s['n']} x {s['k']} x {t}>) {{\n"
        f'  %0 = ait.bmm rcr %x, %z : {result}\n  ait.output "y" %0 : {result}\n}}\n'
    )


def attention(t: str, s: Sizes, causal: bool = False) -> str:
    q = f"!ait.tensor<{s['b']} x {s['heads']} x {s['rows']} x {s['width']} x {t}>"
    k = f"!ait.tensor<{s['b']} x {s['heads'] // s['group']} x {s['cols']} x {s['width']} x {t}>"
    scale, flag = s["width"] ** -0.5, " causal" if causal else ""
    return (
        f"ait.graph @g(%q: {q}, %k: {k}, %v: {k}) {{\n"
        f'  %0 = ait.attention %q, %k, %v scale {scale:.6f}{flag} : {q}\n  ait.output "y" %0 : {q}\n}}\n'
    )


def causal_attention(t: str, s: Sizes) -> str:
    return attention(t, s, causal=True)


def conv(t: str, s: Sizes, depthwise: bool = False) -> str:
    places = (s["size"] + 2 * (s["taps"] // 2) - s["taps"]) // s["stride"] + 1
    result = f"!ait.tensor<{s['b']} x {places} x {places} x {s['o']} x {t}>"
    step, pad = (f" {name} [{n}, {n}]" for name, n in (("stride", s["stride"]), ("pad", s["taps"] // 2)))
    flags = (step if s["stride"] > 1 else "") + (pad if s["taps"] > 1 else "")
    count = s["c"] if depthwise else s.get("groups", 1)
    weight = f"!ait.tensor<{s['o']} x {s['taps']} x {s['taps']} x {s['c'] // count} x {t}>"
    param, region = EPILOGUES["bias"]
    groups = f" groups {count}" if count > 1 else ""
    return (
        f"ait.graph @g(%x: !ait.tensor<{s['b']} x {s['size']} x {s['size']} x {s['c']} x {t}>) {{\n"
        f'  %w = ait.param "w" : {weight}\n'
        f"{param.format(n=s['o'], t=t)}"
        f'  %0 = ait.conv %x, %w{flags}{groups}{region} : {result}\n  ait.output "y" %0 : {result}\n}}\n'
    )


def depthwise_conv(t: str, s: Sizes) -> str:
    return conv(t, s, depthwise=True)


def reduction(axis: int) -> Callable[[str, Sizes], str]:
    """The sums of the columns or of the rows of a matrix."""

    def graph(t: str, s: Sizes) -> str:
        result = f"!ait.tensor<{s['cols'] if axis == 0 else s['rows']} x {t}>"
        return (
            f"ait.graph @g(%x: !ait.tensor<{s['rows']} x {s['cols']} x {t}>) {{\n"
            f'  %0 = ait.reduce sum %x dims [{axis}] : {result}\n  ait.output "y" %0 : {result}\n}}\n'
        )

    return graph


def softmax(t: str, s: Sizes) -> str:
    result = f"!ait.tensor<{s['rows']} x {s['cols']} x {t}>"
    return (
        f'ait.graph @g(%x: {result}) {{\n  %0 = ait.softmax %x dim 1 : {result}\n  ait.output "y" %0 : {result}\n}}\n'
    )


BOTH, ALL = ("f16", "bf16"), ("f16", "bf16", "f32")

FAMILIES: dict[str, Family] = {
    "gemm": Family(gemm("bias"), product_sizes, ("f16",), 30, all_candidates=True),
    "gemm_bf16": Family(gemm("bias"), product_sizes, ("bf16",), 5),
    "gemm_f32": Family(gemm("bias"), lambda rng: product_sizes(rng, high=8192, rows=4096), ("f32",), 6),
    "gemm_gelu": Family(gemm("gelu"), product_sizes, ("f16",), 6, cuts=True),
    "gemm_residual": Family(gemm("residual"), product_sizes, ("f16",), 6),
    "gemm_rrr": Family(gemm("bias", "rrr"), product_sizes, ("f16",), 4),
    "gemm_odd": Family(gemm("bias"), odd_sizes, ("f16",), 4),
    "gated_gemm": Family(gated, lambda rng: product_sizes(rng, high=14_336), ("f16",), 4, cuts=True),
    "bmm": Family(bmm, batched_sizes, ("f16",), 7),
    "attention": Family(attention, attention_sizes, ("f16",), 8),
    "causal_attention": Family(causal_attention, attention_sizes, ("f16",), 4),
    "conv": Family(conv, conv_sizes, ("f16",), 7, all_candidates=True, libraries=2),
    "grouped_conv": Family(conv, grouped_conv_sizes, ("f16",), 2, libraries=2),
    "depthwise_conv": Family(depthwise_conv, lambda rng: conv_sizes(rng, depthwise=True), ("f16",), 2, libraries=2),
    "reduce_rows": Family(reduction(1), row_sizes, ("f16", "f32"), 4),
    "reduce_columns": Family(reduction(0), row_sizes, ("f16", "f32"), 4),
    "softmax": Family(softmax, norm_sizes, ("f16",), 2),
}


def draw(seed: int, count: int, families: Sequence[str] = ()) -> list[Problem]:
    """About `count` problems of these families, by their shares, in an order in which none comes first."""
    names = families or tuple(FAMILIES)
    shares = sum(FAMILIES[name].share for name in names)
    found: list[tuple[float, Problem]] = []
    for name in names:
        family = FAMILIES[name]
        wanted = max(1, round(count * family.share / shares))
        rng = random.Random(f"{seed} {name}")
        for i in range(wanted):
            problem = Problem.of(name, family.dtypes[i % len(family.dtypes)], family.draw(rng))
            found.append(((i + rng.random()) / wanted, problem))
    return [problem for _, problem in sorted(found, key=lambda item: item[0])]
