"""Cases of gemm, bmm and attention that several test files share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.kernels.harness import Case
from tests.specs.attention import ENVS as ATTENTION_ENVS
from tests.specs.draw import draw
from tests.specs.scores import scores_of

FLOATS = ("f16", "bf16", "f32", "f64")
LAYOUTS = ("rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc")
SIZES = "dims {b = 0 to 9, m = 0 to 400, n = 0 to 400, k = 0 to 600}"


def stored(layout: str, rows: str, cols: str) -> str:
    return f"{rows} x {cols}" if layout == "r" else f"{cols} x {rows}"


def contraction(
    op: str,
    layout: str,
    t: str,
    envs: Sequence[Mapping[str, int]],
    batch: tuple[str, str, str] = ("", "", ""),
    m: str = "m",
    n: str = "n",
    extras: Sequence[tuple[str, str]] = (),
    body: str = "",
    result: str | None = None,
    further: Mapping[str, str] | None = None,
    sizes: str = SIZES,
    **options: object,
) -> Case:
    """One op. `batch`: leading dims of A, B and the result (`"b x "`); `extras`: shape and type of each epilogue operand;
    `body`: the epilogue's text, which defines %y and has T for the compute type. Of a gated product B has 2*n columns,
    and the epilogue both %acc and %up. `further` are more values that the epilogue yields, with the types of their
    results.
    """
    scalar = "f64" if t == "f64" else "f32"
    wide = dict.fromkeys(("f16", "bf16", "f8E4M3FN", "f8E5M2"), "f32")
    gated = op == "gated_gemm"
    a, b = batch[0] + stored(layout[0], m, "k"), batch[1] + stored(layout[1], "k", "(2*n)" if gated else n)
    stored_as = {"%y": result or t, **(further or {})}
    types = [f"!ait.tensor<{batch[2]}{stored(layout[2], m, n)} x {kind}>" for kind in stored_as.values()]
    names = "rstu"[: len(types)]
    inputs = [f"%a: !ait.tensor<{a} x {t}>", f"%b: !ait.tensor<{b} x {t}>"]
    inputs += [f"%e{i}: !ait.tensor<{shape}{' x ' if shape else ''}{kind}>" for i, (shape, kind) in enumerate(extras)]
    epilogue = ""
    if body:
        sums = [f"%{name}: {scalar}" for name in (("acc", "up") if gated else ("acc",))]
        arguments = [*sums, *(f"%{i}: {wide.get(kind, kind)}" for i, (_, kind) in enumerate(extras))]
        yielded = f"{', '.join(stored_as)} : {', '.join(wide.get(kind, kind) for kind in stored_as.values())}"
        operands = ", ".join(f"%e{i}" for i in range(len(extras)))
        lines = body.replace("T", scalar)
        epilogue = f" epilogue({operands}) {{\n  ^bb0({', '.join(arguments)}):\n{lines}    ait.yield {yielded}\n  }}"
    return Case(
        f"ait.graph @g({', '.join(inputs)}) {sizes} {{\n"
        f"  {', '.join(f'%{n}' for n in names)} = ait.{op} {layout} %a, %b{epilogue} : {', '.join(types)}\n"
        + "".join(f'  ait.output "{n}" %{n} : {d}\n' for n, d in zip(names, types, strict=True))
        + "}",
        envs,
        **options,  # type: ignore[arg-type]
    )


BIAS = "    %y = ait.add %acc, %0 : T\n"
BIAS_RESIDUAL = "    %s = ait.add %acc, %0 : T\n    %y = ait.add %1, %s : T\n"
BIAS_GELU = "    %s = ait.add %acc, %0 : T\n    %y = ait.gelu %s : T\n"
BIAS_RELU = "    %s = ait.add %0, %acc : T\n    %y = ait.relu %s : T\n"
BIAS_TANH = "    %s = ait.add %acc, %0 : T\n    %y = ait.fast_gelu %s : T\n"
SILU_MUL = "    %s = ait.silu %acc : T\n    %y = ait.mul %s, %up : T\n"
NUMBERS = "    %q = ait.div %v, %1 : T\n    %y = ait.clamp %q min -448.0 max 448.0 : T\n"
"""A value divided by a scale, as f8E4M3FN stores it."""
BIAS_NUMBERS = BIAS_GELU.replace("%y", "%v") + NUMBERS
SILU_MUL_NUMBERS = SILU_MUL.replace("%y", "%v") + NUMBERS.replace("ait.div %v, %1", "ait.add %v, %v")
TANH_MUL_ADD = "    %s = ait.fast_gelu %up : T\n    %p = ait.mul %acc, %s : T\n    %y = ait.add %p, %0 : T\n"


def resized(text: str, n: str, k: str) -> str:
    """The text with other dims for n and k."""
    by_name = {"n": n, "k": k}
    return re.sub(r"<[^>]*>", lambda m: re.sub(r"\b[nk]\b", lambda dim: by_name[dim[0]], m[0]), text)


def gemm_cases() -> dict[str, Case]:
    """The cases of gemm and bmm that have a kernel everywhere, by name, which ends with the element type."""
    return {name: drawn.case for name, drawn in draw("cpu", ["gemm"]).items()}


ATTENTION_SIZES = "dims {b = 0 to 4, s = 0 to 400, l = 0 to 400, d = 1 to 80}"


def attention(t: str, mask: str = "", mask_type: str | None = None, causal: bool = False, depth: str = "d", width: str = "d",
              envs: Sequence[Mapping[str, int]] = ATTENTION_ENVS, heads: int = 3, window: int = 0, then: str = "",
              scores: str = "", flags: str = "", scale: float = 0.25, **options: object) -> Case:  # fmt: skip
    """`then` is the number of rows of a second piece of k and v, in dims that the case declares; `scores` changes the
    scores.
    """
    head = f"!ait.tensor<b x {heads} x s x {depth} x {t}>"
    inputs = [
        f"%q: {head}",
        f"%k: !ait.tensor<b x 3 x l x {depth} x {t}>",
        f"%v: !ait.tensor<b x 3 x l x {width} x {t}>",
    ]
    if then:
        inputs += [
            f"%k1: !ait.tensor<b x 3 x {then} x {depth} x {t}>",
            f"%v1: !ait.tensor<b x 3 x {then} x {width} x {t}>",
        ]
    if mask:
        inputs.append(f"%m: !ait.tensor<{mask} x {mask_type or t}>")
    more = f" {flags}" if flags else ""
    flags = (" causal" if causal else "") + (f" window {window}" if window else "") + more
    results = [f"!ait.tensor<b x {heads} x s x {width} x {t}>"]
    if "log_sums" in flags:
        results.append(f"!ait.tensor<b x {heads} x s x f32>")
    clause = ""
    if scores:
        what = scores_of(scores, heads, "l")
        names = [f"%e{i}" for i in range(len(what.operands))]
        clause = re.sub(r"\bS\b", "f32", what.text(names))
        kinds = [re.sub(r"\bS\b", "f32", re.sub(r"\bT\b", t, o)) for o in what.operands]
        inputs += [f"{n}: !ait.tensor<{kind}>" for n, kind in zip(names, kinds, strict=True)]
    outputs = "".join(f'  ait.output "{n}" %{n} : {r}\n' for n, r in zip("rl", results, strict=False))
    return Case(
        f"ait.graph @g({', '.join(inputs)}) {ATTENTION_SIZES} {{\n"
        f"  {', '.join('%' + n for n, _ in zip('rl', results, strict=False))} = ait.attention %q, %k, %v"
        f"{' then %k1, %v1' if then else ''}{' mask %m' if mask else ''} scale {scale}{flags}{clause} : "
        f"{', '.join(results)}\n{outputs}}}",
        envs,
        **options,  # type: ignore[arg-type]
    )
