"""Operators with their own Jinja2 templates: the tutorial's, and others, from text and from Python."""

from __future__ import annotations

from pathlib import Path

import jinja2
import numpy as np
import pytest

from ait_mlir import driver, outside
from ait_mlir.backend import registry
from ait_mlir.backend.backend_spec import CPUSpec, CUDASpec, ROCMSpec
from ait_mlir.backend.target import Target
from ait_mlir.compiler.base import IntVar, Operator, Tensor
from ait_mlir.compiler.transform import constant_folding
from ait_mlir.errors import AitError, CompileError
from ait_mlir.frontend import BuildError, build_module, compile_model, external, ops
from ait_mlir.frontend import registry as functions
from ait_mlir.frontend.wiring import toposort
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.module_target import target_of
from ait_mlir.options import CompileOptions
from ait_mlir.outside import OperatorError
from tests.outside import add_one, add_one_cpu
from tests.outside.test_bad_operators import line_of as _line_of
from tests.outside.test_operators import TARGETS

HERE = Path(__file__)
CPU = add_one_cpu.add_one


def line_of(text: str) -> int:
    return _line_of(text, HERE)


@pytest.fixture(autouse=True)
def _own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_functions", dict(functions._functions))
    monkeypatch.setattr(external, "_classes", {})


# ** the tutorial **


def test_the_tutorial_on_the_cpu(tmp_path: Path):
    y = add_one.create_ait_model([16, 512])
    model = compile_model(y, "cpu", tmp_path, "add_one")
    x = np.random.default_rng(0).standard_normal((16, 512)).astype(np.float16)
    np.testing.assert_array_equal(model.run({"X": x}, {"Y": np.empty_like(x)})["Y"], x + np.float16(1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [[16, 512], [IntVar([0, 64], name="batch"), 512]])
def test_the_tutorial_compiles_for_gpus(tmp_path: Path, target: str, shape: list):
    module = build_module(add_one.create_ait_model(shape))
    driver.run_to_phase(module, "planned", CompileOptions(target))
    files = driver.emit(module).joined()
    (name,) = [name for name in files if "add_one" in name]
    assert build_library({name: files[name]}, target_of(module), tmp_path).is_file()


def test_it_is_an_op_of_the_compiler(tmp_path: Path):
    x = Tensor([IntVar([0, 64], name="batch"), 8], name="x", is_input=True)
    once = CPU()(ops.elementwise(ops.FuncEnum.RELU)(x))
    module = build_module((CPU()(once) * once).mark_as_output("y"))
    text = str(module)
    assert text.count("external.add_one") == 2 and "external.add_one %0 : !ait.tensor<batch x 8 x f16>" in text
    assert str(parse_text(context(), text)) == text
    driver.run_to_phase(module, "planned")
    planned = str(module)
    assert "arena (" in planned and planned.count("ait_rt.kernel @external_add_one") == 1  # both share one kernel
    (tmp_path / "planned.mlir").write_text(planned)
    again, _ = driver.read_module(tmp_path / "planned.mlir")
    driver.compile_module(again, output=tmp_path / "m.ait")
    from ait_mlir.runtime import Model

    model = Model(tmp_path / "m.ait")
    for batch in (0, 3):
        data = np.random.default_rng(batch).standard_normal((batch, 8)).astype(np.float16)
        relu = np.maximum(data, 0)
        found = model.run({"x": data}, {"y": np.empty_like(data)})["y"]
        np.testing.assert_allclose(found, (relu + 2) * (relu + 1), rtol=2e-3)


def test_text_needs_a_class(tmp_path: Path):
    registry.reg("cpu.nobody.gen_function", lambda attrs: "")
    with pytest.raises(SourceError, match=r'external.nobody: it has no shape function: no class .* "nobody"'):
        parse_text(
            context(), "ait.graph @f(%x: !ait.tensor<4 x f16>) {\n  %y = external.nobody %x : !ait.tensor<4 x f16>\n}"
        )


def test_the_shape_function_checks_text():
    str(build_module(add_one.create_ait_model([4, 8])))
    wrong = "ait.graph @f(%x: !ait.tensor<4 x f16>) {\n  %y = external.add_one %x : !ait.tensor<5 x f16>\n}"
    with pytest.raises(
        SourceError, match=r"2:3: error: external.add_one: the result is .*5 x f16.*, expected .*4 x f16"
    ):
        parse_text(context(), wrong)


# ** options **

SCALE = jinja2.Template(
    """
void {{name}}(const float* x, float* plus, float* minus, int64_t n, float by, int times) {
  for (int64_t i = 0; i < n; ++i) {
    plus[i] = times * (x[i] * by);
    minus[i] = -plus[i];
  }
}
"""
)


class scale(Operator):
    """x times a factor, and its negative."""

    def __init__(self, factor: float, names=None) -> None:
        super().__init__()
        self._attrs["op"] = "scale"
        self._attrs["factor"] = factor
        self._attrs["times"] = 1
        self.names = names

    def __call__(self, x: Tensor, shift: int = 0) -> list[Tensor]:
        self._attrs["inputs"] = [x]
        self._attrs["shift"] = shift
        self._set_depth()
        made = [Tensor(x.shape(), src_ops={self}, dtype=x.dtype()) for _ in range(2)]
        self._attrs["outputs"] = made
        return made

    def gen_function(self) -> str:
        return registry.get(f"{Target.current().name()}.{self._attrs['op']}.gen_function")(self._attrs)

    def reference(self, x):
        y = x * self._attrs["factor"] * self._attrs["times"]
        return y, -y


def _register_scale() -> None:
    registry.reg("cpu.scale.gen_function", lambda attrs: SCALE.render(name=attrs["name"]))
    registry.reg(
        "cpu.scale.func_decl", lambda attrs: f"void {attrs['name']}(const float*, float*, float*, int64_t, float, int);"
    )

    @registry.reg("cpu.scale.func_call")
    def call(attrs, indent="  "):
        (x,), outs = attrs["inputs"], attrs["outputs"]
        size = " * ".join(dim._attrs["name"] for dim in x.shape())
        names = ", ".join(t._attrs["name"] for t in (x, *outs))
        return f"{indent}{attrs['name']}({names}, {size}, {attrs['factor']}, {attrs['times']});"


def test_options_and_several_results(tmp_path: Path):
    _register_scale()
    x = Tensor([IntVar([1, 9], name="n"), 2], dtype="float32", name="x", is_input=True)
    operator = scale(1.5, names=["a", None])
    operator._attrs["times"] = 2
    plus, minus = operator(x, shift=3)
    outputs = [plus.mark_as_output("plus"), minus.mark_as_output("minus")]
    text = str(build_module(outputs))
    options = 'options {factor = 1.500000e+00 : f64, names = ["a", unit]}'
    call = "call {args = [0 : index], kwargs = {shift = 3 : i64}}"
    assert f"external.scale %x {options} {call} attrs {{times = 2 : i64, shift = 3 : i64}} : " in text
    assert str(parse_text(context(), text)) == text
    model = compile_model(outputs, "cpu", tmp_path, "scale")
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    made = model.run({"x": data}, {"plus": np.empty_like(data), "minus": np.empty_like(data)})
    np.testing.assert_array_equal(made["plus"], 3 * data)
    np.testing.assert_array_equal(made["minus"], -3 * data)


def test_a_reference_is_used(tmp_path: Path):
    from ait_mlir.reference import EvaluationError, evaluate_graph

    _register_scale()
    x = Tensor([4], dtype="float32", name="x", is_input=True)
    module = build_module([t.mark_as_output(n) for t, n in zip(scale(2.0)(x), ("p", "m"), strict=True)])
    (graph,) = module.ops
    assert list(evaluate_graph(graph, {"x": np.arange(4.0)}, {}, {})["m"]) == [0, -2, -4, -6]
    (graph,) = build_module(add_one.create_ait_model([4])).ops
    with pytest.raises(EvaluationError, match=r"external.add_one has no reference; give its class a method reference"):
        evaluate_graph(graph, {"X": np.arange(4.0)}, {}, {})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda x: x.reshape(3, 3), r"failed at .*test_templates.py:\d+: ValueError: cannot reshape"),
        (lambda x: x[:2], r"at .*test_templates.py:\d+ made shape \(2,\) where !ait.tensor<4 x f16> is \(4,\)"),
        (lambda x: (x, x), r"at .* made 2 results, but the op has 1"),
        (lambda x: x * 1j, r"at .* made complex128"),
    ],
)
def test_a_reference_that_is_wrong_names_its_place(made, message: str, monkeypatch: pytest.MonkeyPatch):
    from ait_mlir.reference import EvaluationError, evaluate_graph

    monkeypatch.setattr(CPU, "reference", lambda self, x: made(x), raising=False)
    x = Tensor([4], dtype="float32", name="x", is_input=True)
    (graph,) = build_module(CPU()(x).mark_as_output("y")).ops
    with pytest.raises(EvaluationError, match=rf"the reference of external.add_one {message}"):
        evaluate_graph(graph, {"x": np.arange(4.0)}, {}, {})


def test_options_that_are_no_text(tmp_path: Path):
    _register_scale()
    x = Tensor([4], dtype="float32", name="x", is_input=True)
    with pytest.raises(BuildError, match=r"scale\(.* cannot be written as text: .* is a object; expected numbers"):
        build_module(scale(2.0, names=object())(x)[0].mark_as_output("y"))


def test_nop_is_a_view():
    class flat(Operator):
        def __call__(self, x: Tensor) -> Tensor:
            self._attrs["nop"] = True
            self._attrs["inputs"] = [x]
            y = Tensor([x.shape()[0] * 8], src_ops={self})
            self._attrs["outputs"] = [y]
            return y

        def gen_function(self) -> str:
            raise AssertionError("an operator that does nothing has no function")

    x = Tensor([IntVar([1, 4], name="n"), 8], name="x", is_input=True)
    assert "ait.reshape %x : !ait.tensor<(8*n) x f16>" in str(build_module(flat()(x).mark_as_output("y")))


# ** targets and names **


def test_the_current_target():
    with pytest.raises(BuildError, match="there is no current target"):
        Target.current()
    with Target("cuda", "sm_90a") as outer:
        with Target("cpu"):
            assert Target.current().name() == "cpu"
        assert Target.current() is outer


def test_specs():
    assert [spec().prefix for spec in (CUDASpec, ROCMSpec, CPUSpec)] == ["cuda", "hip", "cpu"]
    assert (
        CUDASpec().dtype_to_backend_type("float16") == "half" and ROCMSpec().dtype_to_backend_type("float32") == "float"
    )
    with pytest.raises(BuildError, match="cuda has no type for 'complex64'"):
        CUDASpec().dtype_to_backend_type("complex64")


# ** bad input **


def test_functions_registered_twice():
    with pytest.raises(
        OperatorError,
        match=r"'cuda.add_one.func_decl' is registered twice: .*add_one.py:\d+ and .*test_templates.py:\d+",
    ):
        registry.reg("cuda.add_one.func_decl", lambda attrs: "")
    with pytest.raises(
        RuntimeError,
        match=r"no function is registered as 'cuda.add_one.func_dcl'; did you mean 'cuda.add_one.func_decl'",
    ):
        registry.get("cuda.add_one.func_dcl")
    with pytest.raises(OperatorError, match="'add_one' is no key"):
        registry.reg("add_one")(lambda attrs: "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%x options 3", "2:38: error: expected ':' and the types of the results"),
        (
            "%x options {factor = 1.0 : f64, colour = 3 : i64}",
            "2:3: error: external.scale: its constructor failed: scale: got an unexpected",
        ),
        (
            '%x options {factor = "a"}',
            "2:3: error: external.scale: its constructor failed: scale: factor must be a number",
        ),
        ("%x", "2:3: error: external.scale: its constructor failed: scale: missing a required argument: 'factor'"),
        ("%x options {factor = 2.0 : f64} call {args = [7 : index]}", "its call failed: there is no operand 7"),
        ("%x options {factor = 2.0 : f64} call {args = 3 : i64}", "2:3: error: external.scale: its call failed"),
        (
            "%x, %x options {factor = 2.0 : f64}",
            "2:3: error: external.scale: its call failed: scale: shift must be an int",
        ),
        (
            "%x options {factor = dense<1> : tensor<2xi32>}",
            "2:3: error: external.scale: its constructor failed: an operator has no option like dense",
        ),
        (
            "%x factor 2.0",
            "2:30: error: expected ':' and the types of the results; arguments of an operator's constructor are written "
            "as in: options {scale = 2.0}",
        ),
    ],
)
def test_text_that_is_wrong(text: str, message: str):
    _register_scale()
    type_ = "!ait.tensor<4 x f32>"
    with pytest.raises(SourceError) as error:
        parse_text(context(), f"ait.graph @f(%x: {type_}) {{\n  %y, %z = external.scale {text} : {type_}, {type_}\n}}")
    assert message in str(error.value)


def test_two_classes_of_one_name(tmp_path: Path):
    class other(add_one.add_one):
        pass

    build_module(add_one.create_ait_model([4]))
    x = Tensor([4], name="x", is_input=True)
    with pytest.raises(
        OperatorError, match=r"two classes of operators have .* 'add_one': .*add_one.py:\d+ and .*; it has to be unique"
    ):
        build_module(other()(x).mark_as_output("y"))


class _Unary(Operator):
    """One operand, one result of its type; `_attrs["op"]` is the name of the class."""

    def __call__(self, x: Tensor) -> Tensor:
        self._attrs["inputs"] = [x]
        y = Tensor(x.shape(), src_ops={self}, dtype=x.dtype())
        self._attrs["outputs"] = [y]
        return y

    def gen_function(self) -> str:
        return registry.get(f"{Target.current().name()}.{self._attrs['op']}.gen_function")(self._attrs)


def built(cls: type[Operator], folder: Path):
    x = Tensor([4], dtype="float32", name="x", is_input=True)
    return compile_model(cls()(x).mark_as_output("y"), "cpu", folder, "bad")


def register(name: str, source: object, call: str = "  {}(in0, out0);") -> None:
    registry.reg(f"cpu.{name}.gen_function", source)
    registry.reg(f"cpu.{name}.func_decl", lambda attrs: f"void {attrs['name']}(const float*, float*);")
    registry.reg(f"cpu.{name}.func_call", lambda attrs, indent="  ": call.format(attrs["name"]))


WRONG = jinja2.Template(
    """
void {{name}}(const float* x, float* y) {
  y[0] = {{ 1 // nothing_at_all }};
}
"""
)
REFUSED = jinja2.Template(
    """
void {{name}}(const float* x, float* y) {
  y[0] = x[0] + a_name_that_is_missing;
  {{spare}}
}
"""
)


def test_a_template_that_does_not_render(tmp_path: Path):
    class wrong(_Unary):
        pass

    register("wrong", lambda attrs: WRONG.render(name=attrs["name"]))
    with pytest.raises(
        AitError,
        match=rf"test_templates.py:{line_of('1 // nothing_' + 'at_all')}: gen_function failed: UndefinedError: 'nothing_at_all' is undefined",
    ):
        wrong()._attrs["op"] = "wrong"
        built(wrong, tmp_path)
    y = add_one.create_ait_model([16, 512])
    compile_model(y, "cpu", tmp_path, "add_one")


def test_cpp_that_does_not_compile(tmp_path: Path):
    class refused(_Unary):
        pass

    register("refused", lambda attrs: REFUSED.render(name=attrs["name"]))
    with pytest.raises(CompileError, match=rf"test_templates.py:{line_of('a_name_that_' + 'is_missing')}:\d+: error"):
        built(refused, tmp_path)

    class called(_Unary):
        pass

    register("called", lambda attrs: SCALE.render(name=attrs["name"]))
    with pytest.raises(CompileError, match="error: "):
        built(called, tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda attrs: None, "gen_function returned None; expected a string of C\\+\\+"),
        (lambda attrs: "void other() {}", "gen_function does not define the function unnamed_"),
        (lambda attrs: 1 / 0, r"test_templates.py:\d+: gen_function failed: ZeroDivisionError: division by zero"),
        (lambda attrs: attrs["nothing"], r"test_templates.py:\d+: gen_function failed: KeyError: 'nothing'"),
    ],
)
def test_functions_that_fail(tmp_path: Path, source: object, message: str):
    class unnamed(_Unary):
        pass

    register("unnamed", source)
    with pytest.raises(AitError, match=message):
        built(unnamed, tmp_path)


def test_operators_without_what_they_need(tmp_path: Path):
    class nameless(_Unary):
        pass

    with pytest.raises(AitError, match=r"no kernel for external.nameless on cpu .* it has no kernels; add one for cpu"):
        built(nameless, tmp_path)
    registry.reg("cpu.nameless.func_call", lambda attrs, indent: "")
    with pytest.raises(AitError, match=r"no function is registered as 'cpu.nameless.gen_function'"):
        built(nameless, tmp_path)

    class shapeless(Operator):
        def __call__(self, x: Tensor) -> Tensor:
            self._attrs["inputs"] = [x]
            return Tensor(x.shape(), src_ops={self}, dtype=x.dtype())

        def gen_function(self) -> str:
            return ""

    with pytest.raises(
        BuildError, match=r"shapeless is in src_ops of .* but the tensor is not in the operator's outputs"
    ):
        built(shapeless, tmp_path)

    class blind(_Unary):
        def __call__(self, x: Tensor) -> Tensor:
            y = Tensor(x.shape(), src_ops={self}, dtype=x.dtype())
            self._attrs["inputs"], self._attrs["outputs"] = [], [y]
            return y

    with pytest.raises(BuildError, match=r'its call has to set _attrs\["inputs"\]'):
        built(blind, tmp_path)
    assert "external.blind" not in outside.rows()


def made(amount: float) -> type[Operator]:
    """A class that adds a number, defined anew for each number, under one name."""

    class add_one(CPU):  # type: ignore[valid-type, misc]
        def gen_function(self) -> str:
            return super().gen_function().replace("half(1.0)", f"half({amount})")

    return add_one


def test_two_definitions_of_one_name_in_a_model_are_an_error(tmp_path: Path):
    x = Tensor([4, 8], name="x", is_input=True)
    first, second = made(2.0), made(3.0)
    both = second()(first()(x)).mark_as_output("y")
    with pytest.raises(OperatorError, match=r"two classes of operators have _attrs\[.op.\] = 'add_one': add_one at "):
        build_module(both)
    data = np.ones((4, 8), np.float16)
    for amount, cls in ((3.0, second), (2.0, first)):  # an older definition is still itself, in a model of its own
        y = cls()(Tensor([4, 8], name="x", is_input=True)).mark_as_output("y")
        model = compile_model(y, "cpu", tmp_path, f"add_{int(amount)}")
        np.testing.assert_array_equal(model.run({"x": data}, {"y": np.empty_like(data)})["y"], data + amount)


def bound(name: str = "w") -> tuple[Tensor, np.ndarray]:
    data = np.random.default_rng(5).standard_normal((4, 8)).astype(np.float16)
    weight = Tensor([4, 8], name=name)
    weight.bind(data)
    return weight, data


def test_what_follows_from_weights_is_computed_once(tmp_path: Path):
    """By the kernel, as the operator has no reference."""
    weight, data = bound()
    x = Tensor([4, 8], name="x", is_input=True)
    y = (ops.elementwise(ops.FuncEnum.RELU)(CPU()(weight)) * x).mark_as_output("y")
    want = np.maximum(data + np.float16(1), 0)
    with Target("cpu"):
        graph, _, read = constant_folding(toposort(y), None, "model")
    (folded,) = [t for t in graph if t.is_param]
    assert [t.name for t in read] == ["w"] and folded.data is not None
    np.testing.assert_array_equal(folded.data, want)
    model = compile_model(y, "cpu", tmp_path, "folded")
    assert "external" not in model.ir_text and "w" not in model.get_constant_names(unbound_constants_only=False)
    ones = np.ones((4, 8), np.float16)
    np.testing.assert_array_equal(model.run({"x": ones}, {"y": np.empty_like(ones)})["y"], want)
    from ait_mlir.runtime import Model

    again = Model(tmp_path / "folded.ait")
    np.testing.assert_array_equal(again.run({"x": ones}, {"y": np.empty_like(ones)})["y"], want)


def test_a_weight_that_others_read_may_be_set(tmp_path: Path):
    """Then what an operator from outside makes of it is computed in every run, as an artifact cannot compute it."""
    weight, data = bound()
    x = Tensor([4, 8], name="x", is_input=True)
    y = (CPU()(weight) * x + weight).mark_as_output("y")
    model = compile_model(y, "cpu", tmp_path, "shared")
    zeros = np.zeros((4, 8), np.float16)
    np.testing.assert_array_equal(model.run({"x": zeros}, {"y": np.empty_like(zeros)})["y"], data)
    model.set_constant("w", zeros)
    ones = np.ones_like(zeros)
    np.testing.assert_array_equal(model.run({"x": ones}, {"y": np.empty_like(zeros)})["y"], ones)
