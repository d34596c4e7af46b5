"""What a run refuses before anything is launched, and that the model works afterwards."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ait_mlir.errors import AitError, ArtifactError, InputError, OutOfMemoryError, RunError
from ait_mlir.runtime import AITData, Model
from tests.runtime.conftest import tiny_inputs, tiny_reference


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def both(x: Any = None, m: Any = None, y: Any = None, s: Any = None) -> tuple[list[Any], list[Any]]:
    """Tensors of a good run with batch 2 and seq 3, some of them replaced."""
    good = [f32(2, 6), f32(2, 3)], [f32(2, 6), f32(2)]
    return (
        [good[0][0] if x is None else x, good[0][1] if m is None else m],
        [good[1][0] if y is None else y, good[1][1] if s is None else s],
    )


def aliased() -> tuple[list[Any], list[Any]]:
    memory = f32(2, 6)
    return both(x=memory, y=memory)


def aliased_outputs() -> tuple[list[Any], list[Any]]:
    memory = f32(14)
    return both(y=memory[:12].reshape(2, 6), s=memory[11:13])


CASES: dict[str, tuple[Callable[[], tuple[Any, Any]], str]] = {
    "null": (
        lambda: both(x=AITData(0, [2, 6], "float32")),
        r"input 'x' is a null pointer, expected data of shape \[2, 6\]",
    ),
    "null and huge": (lambda: both(x=AITData(0, [1 << 40, 1 << 40], "float32")), "input 'x' is a null pointer"),
    "null output": (lambda: both(s=AITData(0, [2], "float32")), r"output 's' is a null pointer"),
    "dtype": (lambda: both(m=np.ones((2, 3))), "input 'm' has dtype float64, expected float32"),
    "torch dtype": (lambda: both(m=torch.ones(2, 3).bfloat16()), "input 'm' has dtype bfloat16, expected float32"),
    "unsigned": (lambda: both(m=np.ones((2, 3), np.uint8)), "input 'm' has dtype uint8, expected float32"),
    "complex": (lambda: both(m=np.ones((2, 3), np.complex64)), "input 'm' has dtype complex64"),
    "text": (lambda: both(m=np.array([["a"]])), "input 'm' has dtype str"),
    "byte order": (lambda: both(m=f32(2, 3).astype(">f4")), "input 'm' has dtype >f4, which is not in the byte order"),
    "rank": (lambda: both(x=f32(12)), r"input 'x' has rank 1 \(shape \[12\]\), expected rank 2"),
    "odd strides": (lambda: both(x=np.zeros(50, np.uint8)[:48].view("f4,u1,u1,u2")["f0"]), "input 'x' has rank 1"),
    "too large": (
        lambda: both(x=f32(9, 6)),
        "input 'x' has extent 9 on axis 0, so batch = 9, expected a value from 0 to 8",
    ),
    "too small": (
        lambda: both(x=f32(2, 0)),
        "input 'x' has extent 0 on axis 1, so seq = 0, expected a value from 1 to 16",
    ),
    "fraction": (
        lambda: both(x=f32(2, 7)),
        r"input 'x' has extent 7 on axis 1, expected 2 \* seq \+ 0 for a whole seq",
    ),
    "shared dim": (
        lambda: both(m=f32(3, 3)),
        r"input 'm' has shape \[3, 3\], expected \[2, 3\]: axis 0 is 3, not 2; with batch = 2 \(input 'x', axis 0\)",
    ),
    "no tensor": (
        lambda: both(x=[1.0, 2.0]),
        "input 'x' is a list, expected a torch, NumPy or DLPack tensor, or AITData",
    ),
    "none": (lambda: ([f32(2, 6), None], [f32(2, 6), f32(2)]), "input 'm' is None, expected a torch, NumPy or DLPack"),
    "unknown dtype": (
        lambda: both(m=AITData(64, [2, 3], "float8")),
        "input 'm' has dtype float8, which no tensor of a model",
    ),
    "missing": (lambda: ([f32(2, 6)], [f32(2, 6), f32(2)]), r"has 2 inputs \(x, m\), but 1 were given"),
    "extra": (
        lambda: ([f32(2, 6), f32(2, 3), f32(1)], [f32(2, 6), f32(2)]),
        r"has 2 inputs \(x, m\), but 3 were given",
    ),
    "bare tensor": (lambda: (f32(2, 6), [f32(2, 6), f32(2)]), "the inputs are a ndarray, expected a list or a dict"),
    "missing name": (lambda: ({"x": f32(2, 6)}, [f32(2, 6), f32(2)]), "input 'm' is missing; its inputs are x, m"),
    "wrong name": (
        lambda: ({"x": f32(2, 6), "n": f32(2, 3)}, [f32(2, 6), f32(2)]),
        "input 'm' is missing, there is no input 'n'; its inputs are x, m",
    ),
    "no list": (lambda: (5, [f32(2, 6), f32(2)]), "the inputs are a int, expected a list or a dict of tensors"),
    "nothing": (lambda: (None, [f32(2, 6), f32(2)]), "the inputs are a NoneType, expected a list or a dict"),
    "iterator": (lambda: (iter(both()[0]), both()[1]), "the inputs are a list_iterator, expected a list or a dict"),
    "negated": (
        lambda: both(m=torch._neg_view(torch.ones(2, 3))),
        r"input 'm' is a lazy negation or conjugate: pass .resolve_neg\(\)",
    ),
    "meta": (lambda: both(m=torch.ones(2, 3, device="meta")), "input 'm' is on device meta, so it has no data"),
    "sparse": (lambda: both(m=torch.ones(2, 3).to_sparse()), "input 'm' is a tensor of layout torch.sparse_coo"),
    "meta output": (lambda: both(s=torch.ones(2, device="meta")), "output 's' is on device meta"),
    "scalar": (lambda: both(m=np.float32(1)), r"input 'm' has rank 0 \(shape \[\]\), expected rank 2"),
    "scalar output": (lambda: both(s=np.float32(1)), "output 's' is a float32, expected a torch, NumPy"),
    "negative extent": (lambda: both(x=AITData(64, [-2, 6], "float32")), r"input 'x' has a negative extent"),
    "extent of 70 bits": (
        lambda: both(x=AITData(64, [1 << 70, 6], "float32")),
        "input 'x' is AITData.* beyond 64 bits",
    ),
    "extent of 64 bits": (lambda: both(x=AITData(64, [(1 << 64) + 2, 6], "float32")), "input 'x' .* beyond 64 bits"),
    "no extents": (lambda: both(x=AITData(64, None, "float32")), "input 'x' is AITData.*, expected AITData"),  # type: ignore[arg-type]
    "negative address": (lambda: both(x=AITData(-16, [2, 6], "float32")), "input 'x' is AITData.* the address -16"),
    "long address": (lambda: both(x=AITData(1 << 70, [2, 6], "float32")), "input 'x' is AITData.* not from 0 to 2"),
    "no address": (lambda: both(x=AITData("x", [2, 6], "float32")), "input 'x' is AITData.*, expected AITData"),  # type: ignore[arg-type]
    "few outputs": (lambda: (both()[0], [f32(2, 6)]), r"has 2 outputs \(y, s\), but 1 were given"),
    "small output": (
        lambda: both(y=f32(2, 5)),
        r"output 'y' has shape \[2, 5\], too small for the result of shape \[2, 6\]",
    ),
    "turned output": (
        lambda: both(y=f32(6, 2)),
        r"output 'y' has shape \[6, 2\], expected that of the result, or more in each dim: \[2, 6\]",
    ),
    "output dtype": (lambda: both(s=np.ones(2, np.int32)), "output 's' has dtype int32, expected float32"),
    "read-only output": (lambda: both(s=np.broadcast_to(np.float32(1), (2,))), "output 's' is a read-only array"),
    "aliased": (aliased, "output 'y' overlaps the memory of input 'x'"),
    "aliased outputs": (aliased_outputs, "output 's' overlaps the memory of output 'y'"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_and_usable_again(model: Model, case: str) -> None:
    make, message = CASES[case]
    inputs, outputs = make()
    with pytest.raises(InputError, match=message):
        model.run(inputs, outputs)
    x, m = tiny_inputs(2, 3)
    np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_nothing_is_written_when_a_run_is_refused(model: Model) -> None:
    y, s = np.full((2, 6), np.nan, np.float32), np.full(1, np.nan, np.float32)
    with pytest.raises(InputError, match="output 's' has shape"):
        model.run([f32(2, 6), f32(2, 3)], [y, s])
    assert np.isnan(y).all() and np.isnan(s).all()


def test_a_failing_model_gives_its_reason_and_works_again(model: Model) -> None:
    for _ in range(5):  # more often than there are runtimes: each must be given back
        with pytest.raises(RunError, match="model tiny failed: a batch of 3 is refused"):
            model.run_with_tensors(list(tiny_inputs(3, 2)))
    x, m = tiny_inputs(2, 2)
    np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("v", f32(1), "the model has no constant 'v'"),
        ("w", f32(2), r"constant 'w' has shape \[2\], expected \[1\]"),
        ("w", np.ones(1, np.float16), "constant 'w' has dtype float16, expected float32"),
        ("w", AITData(0, [1], "float32"), "constant 'w' is a null pointer"),
        ("w", 1.0, "constant 'w' is a float, expected a torch"),
    ],
)
def test_bad_constants(model: Model, name: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.set_constant(name, value)


def test_bad_names_indices_and_dims(model: Model) -> None:
    with pytest.raises(InputError, match="has no output 'z'; its outputs are y, s"):
        model.get_output_maximum_shape("z")
    with pytest.raises(InputError, match="has no output 2"):
        model.get_output_dtype(2)
    with pytest.raises(InputError, match="dim 'seq' is missing"):
        model.input_shapes({"batch": 1})
    with pytest.raises(InputError, match="dim batch = 9, expected a value from 0 to 8"):
        model.arena_bytes({"batch": 9, "seq": 1})
    with pytest.raises(InputError, match=r"dim seq = 1.5, expected a whole number"):
        model.arena_bytes({"batch": 1, "seq": 1.5})  # type: ignore[dict-item]


def test_memory_is_freed_once(model: Model) -> None:
    data = model.allocate_data([4], "float32")
    empty = [model.allocate_data([0], "float32") for _ in range(2)]
    for one in (data, *empty):
        model.free_memory(one.data_ptr)
    for address in (data.data_ptr, 12345):
        with pytest.raises(InputError, match="was not given by allocate_memory of this model, or is free already"):
            model.free_memory(address)


def test_bad_libraries(tmp_path: Path, library: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be loaded: No such file"):
        Model.from_library(tmp_path / "missing.so", "cpu")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ArtifactError, match="is no shared library"):
        Model.from_library(tmp_path / "text.so", "cpu")
    with pytest.raises(InputError, match="num_runtimes is 0"):
        Model.from_library(library, "cpu", num_runtimes=0)
    with pytest.raises(AitError, match="there is no cpu:3"):
        Model.from_library(library, "cpu", device=3)


def test_an_arena_that_does_not_fit_leaves_the_model_usable(model: Model) -> None:
    for _ in range(3):
        with pytest.raises(OutOfMemoryError, match=r"the arena of a run needs \d+ bytes on cpu, \d+ bytes are free"):
            model.run_with_tensors(list(tiny_inputs(7, 2)))
        x, m = tiny_inputs(2, 2)
        np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_out_of_memory_says_how_much(model: Model) -> None:
    with pytest.raises(MemoryError, match=r"out of memory: the caller needs \d+ bytes on cpu, \d+ bytes are free"):
        model.allocate_memory(1 << 60)


WRONG: dict[str, tuple[Callable[[Model], Any], str]] = {
    "stream": (lambda m: m.run(*both(), stream_ptr="s"), "stream_ptr is 's', expected the address of a stream"),
    "negative stream": (lambda m: m.run(*both(), stream_ptr=-1), "stream_ptr is -1, expected the address"),
    "stream to wait for": (lambda m: m.synchronize(1.5), "stream_ptr is 1.5, expected the address of a stream"),
    "sync": (lambda m: m.run(*both(), sync="no"), "sync is 'no', expected True or False"),
    "graph mode": (lambda m: m.run(*both(), graph_mode="yes"), "graph_mode is 'yes', expected True or False"),
    "count": (lambda m: m.benchmark(*both(), count="ten"), "count is 'ten', expected a whole number, at least 1"),
    "repeat": (lambda m: m.benchmark(*both(), repeat=1.5), "repeat is 1.5, expected a whole number, at least 1"),
    "iterations": (lambda m: m.profile(*both(), num_iters=True), "num_iters is True, expected a whole number"),
    "bytes": (lambda m: m.allocate_memory("12"), "the number of bytes is '12', expected a whole number, at least 0"),
    "negative bytes": (lambda m: m.allocate_memory(-1), "the number of bytes is -1"),
    "name of a constant": (lambda m: m.set_constant(3, f32(1)), "a constant is named 3, expected a string"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(model: Model, name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        call(model)
    x, m = tiny_inputs(2, 2)
    result = model.run_with_tensors([x, m])
    np.testing.assert_allclose(result["y"], tiny_reference(x, m)[0], rtol=1e-6)


@pytest.mark.parametrize("number", ["2", 2.0, True, None, -1, 4097, 10**9, 10**30])
def test_numbers_of_runtimes_are_whole_and_few(library: Path, tiny_artifact: Path, number: Any) -> None:
    for make in (
        lambda: Model(tiny_artifact, number),
        lambda: Model.from_library(library, "cpu", num_runtimes=number),
        lambda: Model.from_bytes(tiny_artifact.read_bytes(), number),
    ):
        with pytest.raises(InputError, match=r"num_runtimes is .*, expected a whole number from 1 to 4096"):
            make()


@pytest.mark.parametrize("path", [None, 3, ["a.ait"]])
def test_a_path_that_is_none(path: Any) -> None:
    with pytest.raises(InputError, match=r"the path of an artifact is .*, expected a string or a Path"):
        Model(path)


def test_a_path_with_a_null_character() -> None:
    with pytest.raises(InputError, match=r"'a\\x00b.ait' is no path of a file: it has a null character"):
        Model("a\0b.ait")


@pytest.mark.parametrize("content", ["abc", None, 3])
def test_a_content_that_is_no_bytes(content: Any) -> None:
    with pytest.raises(InputError, match=r"the content of an artifact is a \w+, expected bytes"):
        Model.from_bytes(content)


def test_contents_are_any_bytes(tiny_artifact: Path) -> None:
    x, m = tiny_inputs(2, 4)
    for content in (bytearray(tiny_artifact.read_bytes()), memoryview(tiny_artifact.read_bytes())):
        with Model.from_bytes(content) as model:  # type: ignore[arg-type]
            np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_memory_that_numpy_does_not_have(model: Model) -> None:
    for shape in ([1 << 45], [1 << 62, 1 << 10]):
        with pytest.raises(OutOfMemoryError, match=r"an array of shape .* and dtype float32 needs \d+ bytes"):
            model.ait_data_to_numpy(AITData(4096, shape, "float32"))


def test_copies_do_not_lose_constants_that_were_set(tiny_artifact: Path) -> None:
    told = "constants of model tiny were set since it was loaded, and a copy or pickle would have those of its artifact"
    for change in (
        lambda model: model.set_constant("w", np.float32([3])),
        lambda model: model.set_many_double_buffer_constants({"b": np.float32([3])}),
    ):
        with Model(tiny_artifact, pickle_by="bytes") as model:
            copy.deepcopy(model).close()
            change(model)
            for copies in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(InputError, match=told):
                    copies(model)
