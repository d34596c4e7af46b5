"""Cases of attention on cuDNN: grouped heads, diagonals, windows, strides of a common buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.kernels.harness import Case
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

SQUARE = "dims {b = 0 to 9, s = 0 to 2048, l = 1 to 2048}"
LONGER = "dims {b = 0 to 9, s = 1 to 512, l = 1 to 512}"
ENVS = (
    {"b": 2, "s": 128, "l": 128},
    {"b": 1, "s": 1, "l": 77},
    {"b": 3, "s": 77, "l": 200},
    {"b": 1, "s": 197, "l": 197},
    {"b": 2, "s": 300, "l": 64},
    {"b": 2, "s": 1, "l": 1},
    {"b": 0, "s": 5, "l": 7},
    {"b": 1, "s": 0, "l": 7},
)
FEW = ({"b": 4, "s": 1, "l": 2048}, {"b": 1, "s": 1, "l": 77}, {"b": 3, "s": 16, "l": 500})
ROWS = ({"b": 2, "s": 128}, {"b": 1, "s": 197}, {"b": 2, "s": 333}, {"b": 3, "s": 1})


def cudnn_attention(
    t: str,
    envs: Sequence[Mapping[str, int]],
    heads: int = 3,
    groups: int = 3,
    cols: str = "l",
    depth: str = "64",
    width: str = "64",
    mask: str = "",
    mask_type: str = "",
    flags: str = "",
    sizes: str = SQUARE,
    **options: object,
) -> Case:
    q, k, v = f"b x {heads} x s x {depth}", f"b x {groups} x {cols} x {depth}", f"b x {groups} x {cols} x {width}"
    inputs = [f"%q: !ait.tensor<{q} x {t}>", f"%k: !ait.tensor<{k} x {t}>", f"%v: !ait.tensor<{v} x {t}>"]
    if mask:
        inputs.append(f"%m: !ait.tensor<{mask} x {mask_type or t}>")
    out = f"!ait.tensor<b x {heads} x s x {width} x {t}>"
    return Case(
        f"ait.graph @g({', '.join(inputs)}) {sizes} {{\n"
        f"  %r = ait.attention %q, %k, %v{' mask %m' if mask else ''} scale 0.125 {flags} : {out}\n"
        f'  ait.output "r" %r : {out}\n}}',
        envs,
        **options,  # type: ignore[arg-type]
    )


def cudnn_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type."""
    cases: dict[str, Case] = {}
    after = tuple({"b": 2, "s": s} for s in (1, 64, 100))
    for t in ("f16", "bf16"):
        same = {"cols": "s", "sizes": "dims {b = 0 to 9, s = 1 to 2048}"}
        later = {"cols": "(s + 77)", "sizes": "dims {b = 0 to 9, s = 1 to 2048}"}
        cases[f"plain-{t}"] = cudnn_attention(t, ENVS)
        few = "dims {b = 1 to 9, s = 1 to 16, l = 1 to 2048}"
        cases[f"few-rows-{t}"] = cudnn_attention(t, FEW, heads=6, depth="128", width="128", sizes=few)
        cases[f"step-{t}"] = cudnn_attention(t, FEW[:2], flags="causal", sizes=few.replace("16", "1"))
        cases[f"wide-{t}"] = cudnn_attention(t, ENVS[:4], depth="128", width="128")
        cases[f"odd-widths-{t}"] = cudnn_attention(t, ENVS[:4], depth="40", width="24")
        cases[f"groups-{t}"] = cudnn_attention(t, ENVS[:4], heads=6)
        cases[f"causal-{t}"] = cudnn_attention(t, ROWS, flags="causal", **same)
        cases[f"causal-groups-{t}"] = cudnn_attention(t, ROWS, heads=6, flags="causal", **same)
        cases[f"causal-after-{t}"] = cudnn_attention(t, after, flags="causal", **later)
        cases[f"window-{t}"] = cudnn_attention(t, ROWS, flags="window 50", **same)
        cases[f"window-1-{t}"] = cudnn_attention(t, ROWS, flags="window 1", **same)
        cases[f"causal-window-{t}"] = cudnn_attention(t, ROWS, flags="causal window 50", **same)
        cases[f"causal-window-after-{t}"] = cudnn_attention(t, after, flags="causal window 50", **later)
        cases[f"window-after-{t}"] = cudnn_attention(t, after, flags="window 50", **later)
        packed = {0: ("576*s", "64", "576", "1"), 1: ("576*l", "64", "576", "1"), 2: ("576*l", "64", "576", "1")}
        cases[f"packed-{t}"] = cudnn_attention(t, ENVS, strides=packed | {3: ("192*s", "64", "192", "1")}, offset=8)
    return {name: on_kernel(case, "cudnn") for name, case in cases.items()}
