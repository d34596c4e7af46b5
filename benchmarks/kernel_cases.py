"""The memory-bound kernels that `benchmarks/kernels.py` measures: the text of one op each, and PyTorch's function for
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from ait_mlir.lowering.kernels import Target, kernel_of
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Case
from tests.kernels.library_gemm import on_kernel

LARGE = 1 << 27
"""Elements of a large tensor: 256 MB at 16 bits."""

DIMS = "dims {n = 1 to 268435456}"
Run = Callable[..., object]


@dataclass(frozen=True)
class Measured:
    """A kernel at one shape; `torch` computes the first result from the operands, `moved` overrides the bytes."""

    family: str
    label: str
    case: Case
    env: Mapping[str, int]
    torch: Run
    dtype: str
    moved: int | None = None


def _graph(inputs: Mapping[str, str], body: str, results: list[str], dims: str = DIMS, **options: object) -> Case:
    arguments = ", ".join(f"%{name}: !ait.tensor<{t}>" for name, t in inputs.items())
    outputs = "".join(f'  ait.output "r{i}" %r{i} : !ait.tensor<{t}>\n' for i, t in enumerate(results))
    return Case(f"ait.graph @g({arguments}) {dims} {{\n{body}\n{outputs}}}", **options)  # type: ignore[arg-type]


def _types(results: list[str]) -> str:
    return ", ".join(f"!ait.tensor<{t}>" for t in results)


def unary(op: str, function: Run, t: str, shape: str, rows: int, label: str, **options: object) -> Measured:
    result = f"{shape} x {t}"
    case = _graph({"x": result}, f"  %r0 = ait.{op} %x : !ait.tensor<{result}>", [result], **options)
    return Measured("elementwise", f"{op} {label}", case, {"n": rows}, function, t)


def binary(other: str, t: str, shape: str, rows: int, label: str, **options: object) -> Measured:
    result = f"{shape} x {t}"
    body = f"  %r0 = ait.add %x, %b : !ait.tensor<{result}>"
    case = _graph({"x": result, "b": f"{other} x {t}"}, body, [result], **options)
    return Measured("elementwise", f"add {label}", case, {"n": rows}, torch.add, t)


def gated(t: str, shape: str, rows: int, label: str) -> Measured:
    """silu(x) * b."""
    result = f"{shape} x {t}"
    body = (
        "  %r0 = ait.fused_elementwise(%x, %b) {\n  ^bb0(%0: f32, %1: f32):\n    %2 = ait.silu %0 : f32\n"
        f"    %3 = ait.mul %2, %1 : f32\n    ait.yield %3 : f32\n  }} : !ait.tensor<{result}>"
    )
    case = _graph({"x": result, "b": result}, body, [result])
    return Measured("elementwise", f"silu * b {label}", case, {"n": rows}, lambda x, b: F.silu(x) * b, t)


def softmax(t: str, length: int, rows: int, **options: object) -> Measured:
    shape = f"n x {length} x {t}"
    case = _graph({"x": shape}, f"  %r0 = ait.softmax %x dim 1 : !ait.tensor<{shape}>", [shape], **options)
    return Measured("softmax", _rows(rows, length, options), case, {"n": rows}, lambda x: torch.softmax(x, 1), t)


def norm(op: str, t: str, length: int, rows: int, **options: object) -> Measured:
    shape, row = f"n x {length} x {t}", f"{length} x {t}"
    is_rms = op == "rms_norm"
    inputs = {"x": shape, "g": row} | ({} if is_rms else {"h": row})
    factors = "scale %g" if is_rms else "scale %g bias %h"
    body = f"  %r0 = ait.{op} %x {factors} axes 1 eps 1e-05 : !ait.tensor<{shape}>"

    def function(x: torch.Tensor, g: torch.Tensor, h: torch.Tensor | None = None) -> torch.Tensor:
        return F.rms_norm(x, (length,), g, 1e-5) if h is None else F.layer_norm(x, (length,), g, h, 1e-5)

    case = _graph(inputs, body, [shape], **options)
    return Measured(op, _rows(rows, length, options), case, {"n": rows}, function, t)


def residual_norm(op: str, t: str, length: int, rows: int, **options: object) -> Measured:
    """norm(x + r), and the sum kept."""
    shape, row = f"n x {length} x {t}", f"{length} x {t}"
    is_rms = op == "rms_norm"
    inputs = {"x": shape, "g": row} | ({} if is_rms else {"h": row}) | {"r": shape}
    factors = "scale %g" if is_rms else "scale %g bias %h"
    body = (
        f"  %r0, %r1 = ait.{op} %x {factors} axes 1 eps 1e-05 prologue(%r) {{\n  ^bb0(%0: f32, %1: f32):\n"
        "    %2 = ait.add %0, %1 : f32\n    ait.yield %2, %2 : f32, f32\n"
        f"  }} : {_types([shape, shape])}"
    )

    def function(x: torch.Tensor, g: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        total = x + rest[-1]
        return F.rms_norm(total, (length,), g, 1e-5) if is_rms else F.layer_norm(total, (length,), g, rest[0], 1e-5)

    case = _graph(inputs, body, [shape, shape], **options)
    return Measured(f"x + r, {op}", _rows(rows, length, options), case, {"n": rows}, function, t)


def reduction(
    kind: str, t: str, shape: str, dims: str, left: str, rows: int, label: str, provider: str = "native"
) -> Measured:
    result = f"{left} x {t}" if left else t
    body = f"  %r0 = ait.reduce {kind} %x dims [{dims}] : !ait.tensor<{result}>"
    over = [int(d) for d in dims.split(",")]
    functions: dict[str, Run] = {
        "sum": lambda x: x.sum(over),
        "max": lambda x: x.amax(over),
        "var": lambda x: x.var(over, correction=0),
    }
    case = on_kernel(_graph({"x": f"{shape} x {t}"}, body, [result]), provider)
    return Measured("reduce", f"{kind} {label}", case, {"n": rows}, functions[kind], t)


def cumsum(t: str, shape: str, dim: int, rows: int, label: str, provider: str) -> Measured:
    tensor = f"{shape} x {t}"
    case = _graph({"x": tensor}, f"  %r0 = ait.cumulative sum %x dim {dim} : !ait.tensor<{tensor}>", [tensor])
    case = on_kernel(case, provider)
    return Measured("cumsum", f"{label}, {provider}", case, {"n": rows}, lambda x: x.cumsum(dim), t)


def convolution(
    t: str, size: int, channels: int, out: int, window: int, stride: int, batch: int, provider: str, groups: int = 1
) -> Measured:
    """conv2d(x, w), channels last, padded with zeros so that the size stays."""
    pad, left, depth = window // 2, (size + stride - 1) // stride, channels // groups
    inputs = {"x": f"n x {size} x {size} x {channels} x {t}", "w": f"{out} x {window} x {window} x {depth} x {t}"}
    result = f"n x {left} x {left} x {out} x {t}"
    clauses = f"stride [{stride}, {stride}] pad [{pad}, {pad}] groups {groups}"
    case = _graph(
        inputs, f"  %r0 = ait.conv %x, %w {clauses} : !ait.tensor<{result}>", [result], f"dims {{n = 1 to {batch}}}"
    )
    target = Target("cuda", default_arch("cuda"))
    case = on_kernel(case, provider, kernel_of(provider, case.op, target).configs(case.op, target)[0])
    what = f"{channels} to {out}" + (f" in {groups} groups" if 1 < groups < channels else "")
    label = f"{batch} x {size} x {size} x {what}, {window} x {window} by {stride}, {provider}"

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=stride, padding=pad, groups=groups)
        return y.permute(0, 2, 3, 1).contiguous()

    return Measured("conv2d", label, case, {"n": batch}, function, t)


def spatial(
    op: str, t: str, size: int, left: int, channels: int, batch: int, function: Callable[[torch.Tensor], torch.Tensor]
) -> Measured:
    """An op on [batch, size, size, channels], channels last; `function` is on channels first."""
    result = f"n x {left} x {left} x {channels} x {t}"
    name, _, clauses = op.partition(" %x")
    body = f"  %r0 = ait.{name} %x{clauses} : !ait.tensor<{result}>"
    case = _graph({"x": f"n x {size} x {size} x {channels} x {t}"}, body, [result], "dims {n = 1 to 1024}")

    def turned(x: torch.Tensor) -> torch.Tensor:
        return function(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).contiguous()

    return Measured(name.split()[0], f"{name}, {batch} x {size} x {size} x {channels}", case, {"n": batch}, turned, t)


def permute(t: str, shape: str, order: list[int], result: str, rows: int, label: str) -> Measured:
    body = f"  %r0 = ait.permute %x {order} : !ait.tensor<{result} x {t}>"
    case = _graph({"x": f"{shape} x {t}"}, body, [f"{result} x {t}"])
    return Measured("permute", label, case, {"n": rows}, lambda x: x.permute(order).contiguous(), t)


def cut(t: str, length: int, offset: int, width: int, rows: int) -> Measured:
    """Columns of a matrix."""
    body = f"  %r0 = ait.slice %x offsets [0, {offset}] : !ait.tensor<n x {width} x {t}>"
    case = _graph({"x": f"n x {length} x {t}"}, body, [f"n x {width} x {t}"])
    label = f"{rows} x {length} [:, {offset}:{offset + width}]"
    moved = 2 * rows * width * 2

    def function(x: torch.Tensor) -> torch.Tensor:
        return x[:, offset : offset + width].contiguous()

    return Measured("slice", label, case, {"n": rows}, function, t, moved)


def gather(t: str, table: int, width: int, rows: int) -> Measured:
    body = f"  %r0 = ait.embedding %w, %ids : !ait.tensor<n x {width} x {t}>"
    case = _graph({"w": f"{table} x {width} x {t}", "ids": "n x i64"}, body, [f"n x {width} x {t}"])
    moved = rows * (2 * width * 2 + 8)
    return Measured("gather", f"{rows} of {table} x {width}", case, {"n": rows}, lambda w, i: w[i], t, moved)


def group_norm(t: str, channels: int, groups: int, pixels: int, batch: int) -> Measured:
    """The group norm of the builder without scale and bias: a norm over the trailing dims of [batch, groups, ...]."""
    shape = f"n x {groups} x {channels // groups} x {pixels} x {t}"
    body = f"  %r0 = ait.layer_norm %x axes 2 eps 1e-05 : !ait.tensor<{shape}>"
    label = f"{batch} x {channels} in {groups} x {pixels}"

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x.flatten(1, 2), groups).view_as(x)

    return Measured("group_norm", label, _graph({"x": shape}, body, [shape]), {"n": batch}, function, t)


def _rows(rows: int, length: int, options: Mapping[str, object]) -> str:
    words = {"offset": " misaligned", "constants": " constant factors"}
    return f"{rows} x {length}" + "".join(words[key] for key in options)


LENGTHS = (128, 768, 1000, 1024, 4096, 4097, 8192, 16384, 32768, 50257, 131072)
SMALL = ((128, 768), (512, 4096), (4096, 768), (6304, 768), (4096, 4097))


def cases() -> Iterator[Measured]:
    """All cases, by family."""
    columns = 4096
    many = LARGE // columns
    for t in ("f16", "bf16"):
        yield unary("gelu", F.gelu, t, "n", LARGE, f"{LARGE}")
        yield binary("n", t, "n", LARGE, f"{LARGE}")
        yield binary("4096", t, "n x 4096", many, f"{many} x 4096 + 4096")
        yield binary("4097", t, "n x 4097", LARGE // 4097, f"{LARGE // 4097} x 4097 + 4097")
    yield gated("f16", "n", LARGE, f"{LARGE}")
    yield unary("gelu", F.gelu, "f16", "n", LARGE, f"{LARGE} misaligned", offset=1)
    yield unary("gelu", F.gelu, "f32", "n", LARGE // 2, f"{LARGE // 2}")
    for rows, length in SMALL:
        yield unary("gelu", F.gelu, "f16", f"n x {length}", rows, f"{rows} x {length}")
        yield binary(f"{length}", "f16", f"n x {length}", rows, f"{rows} x {length} + {length}")
    for t in ("f16", "bf16"):
        for length in LENGTHS if t == "f16" else (4096, 4097, 50257):
            yield softmax(t, length, LARGE // length)
            yield norm("layer_norm", t, length, LARGE // length)
            yield residual_norm("layer_norm", t, length, LARGE // length)
            yield norm("rms_norm", t, length, LARGE // length)
            yield residual_norm("rms_norm", t, length, LARGE // length)
    for length in (65536, 128256):
        yield softmax("f16", length, LARGE // length)
    yield softmax("f16", 4096, many, offset=1)
    yield residual_norm("layer_norm", "f16", 4096, many, offset=1)
    for rows, length in SMALL:
        yield softmax("f16", length, rows)
        yield norm("layer_norm", "f16", length, rows)
        yield norm("layer_norm", "f16", length, rows, constants=(1, 2))
        yield residual_norm("rms_norm", "f16", length, rows)
    for rows in (1, 16):
        yield softmax("f16", 128256, rows)
    for rows, length in ((256, 128), (256, 256), (8192, 128)):
        yield softmax("f16", length, rows)
        yield norm("layer_norm", "f16", length, rows)
    yield reduction("sum", "f16", "n x 4096", "1", "n", many, f"{many} x 4096, rows")
    yield reduction("sum", "f16", "n x 4097", "1", "n", LARGE // 4097, f"{LARGE // 4097} x 4097, rows")
    yield reduction("max", "f16", "n x 64", "1", "n", LARGE // 64, f"{LARGE // 64} x 64, rows")
    yield reduction("sum", "f16", "n x 4096", "0", "4096", many, f"{many} x 4096, columns")
    yield reduction("sum", "f32", "n x 4096", "0", "4096", many // 2, f"{many // 2} x 4096, columns")
    yield reduction("sum", "f16", "16 x n", "1", "16", LARGE // 16, f"16 x {LARGE // 16}, rows")
    for t in ("f16", "f32"):
        count = LARGE // (2 if t == "f32" else 1)
        for kind in ("sum", "max", "var"):
            yield reduction(kind, t, "n", "0", "", count, f"{count}, all", "split")
        yield reduction("sum", t, "n x 64", "0", "64", count // 64, f"{count // 64} x 64, columns", "split")
        yield reduction("sum", t, "16 x n", "1", "16", count // 16, f"16 x {count // 16}, rows, split", "split")
    for provider in ("native", "split"):
        small = 16 * 256 * 768
        yield reduction("sum", "f32", "n", "0", "", small, f"{small}, all, {provider}", provider)
    for t in ("f32", "f16"):
        count = LARGE // (2 if t == "f32" else 1)
        for provider in ("native", "chained"):
            yield cumsum(t, "n x 1024", 1, count // 1024, f"{count // 1024} x 1024 last", provider)
            yield cumsum(t, "n x 16384", 1, count // 16384, f"{count // 16384} x 16384 last", provider)
            yield cumsum(t, "64 x n x 1024", 1, count // 65536, f"64 x {count // 65536} x 1024 middle", provider)
            yield cumsum(t, "n x 8192", 0, count // 8192, f"{count // 8192} x 8192 leading", provider)
        yield cumsum(t, "16 x n", 1, count // 16, f"16 x {count // 16} last", "chained")
        yield cumsum(t, "n", 0, count, f"{count} one row", "chained")
    for size, channels, out, window, stride in (
        (224, 3, 64, 7, 2),
        (56, 64, 64, 3, 1),
        (56, 64, 256, 1, 1),
        (28, 128, 128, 3, 1),
        (14, 256, 256, 3, 1),
    ):
        for provider in ("mma", "hopper") if channels % 8 == 0 else ("mma",):
            yield convolution("f16", size, channels, out, window, stride, 32, provider)
    yield convolution("f16", 24, 512, 512, 3, 2, 32, "mma", 4)
    yield convolution("f16", 24, 512, 512, 3, 2, 32, "hopper", 4)
    yield convolution("f16", 56, 128, 128, 3, 1, 32, "mma", 32)
    for size, channels, window, stride in ((112, 64, 3, 2), (56, 96, 7, 1), (14, 480, 3, 1)):
        yield convolution("f16", size, channels, channels, window, stride, 32, "native", channels)
    window, mean, edge = "window [3, 3] stride [2, 2] pad [1, 1]", "window [2, 2] stride [2, 2]", "before [0, 1, 1, 0]"
    yield spatial(f"pool max %x {window}", "f16", 112, 56, 64, 160, lambda x: F.max_pool2d(x, 3, 2, 1))
    yield spatial(f"pool mean %x {mean}", "f16", 56, 28, 256, 160, lambda x: F.avg_pool2d(x, 2))
    yield spatial(f"pad constant %x {edge}", "f16", 56, 58, 256, 80, lambda x: F.pad(x, (1, 1, 1, 1)))
    yield spatial("resize nearest %x", "f16", 32, 64, 512, 50, lambda x: F.interpolate(x, scale_factor=2))
    yield spatial("resize linear %x", "f16", 32, 64, 512, 50, lambda x: F.interpolate(x, (64, 64), mode="bilinear"))
    yield permute("f16", "n x 4096", [1, 0], "4096 x n", many, f"{many} x 4096 [1, 0]")
    yield permute(
        "f16", "n x 128 x 12 x 64", [0, 2, 1, 3], "n x 12 x 128 x 64", 1365, "1365 x 128 x 12 x 64 [0, 2, 1, 3]"
    )
    yield permute("f32", "n x 4096", [1, 0], "4096 x n", many // 2, f"{many // 2} x 4096 [1, 0]")
    yield permute("f16", "n x 4097", [1, 0], "4097 x n", 32760, "32760 x 4097 [1, 0]")
    yield cut("f16", 4097, 1, 4096, 32760)
    yield cut("f16", 8192, 4096, 4096, many)
    yield gather("f16", 50257, 768, LARGE // 768)
    yield gather("f16", 50257, 768, 4096)
    yield group_norm("f16", 320, 32, 64 * 64, 96)
    yield group_norm("f16", 1280, 32, 8 * 8, 2)
