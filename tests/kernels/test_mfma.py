"""The gemm on AMD's matrix cores without a card: what it is offered for, its tiles, that its code has the instructions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.errors import AitError
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_mfma import TILES, MfmaTile
from ait_mlir.lowering.toolchain import toolchain
from tests.kernels.contractions import BIAS_GELU, contraction
from tests.kernels.harness import Case, source_of
from tests.kernels.library_gemm import on_kernel

ROCM = Target("rocm", "gfx90a")
ENVS = ({"b": 1, "m": 16, "n": 16, "k": 16},)


def made(layout: str = "rcr", t: str = "f16") -> Case:
    return contraction("gemm", layout, t, ENVS, extras=[("n", t)], body=BIAS_GELU)


def offered(case: Case, target: Target = ROCM) -> bool:
    return "mfma" in {k.provider for k in kernels_for(case.op, target)}


def test_matches() -> None:
    assert offered(made()) and offered(made("crr", "bf16")) and offered(made(), Target("rocm", "gfx942"))
    assert not offered(made(t="f32")) and not offered(made(t="f64"))
    others = (Target("rocm", "gfx906"), Target("rocm", "gfx908"), Target("cuda", "sm_90a"), Target("cpu", "native"))
    assert not any(offered(made(), target) for target in others)


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [(0, ("k", "1"), True), (0, ("k + 3", "1"), True), (0, ("1", "m"), True), (0, ("2*k", "2"), False), (1, ("3", "3*k"), False),
     (3, ("n + 1", "1"), True), (3, ("1", "m"), False)],
)  # fmt: skip
def test_accepts(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    case = made()
    kernel = kernel_of("mfma", case.op, ROCM)
    assert kernel.accepts(case.op, position, tuple(parse(s) for s in strides), scope_of(case.op)) is accepted


def test_tiles() -> None:
    for tile in TILES:
        assert MfmaTile.of(tile.config()) == tile
    for config in (
        {"size": 8},
        {"tile_m": 48},
        {"waves_m": 0},
        {"waves_n": 16},
        {"tile_m": 512, "tile_n": 256},
        {"tile_n": 1024},
    ):
        with pytest.raises(ValueError, match="no MFMA gemm has the tile"):
            MfmaTile.of(TILES[0].config() | config)


def test_is_preferred_to_plain_arithmetic() -> None:
    case = made()
    mfma, native = (kernel_of(provider, case.op, ROCM) for provider in ("mfma", "native"))
    assert 0 < mfma.seconds(case.op, ROCM) < native.seconds(case.op, ROCM)
    configs = mfma.configs(case.op, ROCM)
    assert sorted(MfmaTile.of(c).values() for c in configs) == sorted(tile.values() for tile in TILES)


@pytest.mark.parametrize(
    ("size", "t", "instruction"),
    [(32, "f16", "v_mfma_f32_32x32x8f16"), (32, "bf16", "v_mfma_f32_32x32x8bf16_1k"), (16, "f16", "v_mfma_f32_16x16x16f16"),
     (16, "bf16", "v_mfma_f32_16x16x16bf16_1k")],
)  # fmt: skip
def test_compiles_to_the_instruction(size: int, t: str, instruction: str, tmp_path: Path) -> None:
    try:
        tools = toolchain("rocm", ROCM.arch)
    except AitError as e:
        pytest.skip(str(e))
    tile = next(tile for tile in TILES if tile.size == size)
    source, assembly = tmp_path / "gemm.hip", tmp_path / "gemm.s"
    source.write_text(source_of([on_kernel(made(t=t), "mfma", tile.config())], ROCM))
    command = [str(tools.compiler), *tools.compile_flags, "--cuda-device-only", "-S", str(source), "-o", str(assembly)]
    subprocess.run(command, env={**dict(tools.environment), "PATH": "/usr/bin:/bin"}, check=True, capture_output=True)
    per_step = (tile.m // tile.waves_m // size) * (tile.n // tile.waves_n // size) * (32 * size // 256)
    assert len(re.findall(rf"\b{instruction}\b", assembly.read_text())) >= per_step
