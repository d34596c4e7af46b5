"""Text taken up at any phase gives the C++ that the whole pipeline gives, byte for byte; kernels pinned in text stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ait_mlir.driver import compile_module, emit, phase_of, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_stream import StreamTile
from ait_mlir.lowering.kernels.gemm_tiles import GemmTile
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks import verify_plan
from ait_mlir.passes.pipelines import PHASES
from tests import tiers
from tests.generator import random_graph

ROOT = Path(__file__).parents[2]
TO_PLANNED = PHASES[: PHASES.index("planned") + 1]
TEXTS = {name: (ROOT / "examples" / f"{name}.mlir").read_text() for name in ("ffn", "bert_layer")}
RANDOM = {f"random {seed}": random_graph(seed) for seed in (1, 5, 23, 60, 77, 97)}
TAKEN_UP = [(name, target) for name in (*TEXTS, *RANDOM) for target in ("cpu", "cuda")]
SAMPLED = TAKEN_UP[: 2 * len(TEXTS)] + TAKEN_UP[2 * len(TEXTS) :: 3]
"""The examples for both targets, and of the random graphs some for each."""
TEXTS |= RANDOM


def sources(text: str, start: str, target: str) -> dict[str, str]:
    """The C++ of a text that is at a phase; a dim that no input determines is said to be so."""
    module = parse_text(context(), text)
    check(module, SourceText("<text>", text))
    run_to_phase(module, "planned", CompileOptions(target, start=start))
    try:
        return emit(module).files
    except SourceError as e:
        assert "cannot be computed from the shape or strides of any input" in str(e)
        return {"error": str(e).split(": ", 1)[1]}


@pytest.mark.parametrize(("name", "target"), tiers.params(TAKEN_UP, SAMPLED))
def test_every_phase_taken_up_gives_the_same_code(name: str, target: str) -> None:
    expected = sources(TEXTS[name], "imported", target)
    for phase in TO_PLANNED:
        module = parse_text(context(), TEXTS[name])
        run_to_phase(module, phase, CompileOptions(target))
        printed = str(module)
        assert str(parse_text(context(), printed)) == printed
        assert sources(printed, phase, target) == expected, phase
        if phase in ("imported", "selected", "bufferized", "planned"):
            seen = phase_of(parse_text(context(), printed))
            assert sources(printed, seen, target) == expected, f"{phase}, seen as {seen}"


@pytest.mark.parametrize("target", ["cpu", "cuda", "rocm"])
@pytest.mark.parametrize("dims", [(0, 8, 4), (4, 0, 4), (4, 8, 0)])
def test_products_without_elements(dims: tuple[int, int, int], target: str) -> None:
    m, k, n = dims
    module = parse_text(
        context(),
        f"""
ait.graph @g(%x: !ait.tensor<{m} x {k} x f16>) {{
  %w = ait.param "w" : !ait.tensor<{n} x {k} x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<{m} x {n} x f16>
  ait.output "y" %y : !ait.tensor<{m} x {n} x f16>
}}
""",
    )
    run_to_phase(module, "planned", CompileOptions(target))
    assert "ait_rt.launch" in str(module)


PINNED = """
ait.graph @f(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"PROVIDER", {CONFIG}>} : !ait.tensor<b x 64 x f16>
  ait.output "y" %0 : !ait.tensor<b x 64 x f16>
}
"""


@pytest.mark.parametrize(("provider", "config"), [("cublaslt", "id = 66 : i64"), ("native", "")])
def test_a_pinned_kernel_is_kept(provider: str, config: str) -> None:
    text = PINNED.replace("PROVIDER", provider).replace("CONFIG", config)
    module = parse_text(context(), text)
    run_to_phase(module, "planned", CompileOptions("cuda"))
    assert f'"{provider}" {{{config}}}' in str(module)
    emit(module)


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (
            "openblas",
            "provider 'openblas' has no kernel for ait.gemm on cuda with these types; providers that have one",
        ),
        ("abacus", "provider 'abacus' has no kernel"),
        ('\\"; abort(); //', "has no kernel"),
    ],
)
def test_a_pinned_kernel_that_is_none(provider: str, message: str) -> None:
    module = parse_text(context(), PINNED.replace("PROVIDER", provider).replace("CONFIG", ""))
    with pytest.raises(SourceError, match=rf"^<text>:4:3: error: pass 'select': .*{message}"):
        run_to_phase(module, "planned", CompileOptions("cuda"))


@pytest.mark.parametrize("config", ['id = "abort()"', "id = 1.5 : f64", "id = [1, 2]", "id"])
def test_a_pinned_configuration_is_made_of_integers(config: str) -> None:
    message = r"configuration 'id' of the kernel is .*, expected an integer"
    module = parse_text(context(), PINNED.replace("PROVIDER", "cublaslt").replace("CONFIG", config))
    with pytest.raises(SourceError, match=rf"pass 'select': {message}"):
        run_to_phase(module, "planned", CompileOptions("cuda"))
    module = parse_text(context(), PINNED.replace("PROVIDER", "cublaslt").replace("CONFIG", "id = 66 : i64"))
    run_to_phase(module, "planned", CompileOptions("cuda"))
    with pytest.raises(SourceError, match=rf"pass 'verify-plan': ait_rt.launch: @\w+: {message}"):
        emit(parse_text(context(), str(module).replace("id = 66 : i64", config)))


@pytest.mark.parametrize(
    ("provider", "key"),
    [(p, k) for p, tile in (("native", GemmTile), ("hopper", HopperTile), ("stream", StreamTile)) for k in tile.keys],
)
def test_a_pinned_tile_is_positive(provider: str, key: str) -> None:
    module = parse_text(context(), PINNED.replace("PROVIDER", provider).replace("CONFIG", f"{key} = 0 : i64"))
    with pytest.raises(SourceError, match=rf"^<text>.*no .* gemm has the tile .*'{key}': 0.* at least 1"):
        run_to_phase(module, "planned", CompileOptions("cuda"))
        emit(module)


@pytest.mark.parametrize("tool", ["xdsl-opt", "ait-opt"])
def test_stock_xdsl_opt_knows_our_dialects_and_passes(tool: str, tmp_path: Path) -> None:
    """Through the entry point, not through us."""
    script = Path(sys.executable).parent / tool
    if not script.is_file():
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "ffn.mlir").write_text(TEXTS["ffn"])
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    passes = "simplify,fuse-epilogue"
    done = subprocess.run(
        [script, "ffn.mlir", "-p", passes],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ait.gemm") == 2 and "epilogue(" in done.stdout
    module = parse_text(context(), done.stdout)
    assert str(module).strip() == done.stdout.strip()


def test_each_plan_is_verified_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before its C++: a plan of this process by its last pass, a plan of a text when it is compiled."""
    verified: list[str] = []
    verify = verify_plan.verify_program
    monkeypatch.setattr(verify_plan, "verify_program", lambda program: verified.append("plan") or verify(program))
    module = parse_text(context(), TEXTS["ffn"])
    compile_module(module, output=tmp_path / "a.ait")
    assert len(verified) == 1
    compile_module(parse_text(context(), str(module)), output=tmp_path / "b.ait")
    assert len(verified) == 2
