"""`benchmarks.compile_time`: its cases run, and the second compilation of a case makes no object."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
import torch

from ait_mlir.lowering import build
from benchmarks import compile_time


def test_the_second_compilation_of_a_case_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compile_time.SMALL, "tiny", lambda dtype: (compile_time.Softmax(), [torch.randn(4, 8)]))
    made, keep = list[object](), build.keep_object

    def counted(*given: Any) -> Any:
        made.append(given)
        return keep(*given)

    monkeypatch.setattr(build, "keep_object", counted)
    monkeypatch.setattr(compile_time, "objects", lambda: len(made))  # other tests make objects in the cache, too
    args = argparse.Namespace(device="cpu", dtype="f32", measure=False, tuning=None)
    first, again = (compile_time.compile_once("ours", "tiny", args) for _ in range(2))
    assert first.seconds > 0 and first.cpu_seconds > 0 and again.objects == 0


@pytest.mark.parametrize("name", compile_time.SMALL)
def test_the_small_cases_run(name: str) -> None:
    module, inputs = compile_time.case(name, torch.float32)
    assert module(*inputs).isfinite().all()
