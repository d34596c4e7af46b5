"""Plans in the cache: a model that is compiled again is not planned again, and its artifact is the same."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir import driver, kept_plans, outside
from ait_mlir.errors import SlowLaunchWarning
from ait_mlir.host.cache import DIGEST, cache_dir
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering import build
from ait_mlir.options import CompileOptions
from ait_mlir.reference.folds import Fold
from ait_mlir.runtime import Model, artifact
from ait_mlir.selection.select import kept_selections
from ait_mlir.selection.timings import TimingCache

TEXT = """
ait.graph @kept(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f32>
  %c = ait.constant [0.5, 1.0, -0.0, 4.0, 5.0, 6.0, 7.0, 0.1] : !ait.tensor<8 x f32>
  %1 = ait.exp %w : !ait.tensor<8 x 8 x f32>
  %2 = ait.gemm rcr %x, %1 : !ait.tensor<b x 8 x f32>
  %3 = ait.expand %c : !ait.tensor<b x 8 x f32>
  %4 = ait.add %2, %3 : !ait.tensor<b x 8 x f32>
  ait.output "y" %4 : !ait.tensor<b x 8 x f32>
}
"""
SLOW = """
ait.graph @sorted(%x: !ait.tensor<4096 x 4097 x f32>) {
  %0 = ait.relu %x : !ait.tensor<4096 x 4097 x f32>
  %1, %2 = ait.sort %0 dim 1 : !ait.tensor<4096 x 4097 x f32>, !ait.tensor<4096 x 4097 x i64>
  ait.output "y" %1 : !ait.tensor<4096 x 4097 x f32>
}
"""
W = {"w": np.arange(64, dtype=np.float32).reshape(8, 8) / 64}


@dataclass
class Compiler:
    """Compiles texts with plans of its own in the cache, and counts how often it plans."""

    folder: Path
    plans: Path
    planned: int = 0
    calls: int = field(default=0)

    def __call__(
        self,
        options: CompileOptions = CompileOptions(),
        constants: Mapping[str, Any] = W,
        text: str = TEXT,
        **more: Any,
    ) -> bytes:
        """The artifact."""
        self.calls += 1
        output = self.folder / f"{self.calls}.ait"
        module = parse_text(context(), text, "kept.mlir")
        driver.compile_module(module, options, output=output, constants=constants, **more)
        return output.read_bytes()

    def entries(self) -> list[Path]:
        """The kept plans."""
        return [p for p in self.plans.iterdir() if p.suffix != DIGEST] if self.plans.is_dir() else []


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A compiler for which the library of a model is the text of its sources."""
    plans = cache_dir() / "plans" / f"test-{tmp_path.name}-{tmp_path.parent.name}"
    compiler = Compiler(tmp_path, plans)
    plan_model = driver.plan_model

    def counted(*args: Any, **more: Any) -> Any:
        compiler.planned += 1
        return plan_model(*args, **more)

    def library(sources: Mapping[str, str], target: Any, folder: Path) -> Path:
        path = folder / f"{target.arch}.so"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(f"{name}\n{sources[name]}" for name in sorted(sources)))
        return path

    monkeypatch.setenv("AIT_PLANS", "1")
    monkeypatch.setattr(outside, "rows", dict)  # other tests of this process may define operators
    monkeypatch.setattr(kept_plans, "_path", lambda key: plans / key)
    monkeypatch.setattr(driver, "plan_model", counted)
    monkeypatch.setattr(build, "build_library", library)
    yield compiler
    shutil.rmtree(plans, ignore_errors=True)


def without_plans(compiled: Compiler, monkeypatch: pytest.MonkeyPatch, *args: Any, **more: Any) -> bytes:
    """The artifact that is made without the cache."""
    with monkeypatch.context() as patch:
        patch.setenv("AIT_PLANS", "0")
        return compiled(*args, **more)


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(),
        CompileOptions(inspected=True, cpus=("x86-64-v2", "x86-64-v3")),
        CompileOptions("cuda", "sm_90a"),
        CompileOptions("rocm", "gfx90a"),
        CompileOptions(fold="load"),
        CompileOptions(fold=False),
    ],
    ids=lambda o: f"{o.target}-{o.fold}-{len(o.cpus)}",
)
def test_the_second_artifact_is_made_of_the_plan(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, options: CompileOptions
) -> None:
    plain = without_plans(compiled, monkeypatch, options)
    assert compiled.entries() == []
    first, second = compiled(options), compiled(options)
    assert (compiled.planned, len(compiled.entries())) == (2, 1)
    assert first == second == plain


def test_the_sources_and_the_ir_are_kept_where_they_are_wanted(compiled: Compiler, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        compiled(workdir=folder, name="my model")
    texts = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
    assert texts[0] == texts[1] and {"planned.mlir", "program.cc"} < texts[0].keys() and compiled.planned == 1
    assert artifact.read(tmp_path / "2.ait").manifest.name == "my_model"
    compiled(name="other")
    assert (artifact.read(tmp_path / "3.ait").manifest.name, compiled.planned) == ("other", 1)


@pytest.mark.parametrize("values", [np.full((8, 8), 3, np.float32), np.full((8, 8), np.nan, np.float32)])
def test_values_that_follow_from_weights_are_computed_of_the_weights_given(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, values: np.ndarray
) -> None:
    before = compiled()
    found = compiled(constants={"w": values})
    assert compiled.planned == 1 and found != before
    assert found == without_plans(compiled, monkeypatch, constants={"w": values})


def test_a_value_that_cannot_be_computed_is_left_in_the_graph(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    plain = Fold.value

    def value(fold: Fold, data: Mapping[str, Any]) -> Any:
        if "w" in data and (data["w"] < 0).any():
            raise ArithmeticError("negative")
        return plain(fold, data)

    monkeypatch.setattr(Fold, "value", value)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="ArithmeticError: negative"):
            compiled(constants={"w": -W["w"]})
    assert (compiled.planned, len(compiled.entries())) == (3, 1)


CHANGES: dict[str, dict[str, Any]] = {
    "a number": {"text": TEXT.replace("0.5", "0.25")},
    "the sign of zero": {"text": TEXT.replace("-0.0", "0.0")},
    "a range": {"text": TEXT.replace("1 to 4", "1 to 5")},
    "a name": {"text": TEXT.replace("%4", "%scores")},
    "a line": {"text": "\n" + TEXT},
    "params without data": {"constants": {}},
    "an option": {"options": CompileOptions(fold=False)},
    "a pass": {"options": CompileOptions(without=("fuse-elementwise",))},
    "a target": {"options": CompileOptions("cuda", "sm_90a")},
    "another card": {"options": CompileOptions("cuda", "sm_80")},
    "another CPU": {"options": CompileOptions(arch="x86-64-v3")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_module_or_option_is_another_plan(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    compiled()
    found = compiled(**CHANGES[change])
    assert (compiled.planned, len(compiled.entries())) == (2, 2)
    assert found == without_plans(compiled, monkeypatch, **CHANGES[change])


@pytest.mark.parametrize("name", ["package_digest", "tables_digest", "instruction_sets", "has_bf16_tiles", "producers"])
def test_other_sources_or_another_machine_are_another_plan(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    compiled()
    found = getattr(kept_plans, name)
    monkeypatch.setattr(kept_plans, name, lambda: ["other"] if name == "instruction_sets" else f"other than {found()}")
    compiled()
    assert (compiled.planned, len(compiled.entries())) == (2, 2)


def test_the_table_of_estimates_is_a_part_of_the_key(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = CompileOptions("cuda", "sm_90a")
    compiled(options)
    monkeypatch.setenv("AIT_ESTIMATES", "none")
    compiled(options)
    package = Path(kept_plans.__file__).parent / "timings" / "estimates" / "h200.json"
    for samples in (1, 2):
        table = tmp_path / f"table{samples}.json"
        table.write_text(re.sub(r'"samples": ?\d+', f'"samples": {samples}', package.read_text()))
        monkeypatch.setenv("AIT_ESTIMATES", str(table))
        compiled(options)
    assert (compiled.planned, len(compiled.entries())) == (4, 4)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"),
        lambda path: path.with_name(path.name + DIGEST).write_text("0" * 64 + " " + "0" * 64 + "\n"),
        lambda path: path.with_name(path.name + DIGEST).unlink(),
        lambda path: path.rename(path.with_name("moved")),
    ],
    ids=["truncated", "empty", "changed", "of another key", "without record", "gone"],
)
def test_a_damaged_plan_is_not_taken(compiled: Compiler, damage: Any) -> None:
    first = compiled()
    (entry,) = compiled.entries()
    damage(entry)
    assert compiled() == first and compiled.planned == 2
    assert compiled() == first and compiled.planned == 2  # the new plan is in its place


def test_a_plan_under_the_name_of_another_is_not_taken(compiled: Compiler) -> None:
    compiled()
    (entry,) = compiled.entries()
    other = CompileOptions(fold=False)
    wanted = compiled(other)
    (second,) = (path for path in compiled.entries() if path != entry)
    for path in (entry, entry.with_name(entry.name + DIGEST)):
        shutil.copy(path, second.with_name(path.name.replace(entry.name, second.name)))
    assert compiled(other) == wanted and compiled.planned == 3


def test_writers_do_not_disturb_each_other(compiled: Compiler, tmp_path: Path) -> None:
    compiled()
    (entry,) = compiled.entries()
    key = kept_plans.Key(entry.name, CompileOptions(), "")
    plan = kept_plans.kept_plan(key)
    assert plan is not None

    def work(i: int) -> bool:
        kept_plans.keep_plan(key, plan)
        found = kept_plans.kept_plan(key)
        return found is None or found == plan

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))
    assert kept_plans.kept_plan(key) == plan


def test_where_times_decide_they_are_a_part_of_the_key(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    options = CompileOptions(measure=True, budget=0.0)
    compiled(options)
    assert compiled.entries() == []  # the kernel of the product is chosen by estimate
    text = re.sub("  %[wc124] = .*\n", "", TEXT).replace("%3 = ait.expand %c", "%4 = ait.exp %x")
    for _ in range(2):
        compiled(options, {}, text)
    assert (compiled.planned, len(compiled.entries())) == (2, 1)
    TimingCache().keep_choice("of another task", "a choice")
    compiled(options, {}, text)
    assert (compiled.planned, len(compiled.entries())) == (3, 2)
    monkeypatch.setattr(kept_plans, "current_setting", lambda kind: "another driver")
    compiled(options, {}, text)
    assert (compiled.planned, len(compiled.entries())) == (4, 3)


def test_slow_launches_are_told_again(compiled: Compiler) -> None:
    told: list[list[str]] = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            compiled(CompileOptions("cuda", "sm_90a"), {}, SLOW)
        assert {w.category for w in found} == {SlowLaunchWarning}
        told.append([f"{w.filename}:{w.lineno}: {w.message}" for w in found])
    assert told[0] == told[1] and told[0][0].startswith("kept.mlir:4: sort ") and compiled.planned == 1


def test_no_plan_is_kept_that_depends_on_more_than_its_key(compiled: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled()
    seen: list[str] = []
    compiled(observe=lambda p, module, seconds: seen.append(p.name))
    assert "select" in seen and compiled.planned == 2
    with kept_selections() as selections:
        compiled()
    assert selections.rows and compiled.planned == 3
    compiled(CompileOptions(report=True))
    module = parse_text(context(), TEXT, "kept.mlir")
    assert kept_plans.key_of(module, CompileOptions(), W) is not None
    with monkeypatch.context() as patch:
        patch.setattr(outside, "rows", lambda: {"mine.op": None})
        assert kept_plans.key_of(module, CompileOptions(), W) is None
    for name in ("package_digest", "tables_digest"):  # sources that changed while the process runs
        with monkeypatch.context() as patch:
            patch.setattr(kept_plans, name, lambda: None)
            compiled()
    assert (compiled.planned, len(compiled.entries())) == (6, 1)


def test_a_model_of_a_kept_plan_computes_with_its_own_weights(
    compiled: Compiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("AIT_PLANS", "1")
    monkeypatch.setattr(outside, "rows", dict)  # other tests of this process may define operators
    monkeypatch.setattr(kept_plans, "_path", lambda key: compiled.plans / key)
    x = np.ones((2, 8), np.float32)
    for values in (W["w"], W["w"] / 4):
        compiled(constants={"w": values})
        with Model(tmp_path / f"{compiled.calls}.ait") as model:
            found = model.run_with_tensors({"x": x})["y"]
        wanted = x @ np.exp(values).T + np.array([0.5, 1, 0, 4, 5, 6, 7, 0.1], np.float32)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert len(compiled.entries()) == 1
