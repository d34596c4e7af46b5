"""Wrong operators: each is refused with its place, and the compiler is usable after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.errors import AitError, CompileError, RunError
from ait_mlir.frontend import BuildError, Tensor, compile_model
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from ait_mlir.operators import (
    Cpp,
    Elementwise,
    Jinja,
    Op,
    OperatorError,
    TensorType,
    load,
    operand_def,
    operator,
    pattern,
    prop_def,
    result_def,
)
from ait_mlir.reference import EvaluationError, evaluate_graph
from ait_mlir.universe import context
from tests.frontend.support import graph_of

HERE = Path(__file__)
GOOD = """
template <class X, class Y>
void same(const ait::Context&, X x, Y y) {
  for (int64_t i = 0; i < x.elements(); ++i) y[i] = x[i];
}
"""


def line_of(text: str, file: Path = HERE) -> int:
    """The line of a file of tests that has `text`, which is written in two parts where the line is asked for."""
    (line,) = [i for i, found in enumerate(file.read_text().splitlines(), 1) if text in found]
    return line


def make(name: str = "bad.same", base: type = Op, **members: object) -> type:
    """A class that copies its operand, with other members; those that are None are left out."""
    found: dict[str, object] = {
        "__module__": __name__,
        "name": name,
        "x": operand_def(TensorType),
        "y": result_def(TensorType),
        "infer_result_types": lambda self: [self.x.type],
        "reference": staticmethod(lambda x, **_: x),
        "kernels": {"cpu": Cpp(GOOD, function="same")},
    } | members
    base = found.pop("base", base)
    return type("Same", (base,), {key: value for key, value in found.items() if value is not None})


def built(op: type, folder: Path) -> object:
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    return compile_model(op.on(x).mark_as_output("y"), "cpu", folder, "bad")


@pattern()
def of_nothing(p) -> None:
    """An operation that does not exist."""
    x = p.value()
    p.replace(p.op("bad.nothing", [x]), x)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"infer_result_types": None}, "bad.same has no shape function; define infer_result_types"),
        ({"reference": None}, "bad.same has no reference"),
        ({"name": "same"}, "has the name 'same'; expected one like 'mine.rotate'"),
        ({"name": "ait.same"}, "has the name 'ait.same'"),
        ({"kernels": {"tpu": Cpp("")}}, "'tpu' is no target; expected gpu or one of cpu, cuda, rocm"),
        ({"kernels": {"cpu": GOOD}}, "expected a Cpp, a Jinja or an Ffi"),
        ({"kernels": 3}, "expected a dict from target to kernel"),
        (
            {"reference": lambda self, x: x},
            r"reference\(self, x\) does not take .* missing a required argument: 'x'; expected a static method, reference\(x\)",
        ),
        (
            {"base": Elementwise, "cpp": "x"},
            r"x is not for every type, but an elementwise operator is one on scalars, too; write x = operand_def\(\)",
        ),
        (
            {"base": Elementwise, "cpp": "x", "x": operand_def()},
            r"y is not for every type, .*; write y = result_def\(\)",
        ),
        ({"option": 3}, "Same.option is neither a function"),
        ({"option": prop_def(TensorType)}, "the property 'option' is declared as"),
        (
            {"patterns": (of_nothing,)},
            r"a pattern is wrong: .*test_bad_operators.py:\d+: unknown operation 'bad.nothing'",
        ),
        ({"patterns": (3,)}, "3 is no pattern"),
        ({"torch": "rotate"}, "'rotate' is no operation of PyTorch"),
        ({"base": object}, "Same is no operator; derive it from"),
        (
            {"base": Elementwise, "x": operand_def(), "y": result_def(), "infer_result_types": None},
            "has no expression; set cpp",
        ),
    ],
)
def test_wrong_classes(members: dict, message: str, tmp_path: Path):
    with pytest.raises(OperatorError, match=message):
        operator(make(**members))
    built(operator(make()), tmp_path)  # the name is free


def test_twice(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "from ait_mlir.operators import *\n@operator\nclass A(Elementwise):\n    name = 'bad.a'\n    x = operand_def()\n    y = result_def()\n    cpp = 'x'\n    reference = staticmethod(lambda x: x)\n"
    )
    (tmp_path / "b.py").write_text((tmp_path / "a.py").read_text())
    load(tmp_path / "a.py")
    with pytest.raises(OperatorError) as error:
        load(tmp_path / "b.py")
    assert f"{tmp_path / 'a.py'}:2" in str(error.value) and f"{tmp_path / 'b.py'}:2" in str(error.value)
    assert load(tmp_path / "a.py") is load(tmp_path / "a.py")
    (tmp_path / "c.py").write_text((tmp_path / "a.py").read_text().replace("@operator", "@operator(replace=True)"))
    load(tmp_path / "c.py")


def test_a_template_that_does_not_render(tmp_path: Path):
    template = """
// one
{% if x.rank == 2 %}
// {{ x.colour }}
{% endif %}
"""
    with pytest.raises(
        AitError, match=rf"test_bad_operators.py:{line_of('x.' + 'colour')}: the template cannot be rendered: .*colour"
    ):
        built(operator(make(kernels={"cpu": Jinja(template)})), tmp_path)
    syntax = "\n{% if " + "%}"
    with pytest.raises(AitError, match="the template cannot be rendered: Expected an expression"):
        built(operator(make("bad.other", kernels={"cpu": Jinja(syntax)})), tmp_path)
    built(operator(make("bad.third")), tmp_path)


@pytest.mark.parametrize("kind", [Cpp, Jinja])
def test_cpp_that_does_not_compile(tmp_path: Path, kind: type):
    text = """
template <class X, class Y>
void wrong(const ait::Context&, X x, Y y) {
  y[0] = x[0] + undeclared_name;
}
"""
    with pytest.raises(CompileError, match=rf"test_bad_operators.py:{line_of('undeclared_' + 'name')}:\d+: error"):
        built(operator(make("bad.wrong", kernels={"cpu": kind(text)})), tmp_path)
    built(operator(make()), tmp_path)


def test_lines_of_a_template_with_loops(tmp_path: Path):
    text = """
{% for i in range(3) %}
#define A{{ i }} \\
  {{ i }}
{% endfor %}
template <class X, class Y>
void looped(const ait::Context&, X x, Y y) {
{% for i in range(3) %}
  y[A{{ i }}] = x[0];
{% endfor %}
  y[0] = x[0] + another_name;
}
"""
    with pytest.raises(CompileError, match=rf"test_bad_operators.py:{line_of('another_' + 'name')}:\d+: error"):
        built(operator(make("bad.looped", kernels={"cpu": Jinja(text)})), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", r"ops.py:1: SyntaxError"),
        ("x = 1\n1 / 0\n", r"ops.py:2: ZeroDivisionError: division by zero"),
        (
            "from ait_mlir.operators import *\n\n@operator\nclass A(Op):\n    name = 'bad.a'\n",
            r"ops.py:3: bad.a has no shape function",
        ),
    ],
)
def test_files_that_fail(tmp_path: Path, text: str, message: str):
    (tmp_path / "ops.py").write_text(text)
    with pytest.raises(OperatorError, match=message):
        load(tmp_path / "ops.py")


def test_files_that_are_missing(tmp_path: Path):
    with pytest.raises(OperatorError, match=r"ops.py: there is no such file"):
        load(tmp_path / "ops.py")
    with pytest.raises(OperatorError, match="expected a file of Python"):
        load(tmp_path)


def test_a_class_without_the_decorator(tmp_path: Path):
    kept = make("bad.plain")  # noqa: F841
    text = "ait.graph @g(%x: !ait.tensor<4 x f32>) {\n  %y = bad.plain %x : !ait.tensor<4 x f32>\n}"
    with pytest.raises(SourceError, match=r"bad.plain is not registered; write @operator above its class at "):
        parse_text(context(), text)


@pytest.mark.parametrize(
    ("infer", "message"),
    [
        (lambda self: [self.x.type.dims[9]], r"shape function failed at .*test_bad_operators.py:\d+: IndexError"),
        (
            lambda self: self.x.type,
            "its shape function returned !ait.tensor<4 x 8 x f32>, expected a list with the type of each result",
        ),
        (lambda self: [self.x.type] * 2, "its shape function returned 2 types, but the op has 1 results"),
        (
            lambda self: [TensorType.get([self.x.type.dims[0] // 0], self.x.type.element_type)],
            "floordiv by 0: division by zero",
        ),
    ],
)
def test_shape_functions_that_fail(infer, message: str):
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    with pytest.raises(BuildError, match=message):
        operator(make(infer_result_types=infer)).on(x)


@pytest.mark.parametrize("expression", ["x + undeclared_word", "(x"])
def test_an_expression_that_does_not_compile(tmp_path: Path, expression: str):
    file = tmp_path / "ops.py"
    file.write_text(
        f"from ait_mlir.operators import *\n@operator\nclass A(Elementwise):\n    name = 'bad.word'\n"
        f"    x = operand_def()\n    y = result_def()\n    cpp = {expression!r}\n    reference = staticmethod(lambda x: x)\n"
    )
    with pytest.raises(CompileError, match=r"ops.py:7: in the expression of bad.word: error: "):
        built(load(file).A, tmp_path)


def test_a_reference_that_fails_names_its_line(tmp_path: Path):
    x = Tensor([4, 8], dtype="float32", name="x", is_input=True)
    op = operator(make(reference=staticmethod(lambda x: x.reshape(5, 5))))
    module = graph_of(op.on(x).mark_as_output("y"))
    with pytest.raises(
        EvaluationError, match=r"reference of bad.same failed at .*test_bad_operators.py:\d+: ValueError"
    ):
        evaluate_graph(module, {"x": np.ones((4, 8), np.float32)}, {}, {})


def test_a_template_that_asks_for_what_tensors_lack(tmp_path: Path):
    text = "void same() {}  // {{ x.dtype }} {{ x.type }}"
    with pytest.raises(AitError, match="cannot be rendered: a tensor has dtype, rank and shape, but no type"):
        built(operator(make(kernels={"cpu": Jinja(text)})), tmp_path)


FAILING = """
#include <stdexcept>

template <class X, class Y>
void failing(const ait::Context& ctx, X x, Y y) {
  if (x[0] == 1) throw std::runtime_error("x is one");
  if (x[0] == 2) throw 2;
  if (x[0] == 3) {
    ctx.fail("x is three");
    return;
  }
  for (int64_t i = 0; i < x.elements(); ++i) y[i] = x[i];
}
"""


def test_a_kernel_that_fails_leaves_the_model_usable(tmp_path: Path):
    model = built(operator(make("bad.failing", kernels={"cpu": Cpp(FAILING)})), tmp_path)
    for value, message in (
        (1, "x is one"),
        (2, "the kernel threw something that is no std::exception"),
        (3, "x is three"),
    ):
        x = np.full((4, 8), value, np.float32)
        with pytest.raises(RunError, match=message):
            model.run({"x": x}, {"y": np.empty_like(x)})
        np.testing.assert_array_equal(model.run({"x": x + 4}, {"y": np.empty_like(x)})["y"], x + 4)


@pytest.mark.parametrize("kind", [Cpp, Jinja])
def test_a_kernel_without_its_function(tmp_path: Path, kind: type):
    with pytest.raises(
        AitError, match=r"test_bad_operators.py:\d+: the kernel has no function 'lost'; call it so, or name it"
    ):
        built(operator(make("bad.lost", kernels={"cpu": kind("void found() {}")})), tmp_path)
