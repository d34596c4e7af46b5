"""What a planned program may not do with its buffers: each is refused at its op, before any C++ is made."""

from __future__ import annotations

import pytest

from ait_mlir.driver import emit
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.source import SourceError, SourceText

KERNELS = """
ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %0 = ait.relu %a : !ait.tensor<b x 8 x f32>
  ait_rt.return %0 : !ait.tensor<b x 8 x f32>
}
ait_rt.kernel @softmax_0 "native" {} (%a: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %0 = ait.softmax %a dim 1 : !ait.tensor<b x 8 x f32>
  ait_rt.return %0 : !ait.tensor<b x 8 x f32>
}
ait_rt.kernel @gemm_0 "openblas" {} (%a: !ait.tensor<b x 8 x f32>, %b: !ait.tensor<8 x 8 x f32>) dims {b = 1 to 4} {
  %0 = ait.gemm rcr %a, %b : !ait.tensor<b x 8 x f32>
  ait_rt.return %0 : !ait.tensor<b x 8 x f32>
}
ait_rt.kernel @packed_0 "packed" {} (%a: !ait.tensor<b x 8 x f32>, %b: !ait.tensor<8 x 8 x f32>) dims {b = 1 to 4} {
  %0 = ait.gemm rcr %a, %b : !ait.tensor<b x 8 x f32>
  ait_rt.return %0 : !ait.tensor<b x 8 x f32>
}
"""
BUFFERS = """
  %x = ait_rt.input "x" : !ait_rt.buffer<b x 8 x f32>
  %y = ait_rt.output "y" : !ait_rt.buffer<b x 8 x f32>
  %w = ait_rt.constant ["w"] : !ait_rt.buffer<8 x 8 x f32>
  %p = ait_rt.constant ["w"] panels nk : !ait_rt.buffer<8 x 8 x f32>
  %q = ait_rt.constant ["w"] panels kn : !ait_rt.buffer<8 x 8 x f32>
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<b x 16 x f32>
  %g = ait_rt.alloc at (256) : !ait_rt.buffer<b x 8 x f32>
"""
VIEW, WEIGHT, THICK = "!ait_rt.buffer<b x 8 x f32>", "!ait_rt.buffer<8 x 8 x f32>", "!ait_rt.buffer<8 x 1 x 8 x f32>"


def program(*lines: str) -> str:
    """A planned module whose program has some buffers and these lines."""
    body = "".join(f"  {line}\n" for line in lines)
    return (
        'builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {'
        + KERNELS
        + "ait_rt.program @p dims {b = 1 to 4} arena (512) {"
        + BUFFERS
        + body
        + "}\n}\n"
    )


def launch(kernel: str, ins: str, outs: str, workspace: str = "") -> str:
    return f"ait_rt.launch @{kernel}_0 ins({ins}) outs({outs}) workspace({workspace}) stream 0"


def view(name: str, source: str, offset: str, strides: str, type_: str = VIEW) -> str:
    return f"%{name} = ait_rt.view %{source} offset ({offset}) strides [{strides}] : {type_}"


FINE = launch("relu", "%x", "%y")
HALVES = (view("l", "h", "0", "16, 1"), view("r", "h", "8", "16, 1"))

RIGHT = {
    "a launch": [FINE],
    "over itself": [launch("relu", "%x", "%g"), launch("relu", "%g", "%g"), launch("relu", "%g", "%y")],
    "halves": [*HALVES, launch("relu", "%x", "%l"), launch("softmax", "%l", "%r"), launch("relu", "%r", "%y")],
    "the last row": [view("v", "w", "8*(b - 1)", "8, 1", "!ait_rt.buffer<1 x 8 x f32>"), FINE],
    "a broadcast": [view("v", "w", "56", "0, 1"), launch("relu", "%v", "%y")],
    "panels": [launch("packed", "%x, %p", "%y")],
    "an empty view": [view("v", "w", "64", "8, 1", "!ait_rt.buffer<0 x 8 x f32>"), FINE],
}

WRONG = {
    "past the end": (
        [view("v", "x", "1", "8, 1"), FINE],
        r"a view of input 'x' reaches element 8\*b, which is not proved to be one of its 8\*b elements",
    ),
    "past the end for some dims": (
        [view("v", "w", "8*b + 8", "8, 1"), FINE],
        r"a view of a constant reaches element 16\*b \+ 7, which is not proved to be one of its 64",
    ),
    "past the end of a view of a view": (
        [view("u", "h", "8", "16, 1"), view("v", "u", "9", "16, 1", "!ait_rt.buffer<b x 1 x f32>"), FINE],
        "a view of %h reaches element",
    ),
    "wide strides": ([view("v", "x", "0", "9, 1"), FINE], "a view of input 'x' reaches element"),
    "before the start": ([view("v", "x", "b - 2", "0, 1"), FINE], "the offset b - 2 of a view of input 'x' is not"),
    "negative strides": ([view("v", "x", "8*b - 1", "-8, -1"), FINE], "the stride -8 of a view of input 'x' is not"),
    "several elements in one place": (
        [view("v", "h", "0", "0, 1"), launch("relu", "%x", "%v"), FINE],
        r"writes %h through strides \[0, 1\]: several elements in one place",
    ),
    "read before it is written": ([launch("relu", "%g", "%y")], "reads %g, which nothing has written yet"),
    "read of an output": ([launch("relu", "%y", "%g"), FINE], "reads output 'y', which nothing has written yet"),
    "read through a view": ([*HALVES, launch("relu", "%r", "%y")], "reads %h, which nothing has written yet"),
    "no output": ([launch("relu", "%x", "%g")], "output 'y' is never written"),
    "over an operand": (
        [launch("relu", "%x", "%g"), launch("softmax", "%g", "%g"), FINE],
        "@softmax_0 writes %g over an operand",
    ),
    "over a shifted operand": (
        [
            *HALVES,
            launch("relu", "%x", "%l"),
            view("s", "h", "0", "8, 1"),
            view("t", "s", "0", "16, 1", "!ait_rt.buffer<b x 16 x f32>"),
            view("u", "t", "0", "16, 1"),
            launch("softmax", "%u", "%l"),
            FINE,
        ],
        "@softmax_0 writes %h over an operand",
    ),
    "strides that the kernel does not take": (
        [view("v", "w", "0", "2, 2"), launch("gemm", "%v, %w", "%y")],
        r"@gemm_0 does not take operand 0 with the strides \[2, 2\]; copy it into a buffer",
    ),
    "panels wanted": (
        [launch("packed", "%x, %w", "%y")],
        "@packed_0 reads operand 1 a constant in panels nk, the buffer is row-major",
    ),
    "other panels": (
        [launch("packed", "%x, %q", "%y")],
        "@packed_0 reads operand 1 a constant in panels nk, the buffer is a constant in panels kn",
    ),
    "panels not wanted": (
        [launch("gemm", "%x, %p", "%y")],
        "@gemm_0 reads operand 1 row-major, the buffer is a constant in panels nk",
    ),
    "a view of panels": (
        [view("v", "p", "0", "8, 1"), launch("relu", "%v", "%y")],
        "views a constant in panels, of which only the whole with its rows can be viewed",
    ),
    "panels in a row": (
        [view("v", "p", "0", "1", "!ait_rt.buffer<64 x f32>"), FINE],
        "views a constant in panels, of which only the whole with its rows can be viewed",
    ),
    "panels with exchanged dims": (
        [view("v", "p", "0", "1, 8", WEIGHT), FINE],
        "views a constant in panels, of which only the whole with its rows can be viewed",
    ),
    "panels in another shape where they are not wanted": (
        [view("v", "p", "0", "8, 8, 1", THICK), view("m", "v", "0", "8, 1", WEIGHT), launch("gemm", "%x, %m", "%y")],
        "@gemm_0 reads operand 1 row-major, the buffer is a constant in panels nk",
    ),
    "a copy of panels in another shape": (
        [view("v", "p", "0", "8, 8, 1", THICK), f"%c = ait_rt.alloc at (256) : {THICK}", "ait_rt.copy %v to %c", FINE],
        "copies a constant in panels, which only launches can read",
    ),
    "a copy of panels": (
        ["%c = ait_rt.alloc at (256) : !ait_rt.buffer<8 x 8 x f32>", "ait_rt.copy %p to %c", FINE],
        "copies a constant in panels, which only launches can read",
    ),
    "an unknown provider": ([FINE], "@relu_0: provider 'oracle' has no kernel for ait.relu on cpu"),
}


def emitted(text: str) -> None:
    module = parse_text(context(), text)
    source = SourceText("<text>", text)
    check(module, source)
    emit(module, source)


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs(name: str) -> None:
    emitted(program(*RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_refused_at_their_op(name: str) -> None:
    lines, message = WRONG[name]
    text = program(*lines)
    if "provider" in name:
        text = text.replace('@relu_0 "native"', '@relu_0 "oracle"')
    with pytest.raises(SourceError, match=rf"^<text>:\d+:\d+: error: .*{message}"):
        emitted(text)


def test_a_plan_in_text_is_verified() -> None:
    text = program(launch("relu", "%x", "%g"), launch("relu", "%g", "%y"))
    emitted(text)
    with pytest.raises(SourceError, match=r"the memory plan of @p is wrong: .* not proved to end within the arena"):
        emitted(text.replace("at (256)", "at (448)"))
    with pytest.raises(SourceError, match="has no place yet; run the pass 'plan-memory' first"):
        emitted(text.replace(" at (256)", ""))


def test_a_workspace_that_is_missing_or_small() -> None:
    """The library gemm of cuBLASLt needs one."""
    kernel = """
ait_rt.kernel @gemm_0 "cublaslt" {} (%a: !ait.tensor<64 x 8 x f16>, %b: !ait.tensor<8 x 8 x f16>) {
  %0 = ait.gemm rcr %a, %b : !ait.tensor<64 x 8 x f16>
  ait_rt.return %0 : !ait.tensor<64 x 8 x f16>
}
"""
    text = (
        'builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {'
        + kernel
        + """
ait_rt.program @p arena (SIZE) {
  %x = ait_rt.input "x" : !ait_rt.buffer<64 x 8 x f16>
  %w = ait_rt.input "w" : !ait_rt.buffer<8 x 8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<64 x 8 x f16>
  %s = ait_rt.alloc at (0) : !ait_rt.buffer<SIZE x i8>
  ait_rt.launch @gemm_0 ins(%x, %w) outs(%y) workspace(%s) stream 0
}
}
"""
    )
    emitted(text.replace("SIZE", str(1 << 27)))
    missing = text.replace("SIZE", str(1 << 27)).replace("workspace(%s)", "workspace()")
    for wrong, given in ((text.replace("SIZE", "64"), 64), (missing, 0)):
        with pytest.raises(SourceError, match=rf"@gemm_0 needs one workspace of \d+ bytes, the launch gives {given}\n"):
            emitted(wrong)
