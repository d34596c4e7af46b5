"""`CompileOptions`: what is accepted, and that the public functions hand on what they are given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir
from ait_mlir import driver, export
from ait_mlir.errors import AitError
from ait_mlir.frontend import Tensor, compile_model
from ait_mlir.importers.torch import compiled
from ait_mlir.options import CompileOptions

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"target": "tpu"}, "unknown target 'tpu'; expected one of cpu, cuda, rocm"),
    ({"arch": "sm 90"}, "no architecture: 'sm 90'; expected one like 'native'"),
    ({"target": "cuda", "arch": "hopper"}, "architecture 'hopper' of target cuda is not supported"),
    ({"target": "rocm", "arch": "gfx1100"}, "architecture gfx1100 of target rocm is not supported"),
    ({"start": "finished"}, "unknown phase 'finished'; the phases are imported, canonical"),
    ({"measure": "sometimes"}, "measure is 'sometimes', expected True, False, \"auto\" or \"known\""),
    ({"measure": 2}, "measure is 2, expected True, False"),
    ({"budget": -1}, "budget is -1, expected a number of seconds, 0 or more"),
    ({"points": "min+mean"}, "points is 'min+mean', expected hints, min, max or several with a plus between"),
    ({"points": ["min"]}, "points is ['min'], expected hints"),
    ({"precision": "tf32"}, "precision is 'tf32', expected \"highest\""),
    ({"streams": 17}, "streams is 17, expected a whole number from 0 to 16"),
    ({"streams": -1}, "streams is -1, expected a whole number"),
    ({"streams": 2.5}, "streams is 2.5, expected a whole number"),
    ({"waves": -1}, "waves is -1, expected a whole number, 0 or more"),
    ({"waves": None}, "waves is None, expected a whole number"),
    ({"fold": "always"}, "fold is 'always', expected True, False or \"load\""),
    ({"fold_by": "hand"}, 'fold_by is \'hand\', expected "auto", "kernels" or "reference"'),
    ({"without": ["bufferize"]}, "cannot leave out 'bufferize'; a model can be compiled without"),
]


@pytest.mark.parametrize(("given", "told"), WRONG, ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_wrong_values_are_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(AitError, match=re.escape(told)):
        CompileOptions(**given)


def test_numbers_of_numpy_are_numbers() -> None:
    options = CompileOptions("cuda", measure=True, budget=np.float32(2), streams=np.int64(3))  # type: ignore[arg-type]
    assert options.selection() == "measure=true budget=2.0"
    assert CompileOptions("cuda", "sm_90a", measure="known", budget=3.0).selection() == "known=true"


def taken(monkeypatch: pytest.MonkeyPatch) -> list[CompileOptions]:
    """The options that `compile_module` is given from now on."""
    found: list[CompileOptions] = []
    compile_module = driver.compile_module

    def recorded(module: Any, options: CompileOptions, **others: Any) -> Path:
        found.append(options)
        return compile_module(module, options, **others)

    monkeypatch.setattr(driver, "compile_module", recorded)
    return found


def test_the_builder_hands_on_its_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = taken(monkeypatch)
    x = Tensor([4], dtype="float32", name="x", is_input=True)
    y = (x + x).mark_as_output("y")
    options: dict[str, Any] = {"measure": False, "budget": 3.0, "precision": "high", "streams": 2}
    compile_model(y, "cpu", tmp_path, "m", dynamic_profiling_strategy="MAX", do_constant_folding="load", **options)
    assert found == [CompileOptions("cpu", **options, points="max", fold="load")]


def test_the_importer_hands_on_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    found = taken(monkeypatch)
    options: dict[str, Any] = {"measure": False, "budget": 3.0, "precision": "medium", "streams": 1}
    ait_mlir.compile(torch.nn.Tanh().eval(), (torch.ones(2),), **options)
    assert found == [CompileOptions("cpu", **options)]


TAKE_THE_VALUE = (
    driver.run_to_phase,
    driver.plan_model,
    driver.compile_module,
    export.export_module,
    export.export_kernels,
    compiled.build,
)


@pytest.mark.parametrize("function", TAKE_THE_VALUE, ids=lambda f: f.__name__)
def test_functions_below_take_the_value(function: Callable[..., Any]) -> None:
    arguments = set(inspect.signature(function).parameters)
    assert "options" in arguments and not arguments & {field.name for field in fields(CompileOptions)}
