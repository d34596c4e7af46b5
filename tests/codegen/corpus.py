"""The models whose generated sources are compiled: small graphs that together reach every kernel and element type.

Each is the text of a module. First the ops of `tests/specs`; then what passes make of several ops, and the sizes for which
selection prefers other kernels. `f16` is the element type of their float cases; `models` says them again in bf16 and f32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ait_mlir.lowering.kernels import Target
from tests.specs import ROWS
from tests.specs.draw import draw, sample

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"b": "0 to 8", "s": "1 to 64", "l": "1 to 64"}
TYPES = ("f16", "bf16", "f32")

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


def specified(full: bool, target: Target | None) -> Iterator[tuple[str, str]]:
    """Each op that a target has at each element type: a graph that holds its forms side by side."""
    kept = sample("codegen")
    drawn = [d for name, d in draw("codegen").items() if full or name in kept]
    for number, spec in enumerate(ROWS):
        if target is not None and spec.needs is not None and not target.has(spec.needs):
            continue
        for t in spec.all_types:
            forms = [(d.form, t) for d in drawn if d.spec is spec and d.type == t]
            if forms:
                yield f"{spec.op}_{number}_{t}", spec.graph(forms, bound=True)


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
    large = {"x": "8192 x 8192 x f16", "y": "1048576 x 64 x f16"}
    few = [(f"reduce {kind} %x dims [0, 1]", "f16") for kind in ("sum", "max", "var")]
    yield "reduce_few", graph("reduce", large, *few, ("reduce sum %y dims [0]", "64 x f16"))
    yield (
        "cumsum_long",
        graph("cumsum", large, ("cumulative sum %x dim 1", large["x"]), ("cumulative sum %y dim 0", large["y"])),
    )


def selections() -> Iterator[tuple[str, str]]:
    yield (
        "masked_select",
        """ait.graph @select(%x: !ait.tensor<b x s x f16>, %m: !ait.tensor<b x s x i1>)
  dims {b = 1 to 64, s = 1 to 512, count = 0 to b*s bound} {
  %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f16>, !ait.tensor<i64>
  %z = ait.relu %y : !ait.tensor<count x f16>
  ait.output "z" %z : !ait.tensor<count x f16>
  ait.output "n" %n : !ait.tensor<i64>
}""",
    )


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


def recurrences() -> Iterator[tuple[str, str]]:
    """A scan that is one launch on CUDA, with its weight in registers and shared memory of a cluster, and a loop elsewhere."""
    seq = 50
    for hidden in (40, 512):
        state, weight = (f"!ait.tensor<{rows} x {hidden} x f16>" for rows in ("b", hidden))
        yield (
            f"recurrence_{hidden}",
            f"""ait.graph @recurrence(%x: !ait.tensor<{seq} x b x {hidden} x f16>, %h: {state}, %w: {weight}) dims {{b = 0 to 8}} {{
  %end, %all = ait.scan %x init(%h) with(%w) dim 0 {{
  ^bb0(%now: {state}, %old: {state}, %u: {weight}):
    %p = ait.gemm rcr %old, %u : {state}
    %s = ait.add %p, %now : {state}
    %new = ait.tanh %s : {state}
    ait.yield %new, %new : {state}, {state}
  }} : {state}, !ait.tensor<{seq} x b x {hidden} x f16>
  ait.output "end" %end : {state}
  ait.output "all" %all : !ait.tensor<{seq} x b x {hidden} x f16>
}}""",
        )


def models(full: bool = True, target: Target | None = None) -> Iterator[tuple[str, str]]:
    """`(name, text of a module)` of all cases of a target, or of all; float cases once in each float type, or, of the
    sample, in one of them."""
    yield from specified(full, target)
    cases = [*rows(), *reductions(), *selections(), *contractions(), *attentions(), *recurrences()]
    cases += [(path.stem, path.read_text()) for path in sorted(EXAMPLES.glob("*.mlir"))]
    for i, (name, text) in enumerate(cases):
        for t in TYPES if full else (TYPES[i % len(TYPES)],):
            yield f"{name}_{t}", re.sub(r"\bf16\b", t, text)
