"""What follows from params alone is computed once: which values become params, their data, and setting them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import compile_module, kernel_value, run_to_phase
from ait_mlir.errors import InputError, ToolchainError
from ait_mlir.folding import Folding, Method
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target
from ait_mlir.options import CompileOptions
from ait_mlir.passes.fold_params import fold_params
from ait_mlir.reference import folds as reference_folds
from ait_mlir.reference.folds import Fold, read_folds, write_folds
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.runtime import Model
from ait_mlir.runtime.artifact import read

BLOCK = """
ait.graph @block(%x: !ait.tensor<n x 5 x 4 x f32>) dims {n = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<6 x 4 x 3 x f32>
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %b = ait.param "b" : !ait.tensor<6 x f32>
  %0 = ait.permute %w [0, 2, 1] : !ait.tensor<6 x 3 x 4 x f32>
  %1 = ait.conv %x, %0 : !ait.tensor<n x 3 x 6 x f32>
  %2 = ait.exp %s : !ait.tensor<6 x f32>
  %3 = ait.mul %1, %2 : !ait.tensor<n x 3 x 6 x f32>
  %4 = ait.add %3, %b : !ait.tensor<n x 3 x 6 x f32>
  ait.output "y" %4 : !ait.tensor<n x 3 x 6 x f32>
}
"""


def parsed(text: str) -> ModuleOp:
    return parse_source(context(), decode(text.encode(), "test"))


def graph_of(module: ModuleOp) -> GraphOp:
    (graph,) = [op for op in module.ops if isinstance(op, GraphOp)]
    return graph


def data(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {"w": (6, 4, 3), "s": (6,), "b": (6,)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def test_a_factor_joins_the_weight_and_both_become_one_param():
    module = parsed(BLOCK)
    x = {"x": np.random.default_rng(1).standard_normal((2, 5, 4))}
    before = evaluate_graph(graph_of(module), x, data(), {"n": 2})["y"]
    (fold,) = fold_params(module, data())
    assert fold.name == "folded.w"
    assert fold.source_types() == {"w": ((6, 4, 3), "float32"), "s": ((6,), "float32")}
    assert [p.param_name.data for p in graph_of(module).params()] == ["folded.w", "b"]
    value = fold.value(data())
    assert value.dtype == np.float32 and value.shape == (6, 3, 4)
    module.verify()
    after = evaluate_graph(graph_of(module), x, data() | {"folded.w": value}, {"n": 2})["y"]
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


def test_a_number_stays_a_number():
    module = parsed("""
ait.graph @scaled(%x: !ait.tensor<n x f32>) dims {n = 1 to 4} {
  %s = ait.param "s" : !ait.tensor<f32>
  %e = ait.exp %s : !ait.tensor<f32>
  %y = ait.mul %x, %e : !ait.tensor<n x f32>
  ait.output "y" %y : !ait.tensor<n x f32>
}
""")
    (fold,) = fold_params(module, {"s"})
    value = fold.value({"s": np.array(0.5, np.float32)})
    assert value.shape == () and value == np.exp(np.float32(0.5))


def test_scalars_of_a_region_are_no_rows():
    module = parsed("""
ait.graph @g(%x: !ait.tensor<16 x 64 x f16>, %r: !ait.tensor<16 x 32 x f16>) {
  %w = ait.param "w" : !ait.tensor<32 x 64 x f16>
  %v = ait.param "v" : !ait.tensor<32 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%v, %r) {
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.add %3, %2 : f32
    ait.yield %4 : f32
  } : !ait.tensor<16 x 32 x f16>
  ait.output "y" %0 : !ait.tensor<16 x 32 x f16>
}
""")
    before = str(module)
    assert fold_params(module, {"w", "v"}) == [] and str(module) == before


def test_the_text_of_folds_is_read_back():
    folds = fold_params(parsed(BLOCK), data())
    again = read_folds(write_folds(folds))
    assert [f.name for f in again] == ["folded.w"]
    np.testing.assert_array_equal(again[0].value(data()), folds[0].value(data()))


def names_after(body: str, known: set[str]) -> list[str]:
    module = parsed(f"ait.graph @f(%x: !ait.tensor<4 x 600 x f32>) {{\n{body}\n}}")
    fold_params(module, known)
    return [p.param_name.data for p in graph_of(module).params()]


@pytest.mark.parametrize(
    "what, op, expected",
    [
        ("a permute", "ait.permute %w [1, 0] : !ait.tensor<4 x 600 x f32>", ["folded.w"]),
        ("a view", "ait.reshape %w : !ait.tensor<4 x 600 x f32>", ["w"]),
        ("a part", "ait.slice %w offsets [0, 0] : !ait.tensor<4 x 2 x f32>", ["w"]),
        ("no param", "ait.constant 2.0 : !ait.tensor<f32>", []),
        ("larger than its sources", "ait.expand %w : !ait.tensor<300 x 600 x 4 x f32>", ["w"]),
    ],
)
def test_what_becomes_a_param(what: str, op: str, expected: list[str]):
    shape = op.rpartition(": ")[2]
    body = f"""
  %w = ait.param "w" : !ait.tensor<600 x 4 x f32>
  %0 = {op}
  %1 = ait.reduce sum %x dims [0, 1] : !ait.tensor<f32>
  %2 = ait.add %0, %1 : {shape}
  ait.output "y" %2 : {shape}
"""
    assert names_after(body, {"w"}) == expected, what
    assert names_after(body, set()) == ["w"], "nothing is folded without data"


def test_a_large_param_that_is_read_beside_is_not_kept_twice():
    body = """
  %w = ait.param "w" : !ait.tensor<600 x 600 x f32>
  %0 = ait.permute %w [1, 0] : !ait.tensor<600 x 600 x f32>
  %1 = ait.gemm rrr %x, %w : !ait.tensor<4 x 600 x f32>
  %2 = ait.slice %x offsets [0, 0] : !ait.tensor<1 x 600 x f32>
  %3 = ait.mul %0, %2 : !ait.tensor<600 x 600 x f32>
  ait.output "y" %1 : !ait.tensor<4 x 600 x f32>
  ait.output "z" %3 : !ait.tensor<600 x 600 x f32>
"""
    assert names_after(body, {"w"}) == ["w"]
    assert names_after(body.replace("gemm rrr %x, %w", "relu %x"), {"w"}) == ["folded.w"]


def test_a_large_param_is_replaced_by_its_parts():
    body = """
  %w = ait.param "w" : !ait.tensor<600 x 600 x f32>
  %0 = ait.slice %w offsets [0, 0] : !ait.tensor<300 x 600 x f32>
  %1 = ait.slice %w offsets [300, 0] : !ait.tensor<300 x 600 x f32>
  %2 = ait.exp %1 : !ait.tensor<300 x 600 x f32>
  %3 = ait.gemm rcr %x, %0 : !ait.tensor<4 x 300 x f32>
  %4 = ait.gemm rcr %x, %2 : !ait.tensor<4 x 300 x f32>
  ait.output "y" %3 : !ait.tensor<4 x 300 x f32>
  ait.output "z" %4 : !ait.tensor<4 x 300 x f32>
"""
    assert names_after(body, {"w"}) == ["folded.w.1", "folded.w"]
    overlapping = body.replace("[300, 0]", "[0, 0]").replace(
        "ait.slice %w offsets [0, 0] : !ait.tensor<300", "ait.slice %w offsets [0, 0] : !ait.tensor<400", 1
    )
    overlapping = overlapping.replace(
        "%3 = ait.gemm rcr %x, %0 : !ait.tensor<4 x 300", "%3 = ait.gemm rcr %x, %0 : !ait.tensor<4 x 400"
    )
    overlapping = overlapping.replace("%3 : !ait.tensor<4 x 300", "%3 : !ait.tensor<4 x 400")
    assert names_after(overlapping, {"w"}) == ["w"], "parts that are together larger than the param"
    assert names_after(body.replace("exp %1 : !ait.tensor<300 x 600", "reshape %1 : !ait.tensor<300 x 600"), {"w"}) == [
        "w"
    ]
    read = body.replace(
        "%3 = ait.gemm rcr %x, %0 : !ait.tensor<4 x 300", "%3 = ait.gemm rcr %x, %w : !ait.tensor<4 x 600"
    )
    assert names_after(read.replace("%3 : !ait.tensor<4 x 300", "%3 : !ait.tensor<4 x 600"), {"w"}) == ["w"]


TRANSPOSED = """
ait.graph @g(%x: !ait.tensor<n x 5 x 4 x 6 x f32>, %v: !ait.tensor<n x 5 x 6 x f32>) dims {n = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x 4 x 6 x f32>
  %s = ait.param "s" : !ait.tensor<8 x 3 x 2 x 3 x f32>
  %b = ait.param "b" : !ait.tensor<8 x f32>
  %d = ait.param "d" : !ait.tensor<6 x 5 x 1 x f32>
  %0 = ait.conv %x, %w transposed stride [2, 2] pad [1, 1] : !ait.tensor<n x 10 x 8 x 8 x f32>
  %1 = ait.mul %0, %b : !ait.tensor<n x 10 x 8 x 8 x f32>
  %2 = ait.tanh %1 : !ait.tensor<n x 10 x 8 x 8 x f32>
  %3 = ait.conv %x, %s transposed stride [2, 1] pad [1, 0] output_pad [1, 0] groups 2 : !ait.tensor<n x 10 x 5 x 8 x f32>
  %4 = ait.permute %3 [0, 3, 1, 2] : !ait.tensor<n x 8 x 10 x 5 x f32>
  %5 = ait.conv %v, %d transposed stride [3] pad [1] groups 6 : !ait.tensor<n x 15 x 6 x f32>
  ait.output "y" %2 : !ait.tensor<n x 10 x 8 x 8 x f32>
  ait.output "z" %4 : !ait.tensor<n x 8 x 10 x 5 x f32>
  ait.output "t" %5 : !ait.tensor<n x 15 x 6 x f32>
}
"""


def test_transposed_convolutions_are_plain_ones_with_folded_weights(tmp_path: Path):
    module = parsed(TRANSPOSED)
    original, random = graph_of(module.clone()), np.random.default_rng(2)
    shapes = {"w": (8, 4, 4, 6), "s": (8, 3, 2, 3), "b": (8,), "d": (6, 5, 1)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = {name: random.standard_normal(s).astype(np.float32) for name, s in (("x", (3, 5, 4, 6)), ("v", (3, 5, 6)))}
    expected = evaluate_graph(original, inputs, weights, {"n": 3})
    folded = module.clone()
    assert [op.is_transposed() for op in module.walk() if isinstance(op, ConvOp)] == [True] * 3
    folds = fold_params(folded, set(weights))
    assert not any(op.is_transposed() for op in folded.walk() if isinstance(op, ConvOp))
    assert sum(fold.name.startswith("folded.w") for fold in folds) == 2
    names = {op.param_name.data for op in graph_of(folded).params()}
    assert "w" not in names, "only parts of the weight are read"
    for target, left in ((make_target("cuda", "sm_90a"), 0), (make_target("cpu", ""), 3)):
        unknown = module.clone()
        assert fold_params(unknown, (), target) == []
        assert sum(op.is_transposed() for op in unknown.walk() if isinstance(op, ConvOp)) == left
    model = Model(compile_module(module, constants=weights, output=tmp_path / "m.ait"))
    found = {name: np.empty(array.shape, np.float32) for name, array in expected.items()}
    model.run(inputs, found)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4)


def test_a_model_computes_its_constants_again(tmp_path: Path):
    module = parsed(BLOCK)
    original = graph_of(module.clone())
    model = Model(compile_module(module, constants=data(), output=tmp_path / "m.ait"))
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)

    def check(seed: int) -> None:
        y = np.empty((2, 3, 6), np.float32)
        model.run({"x": x}, {"y": y})
        expected = evaluate_graph(original, {"x": x}, data(seed), {"n": 2})["y"]
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)

    check(0)
    assert sorted(model.get_constant_names(False)) == ["b", "s", "w"]
    assert model.get_constant_names(unset_only=True) == []
    assert (model.constant_shape("w"), model.constant_dtype("s")) == ((6, 4, 3), "float32")
    model.set_constant("w", data(1)["w"])
    assert model.get_constant_names(unset_only=True) == ["s"]
    with pytest.raises(InputError, match="which must all be set: set s before the next run"):
        check(1)
    model.set_constants(data(1))
    check(1)
    with pytest.raises(InputError, match=r"constant 'w' has shape \[6\] and dtype float32, expected \[6, 4, 3\]"):
        model.set_constant("w", data(1)["s"])


def test_constants_that_get_data_later_are_computed_when_they_get_it(tmp_path: Path):
    """`w` is known, `s` and `b` are not: what follows from them is computed when the model gets `s`."""
    module = parsed(BLOCK)
    original = graph_of(module.clone())
    path = compile_module(module, CompileOptions(fold="load"), constants={"w": data()["w"]}, output=tmp_path / "m.ait")
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)

    def check(model: Model, seeds: dict[str, int]) -> None:
        values = {name: data(seed)[name] for name, seed in seeds.items()}
        expected = evaluate_graph(original, {"x": x}, values, {"n": 2})["y"]
        np.testing.assert_allclose(model.run_with_tensors({"x": x})["y"], expected, rtol=1e-4, atol=1e-5)

    with Model(path) as model:
        assert sorted(model.get_constant_names()) == ["b", "s"] == sorted(model.get_constant_names(unset_only=True))
        assert sorted(model.get_constant_names(False)) == ["b", "s", "w"]
        assert sorted(model.get_constant_folding_input_names(False)) == ["s", "w"]
        assert model.get_constant_folding_input_names() == ["s"]
        with pytest.raises(InputError, match="set s before the next run"):
            check(model, {"w": 0, "s": 0, "b": 0})
        with pytest.raises(InputError, match="constants that others are computed from have no value: set s"):
            model.fold_constants()
        model.set_many_constants({"s": data(1)["s"], "b": data(1)["b"]})
        model.fold_constants()
        check(model, {"w": 0, "s": 1, "b": 1})
        on_card = type("ndarray", (), {"__module__": "cupy", "get": lambda _: data(2)["s"]})()
        model.set_constant("s", on_card)
        check(model, {"w": 0, "s": 2, "b": 1})
        model.set_double_buffer_constant("s", data(3)["s"])
        model.fold_constants(double_buffer=True)
        check(model, {"w": 0, "s": 2, "b": 1})
        model.swap_constants()
        check(model, {"w": 0, "s": 3, "b": 1})
        model.set_double_buffer_constant("w", data(4)["w"])
        with pytest.raises(InputError, match="set s, too, then swap"):
            model.swap_constants()
        with pytest.raises(InputError, match=r"constant 's' is one that others are computed from"):
            model.set_constant("s", data(1)["s"], copy=False)
        check(model, {"w": 0, "s": 3, "b": 1})


@pytest.mark.parametrize("compiler", [True, False])
def test_large_values_are_computed_by_kernels_when_a_model_gets_their_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: bool
):
    """Without a compiler by the reference."""
    module = parsed(BLOCK)
    original = graph_of(module.clone())
    path = compile_module(module, CompileOptions(fold="load"), output=tmp_path / "m.ait")
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)
    monkeypatch.setattr("ait_mlir.folding.LARGE", 0)
    asked: list[str] = []

    def no_reference(fold: Fold, _: object) -> None:
        asked.append(fold.name)
        raise AssertionError(f"the reference computes {fold.name}")

    def no_compiler(*_: object, **__: object) -> None:
        asked.append("a library")
        raise ToolchainError("a C++17 compiler was not found")

    with Model(path) as model:
        if compiler:
            monkeypatch.setattr(Fold, "value", no_reference)
        else:
            monkeypatch.setattr("ait_mlir.lowering.build.build_library", no_compiler)
        for seed in (0, 1):
            model.set_many_constants(data(seed))
            y = model.run_with_tensors({"x": x})["y"]
            expected = evaluate_graph(original, {"x": x}, data(seed), {"n": 2})["y"]
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert bool(asked) is not compiler


def test_without_the_option_nothing_that_gets_data_later_is_folded(tmp_path: Path):
    """Each run computes what follows from `w` and `s`; the names of these are known, and `fold_constants` asks for
    them, not for `b`."""
    for fold, given in ((True, {}), (False, data())):
        path = compile_module(parsed(BLOCK), CompileOptions(fold=fold), constants=given, output=tmp_path / "m.ait")
        with Model(path) as model:
            assert sorted(model.get_constant_names(False)) == ["b", "s", "w"]
            expected = ["s", "w"] if fold else []
            assert sorted(model.get_constant_folding_input_names(False)) == expected
            assert sorted(model.get_constant_folding_input_names()) == expected
            if not fold:
                model.fold_constants()
                continue
            model.set_constant("w", data()["w"])
            with pytest.raises(InputError, match=r"constants that others are computed from have no value: set s$"):
                model.fold_constants()
            model.set_constant("s", data()["s"])
            model.fold_constants()
            assert model.get_constant_names(unset_only=True) == ["b"]


def test_kernels_and_the_reference_compute_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ait_mlir.folding.SMALL", 0)
    found: list[np.ndarray] = []
    for method in ("kernels", "reference", "auto"):
        monkeypatch.setattr("ait_mlir.folding.LARGE", 0)
        path = compile_module(
            parsed(BLOCK), CompileOptions(fold_by=method), constants=data(), output=tmp_path / "m.ait"
        )
        constants = read(path).constants
        found.append(np.array(constants["folded.w"]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    np.testing.assert_array_equal(found[0], found[2])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.ait"]


@pytest.mark.parametrize("method", ["kernels", "reference"])
def test_a_fold_that_fails_stays_in_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Method):
    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(Fold, "value", broken)
    monkeypatch.setattr("ait_mlir.lowering.build.build_with", broken)
    folding = Folding(data(), Target("cpu", "native"), tmp_path, kernel_value, method)
    module = parsed(BLOCK)
    with pytest.warns(RuntimeWarning, match="follows from w, s alone is computed in every run.* MemoryError: no room"):
        assert fold_params(module, data(), compute=folding.compute) == []
    assert "folded." not in str(module) and "ait.exp" in str(module)


def test_only_what_fails_stays():
    module = parsed(SHARED)
    folds = fold_params(module, data(), compute=lambda folds: [f.name for f in folds if set(f.source_types()) == {"s"}])
    assert [set(fold.source_types()) for fold in folds] == [{"s"}]
    x = {"x": np.random.default_rng(1).standard_normal((2, 6))}
    before = evaluate_graph(graph_of(parsed(SHARED)), x, data(), {"n": 2})["y"]
    values = {fold.name: fold.value(data()) for fold in folds}
    after = evaluate_graph(graph_of(module), x, {**data(), **values}, {"n": 2})["y"]
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_the_ir_shows_the_folds():
    folding = Folding(data(), Target("cpu", "native"), None, kernel_value)
    module = run_to_phase(parsed(BLOCK), "fused", known=folding.data.keys(), folding=folding)
    assert len(folding.folds) == 1 and '"folded.w"' in str(module) and "ait.exp" not in str(module)


SHARED = """
ait.graph @shared(%x: !ait.tensor<n x 6 x f32>) dims {n = 1 to 4} {
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %b = ait.param "b" : !ait.tensor<6 x f32>
  %0 = ait.exp %s : !ait.tensor<6 x f32>
  %1 = ait.tanh %0 : !ait.tensor<6 x f32>
  %2 = ait.mul %1, %b : !ait.tensor<6 x f32>
  %3 = ait.max %x, %0 : !ait.tensor<n x 6 x f32>
  %4 = ait.min %3, %2 : !ait.tensor<n x 6 x f32>
  ait.output "y" %4 : !ait.tensor<n x 6 x f32>
}
"""


def test_values_that_follow_from_one_another_are_computed_from_the_params_of_the_model():
    module = parsed(SHARED)
    x = {"x": np.random.default_rng(1).standard_normal((2, 6))}
    before = evaluate_graph(graph_of(module), x, data(), {"n": 2})["y"]
    folds = fold_params(module, data())
    assert [set(fold.source_types()) for fold in folds] == [{"s"}, {"s", "b"}]
    values = {fold.name: fold.value(data()) for fold in folds}
    after = evaluate_graph(graph_of(module), x, {**data(), **values}, {"n": 2})["y"]
    np.testing.assert_allclose(after, before, rtol=1e-6)


@pytest.mark.parametrize(("depth", "stored"), [(163, "163 x 64"), (164, "64 x 164")])
def test_the_weight_of_planes_is_stored_with_rows_of_whole_accesses(depth: int, stored: str):
    """On a GPU, a channels-first image is multiplied as it lies."""
    image, result = f"!ait.tensor<1 x {depth} x 8 x 8 x f32>", "!ait.tensor<1 x 64 x 8 x 8 x f32>"
    text = f"""
    ait.graph @g(%x: {image}) {{
      %w = ait.param "w" : !ait.tensor<64 x {depth} x 1 x 1 x f32>
      %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<1 x 8 x 8 x {depth} x f32>
      %1 = ait.permute %w [0, 2, 3, 1] : !ait.tensor<64 x 1 x 1 x {depth} x f32>
      %2 = ait.conv %0, %1 : !ait.tensor<1 x 8 x 8 x 64 x f32>
      %3 = ait.permute %2 [0, 3, 1, 2] : {result}
      ait.output "y" %3 : {result}
    }}"""
    on_gpu = run_to_phase(parsed(text), "fused", CompileOptions("cuda", "sm_90a"), known={"w"})
    layout = "crr" if stored.startswith("163") else "rrr"
    found = str(on_gpu)
    assert f"!ait.tensor<{stored} x f32>" in found and f"ait.gemm {layout}" in found and "ait.permute" not in found
    assert "ait.gemm rcr" in str(run_to_phase(parsed(text), "fused", CompileOptions("cpu"), known={"w"}))


def test_a_weight_is_filled_before_the_run_where_estimates_say_so():
    module = parsed("""
ait.graph @g(%x: !ait.tensor<2048 x 1023 x f16>) {
  %w = ait.param "w" : !ait.tensor<4096 x 1023 x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<2048 x 4096 x f16>
  ait.output "y" %y : !ait.tensor<2048 x 4096 x f16>
}
""")
    (fold,) = fold_params(module.clone(), {"w"}, make_target("cuda", "sm_90a"))
    assert fold.source_types() == {"w": ((4096, 1023), "float16")}
    weight = (np.arange(4096 * 1023) % 2048).reshape(4096, 1023).astype(np.float16)
    np.testing.assert_array_equal(fold.value({"w": weight}), np.pad(weight, ((0, 0), (0, 1))))
    for target in (make_target("cuda", "sm_80"), make_target("cpu", ""), None):
        assert fold_params(module.clone(), {"w"}, target) == []


EDGES = """
ait.graph @g(%x: !ait.tensor<NODES x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>) dims {n = 1 to 500} {
  %i = ait.param "edges" : !ait.tensor<2 x 9000 x i64>
  %0 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x 9000 x i64>
  %1 = ait.reshape %0 : !ait.tensor<9000 x 1 x i64>
  %y = ait.scatter add %x, %v at(%1) dims [0] kept [1] : !ait.tensor<NODES x 8 x f32>
  ait.output "y" %y : !ait.tensor<NODES x 8 x f32>
}
"""


def test_indices_that_no_input_changes_are_ordered_before_the_run_for_a_card():
    module = parsed(EDGES.replace("NODES", "500"))
    folds = fold_params(module, {"edges"}, make_target("cuda", "sm_90a"))
    edges = np.random.default_rng(1).integers(-500, 500, (2, 9000))
    keys, places = (fold.value({"edges": edges}) for fold in folds)
    np.testing.assert_array_equal(places, np.argsort(edges[1] % 500, kind="stable"))
    np.testing.assert_array_equal(keys, np.sort(edges[1] % 500))
    assert "ait.order" not in str(module) and "order %" in str(module)
    names = [param.param_name.data for param in graph_of(module).params()]
    assert names == ["folded.edges.1", "folded.edges", "edges"]


@pytest.mark.parametrize(("nodes", "target"), [("500", "cpu"), ("n", "cuda")])
def test_nothing_is_ordered_for_a_cpu_or_for_a_number_of_rows_that_differs(nodes: str, target: str):
    module = parsed(EDGES.replace("NODES", nodes))
    assert fold_params(module, {"edges"}, make_target(target, "sm_90a" if target == "cuda" else "")) == []
    assert "ait.order" not in str(module)


TABLE = """
ait.graph @wave(%x: !ait.tensor<ROWS x 300 x f32>) {{
  %0 = ait.constant [{numbers}] : !ait.tensor<300 x f32>
  {ops}
  %y = ait.mul %x, %t : !ait.tensor<ROWS x 300 x f32>
  ait.output "y" %y : !ait.tensor<ROWS x 300 x f32>
}}
"""


def table(ops: str, rows: int = 2) -> ModuleOp:
    numbers = ", ".join(str(float(n)) for n in range(300))
    return parsed(TABLE.format(numbers=numbers, ops=ops).replace("ROWS", str(rows)))


def test_a_value_of_constants_alone_is_computed_once(tmp_path: Path):
    module = table("%t = ait.cos %0 : !ait.tensor<300 x f32>")
    path = compile_module(module, output=tmp_path / "m.ait")
    assert "ait.cos" not in read(path).ir_text
    x, y = np.ones((2, 300), np.float32), np.empty((2, 300), np.float32)
    with Model(path) as model:
        model.run({"x": x}, {"y": y})
        assert model.get_constant_names(False) == []
    np.testing.assert_array_equal(y[1], np.cos(np.arange(300.0)).astype(np.float32))


def test_a_short_value_of_constants_becomes_a_constant():
    module = table(
        "%s = ait.reduce max %0 dims [0] : !ait.tensor<f32>\n  %t = ait.cos %s : !ait.tensor<f32>",
    )
    assert fold_params(module, ()) == []
    assert f"ait.constant {float(np.float32(np.cos(299.0)))!r}" in str(module)


@pytest.mark.parametrize(
    ("what", "ops", "rows", "folds"),
    [
        ("a view", "%t = ait.expand %0 : !ait.tensor<2 x 300 x f32>", 2, 0),
        ("cheap and large", "%t = ait.add %c, %0 : !ait.tensor<2000 x 300 x f32>", 2000, 0),
        ("large", "%d = ait.add %c, %0 : !ait.tensor<2000 x 300 x f32>" + "\n".join(
            f"  %{b} = ait.cos %{a} : !ait.tensor<2000 x 300 x f32>" for a, b in ("de", "ef", "fg", "gt")
        ), 2000, 1),
        ("too large", "%d = ait.add %c, %0 : !ait.tensor<60000 x 300 x f32>" + "\n".join(
            f"  %{b} = ait.cos %{a} : !ait.tensor<60000 x 300 x f32>" for a, b in ("de", "ef", "fg", "gt")
        ), 60000, 0),
    ],
)  # fmt: skip
def test_the_size_and_the_cost_decide(what: str, ops: str, rows: int, folds: int):
    column = f"%c = ait.constant 0.5 : !ait.tensor<{rows} x 1 x f32>\n  "
    assert len(fold_params(table(column + ops, rows), ())) == folds, what


def test_a_model_reads_its_folds_when_their_sources_are_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not when it is loaded: parsing the folds of a network takes longer than the rest of the load."""
    texts: list[str] = []
    monkeypatch.setattr(reference_folds, "read_folds", lambda text: texts.append(text) or read_folds(text))
    path = compile_module(parsed(BLOCK), output=tmp_path / "m.ait", constants=data())
    with Model(path) as model:
        assert texts == []
        assert {"w"} <= set(model.get_constant_names(False)) and len(texts) == 1
