"""The arguments of `compile_model` that AITemplate documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from ait_mlir.compiler import compile_model
from ait_mlir.compiler.base import DynamicProfileStrategy, IntVar, Tensor
from ait_mlir.compiler.model import AITemplateAllocatorKind, Model
from ait_mlir.compiler.ops.common.epilogue import FuncEnum
from ait_mlir.errors import InputError
from ait_mlir.frontend import BuildError, nn, ops
from ait_mlir.utils.debug_settings import AITDebugSettings

W = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def network() -> Tensor:
    """x times tanh(w)."""
    x = Tensor([IntVar([1, 4], "batch"), 8], name="x", dtype="float32", is_input=True)
    w = Tensor([8, 4], name="w", dtype="float32")
    y = ops.gemm_rrr()(x, ops.elementwise(FuncEnum.TANH)(w))
    y._attrs["name"], y._attrs["is_output"] = "y", True
    return y


def check(model: Model) -> None:
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_allclose(model.run_with_tensors([x])["y"], x @ np.tanh(W), rtol=1e-4, atol=1e-5)


def test_the_arguments_in_the_documented_order(tmp_path: Path) -> None:
    model = compile_model(
        network(),
        "cpu",
        str(tmp_path),
        "net",
        [0],
        DynamicProfileStrategy.MAX,
        "test.so",
        2,
        str(tmp_path / "profilers"),
        {"w": jnp.asarray(W)},
        AITemplateAllocatorKind.TRACKING,
        AITDebugSettings(),
        True,
        500,
    )
    check(model)
    assert model.get_num_runtimes() == 2 and model.get_constant_names() == []
    with Model(str(tmp_path / "net" / "test.so")) as again:
        check(again)
    assert not (tmp_path / "net.ait").exists()


def test_folding_can_be_left_out(tmp_path: Path) -> None:
    planned = {}
    for fold in (True, False):
        with compile_model(
            network(), "cpu", tmp_path, test_name=f"fold{fold}", constants={"w": W}, do_constant_folding=fold
        ) as model:
            check(model)
            planned[fold] = model.ir_text
    assert "folded.w" in planned[True] and "folded.w" not in planned[False]


@pytest.mark.full
def test_folding_at_load_and_no_optimization(tmp_path: Path) -> None:
    with compile_model(network(), "cpu", tmp_path, "load", do_constant_folding="load") as model:
        assert model.get_constant_folding_input_names() == ["w"]
        model.set_constant("w", W)
        check(model)
    with compile_model(network(), "cpu", tmp_path, "plain", do_optimize_graph=False, constants={"w": W}) as model:
        check(model)


@pytest.mark.usefixtures("built_runtime")
def test_runs_report_what_is_not_finite(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """log(x) of a negative number, then a product with a constant that makes the rest of its row NaN, too."""
    x = Tensor([IntVar([1, 4], "batch"), 8], name="x", dtype="float16", is_input=True)
    y = ops.gemm_rrr()(ops.elementwise(FuncEnum.LOGE)(x), Tensor([8, 4], name="w", dtype="float16"))
    y._attrs["name"], y._attrs["is_output"] = "y", True
    settings = AITDebugSettings(check_all_nan_and_inf=True)
    data = {"w": np.ones((8, 4), np.float16)}
    good = np.full((2, 8), 2, np.float16)
    bad = good.copy()
    bad[0, :2] = -1, 0
    with compile_model(y, "cpu", tmp_path, "checked", debug_settings=settings, constants=data) as model:
        np.testing.assert_allclose(model.run_with_tensors([good])["y"], 8 * np.log(2), rtol=1e-2)
        assert capfd.readouterr().err == ""
        model.run_with_tensors([bad])
        lines = capfd.readouterr().err.splitlines()
        assert len(lines) == 2 and all(line.startswith("model checked: launch ") for line in lines)
        assert "launch 0, result 0 of 16 elements: 1 NaN, 1 infinite, the others from 0.69" in lines[0]
        assert "launch 1, result 0 of 8 elements: 4 NaN, 0 infinite" in lines[1] and "gemm" in lines[1]
        model.reports_nan_and_inf = False
        first, second = model.inspect([good], [np.empty((2, 4), np.float16)])
        assert (first.nans, first.infinities, first.elements, second.elements) == (0, 0, 16, 8)
        assert first.lowest == first.highest == pytest.approx(first.mean) == pytest.approx(np.log(2), rel=1e-3)
        assert capfd.readouterr().err == ""


def test_a_model_that_shows_nothing_says_so(tmp_path: Path) -> None:
    with (
        compile_model(network(), "cpu", tmp_path, "plain", constants={"w": W}) as model,
        pytest.raises(InputError, match="model plain shows no results of launches: compile it with inspected=True"),
    ):
        model.inspect([np.ones((1, 8), np.float32)], [np.empty((1, 4), np.float32)])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": None}, "compile_model has one name, as name or as test_name"),
        ({"test_name": "again"}, "compile_model has one name, as name or as test_name"),
        ({"name": "a/b"}, '"a/b" cannot name a file'),
        ({"dll_name": "../x.so"}, '"../x.so" cannot name a file'),
        ({"profile_devs": ["cuda"]}, r"profile_devs is \['cuda'\], expected a list of the numbers of cards"),
        ({"dynamic_profiling_strategy": "most"}, "dynamic_profiling_strategy is 'most', expected MIN, MAX or HINTS"),
        ({"debug_settings": AITDebugSettings(gen_standalone=True)}, "gen_standalone is not there; the artifact is one"),
        ({"debug_settings": AITDebugSettings(dump_ait_to_py="x.py")}, "dump_ait_to_py is not there; the IR of a model"),
        ({"constants": {"w": [1.0]}}, "constants are NumPy arrays, torch tensors, JAX arrays or AITData; found list"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    arguments = {"name": "net", **given}
    with pytest.raises(BuildError, match=message):
        compile_model(network(), "cpu", tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


MAKERS: dict[str, tuple[Any, list[Any]]] = {
    "a shape is a list of dims": (lambda x: Tensor(shape=x), [None, 3, "a"]),
    "unknown dtype": (lambda x: Tensor(shape=[2], dtype=x), [None, 3, "a", []]),
    "an IntVar needs its smallest and largest value": (IntVar, [None, 2.5, "a", ["a", 2], [None, 2], []]),
    "the name of a dim is a string": (lambda x: IntVar([1, 4], name=x), [3, []]),
    "Sequential takes modules": (nn.Sequential, [None, 3, "a", []]),
}
OPTIONS: dict[str, tuple[str, list[Any]]] = {
    "debug_settings is an AITDebugSettings": ("debug_settings", [3, "a"]),
    "the name of a file is a string": ("dll_name", [3, []]),
    "constants are data by the name": ("constants", [3, [1]]),
}


@pytest.mark.parametrize("message", MAKERS)
def test_tensors_and_modules_of_other_kinds(message: str) -> None:
    make, wrong = MAKERS[message]
    for value in wrong:
        with pytest.raises(BuildError, match=message):
            make(value)


@pytest.mark.parametrize("message", OPTIONS)
def test_arguments_of_other_kinds(message: str, tmp_path: Path) -> None:
    option, wrong = OPTIONS[message]
    for value in wrong:
        with pytest.raises(BuildError, match=message):
            compile_model(network(), "cpu", tmp_path, "net", **{option: value})
    assert not list(tmp_path.iterdir())


def test_a_model_of_no_tensor(tmp_path: Path) -> None:
    for value in (None, 3):
        with pytest.raises(BuildError, match="a model is made of a tensor or a list of tensors"):
            compile_model(value, "cpu", tmp_path, "net")  # type: ignore[arg-type]
