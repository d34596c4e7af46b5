"""Every documented class below `compiler.transform` is made, and every documented method called: each does something."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ait_mlir.compiler.transform.profile import ProfileResult
from ait_mlir.errors import AitError
from ait_mlir.frontend import BuildError, IntVar, Target, Tensor, ops
from ait_mlir.frontend.jagged import JaggedDim
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.documented.transforms import METHODS, NAMES
from tests.frontend.support import tensor


def images() -> Tensor:
    return ops.elementwise(FuncEnum.TANH)(tensor("x", "batch", 3, 3, 8))


def called(cls: type[Any], *arguments: Any, **options: Any) -> Any:
    operator = cls(*arguments, **options)
    operator(images())
    return operator


def fused(cls: type[Any]) -> Any:
    x, first = images(), ops.elementwise(FuncEnum.RELU)
    y = first(x)
    return cls([first], [x], [y])


def sliced(cls: type[Any]) -> Any:
    operator = cls()
    operator(images(), [0, 0, 0, 1], [None, None, None, 5])
    return operator


def jagged(cls: type[Any]) -> Any:
    total, batch, longest = IntVar([0, 12], name="total"), IntVar([1, 4], name="batch"), IntVar([1, 3], name="longest")
    offsets = Tensor(shape=[batch + 1], dtype="int32", name="offsets", is_input=True)
    rows = Tensor(shape=[total, 2], dtype="float32", name="rows", is_input=True)
    dim = ops.make_jagged(batch, [JaggedDim(0, longest)])(rows, [offsets]).shape()[0]
    assert isinstance(dim, cls)
    return dim


MAKE: Mapping[str, Callable[[type[Any]], Any]] = {
    "FusedElementwiseInfo": lambda cls: cls([], [], [], [], []),
    "GemmProfilerPostprocessingDelegate": lambda cls: cls(),
    "IntVar": lambda cls: cls([2, 8], name="rows"),
    "IntVarTensor": lambda cls: cls(IntVar([2, 8], name="rows")),
    "JaggedIntVar": jagged,
    "ProfilerRunner": lambda cls: cls(["0"], Collected()),
    "StableSet": lambda cls: cls("cab"),
    "Workspace": lambda cls: cls(4, 8),
    "ExpandDimensionType": lambda cls: cls(1),
    "dynamic_slice": sliced,
    "fused_elementwise": fused,
    "group_norm": lambda cls: called(cls, 2, 8),
    "group_norm_swish": lambda cls: called(cls, 2, 8),
}


class Collected:
    """A delegate of a `ProfilerRunner`."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.is_done = False

    def postprocess_results(self) -> None:
        self.is_done = True


def collects(delegate: Any) -> None:
    for config, duration in (("slow", 2.0), ("fast", 1.0)):
        delegate.add_instance(ProfileResult("gemm", "8_8", config, duration))
    delegate.postprocess_results()
    assert delegate.best["gemm", "8_8"].op_config == "fast"


def runs(runner: Any) -> None:
    runner.push([sys.executable, "-c", "print(5)"], lambda out, delegate: delegate.found.append(out.strip()))
    runner.join()
    assert runner.delegate.found == ["5"] and runner.delegate.is_done


def has_source(operator: Any) -> None:
    """The source for the machine, and for a card, which has another; without what the operator only reads."""
    here = operator.gen_function()
    with Target("cuda", "sm_90a"):
        there = operator.gen_function()
    assert "{" in here and here != there and "cuda" in there and "tanh" not in here
    with pytest.raises(NotImplementedError, match="before it is called"):
        ops.group_norm(2, 8).gen_function()


def removes(elements: Any) -> None:
    elements.remove("a")
    with pytest.raises(KeyError):
        elements.remove("a")
    assert list(elements) == ["c", "b"]


def says(expected: str, **arguments: Any) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        assert value.pseudo_code(**arguments) == expected

    return check


def is_(method: str, expected: Any) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        assert str(getattr(value, method)()) == str(expected)

    return check


def after(method: str, arguments: tuple[Any, ...], expected: list[str]) -> Callable[[Any], None]:
    def check(elements: Any) -> None:
        getattr(elements, method)(*arguments)
        assert list(elements) == expected

    return check


def dense(dim: Any) -> None:
    assert [str(d) for d in dim.get_max_dense_shape()] == ["batch", "longest"]


def shapes(operator: Any) -> None:
    x, scale, _ = tensor("x", "batch", 8), tensor("s", 8), None
    assert type(operator).get_input_shapes(x, scale, None) == [x.shape(), scale.shape(), None]


def indices(operator: Any) -> None:
    assert operator.normalize_start_end_indices(8, -3, 20) == [5, 8]
    assert operator.normalize_start_end_indices(8, 6, 2) == [6, 6]


CHECKS: Mapping[str, Callable[[Any], None]] = {
    "GemmProfilerPostprocessingDelegate.add_instance": collects,
    "GemmProfilerPostprocessingDelegate.postprocess_results": collects,
    "IntVar.lower_bound": is_("lower_bound", 2),
    "IntVar.pseudo_code": says("rows in [2, 8]", with_shape=True),
    "IntVar.symbolic_value": is_("symbolic_value", "rows"),
    "IntVar.upper_bound": is_("upper_bound", 8),
    "IntVarTensor.pseudo_code": says("rows"),
    "JaggedIntVar.batch_dim": is_("batch_dim", "batch"),
    "JaggedIntVar.get_max_dense_shape": dense,
    "JaggedIntVar.jagged_dims": is_("jagged_dims", "[JaggedDim(0, longest)]"),
    "JaggedIntVar.offsets_struct_type": is_("offsets_struct_type", "std::array<const int32_t*, 1>"),
    "JaggedIntVar.offsets_type": is_("offsets_type", "int32_t"),
    "JaggedIntVar.offsets_var_name": is_("offsets_var_name", "total_jagged_offsets"),
    "JaggedIntVar.total_length": is_("total_length", "total"),
    "ProfilerRunner.join": runs,
    "ProfilerRunner.push": runs,
    "StableSet.add": after("add", ("d",), ["c", "a", "b", "d"]),
    "StableSet.clear": after("clear", (), []),
    "StableSet.discard": after("discard", ("z",), ["c", "a", "b"]),
    "StableSet.remove": removes,
    "dynamic_slice.gen_function": has_source,
    "dynamic_slice.normalize_start_end_indices": indices,
    "fused_elementwise.gen_function": has_source,
    "group_norm.gen_function": has_source,
    "group_norm.get_input_shapes": shapes,
}
"""What each documented method does; those that write files or time kernels have tests below."""

IN_FOLDERS = {"group_norm.gen_profiler", "group_norm.profile"}


def made(path: str) -> Any:
    module, _, name = path.partition(".")
    return MAKE[name](getattr(import_module(f"ait_mlir.compiler.transform.{module}"), name))


@pytest.mark.parametrize("path", METHODS)
def test_classes_and_methods(path: str) -> None:
    assert made(path) is not None
    for method in METHODS[path].split():
        if (check := f"{path.partition('.')[2]}.{method}") not in IN_FOLDERS:
            CHECKS[check](made(path))


def test_every_class_is_listed() -> None:
    classes = {
        f"{module}.{name}"
        for module, names in NAMES.items()
        for name in names
        if isinstance(getattr(import_module(f"ait_mlir.compiler.transform.{module}"), name), type)
    }
    assert classes == set(METHODS)
    documented = {f"{path.partition('.')[2]}.{m}" for path, methods in METHODS.items() for m in methods.split()}
    assert documented == set(CHECKS) | IN_FOLDERS


@pytest.mark.parametrize("name", ["group_norm", "group_norm_swish"])
def test_an_operator_with_its_own_source_in_a_folder(name: str, tmp_path: Path) -> None:
    operator = made(f"fuse_ops.{name}")
    operator.gen_profiler(str(tmp_path))
    operator.gen_profiler(str(tmp_path), dynamic_profiling_strategy="MAX")
    files = {file.name: file.read_text() for file in tmp_path.rglob("*.cc")}
    assert files == {"hints.cc": operator.gen_function(), "max.cc": operator.gen_function()}
    with pytest.raises(BuildError, match="expected MIN, MAX or HINTS"):
        operator.gen_profiler(str(tmp_path), "OFTEN")
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="cannot be written"):
        operator.gen_profiler(str(tmp_path / "file"))


def test_an_operator_chooses_its_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    operator = made("fuse_ops.group_norm")
    with Target("cpu"):
        operator.profile(str(tmp_path), dynamic_profiling_strategy="MIN")
    assert operator._attrs["kernels"] and (tmp_path / "profile.mlir").is_file()
    with pytest.raises(BuildError, match="once it was called"):
        ops.group_norm(2, 8).profile(str(tmp_path))
    product = ops.gemm_rcr()
    product(tensor("x", "batch", 8), tensor("w", 4, 8))
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    with Target("cpu"), pytest.raises(AitError, match=r"no known time for ait\.gemm"):
        product.profile(str(tmp_path))
