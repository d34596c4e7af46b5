"""The models whose generated sources are compiled: small graphs that together reach every kernel and element type.

Each is the text of a module. `f16` is the element type of the float cases; `models` says them again in bf16 and f32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"b": "0 to 8", "s": "1 to 64", "l": "1 to 64"}
UNARY = (
    *("neg", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "relu", "gelu", "fast_gelu", "silu"),
    *("abs", "floor", "sin", "cos", "log1p", "expm1"),
)
BINARY = ("add", "sub", "mul", "div", "max", "min")
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
TYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64")

Op = tuple[str, str]  # the text after `%name =` without its type, the type


def graph(name: str, inputs: dict[str, str], *ops: Op) -> str:
    """A graph of ops `%0`, `%1`, ..., each of which is an output."""
    arguments = ", ".join(f"%{n}: !ait.tensor<{t}>" for n, t in inputs.items())
    words = {word for t in inputs.values() for word in t.split()}
    dims = ", ".join(f"{n} = {bounds}" for n, bounds in DIMS.items() if n in words)
    lines = [f"ait.graph @{name}({arguments}) dims {{{dims}}} {{"]
    for i, (text, result) in enumerate(ops):
        types = ", ".join(f"!ait.tensor<{t}>" for t in result.split(", "))
        names = [f"%r{i}_{k}" for k in range(result.count(", ") + 1)]
        lines.append(f"  {', '.join(names)} = ait.{text} : {types}")
        lines += [f'  ait.output "{n[1:]}" {n} : {t}' for n, t in zip(names, types.split(", "), strict=True)]
    return "\n".join([*lines, "}"])


def elementwise() -> Iterator[tuple[str, str]]:
    x = "b x s x 24 x f16"
    yield "unary", graph("unary", {"x": x}, *[(f"{op} %x", x) for op in UNARY])
    both = {"x": x, "row": "24 x f16", "column": "s x 1 x f16"}
    yield "binary", graph("binary", both, *[(f"{op} %x, %row", x) for op in (*BINARY, "pow")])
    compared = x.replace("f16", "i1")
    yield "compare", graph("compare", both, *[(f"compare {p} %x, %column", compared) for p in PREDICATES])
    yield "where", graph("where", {**both, "c": compared}, ("where %c, %x, %row", x))
    yield "odd", graph("odd", {"x": "b x 7 x f16"}, ("gelu %x", "b x 7 x f16"))


def casts() -> Iterator[tuple[str, str]]:
    for source in TYPES:
        x = f"b x 9 x {source}"
        yield f"cast_{source}", graph("casts", {"x": x}, *[("cast %x", f"b x 9 x {t}") for t in TYPES if t != source])
    integers = [
        graph(f"i_{t}", {"x": f"b x {t}"}, *[(f"{op} %x, %x", f"b x {t}") for op in BINARY]) for t in ("i8", "i32")
    ]
    yield from ((f"integers_{i}", text) for i, text in enumerate(integers))


def rows() -> Iterator[tuple[str, str]]:
    for width in ("768", "50", "l"):
        x = f"b x s x {width} x f16"
        yield f"softmax_{width}", graph("softmax", {"x": x}, ("softmax %x dim 2", x), ("softmax %x dim 1", x))
    x, w = "b x s x 768 x f16", "768 x f16"
    inputs = {"x": x, "r": x, "g": w, "c": w}
    yield "layer_norm", graph("layer_norm", inputs, ("layer_norm %x scale %g bias %c axes 1 eps 1e-05", x))
    yield (
        "layer_norm_plain",
        graph("layer_norm", {"x": "b x 3 x 30 x f16"}, ("layer_norm %x axes 2 eps 0.0", "b x 3 x 30 x f16")),
    )
    yield (
        "rms_norm",
        graph("rms", inputs, ("add %x, %r", x), ("rms_norm %r0_0 scale %g axes 1 eps 1e-05", x)),
    )
    yield "rms_norm_odd", graph("rms", {"x": "b x 30 x f16"}, ("rms_norm %x axes 1 eps 0.0", "b x 30 x f16"))
    yield (
        "residual_norm",
        graph("residual", inputs, ("add %x, %r", x), ("layer_norm %r0_0 scale %g bias %c axes 1 eps 1e-12", x)),
    )


def reductions() -> Iterator[tuple[str, str]]:
    x = "b x s x 24 x f16"
    for kind in ("sum", "mean", "max", "min", "var correction 1"):
        name, _, correction = kind.partition(" ")
        over = (("2", "b x s"), ("0", "s x 24"), ("1", "b x 24"), ("0, 2", "s"), ("0, 1, 2", ""))
        ops = [
            (f"reduce {name} %x dims [{dims}] {correction}", f"{left} x f16".removeprefix(" x ")) for dims, left in over
        ]
        yield f"reduce_{name}", graph("reduce", {"x": x}, *ops)
    large = {"x": "8192 x 8192 x f16", "y": "1048576 x 64 x f16"}
    few = [(f"reduce {kind} %x dims [0, 1]", "f16") for kind in ("sum", "max", "var")]
    yield "reduce_few", graph("reduce", large, *few, ("reduce sum %y dims [0]", "64 x f16"))
    yield (
        "select",
        graph(
            "select",
            {"x": x},
            ("argmax %x dim 1", "b x 24 x i64"),
            ("argmax %x dim 2", "b x s x i32"),
            ("topk %x k 5", "b x s x 5 x f16, b x s x 5 x i64"),
        ),
    )


def integer_reductions() -> Iterator[tuple[str, str]]:
    for t in ("i8", "i32", "i64"):
        ops = [(f"reduce {kind} %x dims [1]", f"b x {t}") for kind in ("sum", "max", "min")]
        ops += [("argmax %x dim 1", "b x i64"), ("topk %x k 2", f"b x 2 x {t}, b x 2 x i32")]
        yield f"reduce_{t}", graph("reduce", {"x": f"b x 9 x {t}"}, *ops)


def views() -> Iterator[tuple[str, str]]:
    x = "b x s x 24 x f16"
    yield (
        "permute",
        graph(
            "permute",
            {"x": x},
            ("permute %x [1, 0, 2]", "s x b x 24 x f16"),
            ("permute %x [2, 0, 1]", "24 x b x s x f16"),
        ),
    )
    yield "slice", graph("slice", {"x": x}, ("slice %x offsets [0, s - 1, 3]", "b x 1 x 20 x f16"))
    yield "split", graph("split", {"x": x}, ("split %x dim 2", "b x s x 8 x f16, b x s x 16 x f16"))
    yield "concat", graph("concat", {"x": x, "y": "b x s x 5 x f16"}, ("concat %x, %y, %y dim 2", "b x s x 34 x f16"))
    yield "expand", graph("expand", {"x": "b x 1 x 24 x f16"}, ("expand %x", "b x 3 x 24 x f16"))
    for ids in ("i32", "i64"):
        table = {"t": "1000 x 96 x f16", "i": f"b x s x {ids}"}
        yield f"embedding_{ids}", graph("embedding", table, ("embedding %t, %i", "b x s x 96 x f16"))


def contractions() -> Iterator[tuple[str, str]]:
    a = {"r": "b x s x 128 x f16", "c": "128 x s x f16"}
    w = {"r": "128 x 256 x f16", "c": "256 x 128 x f16"}
    for layout in ("rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"):
        rows = "b x s" if layout[0] == "r" else "s"
        flat = "s x 128 x f16" if layout[2] == "c" else a["r"]
        operands = {"x": flat if layout[0] == "r" else a["c"], "w": w[layout[1]]}
        result = f"{rows} x 256 x f16" if layout[2] == "r" else "256 x s x f16"
        yield f"gemm_{layout}", graph("gemm", operands, (f"gemm {layout} %x, %w", result))
    y = "b x s x 256 x f16"
    operands = {"x": a["r"], "w": w["c"], "v": "256 x f16", "r": y}
    bias: Sequence[Op] = (("gemm rcr %x, %w", y), ("add %r0_0, %v", y))
    for last in ("relu", "gelu", "fast_gelu", "silu"):
        yield f"gemm_bias_{last}", graph("gemm", operands, *bias, (f"{last} %r1_0", y))
    yield "gemm_bias_residual", graph("gemm", operands, *bias, ("add %r1_0, %r", y))
    yield "gemm_odd", graph("gemm", {"x": "s x 7 x f16", "w": "5 x 7 x f16"}, ("gemm rcr %x, %w", "s x 5 x f16"))
    q, k, p = "b x 12 x s x 64 x f16", "b x 12 x l x 64 x f16", "b x 12 x s x l x f16"
    yield "bmm_rcr", graph("bmm", {"q": q, "k": k}, ("bmm rcr %q, %k", p))
    yield "bmm_rrr", graph("bmm", {"p": p, "v": k}, ("bmm rrr %p, %v", q))


def attentions() -> Iterator[tuple[str, str]]:
    for size in (32, 64, 80, 128):
        q, k = f"b x 12 x s x {size} x f16", f"b x 12 x l x {size} x f16"
        inputs = {"q": q, "k": k, "v": k, "m": "b x 1 x 1 x l x f16"}
        yield f"attention_{size}", graph("attention", inputs, ("attention %q, %k, %v scale 0.125", q))
        yield f"attention_causal_{size}", graph("attention", inputs, ("attention %q, %k, %v scale 0.125 causal", q))
        shared = {**inputs, "k": k.replace(" 12 ", " 4 "), "v": k.replace(" 12 ", " 4 ")}
        yield f"attention_groups_{size}", graph("attention", shared, ("attention %q, %k, %v scale 0.125 causal", q))
        pieces = ("attention %q, %k, %v then %k, %v scale 0.125 causal", q)
        yield f"attention_pieces_{size}", graph("attention", inputs, pieces)
        window = ("attention %q, %k, %v scale 0.125 window 16", q)
        yield (
            f"attention_window_{size}",
            graph("attention", inputs, window, ("attention %q, %k, %v mask %m scale 0.125 causal window 16", q)),
        )
        yield f"attention_mask_{size}", graph("attention", inputs, ("attention %q, %k, %v mask %m scale 0.125", q))


def models() -> Iterator[tuple[str, str]]:
    """`(name, text of a module)` of all cases, float cases once in each float type."""
    cases = [*elementwise(), *rows(), *reductions(), *views(), *contractions(), *attentions()]
    cases += [(path.stem, path.read_text()) for path in sorted(EXAMPLES.glob("*.mlir"))]
    for t in ("f16", "bf16", "f32"):
        for name, text in cases:
            yield f"{name}_{t}", re.sub(r"\bf16\b", t, text)
    yield from casts()
    yield from integer_reductions()
