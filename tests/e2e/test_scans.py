"""Scans as loops of launches on the CPU, against the reference."""

from __future__ import annotations

import itertools

import pytest

from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import run_to_phase
from ait_mlir.options import CompileOptions
from tests.e2e.scans import SCANS
from tests.e2e.support import Compiled, compile_graph, joined, parse_graph


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """All graphs side by side in one library."""
    return compile_graph(joined(list(SCANS.values())), tmp_path_factory.mktemp("scans"))


@pytest.mark.parametrize("point", list(itertools.product((0, 1, 3), (0, 1, 2, 5))), ids=str)
def test_against_the_reference(compiled: Compiled, point: tuple[int, int]) -> None:
    dims = {f"{name}{i}": size for i in range(len(SCANS)) for name, size in zip("bs", point, strict=True)}
    problems = compiled.problems(dims, special=point == (3, 5))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("reverse", ["", " reverse"])
def test_a_hidden_state_is_written_once(reverse: str) -> None:
    """A step of a recurrent layer has no copy: the states that it carries are the result."""
    text = SCANS["a cell with weights"].replace("dim 0 {", f"dim 0{reverse} {{")
    planned = parse_graph(text)[0]
    run_to_phase(planned, "planned", CompileOptions("cpu", "native"))
    (loop,) = (op for op in planned.walk() if isinstance(op, LoopOp))
    launched = [op.kernel.string_value() for op in loop.block.ops if isinstance(op, LaunchOp)]
    assert launched and not any("_cop" in name for name in launched), launched
    (slots,) = (op for op in planned.walk() if isinstance(op, AllocOp) and op.buffer in loop.carry)
    assert str(slots.buffer_type.dims[0]) == "s + 1"
