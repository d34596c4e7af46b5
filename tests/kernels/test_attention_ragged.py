"""Attention of sequences of different lengths: on which units it is computed, without a card."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.attention import RaggedAttentionOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import const
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.attention_ragged_hopper import HopperRaggedAttention
from tests.kernels.attention_ragged import hopper_cases
from tests.kernels.harness import Case, sources_of
from tests.kernels.library_gemm import on_kernel

SM_90, SM_80 = Target("cuda", "sm_90a"), Target("cuda", "sm_80")


def ragged(form: str, t: str = "f16", depth: int = 64, lengths: str = "%n: !ait.tensor<2 x i32>", kv: str = "") -> Case:
    q = f"!ait.tensor<2 x 6 x 40 x {depth} x {t}>"
    k = f"!ait.tensor<{kv or '2 x 2 x 50'} x {depth} x {t}>"
    return Case(
        f"ait.graph @g(%q: {q}, %k: {k}, {lengths}) {{\n"
        f"  %y = ait.ragged_attention %q, %k, %k {form} scale 0.125 causal : {q}\n"
        f'  ait.output "y" %y : {q}\n}}'
    )


def code(case: Case, target: Target) -> str:
    return "\n".join(sources_of([case], target).values())


FORMS = {
    "padded": ragged("columns %n"),
    "bf16": ragged("columns %n", "bf16"),
    "wide": ragged("columns %n", depth=192),
    "narrow": ragged("columns %n", depth=16),
    "paged": ragged(
        "columns %n pages %t", lengths="%n: !ait.tensor<2 x i32>, %t: !ait.tensor<2 x 4 x i32>", kv="9 x 2 x 16"
    ),
}


@pytest.mark.parametrize("target", [SM_90, SM_80], ids=["sm_90a", "sm_80"])
@pytest.mark.parametrize("name", FORMS)
def test_tensor_cores_multiply(name: str, target: Target) -> None:
    assert "attention_ragged_mma<" in code(FORMS[name], target)


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (ragged("columns %n", depth=264), SM_90),
        (ragged("columns %n", "f32"), SM_90),
        (ragged("columns %n", "f32", 192), Target("cuda", "sm_90a", "medium")),
        (ragged("columns %n"), Target("rocm", "gfx90a")),
    ],
    ids=["too wide", "exact", "too wide for TF32", "rocm"],
)
def test_ordinary_arithmetic_multiplies(case: Case, target: Target) -> None:
    text = code(case, target)
    assert "attention_ragged<" in text and "attention_ragged_mma<" not in text


def test_f32_below_the_highest_precision_is_tf32() -> None:
    text = code(ragged("columns %n", "f32"), Target("cuda", "sm_90a", "high"))
    assert "attention_ragged_mma<ait::gpu::AttentionTile<64, 4, 32, 4>" in text


def test_pages_and_odd_rows_are_said_to_the_compiler() -> None:
    """Window, pages, and rows off 16 bytes are template arguments."""
    assert "true, false, true, false>(" in code(FORMS["paged"], SM_90)
    assert "true, false, false, true>(" in code(ragged("columns %n", depth=20), SM_90)


def test_a_tile_that_does_not_fit_is_refused() -> None:
    case = FORMS["wide"]
    kernel = kernel_of("native", case.op, SM_90)
    assert kernel.config_problem(case.op, {"warps": 4, "cols": 32}, SM_90) is None
    assert "227 KiB" in (kernel.config_problem(case.op, {"warps": 16, "cols": 256}, SM_90) or "")
    assert "attention_ragged_mma<ait::gpu::AttentionTile<192, 2, 32, 2>" in code(
        on_kernel(case, "native", {"warps": 2, "cols": 32}), SM_90
    )


def test_few_rows_take_small_tiles() -> None:
    case = ragged("columns %n")
    kernel = kernel_of("native", case.op, SM_90)
    few = Case(case.text.replace("x 40 x", "x 1 x"))
    assert kernel.configs(case.op, SM_90)[0]["warps"] == 4
    assert kernel.configs(few.op, SM_90)[0]["warps"] == 2


def offered(case: Case, target: Target = SM_90) -> set[str]:
    return {k.provider for k in kernels_for(case.op, target)}


def test_hopper_takes_padded_and_packed_sequences() -> None:
    for name, case in hopper_cases().items():
        assert offered(case) == {"hopper", "native"}, name
        assert offered(case, SM_80) == offered(case, Target("rocm", "gfx90a")) == {"native"}, name


@pytest.mark.parametrize(
    "case",
    [
        FORMS["paged"],
        ragged("columns %n", depth=264),
        ragged("columns %n", depth=20),
        ragged("columns %n", "f32"),
        Case(FORMS["padded"].text.replace("scale 0.125", "scale -0.125")),
        Case(
            FORMS["padded"].text.replace("scale 0.125", "scale bits(n)").replace(") {\n", ") dims {n = 1 to 9} {\n", 1)
        ),
    ],
    ids=["pages", "too wide", "no eights", "f32", "a negative scale", "an unknown scale"],
)
def test_hopper_declines(case: Case) -> None:
    assert offered(case) == {"native"}


def test_hopper_reads_rows_on_sixteen_bytes() -> None:
    case = hopper_cases()["padded-plain-f16"]
    kernel, scope = kernel_of("hopper", case.op, SM_90), scope_of(case.op)
    assert isinstance(kernel, HopperRaggedAttention) and isinstance(case.op, RaggedAttentionOp)
    rows = tuple(map(const, (3 * 64 * 8, 64 * 8, 64, 1)))
    assert kernel.accepts(case.op, 0, rows, scope)
    assert not kernel.accepts(case.op, 0, (*rows[:2], const(68), const(1)), scope)
    assert not kernel.accepts(case.op, 0, (*rows[:3], const(2)), scope)
    assert "227 KiB" in (kernel.config_problem(case.op, {"groups": 2, "cols": 256, "stages": 4}, SM_90) or "")


def test_long_sequences_take_the_fast_kernel_and_few_rows_the_other() -> None:
    long = Case(FORMS["padded"].text.replace("x 40 x", "x 2048 x").replace("x 50 x", "x 2048 x"))
    few = Case(FORMS["padded"].text.replace("x 40 x", "x 1 x").replace("x 50 x", "x 2048 x"))
    for case, first in ((long, "hopper"), (few, "native")):
        assert min(kernels_for(case.op, SM_90), key=lambda k: k.seconds(case.op, SM_90)).provider == first
