"""Products on the card beside the cases of the specifications: every tile of the native gemm, and cuBLASLt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from tests.gpu.libraries import library_of
from tests.kernels.contractions import BIAS_GELU, BIAS_RESIDUAL, TANH_MUL_ADD, contraction, gemm_cases
from tests.kernels.harness import Case, Library, check
from tests.kernels.hopper import padded_cases
from tests.kernels.library_gemm import GemmLibrary, on_kernel
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

GEMM = gemm_cases()
CUDA = Target("cuda", "sm_90a")


def cublaslt_cases() -> dict[str, Case]:
    """The cases that cuBLASLt can run with their strides; it needs k >= 1."""
    cases: dict[str, Case] = {}
    for name, case in GEMM.items():
        made = on_kernel(
            Case(case.text.replace("= 0 to", "= 1 to"), case.envs[:4], case.strides, case.offset), "cublaslt"
        )
        kernel = next((k for k in kernels_for(made.op, CUDA) if k.provider == "cublaslt"), None)
        ins, outs = made.args()
        scope = scope_of(made.op)
        if kernel is not None and all(
            kernel.accepts(made.op, i, a.strides, scope) for i, a in enumerate((*ins, *outs))
        ):
            cases[name] = made
    return cases


def copied_cases() -> dict[str, Case]:
    """Products of factors with odd rows that cuBLASLt computes of copies."""
    made = {
        name.replace("padded", "copied"): on_kernel(replace(case, envs=case.envs[:2]), "padded-cublaslt")
        for name, case in padded_cases().items()
    }
    return {
        name: case
        for name, case in made.items()
        if any(kernel.provider == "padded-cublaslt" for kernel in kernels_for(case.op, CUDA))
    }


CUBLASLT = cublaslt_cases() | copied_cases()
TILE_ENVS = (
    {"b": 1, "m": 131, "n": 264, "k": 200},
    {"b": 1, "m": 300, "n": 137, "k": 71},
    {"b": 1, "m": 1, "n": 8, "k": 8},
    {"b": 1, "m": 64, "n": 64, "k": 0},
    {"b": 1, "m": 128, "n": 256, "k": 600},
)


def tiled() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for tile in TILES:
        for split in (1, 2, 4, 8) if tile.m * tile.n <= 64 * 64 else (1,):
            for t in ("f16", "bf16"):
                for layout in ("rcr", "crr"):
                    body, extras = (BIAS_GELU, [("n", t)])
                    if layout == "crr":
                        body, extras = BIAS_RESIDUAL, [("n", t), ("m x n", t)]
                    made = contraction("gemm", layout, t, TILE_ENVS, extras=extras, body=body)
                    name = "x".join(map(str, tile.values()[:7])) + f"-{split}-{layout}-{t}"
                    cases[name] = on_kernel(
                        made, "native", tile.config() | {"split": split}, (1,) if layout == "rcr" else ()
                    )
                gated = contraction("gated_gemm", "rcr", t, TILE_ENVS, extras=[("m x n", t)], body=TANH_MUL_ADD)
                name = "gated-" + "x".join(map(str, tile.values()[:7])) + f"-{split}-{t}"
                cases[name] = on_kernel(gated, "native", tile.config() | {"split": split}, (1,))
    return cases


TILED = tiled()


@pytest.fixture(scope="module")
def tiles(request: pytest.FixtureRequest) -> Library:
    return library_of(request, TILED)


@pytest.fixture(scope="module")
def cublaslt(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CUBLASLT, kind=GemmLibrary)


def _type(name: str) -> str:
    return name.rsplit("-", 1)[-1]


@pytest.mark.parametrize("name", TILED)
def test_tiles(tiles: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(tiles, TILED[name], _type(name))


@pytest.mark.parametrize("name", CUBLASLT)
def test_cublaslt(cublaslt: Library, name: str) -> None:
    if "gelu" in name:  # its gelu is an approximation on the rounded sum
        check(cublaslt, CUBLASLT[name], 1.6, 2e-5)
    else:
        PRODUCTS.on_gpu().check(cublaslt, CUBLASLT[name], _type(name))
