"""Copies on the CPU: every view op, row-major and strided on both sides, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import Case, Library, random_inputs, reference

DIMS = "dims {b = 0 to 64, s = 0 to 64}"
ENVS = ({"b": 2, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 7}, {"b": 37, "s": 41})


def case(source: str, op: str, result: str, t: str, **options: object) -> Case:
    """One view op on `%x`."""
    return Case(
        f"ait.graph @g(%x: !ait.tensor<{source} x {t}>) {DIMS} {{\n"
        f"  %y = ait.{op} : !ait.tensor<{result} x {t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{result} x {t}>\n}}',
        ENVS,
        **options,  # type: ignore[arg-type]
    )


def several(op: str, inputs: tuple[str, ...], results: tuple[str, ...], t: str, **options: object) -> Case:
    """An op of several inputs or results."""
    names = ["%x", "%y", "%z"][: len(inputs)]
    outs = ["%p", "%q", "%r"][: len(results)]
    arguments = ", ".join(f"{n}: !ait.tensor<{i} x {t}>" for n, i in zip(names, inputs, strict=True))
    types = [f"!ait.tensor<{r} x {t}>" for r in results]
    outputs = "".join(f'  ait.output "{o[1:]}" {o} : {r}\n' for o, r in zip(outs, types, strict=True))
    name, _, rest = op.partition(" ")
    return Case(
        f"ait.graph @g({arguments}) {DIMS} {{\n"
        f"  {', '.join(outs)} = ait.{name} {', '.join(names)} {rest} : {', '.join(types)}\n{outputs}}}",
        ENVS,
        **options,  # type: ignore[arg-type]
    )


CASES = {
    f"{name}-{t}": make(t)
    for t in ("i8", "f16", "f32", "i64")
    for name, make in (
        ("heads", lambda t: case("b x s x 3 x 16", "permute %x [0, 2, 1, 3]", "b x 3 x s x 16", t)),
        ("transpose", lambda t: case("b x s", "permute %x [1, 0]", "s x b", t)),
        ("transpose-odd", lambda t: case("b x s x 7", "permute %x [0, 2, 1]", "b x 7 x s", t, offset=1)),
        (
            "transpose-tiles",
            lambda t: case(
                "300 x 203", "permute %x [1, 0]", "203 x 300", t, strides={0: ("208", "1"), 1: ("304", "1")}
            ),
        ),
        ("transpose-odd-tiles", lambda t: case("304 x 203", "permute %x [1, 0]", "203 x 304", t)),
        (
            "transpose-odd-batches",
            lambda t: case(
                "3 x 304 x 203", "permute %x [0, 2, 1]", "3 x 203 x 304", t, strides={0: ("61713", "203", "1")}
            ),
        ),
        (
            "transpose-even-batches",
            lambda t: case(
                "3 x 304 x 202", "permute %x [0, 2, 1]", "3 x 202 x 304", t, strides={0: ("61409", "202", "1")}
            ),
        ),
        ("reverse", lambda t: case("b x 3 x s x 5", "permute %x [3, 2, 1, 0]", "5 x s x 3 x b", t)),
        ("same", lambda t: case("b x s x 8", "reshape %x", "b x s x 8", t)),
        ("flatten", lambda t: case("b x s x 8", "reshape %x", "(b * s) x 8", t)),
        (
            "split-heads",
            lambda t: case("b x s x 48", "reshape %x", "b x s x 3 x 16", t, strides={0: ("s*64", "64", "1")}),
        ),
        (
            "merge-heads",
            lambda t: case("b x s x 3 x 16", "reshape %x", "b x s x 48", t, strides={0: ("48*s", "16", "16*s", "1")}),
        ),
        (
            "reshape-into-view",
            lambda t: case("b x s x 3 x 16", "reshape %x", "b x s x 48", t, strides={1: ("96*s", "96", "1")}),
        ),
        ("regroup", lambda t: case("b x 4 x 6", "reshape %x", "b x 6 x 4", t, strides={0: ("48", "12", "2")})),
        ("expand", lambda t: case("s x 1", "expand %x", "b x s x 9", t)),
        ("long-rows", lambda t: case("b x s x 301", "slice %x offsets [0, 0, 5]", "b x s x 283", t)),
        (
            "long-rows-into-view",
            lambda t: case("b x s x 277", "reshape %x", "b x s x 277", t, offset=3, strides={1: ("s*290", "290", "1")}),
        ),
        ("slice", lambda t: case("b x (s + 3) x 12", "slice %x offsets [0, s, 3]", "b x 2 x 8", t)),
        (
            "split",
            lambda t: several("split dim 1", ("b x 24 x s",), ("b x 8 x s", "b x 12 x s", "b x 4 x s"), t),
        ),
        (
            "split-last",
            lambda t: several(
                "split dim 2", ("b x s x 48",), ("b x s x 16", "b x s x 32"), t, strides={0: ("s*50", "50", "1")}
            ),
        ),
        (
            "concat",
            lambda t: several("concat dim 1", ("b x s x 4", "b x 2 x 4", "b x (2*s) x 4"), ("b x (3*s + 2) x 4",), t),
        ),
        (
            "concat-last",
            lambda t: several(
                "concat dim 1", ("b x 8", "b x 16"), ("b x 24",), t, strides={0: ("1", "b"), 2: ("30", "1")}, offset=2
            ),
        ),
        ("concat-one", lambda t: several("concat dim 0", ("b x 8",), ("b x 8",), t)),
    )
}
SCALAR = Case(
    'ait.graph @g(%x: !ait.tensor<f32>) {\n  %y = ait.reshape %x : !ait.tensor<1 x 1 x f32>\n  ait.output "y" %y : !ait.tensor<1 x 1 x f32>\n}'
)
BOOLS = case("b x s", "permute %x [1, 0]", "s x b", "i1")
ALL = [*CASES.values(), SCALAR, BOOLS]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(ALL, tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize("case", ALL, ids=[*CASES, "scalar", "bools"])
def test_copies_bits(library: Library, case: Case) -> None:
    check_bits(library, case)


def check_bits(library: Library, case: Case) -> None:
    for env in case.envs:
        inputs = random_inputs(case, env)
        for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
            np.testing.assert_array_equal(got, want.astype(got.dtype))


def test_nan_payloads_survive(library: Library) -> None:
    case = CASES["transpose-f32"]
    bits = np.arange(0x7FC00001, 0x7FC00001 + 10, dtype=np.uint32).reshape(2, 5)
    (got,) = library.run(case, {"b": 2, "s": 5}, [bits.view(np.float32)])
    np.testing.assert_array_equal(got.view(np.uint32), bits.T)


def test_reshape_refuses_results_that_are_cut_within_a_dim() -> None:
    from ait_mlir.dialects.ait.types import scope_of
    from ait_mlir.dims import parse
    from ait_mlir.lowering.kernels.view import CopyKernel

    kernel, op = CopyKernel(), CASES["flatten-f32"].op
    assert kernel.accepts(op, 1, (parse("16"), parse("1")), scope_of(op))
    merged = CASES["split-heads-f32"].op
    assert kernel.accepts(merged, 1, (parse("s*48"), parse("48"), parse("16"), parse("1")), scope_of(merged))
    assert not kernel.accepts(merged, 1, (parse("s*48"), parse("16"), parse("16*s"), parse("1")), scope_of(merged))
    assert kernel.accepts(merged, 0, (parse("s*48"), parse("1"), parse("s")), scope_of(merged))
