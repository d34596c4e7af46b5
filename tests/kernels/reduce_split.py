"""Cases of reductions of many elements to few results by two launches, for the emulator and for a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.kernels.harness import Case, Library, assert_close, random_inputs, reference
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

FLOATS = ("f16", "bf16", "f32", "f64")
KINDS = ("sum", "mean", "max", "min", "var correction 1")
SMALL = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 1537})
LONG = ({"b": 2, "s": 20003},)


def reduction(kind: str, shape: str, axes: Sequence[int], t: str, **options: object) -> ConfiguredCase:
    word, _, correction = kind.partition(" ")
    left = "".join(f"{d} x " for i, d in enumerate(shape.split(" x ")) if i not in axes)
    text = (
        f"ait.graph @g(%x: !ait.tensor<{shape} x {t}>) dims {{b = 0 to 64, s = 0 to 100000000}} {{\n"
        f"  %y = ait.reduce {word} %x dims {[*axes]} {correction} : !ait.tensor<{left}{t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{left}{t}>\n}}'
    )
    return on_kernel(Case(text, **({"envs": SMALL} | options)), "split")  # type: ignore[arg-type]


def split_cases() -> Mapping[str, ConfiguredCase]:
    """By name, which ends with the element type: each kind, element type, and place of the reduced elements."""
    forms = [
        ("all", "b x s", (0, 1), {"envs": (*SMALL, *LONG)}),
        ("rows", "b x s", (1,), {"envs": (*SMALL[1:], *LONG), "offset": 3}),
        ("columns", "b x s x 9", (0, 1), {}),
        ("words", "s x 264", (0,), {"envs": ({"b": 1, "s": 7}, {"b": 1, "s": 300})}),
        ("apart", "b x 3 x s", (0, 2), {}),
        ("turned", "b x s", (1,), {"strides": {0: ("1", "b"), 1: ("2",)}}),
        ("strided", "b x s", (1,), {"strides": {0: ("2*s", "2")}}),
    ]
    cases: dict[str, ConfiguredCase] = {}
    for i, (name, shape, axes, options) in enumerate(forms):
        for j, kind in enumerate(KINDS):
            t = FLOATS[(i + j) % 4]
            cases[f"{name}-{kind.partition(' ')[0]}-{t}"] = reduction(kind, shape, axes, t, **options)
    for t in ("i8", "i32", "i64"):
        cases[f"all-sum-{t}"] = reduction("sum", "b x s", (0, 1), t)
        cases[f"columns-max-{t}"] = reduction("max", "s x b x 3", (0,), t)
    return cases


ULPS = {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}


def check_split(library: Library, case: Case, name: str) -> None:
    """Sums of numbers of both signs lose what their terms' size loses, so the floor grows with the number of terms."""
    t = name.rpartition("-")[2]
    for env in case.envs:
        inputs = random_inputs(case, env)
        (got,), (want,) = library.run(case, env, inputs), reference(case, env, inputs)
        terms = max(1.0, inputs[0].size / max(1, want.size))
        scale = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
        floor = {"f64": 1e-15}.get(t, 2e-6) * max(1.0, np.sqrt(terms) / scale)
        assert_close(got, want, ULPS.get(t, 0), floor)
