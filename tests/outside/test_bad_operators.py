"""Wrong operators: each is refused with its place, and the compiler is usable after it."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import Attribute

from ait_mlir import outside
from ait_mlir.errors import AitError, CompileError, RunError
from ait_mlir.frontend import BuildError, Tensor, compile_model
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from ait_mlir.operators import (
    Cpp,
    Elementwise,
    Jinja,
    Op,
    OperatorError,
    TensorType,
    bf16,
    f32,
    i1,
    i8,
    i32,
    load,
    operand_def,
    operator,
    pattern,
    prop_def,
    result_def,
)
from ait_mlir.reference import EvaluationError, evaluate_graph
from ait_mlir.tools.run_lines import Outcome, run_ait_opt
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
    """A class that copies its operand, with other members; members that are None are left out."""
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


ONE = """
@operator
class {name}(Elementwise):
    name = "bad.one"
    x = operand_def()
    y = result_def()
    cpp = "x"
    reference = staticmethod(lambda x: x)
"""
IMPORT = "from ait_mlir.operators import *\n"


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        (IMPORT + ONE.format(name="A") + ONE.format(name="B"), 3, 11),
        (IMPORT + ONE.format(name="A") + ONE.format(name="A"), 3, 11),
        (IMPORT + "def make():" + (ONE + ONE).format(name="A").replace("\n", "\n    ") + "\nmake()\n", 3, 11),
    ],
)
def test_twice_in_one_file(tmp_path: Path, text: str, first: int, second: int):
    file = tmp_path / "ops.py"
    file.write_text(text)
    with pytest.raises(OperatorError) as error:
        load(file)
    assert f"two operators are called 'bad.one': {file}:{first} and {file}:{second}; rename one" in str(error.value)
    assert "bad.one" not in outside.rows()


def test_a_file_that_runs_again_replaces_its_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "ops_again.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    two = ONE.format(name="A") + ONE.format(name="B").replace("@operator", "@operator(replace=True)")
    file.write_text(IMPORT + two)
    module = importlib.import_module("ops_again")
    assert outside.rows()["bad.one"].op is module.B
    for text in (two, "\n\n" + two, ONE.format(name="C")):  # the same, with lines that moved, with fewer operators
        file.write_text(IMPORT + text)
        importlib.invalidate_caches()
        importlib.reload(module)
        made = module.C if "class C" in text else module.B
        assert outside.rows()["bad.one"].op is made
        assert outside.rows()["bad.one"].place.startswith(f"{file}:")
    runpy.run_path(str(file))
    assert outside.rows()["bad.one"].op is not module.C
    del sys.modules["ops_again"]


def test_a_function_that_is_called_again_replaces_its_operators():
    def make_both() -> tuple[type, type]:
        first = operator(make())
        return first, operator(replace=True)(make())

    made = [make_both()[1] for _ in range(3)]
    assert outside.rows()["bad.same"].op is made[-1]


def test_a_name_of_another_file_that_was_replaced(tmp_path: Path):
    (tmp_path / "first.py").write_text(IMPORT + ONE.format(name="A"))
    (tmp_path / "second.py").write_text(
        IMPORT + ONE.format(name="A").replace("@operator", "@operator(replace=True)") + ONE.format(name="B")
    )
    load(tmp_path / "first.py")
    with pytest.raises(OperatorError, match=r"second.py:3 and .*second.py:11"):
        load(tmp_path / "second.py")
    assert outside.rows()["bad.one"].place == f"{tmp_path / 'first.py'}:3"


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
        (lambda self: [self.x.type] * 2, "its shape function returned 2 types, but the op has 1 result$"),
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


MODEL = """ait.graph @f(%x: !ait.tensor<n x 8 x f32>) dims {n = 2 to 9} {
  %t = ait.tanh %x : !ait.tensor<n x 8 x f32>
  %y = bad.same %t : !ait.tensor<n x 8 x {type}>
  %z = bad.same %t : !ait.tensor<n x 8 x {type}>
  ait.output "y" %y : !ait.tensor<n x 8 x {type}>
  ait.output "z" %z : !ait.tensor<n x 8 x {type}>
}
"""


def checked(reference: object, tmp_path: Path, type_: Attribute = f32) -> Outcome:
    """`ait-opt --check-semantics` of a model with an operator that has this reference."""

    def infer(self: Op) -> list[Attribute]:
        return [TensorType.get(self.x.type.dims, type_)]

    operator(make(reference=reference, infer_result_types=infer))
    (tmp_path / "model.mlir").write_text(MODEL.replace("{type}", str(type_)))
    return run_ait_opt([str(tmp_path / "model.mlir"), "-p", "simplify", "--check-semantics"])


def of_another_shape(x):
    return x[:, :4]


def of_two_results(x):
    return x, x


def failing(x):
    return x.reshape(5, 5)


def ragged(x):
    return np.array([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("reference", "type_", "message"),
    [
        (of_another_shape, f32, r"at {place} made shape (2, 4) where !ait.tensor<n x 8 x f32> is (2, 8) at n = 2"),
        (of_two_results, f32, "at {place} made 2 results, but the op has 1 at n = 2"),
        (failing, f32, "failed at {next}: ValueError: cannot reshape"),
        (ragged, f32, "failed at {next}: ValueError"),
        (lambda x: [[1.0], [1.0, 2.0]], f32, "made 2 results, but the op has 1"),
        (lambda x: x * 2, i32, "made float64 where !ait.tensor<n x 8 x i32> has no floats; return integers, as with .astype(np.int32)"),
        (lambda x: x * 2, i1, "made float64 where !ait.tensor<n x 8 x i1> has no floats; return integers, as with .astype(bool)"),
        (lambda x: x * 1j, f32, "made complex128 where the type is !ait.tensor<n x 8 x f32>, expected numbers"),
        (lambda x: x * 1j, i32, "made complex128 where the type is !ait.tensor<n x 8 x i32>, expected integers"),
        (lambda x: x.astype(str), f32, "expected numbers"),
        (lambda x: None, f32, "made object where the type is"),
    ],
)  # fmt: skip
def test_a_wrong_reference_is_an_error_of_check_semantics(reference, type_, message: str, tmp_path: Path):
    line = reference.__code__.co_firstlineno
    found = checked(staticmethod(reference), tmp_path, type_)
    expected = message.replace("{place}", f"{HERE}:{line}").replace("{next}", f"{HERE}:{line + 1}")
    assert found.code == 1 and found.stdout == ""
    assert found.stderr.startswith(f"{tmp_path / 'model.mlir'}:3:")
    assert "error: the reference of bad.same " in found.stderr and expected in found.stderr
    assert found.stderr.count("reference of bad.same") == 1 and "semantics" not in found.stderr


@pytest.mark.parametrize(
    ("reference", "type_"),
    [
        (lambda x: np.rint(x).astype(int), f32),
        (lambda x: x > 0, f32),
        (lambda x: x.astype(np.float16), f32),
        (lambda x: x.astype(ml_dtypes.bfloat16), f32),
        (lambda x: x.astype(ml_dtypes.bfloat16), bf16),
        (lambda x: np.zeros(x.shape, np.int64), i32),
        (lambda x: np.zeros(x.shape, np.uint8), i8),
        (lambda x: x > 0, i32),
        (lambda x: (x > 0).astype(int), i1),
        (lambda x: [x], f32),
    ],
)
def test_a_reference_may_make_any_kind_of_numbers_that_the_type_has(reference, type_, tmp_path: Path):
    found = checked(staticmethod(reference), tmp_path, type_)
    assert found.code == 0 and "not tried" not in found.stderr


def test_a_reference_that_fails_at_other_dims_or_on_nan_is_not_tried(tmp_path: Path):
    """The model declares n from 2 up; the points 0 and 1 are those of the checker."""

    def picky(x):
        if len(x) < 2 or np.isnan(x).any():
            raise ValueError("two rows of numbers are needed")
        return x

    found = checked(staticmethod(picky), tmp_path)
    assert found.code == 0 and "nothing was compared: no pass changed the module" in found.stderr
    tried = [line for line in found.stderr.splitlines() if "not tried" in line]
    assert len(tried) == 3 and all("two rows of numbers are needed" in line for line in tried)


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


FOR_FLOATS = """
void for_floats(const ait::Context&, ait::Tensor<const float, 2> x, ait::Tensor<float, 2> y) {
  for (int64_t i = 0; i < x.elements(); ++i) y[i] = x[i];
}
"""


@pytest.mark.parametrize("kind", [Cpp, Jinja])
def test_a_kernel_for_another_element_type(tmp_path: Path, kind: type):
    op = operator(make("bad.for_floats", kernels={"cpu": kind(FOR_FLOATS)}))
    built(op, tmp_path)
    x = Tensor([4, 8], dtype="float16", name="x", is_input=True)
    with pytest.raises(CompileError) as error:
        compile_model(op.on(x).mark_as_output("y"), "cpu", tmp_path, "bad")
    first, second, third = str(error.value).splitlines()[:3]
    assert first.startswith("the compiler refused ")
    assert second == (
        f"  {HERE}:{line_of('FOR_FLOATS = ' + chr(34))}: the kernel of bad.for_floats does not compile where x is f16, "
        "y is f16; if it is not for these element types, refuse them in infer_result_types:"
    )
    assert "error" in third


def test_a_mistake_in_a_kernel_says_nothing_of_f32(tmp_path: Path):
    wrong = FOR_FLOATS.replace("x[i]", "z[i]")
    with pytest.raises(CompileError, match=r"bad\.for_floats does not compile where x is f32, y is f32:") as error:
        built(operator(make("bad.for_floats", kernels={"cpu": Cpp(wrong)})), tmp_path)
    assert "infer_result_types" not in str(error.value)


@pytest.mark.parametrize("kind", [Cpp, Jinja])
def test_a_kernel_without_its_function(tmp_path: Path, kind: type):
    with pytest.raises(
        AitError, match=r"test_bad_operators.py:\d+: the kernel has no function 'lost'; call it so, or name it"
    ):
        built(operator(make("bad.lost", kernels={"cpu": kind("void found() {}")})), tmp_path)
