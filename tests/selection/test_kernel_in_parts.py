"""A kernel that makes several launches runs alone and over ranges; its code decides what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Expr, const
from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.lowering import kernels
from ait_mlir.lowering.candidates import candidates_of, steps_of
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.selection.shortlist import code_digest
from tests.selection.cards import parse, tasks_of

CPU = Target("cpu", "native")
TEXT = """
ait.graph @g(%x: !ait.tensor<n x f32>) dims {n = 1 to 100} {
  %0 = ait.reduce sum %x dims [0] {kernel = CHOICE} : !ait.tensor<f32>
  ait.output "y" %0 : !ait.tensor<f32>
}
"""
RANGES = (
    '#ait.kernel<"ranges", {axis = "n", upto = [10 : i64], candidates = ['
    '{kernels = [#ait.kernel<"native", {}>]}, {kernels = [#ait.kernel<"parts", {}>]}]}>'
)


class PartsReduce(Kernel[ReduceOp]):
    """The sum of all elements: of each fourth one, then of these, in two launches; 100 bytes of scratch memory."""

    provider = "parts"
    name = "reduce_parts"
    ops = (ReduceOp,)

    def between(self, op: ReduceOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        return (TensorType.get([4], f32),)

    def workspace(self, op: ReduceOp, config: Config) -> Expr:
        return const(100)

    def emit(self, launch: Launch[ReduceOp]) -> tuple[Emission, ...]:
        (x,), (y,), (parts,) = launch.ins, launch.outs, launch.between
        size = launch.cpp(x.type.num_elements())
        first = (
            f"static_cast<char*>(workspace)[99] = 1;\n"
            f"for (int i = 0; i < 4; ++i) {parts.name}[i] = 0;\n"
            f"for (int64_t i = 0; i < {size}; ++i) {parts.name}[i % 4] += {x.name}[i];\nreturn 0;\n"
        )
        p = parts.name
        return (
            Emission((), "", first),
            Emission((), "", f"{y.name}[0] = {p}[0] + {p}[1] + {p}[2] + {p}[3];\nreturn 0;\n"),
        )


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kernels, "PROVIDERS", (*kernels.PROVIDERS, PartsReduce()))
    kernels.kernels_of_class.cache_clear()
    yield
    kernels.kernels_of_class.cache_clear()


@pytest.mark.parametrize("choice", ['#ait.kernel<"parts", {}>', RANGES], ids=["alone", "ranges"])
def test_several_launches_of_one_kernel(choice: str, parts: None, tmp_path: Path):
    module = parse(TEXT.replace("CHOICE", choice))
    path = compile_module(module, output=tmp_path / "g.ait", workdir=tmp_path / "work")
    assert "ait_rt.buffer<356 x i8>" in str(module)  # 4 floats, rounded up to 256 bytes, and 100 bytes
    program = (tmp_path / "work" / "program.cc").read_text()
    assert program.count("+ 256") == 2 and len(list((tmp_path / "work").glob("k_reduce*"))) >= 2
    with Model(path) as model:
        for n in (1, 10, 11, 100):
            y = np.full((), np.nan, np.float32)
            model.run({"x": np.arange(n, dtype=np.float32)}, {"y": y})
            assert y == n * (n - 1) / 2


@pytest.mark.parametrize(("kind", "size"), [("sum", 4096), ("var", 3 * 4096)])
def test_a_reduction_on_a_card_is_two_launches(kind: str, size: int):
    """The first writes what passes between them, at the start of the workspace, and the second reads it."""
    text = TEXT.replace("sum", kind).replace("CHOICE", '#ait.kernel<"split", {}>')
    module = run_to_phase(parse(text), "planned", CompileOptions("cuda", "sm_90a"))
    assert f"ait_rt.buffer<{size} x i8>" in str(module)  # 1,024 parts, of a variance of 3 numbers each
    files = emit(module).files
    first, second = (next(t for t in files.values() if f"ait::gpu::{f}<" in t) for f in ("reduce_parts", "join_parts"))
    assert "between0);" in first and "between0, ait::" in " ".join(second.split()) and "float* between0" in first
    assert files["program.cc"].count("(ctx, input0, output0, buffer0, ") == 2


def test_they_are_offered_like_others(parts: None):
    (task,) = tasks_of(TEXT.replace(" {kernel = CHOICE}", ""))
    found = [f for f in candidates_of(task.op, CPU) if f.kernels[0][0] == "parts"]
    assert [f.text for f in found] == ['[null,[["parts",{}]]]'] and 0 < found[0].seconds < 1e-3
    (step,) = steps_of(task.op, found[0], CPU)
    assert isinstance(step.kernel, PartsReduce)


def test_the_code_of_kernels_decides_what_is_remembered(parts: None, monkeypatch: pytest.MonkeyPatch):
    """A kernel more, or other code of one, and a choice is made again; nothing else forgets it."""
    (task,) = tasks_of(TEXT.replace(" {kernel = CHOICE}", ""))
    with_parts = code_digest(task, CPU)
    assert code_digest(task, CPU) == with_parts
    monkeypatch.setattr(PartsReduce, "emit", lambda self, launch: Emission((), "", "return 1;\n"))
    assert code_digest(task, CPU) != with_parts
    kernels.kernels_of_class.cache_clear()
    monkeypatch.setattr(kernels, "PROVIDERS", kernels.PROVIDERS[:-1])
    without = code_digest(task, CPU)
    monkeypatch.setattr("ait_mlir.lowering.build._read", lambda path, modified: "// another header\n")
    assert code_digest(task, CPU) not in (without, with_parts)
