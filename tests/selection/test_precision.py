"""The precision setting of f32: where it stands, what it changes in code and keys, and names that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.module_target import target_of
from ait_mlir.lowering.target import PRECISIONS
from ait_mlir.options import CompileOptions
from ait_mlir.passes.parse import parse_passes
from ait_mlir.runtime import artifact
from ait_mlir.selection.measure import Selector
from ait_mlir.selection.tasks import make_task
from ait_mlir.selection.timings import Setting
from ait_mlir.tools.cli import main

TEXT = """ait.graph @g(%x: !ait.tensor<64 x 64 x T>) {
  %w = ait.param "w" : !ait.tensor<64 x 64 x T>
  %y = ait.gemm rcr %x, %w {kernel = #ait.kernel<"cublaslt", {}>} : !ait.tensor<64 x 64 x T>
  ait.output "y" %y : !ait.tensor<64 x 64 x T>
}
"""


def parsed(text: str) -> ModuleOp:
    return parse_source(context(), SourceText("text", text))


def planned(dtype: str, precision: str) -> ModuleOp:
    return run_to_phase(
        parsed(TEXT.replace("T", dtype)), "planned", CompileOptions("cuda", "sm_90a", precision=precision)
    )


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_stands_in_the_module_and_in_the_call(precision: str) -> None:
    """And survives printing and parsing."""
    text = str(planned("f32", precision))
    module = parsed(text)
    assert target_of(module) == Target("cuda", "sm_90a", precision)
    assert ("ait.precision" in text) == (precision != "highest")
    code = "\n".join(emit(module).files.values())
    found = [line.strip() for line in code.splitlines() if "AIT_PRECISION" in line]
    assert found == ([] if precision == "highest" else [f"args.precision = AIT_PRECISION_{precision.upper()};"])


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_it_changes_products_of_f32_only(dtype: str) -> None:
    assert "AIT_PRECISION" not in "\n".join(emit(planned(dtype, "medium")).files.values())


def test_selecting_again_takes_the_new_setting() -> None:
    module = planned("f32", "high").clone()
    for setting, found in (("medium", "medium"), ("highest", "highest")):
        selected = run_to_phase(parsed(TEXT.replace("T", "f32")), "selected", CompileOptions("cuda", precision="high"))
        run_to_phase(selected, "selected", CompileOptions("cuda", start="fused", precision=setting))
        assert target_of(selected).precision == found
    assert target_of(module).precision == "high"


def test_unknown_names(tmp_path: Path) -> None:
    told = 'precision is \'tf32\', expected "highest" (exact f32), "high" (TF32) or "medium" (bf16)'
    module = parsed(TEXT.replace("T", "f32"))
    with pytest.raises(AitError) as caught:
        compile_module(module, CompileOptions(precision="tf32"), output=tmp_path / "g.ait")
    assert str(caught.value) == told and not list(tmp_path.iterdir())


def test_an_unknown_name_in_a_planned_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "planned.mlir"
    file.write_text(str(planned("f32", "high")).replace('ait.precision = "high"', 'ait.precision = "tf32"'))
    assert main(["compile", str(file), "--target", "cuda", "--to", "source"]) == 1
    told = capsys.readouterr().err
    assert "precision is 'tf32', expected" in told and "Traceback" not in told


def test_remembered_choices_have_the_setting_in_their_key() -> None:
    op = next(o for o in parsed(TEXT.replace("T", "f32")).walk() if o.name == "ait.gemm")
    task = make_task(op)
    keys = {
        Selector(Target("cuda", "sm_90a", p), Setting("", "", "", ""), None, None)._choice_key(task) for p in PRECISIONS
    }
    assert len(keys) == 3


class Watched:
    """Times of the package that say whether they were asked for."""

    def __init__(self) -> None:
        self.asked = False
        self.by_static: dict[str, object] = {}

    @property
    def by_op(self) -> dict[str, object]:
        self.asked = True
        return {}


def test_times_of_the_package_are_of_exact_products() -> None:
    """They count for f32 at the setting highest, and for other types at each."""
    text = """ait.graph @g(%x: !ait.tensor<b x 768 x T>) dims {b = 1 to 8192} {
  %w = ait.param "w" : !ait.tensor<768 x 768 x T>
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x 768 x T>
  ait.output "y" %y : !ait.tensor<b x 768 x T>
}
"""
    for dtype, precision in (("f32", "high"), ("f32", "medium"), ("f16", "high")):
        graph = next(o for o in parsed(text.replace("T", dtype)).ops if isinstance(o, GraphOp))
        task = make_task(next(o for o in graph.walk() if o.name == "ait.gemm"))
        watched = Watched()
        Selector(Target("cuda", "sm_90a", precision), Setting("", "", "", ""), None, watched)._from_shipped(task)  # type: ignore[arg-type]
        assert watched.asked == (dtype == "f16")


def test_the_artifact_describes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXT.replace("T", "f32").replace(' {kernel = #ait.kernel<"cublaslt", {}>}', "")
    for precision in ("high", "highest"):
        path = compile_module(parsed(text), CompileOptions(precision=precision), output=tmp_path / "g.ait")
        assert artifact.read(path).manifest.precision == precision
        assert main(["inspect", str(path)]) == 0
        assert ("precision high\n" in capsys.readouterr().out) == (precision == "high")


CONV = """ait.graph @g(%x: !ait.tensor<64 x 32 x 32 x 64 x T>) {
  %w = ait.param "w" : !ait.tensor<64 x 3 x 3 x 64 x T>
  %y = ait.conv %x, %w tf32 pad [1, 1] : !ait.tensor<64 x 32 x 32 x 64 x T>
  ait.output "y" %y : !ait.tensor<64 x 32 x 32 x 64 x T>
}
"""


def providers(text: str, target: Target) -> set[str]:
    op = next(op for op in parsed(text).walk() if isinstance(op, ConvOp))
    return {kernel.provider for kernel in kernels_for(op, target)}


def test_a_convolution_that_may_be_rounded_is_on_tensor_cores() -> None:
    """At the highest setting, too, on a CUDA card; without the word it is exact."""
    card = Target("cuda", "sm_90a")
    assert "mma" in providers(CONV.replace("T>", "f32>"), card)
    assert "mma" not in providers(CONV.replace("T>", "f32>").replace(" tf32", ""), card)
    assert "mma" not in providers(CONV.replace("T>", "f32>"), Target("rocm", "gfx90a"))
    selected = str(run_to_phase(parsed(CONV.replace("T>", "f32>")), "selected", CompileOptions("cuda", "sm_90a")))
    assert '#ait.kernel<"mma"' in selected


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_library_is_told_of_the_lower_precision(precision: str) -> None:
    """A setting below `high` counts for ops with the word, too."""
    text = TEXT.replace("T>", "f32>").replace("ait.gemm rcr", "ait.gemm rcr tf32")
    planned = run_to_phase(parsed(text), "planned", CompileOptions("cuda", "sm_90a", precision=precision))
    code = "\n".join(emit(planned).files.values())
    assert f"AIT_PRECISION_{'MEDIUM' if precision == 'medium' else 'HIGH'};" in code


@pytest.mark.parametrize(("flag", "count"), [("tf32", 1), ("", 2)], ids=["rounded", "exact"])
def test_exact_products_are_not_joined_with_others(flag: str, count: int) -> None:
    module = parsed(f"""ait.graph @g(%x: !ait.tensor<64 x 64 x f32>) {{
  %w = ait.param "w" : !ait.tensor<64 x 64 x f32>
  %v = ait.param "v" : !ait.tensor<64 x 64 x f32>
  %y = ait.gemm rcr tf32 %x, %w : !ait.tensor<64 x 64 x f32>
  %z = ait.gemm rcr {flag} %x, %v : !ait.tensor<64 x 64 x f32>
  %s = ait.add %y, %z : !ait.tensor<64 x 64 x f32>
  ait.output "s" %s : !ait.tensor<64 x 64 x f32>
}}
""")
    run_passes(context(), module, parse_passes("merge-parallel-gemms"))
    lines = [line for line in str(module).splitlines() if "ait.gemm" in line]
    assert len(lines) == count and sum("tf32" in line for line in lines) == 1
