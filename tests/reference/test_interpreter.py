"""The interpreter of ait_rt: what is wrong with a program's memory shows in its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source, parse_text
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.reference import EvaluationError, run_program

KERNELS = """
ait_rt.kernel @relu "native" {} (%a: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
  %0 = ait.relu %a : !ait.tensor<b x 8 x f16>
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}
ait_rt.kernel @third "native" {} (%a: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%1: f32):
    %c = ait.constant 3.0 : f32
    %2 = ait.div %1, %c : f32
    ait.yield %2 : f32
  } : !ait.tensor<b x 8 x f16>
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}
ait_rt.kernel @add "native" {} (%a: !ait.tensor<b x 8 x f16>, %c: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
  %0 = ait.add %a, %c : !ait.tensor<b x 8 x f16>
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}
ait_rt.kernel @softmax "native" {} (%a: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
  %0 = ait.softmax %a dim 1 : !ait.tensor<b x 8 x f16>
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}
ait_rt.kernel @linear "native" {} (%a: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<6 x 8 x f16>) dims {b = 0 to 4} {
  %0 = ait.gemm rcr %a, %w : !ait.tensor<b x 6 x f16>
  ait_rt.return %0 : !ait.tensor<b x 6 x f16>
}
"""
ROW = "!ait_rt.buffer<b x 8 x f16>"
HEAD = f"""%x = ait_rt.input "x" : {ROW}
%y = ait_rt.output "y" : {ROW}
"""
X = np.linspace(-2, 2, 24).reshape(3, 8).astype(np.float16)


def program(body: str, arena: str = "64*b") -> tuple[ModuleOp, ProgramOp]:
    text = f"{KERNELS}ait_rt.program @p dims {{b = 0 to 4}} arena ({arena}) {{\n{HEAD}{body}\n}}"
    module = parse_text(context(), text)
    found = module.body.block.last_op
    assert isinstance(found, ProgramOp)
    return module, found


def run(body: str, arena: str = "64*b", x: Any = X, **options: bool) -> Any:
    module, root = program(body, arena)
    params = {"w": np.eye(4, 8), "v": np.eye(2, 8) * 2}
    return run_program(module, root, {"x": x}, params, {"b": len(x)}, **options)["y"]


def alloc(name: str, at: str = "") -> str:
    return f"%{name} = ait_rt.alloc {at and f'at ({at})'} : {ROW}\n"


def launch(kernel: str, ins: str, outs: str, workspace: str = "") -> str:
    return f"ait_rt.launch @{kernel} ins({ins}) outs({outs}) workspace({workspace}) stream 0\n"


GOOD = alloc("h", "0") + alloc("g", "16*b") + launch("third", "%x", "%h") + launch("third", "%h", "%g")
GOOD += launch("add", "%h, %g", "%y")


def test_buffers_round_to_their_storage() -> None:
    h = (X / np.float32(3)).astype(np.float16)
    g = (h / np.float32(3)).astype(np.float16)
    found = run(GOOD, strict=True)
    assert found.dtype == np.float16
    assert (found == h + g).all()


def test_exact_mode_rounds_nothing() -> None:
    found = run(GOOD, exact=True, strict=True)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, X.astype(np.float64) * (1 / 3 + 1 / 9), rtol=1e-14)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("offset", ["0", "16*b - 2", "8*b", "2"])
def test_a_changed_offset_shows_as_nan(offset: str, exact: bool) -> None:
    body = alloc("h", "0") + alloc("g", "16*b") + launch("relu", "%x", "%h") + launch("third", "%x", "%g")
    body += launch("add", "%h, %g", "%y")
    assert not np.isnan(run(body, exact=exact, strict=True)).any()
    body = body.replace("at (16*b)", f"at ({offset})")
    assert np.isnan(run(body, exact=exact)).any()
    with pytest.raises(EvaluationError, match=r"operand 0 of @add reads .* of 24 elements of buffer %h"):
        run(body, exact=exact, strict=True)


def test_reuse_after_the_last_read_is_fine() -> None:
    body = alloc("h", "0") + launch("relu", "%x", "%h") + alloc("g", "16*b") + launch("relu", "%h", "%g")
    body += alloc("f", "0") + launch("relu", "%g", "%f") + launch("relu", "%f", "%y")
    assert (run(body, strict=True) == np.maximum(X, 0)).all()


def test_reading_what_nobody_wrote_is_nan() -> None:
    assert np.isnan(run(alloc("h", "0") + launch("relu", "%h", "%y"))).all()
    assert np.isnan(run(alloc("h") + launch("relu", "%h", "%y"))).all()
    assert np.isnan(run("")).all()
    with pytest.raises(EvaluationError, match="operand 0 of @relu reads 24 of 24 elements of buffer %h"):
        run(alloc("h", "0") + launch("relu", "%h", "%y"), strict=True)
    with pytest.raises(EvaluationError, match="output 'y'"):
        run("", strict=True)


def test_a_workspace_is_worthless_after_the_launch() -> None:
    scratch = "%s = ait_rt.alloc at (16*b) : !ait_rt.buffer<16 x i8>\n"
    body = alloc("h", "0") + scratch + launch("relu", "%x", "%h", "%s") + launch("relu", "%h", "%y")
    assert (run(body, strict=True) == np.maximum(X, 0)).all()
    overlapping = body.replace("at (16*b)", "at (4)")
    with pytest.raises(EvaluationError, match="two results to one place"):
        run(overlapping)
    kept = alloc("h", "0") + launch("relu", "%x", "%h") + scratch.replace("at (16*b)", "at (4)") + alloc("g", "16*b")
    assert np.isnan(run(kept + launch("relu", "%x", "%g", "%s") + launch("relu", "%h", "%y"))).any()


def test_only_elementwise_kernels_work_in_place() -> None:
    body = alloc("h", "0") + launch("relu", "%x", "%h") + launch("third", "%h", "%h") + launch("relu", "%h", "%y")
    assert (run(body, strict=True) == (np.maximum(X, 0) / np.float32(3)).astype(np.float16)).all()
    with pytest.raises(EvaluationError, match="@softmax writes buffer %h over its operand buffer %h"):
        run(body.replace("@third", "@softmax"))
    shifted = alloc("h", "0") + alloc("g", "2") + launch("relu", "%x", "%h") + launch("relu", "%h", "%g")
    with pytest.raises(EvaluationError, match="@relu writes buffer %g over its operand buffer %h"):
        run(shifted)


def test_views_stay_inside_their_buffer() -> None:
    view = "%v = ait_rt.view %h offset (8) strides [8, 1] : !ait_rt.buffer<b x 8 x f16>\n"
    with pytest.raises(EvaluationError, match=r"a view of buffer %h reaches bytes \[16, 64\) .* \[0, 48\)"):
        run(alloc("h", "0") + view)
    with pytest.raises(EvaluationError, match=r"buffer %h reaches .* the memory has 8 bytes"):
        run(alloc("h", "0"), arena="8")


def test_interleaved_views_do_not_overlap() -> None:
    body = "%h = ait_rt.alloc at (0) : !ait_rt.buffer<b x 16 x f16>\n"
    for name, offset in (("l", 0), ("r", 8)):
        body += f"%{name} = ait_rt.view %h offset ({offset}) strides [16, 1] : {ROW}\n"
    body += launch("relu", "%x", "%l") + launch("softmax", "%l", "%r") + "ait_rt.copy %r to %y\n"
    expected = np.exp(np.maximum(X, 0).astype(np.float64))
    found = run(body, exact=True, strict=True)
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=1e-12)


def test_views_of_views_and_permuted_strides() -> None:
    body = "%v = ait_rt.view %x offset (8) strides [8, 1] : !ait_rt.buffer<2 x 8 x f16>\n"
    body += "%w = ait_rt.view %v offset (8) strides [1, 1] : !ait_rt.buffer<8 x 1 x f16>\n"
    body += "%z = ait_rt.view %y offset (0) strides [1, 1] : !ait_rt.buffer<8 x 1 x f16>\nait_rt.copy %w to %z"
    found = run(body)
    assert (found[0] == X[2]).all() and np.isnan(found[1:]).all()


def test_constants_are_laid_end_to_end() -> None:
    body = 'ait_rt.constant ["w", "v"] rows [4, 2] : !ait_rt.buffer<6 x 8 x f16>\n'
    body = f"%w = {body}%h = ait_rt.alloc at (0) : !ait_rt.buffer<b x 6 x f16>\n" + launch("linear", "%x, %w", "%h")
    body += "%o = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<b x 6 x f16>\nait_rt.copy %h to %o"
    found = run(body)
    assert (found[:, :4] == X[:, :4]).all() and (found[:, 4:6] == X[:, :2] * 2).all()


def test_inputs_and_constants_are_read_only() -> None:
    """The verifier says so first; the interpreter does not rely on it."""
    body = alloc("h", "0") + launch("relu", "%x", "%h") + "ait_rt.copy %h to %x"
    with pytest.raises(SourceError, match="writes input 'x'"):
        run(body)
    text = f"{KERNELS}ait_rt.program @p dims {{b = 0 to 4}} arena (64*b) {{\n{HEAD}{body}\n}}"
    module = parse_source(context(), SourceText("p.mlir", text))
    root = module.body.block.last_op
    assert root is not None
    with pytest.raises(EvaluationError, match="input 'x' is read-only"):
        run_program(module, root, {"x": X}, {}, {"b": 3})


def test_an_empty_batch() -> None:
    assert run(GOOD, x=np.zeros((0, 8), np.float16), strict=True).shape == (0, 8)


def test_integers_of_nobody_are_an_error() -> None:
    text = """ait_rt.program @p arena (64) {
      %h = ait_rt.alloc at (0) : !ait_rt.buffer<4 x i32>
      %y = ait_rt.output "y" : !ait_rt.buffer<4 x i32>
      ait_rt.copy %h to %y
    }"""
    module = parse_text(context(), text)
    root = module.body.block.first_op
    assert root is not None
    with pytest.raises(EvaluationError, match="4 of the 4 integers read from buffer %h were never written"):
        run_program(module, root, {}, {}, {})
