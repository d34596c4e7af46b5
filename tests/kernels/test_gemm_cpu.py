"""Gemm and bmm on OpenBLAS: every layout, type and epilogue, strides, sizes 0 and 1; what cuBLASLt is asked to do."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import parse
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from tests.kernels.contractions import BIAS_GELU, BIAS_RELU, BIAS_RESIDUAL, BIAS_TANH, contraction, gemm_cases, resized
from tests.kernels.harness import CPU, Case
from tests.kernels.library_gemm import GemmLibrary, on_kernel
from tests.specs.tolerance import PRODUCTS

CASES = gemm_cases()
OPENBLAS = {
    name: on_kernel(case, "openblas")
    for name, case in CASES.items()
    if any(k.provider == "openblas" for k in kernels_for(case.op, CPU))
}
CUDA = Target("cuda", "sm_90a")


@pytest.fixture(scope="module")
def openblas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GemmLibrary]:
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or spec.origin is None:
        pytest.skip("needs scipy-openblas32")
    found = next(Path(spec.origin).parent.glob("lib/libscipy_openblas*.so*"))
    os.environ.setdefault("AIT_OPENBLAS", str(found))
    yield GemmLibrary(list(OPENBLAS.values()), tmp_path_factory.mktemp("openblas"))


@pytest.mark.parametrize("name", OPENBLAS)
def test_openblas(openblas: GemmLibrary, name: str) -> None:
    PRODUCTS.check(openblas, OPENBLAS[name], name.rsplit("-", 1)[-1])


def test_openblas_takes_wide_types_only() -> None:
    assert {name.rsplit("-", 1)[-1] for name in OPENBLAS} == {"f32", "f64"}


# ** what cuBLASLt is asked to do **


def providers(body: str, extras: list[tuple[str, str]], t: str = "f16") -> set[str]:
    sizes = "dims {b = 1 to 9, m = 1 to 400, n = 1 to 400, k = 1 to 600}"
    case = contraction("gemm", "rcr", t, [], ("b x ", "", "b x "), extras=extras, body=body, sizes=sizes)
    return {k.provider for k in kernels_for(case.op, CUDA)}


SUM = "    %s = ait.add %acc, %0 : T\n"


@pytest.mark.parametrize(
    ("body", "extras", "offered"),
    [
        ("", [], True),
        ("    %y = ait.relu %acc : T\n", [], True),
        ("    %y = ait.fast_gelu %acc : T\n", [], True),
        (BIAS_TANH, [("n", "f16")], False),
        (BIAS_TANH, [("n", "f32")], False),
        ("    %y = ait.gelu %acc : T\n", [], False),
        (SUM.replace("%s", "%y"), [("n", "f16")], True),
        (SUM.replace("%s", "%y"), [("1 x n", "f16")], True),
        (SUM.replace("%s", "%y"), [("b x m x n", "f16")], True),
        (SUM.replace("%s", "%y"), [("m x n", "f16")], False),
        (SUM.replace("%s", "%y"), [("n", "f32")], False),
        (SUM.replace("%s", "%y").replace("add", "mul"), [("n", "f16")], False),
        (BIAS_RESIDUAL, [("n", "f16"), ("b x m x n", "f16")], False),
        (BIAS_RESIDUAL, [("n", "f32"), ("b x m x n", "f32")], False),
        (BIAS_RESIDUAL, [("n", "f16"), ("n", "f16")], False),
        (BIAS_RELU, [("n", "f16")], True),
        (BIAS_GELU, [("n", "f16")], False),
        (BIAS_RELU.replace("%y", "%t") + "    %y = ait.add %t, %1 : T\n", [("n", "f16"), ("b x m x n", "f16")], False),
        (SUM + "    %y = ait.mul %s, %s : T\n", [("n", "f16")], False),
    ],
)  # fmt: skip
def test_cublaslt_is_offered_what_it_can_do(body: str, extras: list[tuple[str, str]], offered: bool) -> None:
    assert providers(body, extras) == ({"native", "cublaslt"} if offered else {"native"})


@pytest.mark.parametrize(
    ("arch", "n", "k", "t", "offered"),
    [
        ("sm_90a", 48, 64, "f16", True),
        ("sm_90a", 48, 64, "bf16", True),
        ("sm_80", 48, 64, "f16", False),
        ("sm_90a", 44, 64, "f16", False),
        ("sm_90a", 48, 60, "f16", False),
        ("sm_90a", 44, 60, "f32", True),
    ],
)
def test_cublaslt_adds_bias_and_residual_where_it_rounds_once(arch: str, n: int, k: int, t: str, offered: bool) -> None:
    for extras in ([("n", t), ("b x m x n", t)], [("b x m x n", t), ("n", t)]):
        case = contraction("gemm", "rcr", t, [], ("b x ", "", "b x "), extras=extras, body=BIAS_RESIDUAL)
        op = Case(resized(case.text, str(n), str(k)), []).op
        assert ("cublaslt" in {kernel.provider for kernel in kernels_for(op, Target("cuda", arch))}) == offered


def test_cublaslt_wants_even_rows_for_bias_and_residual() -> None:
    extras = [("n", "f16"), ("b x m x n", "f16")]
    case = contraction("gemm", "rcr", "f16", [], ("b x ", "", "b x "), extras=extras, body=BIAS_RESIDUAL)
    op = Case(resized(case.text, "48", "64"), []).op
    kernel = next(k for k in kernels_for(op, CUDA) if k.provider == "cublaslt")
    for position, good, bad in ((0, "72", "68"), (3, "56", "52"), (4, "56", "52")):
        for pitch, accepted in ((good, True), (bad, False)):
            strides = tuple(parse(e) for e in (f"m*{pitch}", pitch, "1"))
            assert kernel.accepts(op, position, strides, scope_of(op)) == accepted, (position, pitch)


@pytest.mark.parametrize(
    ("arch", "layout", "n", "k", "t", "copied"),
    [
        ("sm_90a", "rcr", 44, 60, "f16", [0, 1]),
        ("sm_80", "rcr", 44, 60, "bf16", [0, 1]),
        ("sm_80", "rrr", 44, 64, "f16", [1]),
        ("sm_80", "rcr", 44, 64, "f16", []),
        ("sm_80", "rcr", 44, 60, "f32", []),
    ],
)
def test_cublaslt_multiplies_copies_of_odd_rows(
    arch: str, layout: str, n: int, k: int, t: str, copied: list[int]
) -> None:
    case = contraction("gemm", layout, t, [], ("b x ", "", "b x "))
    op = Case(resized(case.text, str(n), str(k)), []).op
    target = Target("cuda", arch)
    found = [kernel for kernel in kernels_for(op, target) if kernel.provider == "padded-cublaslt"]
    assert [tensor_type(op.operands[i]).dims[:-1] for i in copied] == [
        t.dims[:-1] for kernel in found for t in kernel.between(op, {}, target)
    ]
    assert all(t.dims[-1].as_int() in (48, 64) for kernel in found for t in kernel.between(op, {}, target))
    timed = [c for c in candidates_of(op, target) if ("padded-cublaslt", ()) in c.kernels]
    assert len(timed) == len(found) and all(c.only_timed for c in timed)


def test_cublaslt_needs_a_sum() -> None:
    case = contraction("gemm", "rcr", "f16", [])
    assert {k.provider for k in kernels_for(case.op, CUDA)} == {"native"}  # k may be 0


@pytest.mark.parametrize(
    ("provider", "position", "strides", "accepted"),
    [
        ("native", 0, ("m*k", "k", "1"), True),
        ("native", 0, ("2*m*k", "2*k", "1"), True),
        ("native", 0, ("k", "b*k", "1"), True),
        ("cublaslt", 0, ("k", "b*k", "1"), True),
        ("cublaslt", 0, ("2*m*k", "2*k", "1"), True),
        ("cublaslt", 0, ("m*k", "1", "m"), True),
        ("cublaslt", 0, ("0", "k", "1"), True),
        ("cublaslt", 0, ("m*k", "0", "1"), False),
        ("cublaslt", 0, ("4*m*k", "2*k", "2"), False),
        ("native", 0, ("4*m*k", "2*k", "2"), False),
        ("cublaslt", 3, ("3*m*n", "3*n", "1"), True),
        ("cublaslt", 3, ("m*n", "1", "m"), False),
        ("native", 3, ("n", "b*n", "1"), True),
        ("cublaslt", 2, ("2",), False),
        ("native", 2, ("2",), True),
    ],
)
def test_accepts(provider: str, position: int, strides: tuple[str, ...], accepted: bool) -> None:
    sizes = "dims {b = 2 to 9, m = 2 to 400, n = 1 to 400, k = 1 to 600}"
    batch, extras, body = ("b x ", "", "b x "), [("n", "f16")], "    %y = ait.add %acc, %0 : T\n"
    case = contraction("gemm", "rcr", "f16", [], batch, extras=extras, body=body, sizes=sizes)
    kernel = kernel_of(provider, case.op, CUDA)
    assert kernel.accepts(case.op, position, tuple(parse(s) for s in strides), scope_of(case.op)) is accepted
