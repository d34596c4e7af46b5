"""Every elementwise op on every element type it takes, at the values where conversions go wrong: compiled and run."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np

from ait_mlir.reference import evaluate_graph
from tests.e2e.support import Array, compile_graph

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "ui8", "i32", "i64")
DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
}
BINARY = ("add", "sub", "mul", "div", "max", "min")
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def special_values(kind: str, count: int) -> Array:
    """Ends of ranges, ties, what 32 and 53 bits do not hold, NaN and infinities; then random ones up to `count`."""
    dtype = np.dtype(DTYPES[kind])
    rng = np.random.default_rng(len(kind) + ord(kind[-1]))
    if kind == "i1":
        return rng.integers(0, 2, count).astype(np.bool_)
    powers = [
        s * (2**p + d) for p in (0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 62, 63) for d in (-1, 0, 1) for s in (1, -1)
    ]
    powers += [0, 3, 1025, 2049, 2**53 + 3, 2**62 + 2**8, 65519, 65520, 65504]
    if kind in INTEGERS:
        info = np.iinfo(dtype)
        values = [v for v in powers if info.min <= v <= info.max] + [info.min, info.max]
        more = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(values, dtype), more])[:count]
    wide = [*powers, 0.5, -0.5, 1.5, -1.5, 2.5, 0.1, -0.0, 1e-8, 6e-8, 1e-40, 3e38, 1e300, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        more = rng.standard_normal(count) * 10.0 ** rng.integers(-3, 6, count)
        return np.concatenate([np.array([float(v) for v in wide]), more]).astype(dtype)[:count]


def test_casts_between_all_types(tmp_path: Path) -> None:
    """Bitwise, in the one rounding that a cast is."""
    n = 203
    inputs = ", ".join(f"%x_{t}: !ait.tensor<n x {t}>" for t in DTYPES)
    lines: list[str] = []
    for a in DTYPES:
        for b in DTYPES:
            lines += [
                f"%{a}_{b} = ait.cast %x_{a} : !ait.tensor<n x {b}>",
                f'ait.output "{a}_{b}" %{a}_{b} : !ait.tensor<n x {b}>',
            ]
    body = "\n".join(lines)
    compiled = compile_graph(f"ait.graph @casts({inputs}) dims {{n = 1 to 256}} {{\n{body}\n}}", tmp_path)
    values = {f"x_{t}": special_values(t, n) for t in DTYPES}
    found = compiled.run(values)
    expected = evaluate_graph(compiled.graph, values, {}, {"n": n})
    wrong: list[str] = []
    for a in DTYPES:
        for b in DTYPES:
            with np.errstate(all="ignore"):
                want = np.asarray(expected[f"{a}_{b}"]).astype(DTYPES[b])
            got = found[f"{a}_{b}"]
            bad = (got != want) & ~((got != got) & (want != want))
            if bad.any():
                i = int(np.argmax(bad))
                wrong.append(
                    f"{a} to {b}: {bad.sum()} wrong, the first {values[f'x_{a}'][i]!r}: {got[i]!r}, not {want[i]!r}"
                )
    assert not wrong, "\n".join(wrong)


def test_arithmetic_and_comparisons_on_all_types(tmp_path: Path) -> None:
    """Integers wrap and divide towards zero, NaN goes through max and min, comparisons with NaN are false."""
    n = 151
    names: list[tuple[str, str]] = []
    lines: list[str] = []
    for t in (*FLOATS, *INTEGERS, "i1"):
        for op in BINARY:
            lines.append(f"%{op}_{t} = ait.{op} %x_{t}, %y_{t} : !ait.tensor<n x {t}>")
            names.append((f"{op}_{t}", t))
        for p in PREDICATES:
            lines.append(f"%{p}_{t} = ait.compare {p} %x_{t}, %y_{t} : !ait.tensor<n x i1>")
            names.append((f"{p}_{t}", "i1"))
        lines.append(f"%where_{t} = ait.where %c, %x_{t}, %y_{t} : !ait.tensor<n x {t}>")
        names.append((f"where_{t}", t))
        for op in ("relu", "neg") if t != "i1" else ():
            lines.append(f"%{op}_{t} = ait.{op} %x_{t} : !ait.tensor<n x {t}>")
            names.append((f"{op}_{t}", t))
    lines += [f'ait.output "{name}" %{name} : !ait.tensor<n x {t}>' for name, t in names]
    inputs = ", ".join(f"%{v}_{t}: !ait.tensor<n x {t}>" for t in DTYPES for v in "xy")
    body = "\n".join(lines)
    text = f"ait.graph @arithmetic({inputs}, %c: !ait.tensor<n x i1>) dims {{n = 1 to 256}} {{\n{body}\n}}"
    compiled = compile_graph(text, tmp_path)
    values: dict[str, Array] = {"c": special_values("i1", n)}
    for t in DTYPES:
        values[f"x_{t}"] = special_values(t, n)
        values[f"y_{t}"] = np.roll(special_values(t, n), 7)[::-1].copy()
    found = compiled.run(values)
    expected = evaluate_graph(compiled.graph, values, {}, {"n": n}, rounding=True)
    wrong: list[str] = []
    for name, t in names:
        with np.errstate(all="ignore"):
            want = np.asarray(expected[name]).astype(DTYPES[t])
        got = found[name]
        bad = (got != want) & ~((got != got) & (want != want))
        if name == "div_f32":  # may be a product with a reciprocal
            with np.errstate(all="ignore"):
                bad &= ~(np.abs(got - want) <= np.abs(want) * 2.0**-22)
        if bad.any():
            i, kind = int(np.argmax(bad)), name.split("_")[1]
            x, y = (values.get(f"{v}_{kind}", values["c"])[i] for v in "xy")
            wrong.append(f"{name}: {bad.sum()} wrong, the first of {x!r}, {y!r}: {got[i]!r}, not {want[i]!r}")
    assert not wrong, "\n".join(wrong)
