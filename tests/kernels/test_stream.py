"""The streaming gemm without a card: what it is offered for and takes, estimates, that its code compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.errors import AitError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_stream import TILES, StreamTile
from ait_mlir.lowering.toolchain import find_nvcc
from tests.kernels.contractions import BIAS_GELU
from tests.kernels.harness import Case, sources_of
from tests.kernels.hopper import made
from tests.kernels.library_gemm import on_kernel
from tests.kernels.stream import stream_cases

CUDA = Target("cuda", "sm_90a")


def is_offered(case: Case, target: Target = CUDA) -> bool:
    return any(k.provider == "stream" for k in kernels_for(case.op, target))


def sized(m: int, n: int, k: int, layout: str = "rcr", t: str = "f16") -> Case:
    a = f"{m} x {k}" if layout[0] == "r" else f"{k} x {m}"
    b = f"{n} x {k}" if layout[1] == "c" else f"{k} x {n}"
    y = f"!ait.tensor<{m} x {n} x {t}>"
    return Case(
        f"ait.graph @g(%a: !ait.tensor<{a} x {t}>, %b: !ait.tensor<{b} x {t}>) {{\n"
        f'  %y = ait.gemm {layout} %a, %b : {y}\n  ait.output "y" %y : {y}\n}}'
    )


def test_matches() -> None:
    assert is_offered(sized(1, 64, 64)) and is_offered(sized(16, 63, 8, t="bf16"))
    assert is_offered(made("gemm", "rcr", "f16"))  # m from 0 to 400: few rows are among them
    assert not is_offered(sized(17, 64, 64))
    assert not is_offered(sized(1, 64, 60))  # rows off 16-byte boundaries
    assert not is_offered(sized(1, 64, 64, t="f32"))
    assert not is_offered(sized(8, 64, 64, "rrr")) and not is_offered(sized(8, 64, 64, "ccr"))
    assert not is_offered(made("bmm", "rcr", "f16", batch=("b x ", "b x ", "b x ")))
    for target in (Target("cuda", "sm_80"), Target("rocm", "gfx90a"), Target("cpu", "native")):
        assert not is_offered(sized(1, 64, 64), target)


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [
        (0, ("16*k", "1"), True),
        (0, ("16*k + 4", "1"), False),
        (1, ("8*k + 8", "1"), True),
        (1, ("8*k + 1", "1"), False),
        (1, ("1", "8*n"), False),
        (2, ("16*n", "1"), True),
        (2, ("1", "m"), False),
    ],
)
def test_accepts(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    case = made("gemm", "rcr", "f16")
    kernel = kernel_of("stream", case.op, CUDA)
    assert kernel.accepts(case.op, position, tuple(parse(s) for s in strides), scope_of(case.op)) is accepted


def test_configurations_suit_the_rows() -> None:
    for m, eights in ((1, 1), (8, 1), (9, 2), (16, 2)):
        op = sized(m, 64, 64).op
        assert {c["eights"] for c in kernel_of("stream", op, CUDA).configs(op, CUDA)} == {eights}
    assert all(StreamTile.of(tile.config()) == tile for tile in TILES)


@pytest.mark.parametrize(
    "config",
    [
        {"columns": 48},
        {"eights": 3},
        {"warps": 5},
        {"chunks": 3},
        {"blocks": 0},
        {"split": 3},
        {"columns": 64, "chunks": 8},
    ],
)
def test_bad_configurations(config: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no streaming gemm has the tile"):
        on_kernel(made("gemm", "rcr", "f16"), "stream", config).code(0, CUDA)


def test_it_is_the_estimate_for_few_rows() -> None:
    for m, n, k in ((1, 12288, 4096), (1, 4096, 11008), (16, 22016, 4096)):
        op = sized(m, n, k).op
        stream = kernel_of("stream", op, CUDA).seconds(op, CUDA)
        assert 2.0 * n * k / CUDA.bandwidth < stream < 1.3 * 2.0 * n * k / CUDA.bandwidth + 3e-6


def test_code_names_the_template() -> None:
    case = made("gemm", "rcr", "f16", extras=[("n", "f16")], body=BIAS_GELU)
    _, code = on_kernel(case, "stream", {"columns": 32, "chunks": 2, "split": 2}, (1,)).code(0, CUDA)
    assert "gemm_stream<ait::gpu::StreamTile<32, 1, 8, 2, 2>, add_gelu_0>" in code and ", 2, true);" in code


def test_compiles(tmp_path: Path) -> None:
    try:
        find_nvcc()
    except AitError as e:
        pytest.skip(str(e))
    cases = stream_cases()
    chosen = [cases["plain-f16"], cases["wide-bf16"], cases["columns-f16"]]
    assert build_library(sources_of(chosen, CUDA), CUDA, tmp_path).exists()
