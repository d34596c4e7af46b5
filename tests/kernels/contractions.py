"""Cases of gemm, bmm and attention that several test files share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.kernels.harness import Case

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
    extras: Sequence[tuple[str, str]] = (),
    body: str = "",
    result: str | None = None,
    sizes: str = SIZES,
    **options: object,
) -> Case:
    """One op. `batch`: leading dims of A, B and the result (`"b x "`); `extras`: shape and type of each epilogue operand;
    `body`: the epilogue's text, which defines %y and has T for the compute type. Of a gated product B has 2*n columns,
    and the epilogue both %acc and %up.
    """
    scalar = "f64" if t == "f64" else "f32"
    wide = {"f16": "f32", "bf16": "f32"}
    gated = op == "gated_gemm"
    a, b = batch[0] + stored(layout[0], m, "k"), batch[1] + stored(layout[1], "k", "(2*n)" if gated else "n")
    d = f"!ait.tensor<{batch[2]}{stored(layout[2], m, 'n')} x {result or t}>"
    inputs = [f"%a: !ait.tensor<{a} x {t}>", f"%b: !ait.tensor<{b} x {t}>"]
    inputs += [f"%e{i}: !ait.tensor<{shape}{' x ' if shape else ''}{kind}>" for i, (shape, kind) in enumerate(extras)]
    epilogue = ""
    if body:
        sums = [f"%{name}: {scalar}" for name in (("acc", "up") if gated else ("acc",))]
        arguments = [*sums, *(f"%{i}: {wide.get(kind, kind)}" for i, (_, kind) in enumerate(extras))]
        yielded = wide.get(result or t, result or t)
        operands = ", ".join(f"%e{i}" for i in range(len(extras)))
        lines = body.replace("T", scalar)
        epilogue = (
            f" epilogue({operands}) {{\n  ^bb0({', '.join(arguments)}):\n{lines}    ait.yield %y : {yielded}\n  }}"
        )
    return Case(
        f"ait.graph @g({', '.join(inputs)}) {sizes} {{\n  %r = ait.{op} {layout} %a, %b{epilogue} : {d}\n"
        f'  ait.output "r" %r : {d}\n}}',
        envs,
        **options,  # type: ignore[arg-type]
    )


GEMM_ENVS = (
    {"b": 2, "m": 37, "n": 45, "k": 70},
    {"b": 1, "m": 1, "n": 1, "k": 1},
    {"b": 3, "m": 130, "n": 129, "k": 515},
    {"b": 1, "m": 16, "n": 224, "k": 64},
    {"b": 2, "m": 0, "n": 5, "k": 3},
    {"b": 2, "m": 5, "n": 0, "k": 3},
    {"b": 2, "m": 5, "n": 7, "k": 0},
)
BIAS = "    %y = ait.add %acc, %0 : T\n"
BIAS_RESIDUAL = "    %s = ait.add %acc, %0 : T\n    %y = ait.add %1, %s : T\n"
BIAS_GELU = "    %s = ait.add %acc, %0 : T\n    %y = ait.gelu %s : T\n"
BIAS_RELU = "    %s = ait.add %0, %acc : T\n    %y = ait.relu %s : T\n"
BIAS_TANH = "    %s = ait.add %acc, %0 : T\n    %y = ait.fast_gelu %s : T\n"
SILU_MUL = "    %s = ait.silu %acc : T\n    %y = ait.mul %s, %up : T\n"
TANH_MUL_ADD = "    %s = ait.fast_gelu %up : T\n    %p = ait.mul %acc, %s : T\n    %y = ait.add %p, %0 : T\n"
WHERE = "    %z = ait.constant 0.5 : T\n    %s = ait.mul %acc, %z : T\n    %y = ait.where %0, %s, %1 : T\n"
COMPARE = "    %y = ait.compare lt %acc, %0 : i1\n"


def resized(text: str, n: str, k: str) -> str:
    """The text with other dims for n and k."""
    by_name = {"n": n, "k": k}
    return re.sub(r"<[^>]*>", lambda m: re.sub(r"\b[nk]\b", lambda dim: by_name[dim[0]], m[0]), text)


def in_eights(case: Case) -> Case:
    """The same with n and k eight times as large, so that the rows of all matrices start on 16 bytes."""
    envs = [{**env, "n": -(-env["n"] // 8), "k": -(-env["k"] // 8)} for env in case.envs]
    return Case(resized(case.text, "(8*n)", "(8*k)"), envs)


def gemm_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for t in FLOATS:
        for layout in LAYOUTS:
            cases[f"gemm-{layout}-{t}"] = contraction("gemm", layout, t, GEMM_ENVS)
            batches = ("b x ", "b x ", "b x ")
            cases[f"bmm-{layout}-{t}"] = contraction("bmm", layout, t, GEMM_ENVS, batches)
        lead = ("b x ", "", "b x ")
        cases[f"lead-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, lead)
        cases[f"bias-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, lead, extras=[("n", t)], body=BIAS)
        for name, body in (("gelu", BIAS_GELU), ("relu", BIAS_RELU), ("tanh", BIAS_TANH)):
            cases[f"bias-{name}-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, extras=[("n", t)], body=body)
        cases[f"even-tanh-{t}"] = in_eights(cases[f"bias-tanh-{t}"])
        both = [("n", t), ("b x m x n", t)]
        cases[f"residual-{t}"] = contraction("gemm", "rrr", t, GEMM_ENVS, lead, extras=both, body=BIAS_RESIDUAL)
        cases[f"even-residual-{t}"] = in_eights(cases[f"residual-{t}"])
        position = [("1 x n", t), ("1 x m x n", t)]
        cases[f"position-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, lead, extras=position, body=BIAS_RESIDUAL)
        column = [("n x 1", t), ("1 x m", "f32" if t != "f64" else t)]
        cases[f"column-{t}"] = contraction("gemm", "rcc", t, GEMM_ENVS, extras=column, body=BIAS_RESIDUAL)
        wide = t if t == "f64" else "f32"
        cases[f"wide-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, extras=[("", wide)], body=BIAS, result=wide)
        shared = ("b x 3 x ", "3 x ", "b x 3 x ")
        per_head = [("3 x 1 x n", t)]
        cases[f"shared-{t}"] = contraction("bmm", "rcr", t, GEMM_ENVS, shared, extras=per_head, body=BIAS)
        cases[f"one-{t}"] = contraction("bmm", "rrr", t, GEMM_ENVS, ("b x 1 x ", "1 x 2 x ", "b x 2 x "))
        cases[f"vector-{t}"] = contraction("gemm", "rcr", t, GEMM_ENVS, m="1", extras=[("n", t)], body=BIAS)
        cases[f"view-{t}"] = contraction(
            "gemm", "rcr", t, GEMM_ENVS, lead, extras=both, body=BIAS_RESIDUAL, offset=3,
            strides={0: ("m*(k + 9)", "k + 9", "1"), 1: ("2*k + 1", "1"), 2: ("1",), 3: ("n", "b*n", "1"),
                     4: ("3*n*m", "3*n", "1")},
        )  # fmt: skip
        cases[f"heads-{t}"] = contraction(
            "bmm", "rcr", t, GEMM_ENVS[:3], ("b x 3 x ", "b x 3 x ", "b x 3 x "),
            strides={0: ("3*m*k", "k", "3*k", "1"), 1: ("3*n*k + 8", "k", "3*k", "1"),
                     2: ("3*m*n", "n", "3*n", "1")},
        )  # fmt: skip
    cases["where"] = contraction(
        "gemm", "rcr", "f32", GEMM_ENVS, extras=[("m x n", "i1"), ("m x 1", "f32")], body=WHERE
    )
    cases["compare"] = contraction(
        "gemm", "rcr", "f16", GEMM_ENVS[:4], extras=[("n", "f16")], body=COMPARE, result="i1"
    )
    return cases


ATTENTION_SIZES = "dims {b = 0 to 4, s = 0 to 400, l = 0 to 400, d = 1 to 80}"
ATTENTION_ENVS = (
    {"b": 2, "s": 37, "l": 70, "d": 24},
    {"b": 1, "s": 1, "l": 1, "d": 1},
    {"b": 1, "s": 130, "l": 300, "d": 64},
    {"b": 2, "s": 64, "l": 64, "d": 16},
    {"b": 0, "s": 5, "l": 7, "d": 8},
    {"b": 1, "s": 0, "l": 7, "d": 8},
)
# as many columns as rows or more, so that every row sees one; more than a step of rows and columns
WINDOW_ENVS = (*ATTENTION_ENVS[:4], {"b": 1, "s": 400, "l": 400, "d": 8}, {"b": 1, "s": 3, "l": 333, "d": 16})


def attention(t: str, mask: str = "", mask_type: str | None = None, causal: bool = False, depth: str = "d", width: str = "d",
              envs: Sequence[Mapping[str, int]] = ATTENTION_ENVS, heads: int = 3, window: int = 0, then: str = "",
              **options: object) -> Case:  # fmt: skip
    """`then` are the rows of a second piece of k and v, in dims that the case declares."""
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
    flags = (" causal" if causal else "") + (f" window {window}" if window else "")
    out = f"!ait.tensor<b x {heads} x s x {width} x {t}>"
    return Case(
        f"ait.graph @g({', '.join(inputs)}) {ATTENTION_SIZES} {{\n"
        f"  %r = ait.attention %q, %k, %v{' then %k1, %v1' if then else ''}{' mask %m' if mask else ''} scale 0.25{flags} : {out}\n"
        f'  ait.output "r" %r : {out}\n}}',
        envs,
        **options,  # type: ignore[arg-type]
    )


# The first piece is contiguous, as a cache is, the second is part of a product with heads along its rows.
PIECES = {3: ("9*s*d", "d", "9*d", "1"), 4: ("9*s*d", "d", "9*d", "1"), 6: ("3*s*d", "d", "3*d", "1")}


def attention_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for t in FLOATS:
        for causal in (False, True):
            name = f"{'causal' if causal else 'plain'}-{t}"
            cases[name] = attention(t, causal=causal)
            cases[f"mask-{name}"] = attention(t, "b x 1 x 1 x l", causal=causal)
            cases[f"groups-{name}"] = attention(t, causal=causal, heads=6)
            cases[f"window-1-{name}"] = attention(t, causal=causal, window=1)
            cases[f"window-50-{name}"] = attention(t, "b x 1 x 1 x l", causal=causal, window=50, envs=WINDOW_ENVS)
            cases[f"full-mask-{name}"] = attention(t, "b x 3 x s x l", causal=causal)
            cases[f"pieces-{name}"] = attention(t, causal=causal, then="s", heads=6)
            cases[f"pieces-window-{name}"] = attention(
                t, "b x 1 x 1 x (l + 3)", causal=causal, then="3", window=50, envs=WINDOW_ENVS
            )
        cases[f"pieces-strides-{t}"] = attention(t, "s + l", causal=True, then="s", offset=1, strides=PIECES)
        cases[f"head-mask-{t}"] = attention(t, "3 x s x 1", "f64" if t == "f64" else "f32")
        cases[f"widths-{t}"] = attention(t, depth="d", width="40")
        cases[f"qkv-{t}"] = attention(
            t, "l", offset=1,
            strides={0: ("9*s*d", "d", "9*d", "1"), 1: ("9*l*d", "d", "9*d", "1"), 2: ("9*l*d", "d", "9*d", "1"),
                     4: ("3*s*d", "d", "3*d", "1")},
        )  # fmt: skip
    return cases
