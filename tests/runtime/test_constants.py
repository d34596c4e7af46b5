"""Constants: set in place, bound to memory of the caller's, prepared in a second set and swapped in while runs go on."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from ait_mlir.reference import folds
from ait_mlir.runtime import AITData, Model
from tests.runtime.conftest import B, W, tiny_inputs

LINEAR = """
ait.graph @linear(%x: !ait.tensor<n x 8 x f32>) dims {n = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f32>
  %b = ait.param "b" : !ait.tensor<8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 8 x f32>
  %1 = ait.add %0, %b : !ait.tensor<n x 8 x f32>
  ait.output "y" %1 : !ait.tensor<n x 8 x f32>
}
"""
"""A product whose weight the CPU stores in panels, and a bias that lies as it is."""
X: np.ndarray = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)


def weights(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {"w": random.standard_normal((8, 8), np.float32), "b": random.standard_normal(8, np.float32)}


@pytest.fixture(scope="module")
def linear_artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = parse_source(context(), decode(LINEAR.encode(), "linear.mlir"))
    return compile_module(module, output=tmp_path_factory.mktemp("linear") / "linear.ait")


@pytest.fixture
def linear(linear_artifact: Path) -> Iterator[Model]:
    """The product with the weights of seed 0."""
    with Model(linear_artifact, num_runtimes=2) as model:
        model.set_many_constants(weights(0))
        yield model


def answer(model: Model) -> np.ndarray:
    return np.array(model.run_with_tensors([X])["y"])


def expected(seed: int) -> np.ndarray:
    data = weights(seed)
    return X @ data["w"].T + data["b"]


def test_the_second_set_is_read_after_the_swap_alone(linear: Model) -> None:
    linear.set_many_double_buffer_constants(weights(1))
    np.testing.assert_allclose(answer(linear), expected(0), rtol=1e-4)
    linear.swap_constants()
    np.testing.assert_allclose(answer(linear), expected(1), rtol=1e-4)


def test_constants_that_the_second_set_was_not_given_keep_their_values(linear: Model) -> None:
    linear.set_double_buffer_constant("b", weights(1)["b"])
    linear.swap_constants()
    np.testing.assert_allclose(answer(linear), X @ weights(0)["w"].T + weights(1)["b"], rtol=1e-4)
    linear.set_double_buffer_constant_with_tensor("w", torch.from_numpy(weights(1)["w"]))
    linear.swap_constants()
    np.testing.assert_allclose(answer(linear), expected(1), rtol=1e-4)


def test_constants_may_come_from_any_framework(linear: Model) -> None:
    linear.set_constant_with_tensor("w", torch.from_numpy(weights(2)["w"]))
    linear.set_constant("b", jnp.asarray(weights(2)["b"]))
    np.testing.assert_allclose(answer(linear), expected(2), rtol=1e-4)
    data = weights(3)
    linear.set_many_constants(
        {name: AITData(array.ctypes.data, list(array.shape), "float32") for name, array in data.items()}
    )
    np.testing.assert_allclose(answer(linear), expected(3), rtol=1e-4)


def test_a_swap_of_nothing_is_refused(linear: Model) -> None:
    with pytest.raises(InputError, match="there is nothing to swap in: call set_double_buffer_constant"):
        linear.swap_constants()
    linear.set_double_buffer_constant("b", weights(1)["b"])
    linear.swap_constants()
    with pytest.raises(InputError, match="nothing to swap in"):
        linear.swap_constants()


def test_a_swap_to_constants_without_values_is_refused(linear_artifact: Path) -> None:
    with Model(linear_artifact) as model:
        model.set_double_buffer_constant("b", weights(0)["b"])
        with pytest.raises(InputError, match="1 constant has no value, first 'w'"):
            model.swap_constants()
        model.set_double_buffer_constant("w", weights(0)["w"])
        model.swap_constants()
        np.testing.assert_allclose(answer(model), expected(0), rtol=1e-4)


@pytest.mark.parametrize("spare", [False, True])
def test_nothing_is_set_if_one_of_many_is_wrong(linear: Model, spare: bool) -> None:
    given = {"b": weights(1)["b"], "w": weights(1)["w"][:4]}
    with pytest.raises(InputError, match=r"constant 'w' has shape \[4, 8\], expected \[8, 8\]"):
        (linear.set_many_double_buffer_constants if spare else linear.set_many_constants)(given)
    with pytest.raises(InputError, match="the model has no constant 'c'"):
        (linear.set_many_double_buffer_constants if spare else linear.set_many_constants)({**weights(1), "c": X})
    np.testing.assert_allclose(answer(linear), expected(0), rtol=1e-4)
    with pytest.raises(InputError, match="nothing to swap in"):
        linear.swap_constants()


def test_a_bound_constant_is_read_where_it_is(linear: Model) -> None:
    bias = torch.zeros(8)
    linear.set_constant("b", bias, copy=False)
    np.testing.assert_allclose(answer(linear), X @ weights(0)["w"].T, rtol=1e-4)
    bias += torch.from_numpy(weights(1)["b"])
    np.testing.assert_allclose(answer(linear), X @ weights(0)["w"].T + weights(1)["b"], rtol=1e-4)
    linear.set_double_buffer_constant("w", weights(1)["w"])
    linear.swap_constants()
    bias += 1
    np.testing.assert_allclose(answer(linear), expected(1) + 1, rtol=1e-4)
    linear.set_constant("b", bias)
    bias += 1
    np.testing.assert_allclose(answer(linear), expected(1) + 1, rtol=1e-4)


def test_a_bound_constant_is_kept_alive_until_another_takes_its_place(linear: Model) -> None:
    gone: list[str] = []

    class Watched(np.ndarray):
        def __del__(self) -> None:
            if self.base is not None:
                gone.append("gone")

    linear.set_constant("b", weights(1)["b"].view(Watched), copy=False)
    assert not gone
    np.testing.assert_allclose(answer(linear), X @ weights(0)["w"].T + weights(1)["b"], rtol=1e-4)
    linear.set_constant("b", weights(0)["b"])
    assert gone


def test_what_cannot_be_bound_is_refused(linear: Model) -> None:
    with pytest.raises(InputError, match="constant 'w' is stored in another order, or together with others"):
        linear.set_constant("w", weights(1)["w"], copy=False)
    with pytest.raises(InputError, match=r"constant 'b' has strides \[2\]"):
        linear.set_constant("b", np.zeros(16, np.float32)[::2], copy=False)
    with pytest.raises(InputError, match="constants are a list, expected a dict of names and tensors"):
        linear.set_many_constants([X])  # type: ignore[arg-type]
    np.testing.assert_allclose(answer(linear), expected(0), rtol=1e-4)


def test_an_output_is_never_written_over_a_bound_constant(linear: Model) -> None:
    memory = np.zeros(4 * 8 + 8, np.float32)
    linear.set_constant("b", memory[28:36], copy=False)
    with pytest.raises(InputError, match="output 'y' overlaps the memory that constant 'b' is bound to"):
        linear.run([X], [memory[:32].reshape(4, 8)])
    assert not memory.any()
    linear.run([X[:3]], [memory[:24].reshape(3, 8)])
    np.testing.assert_allclose(memory[:24].reshape(3, 8), X[:3] @ weights(0)["w"].T, rtol=1e-4, atol=1e-5)


def test_the_names_and_their_filters(linear_artifact: Path, tiny_artifact: Path) -> None:
    with Model(linear_artifact) as model:
        assert model.get_constant_names() == ["w", "b"] == model.get_constant_names(unset_only=True)
        assert model.get_constant_names(constant_folding_only=True) == model.get_constant_folding_input_names() == []
        model.set_constant("w", weights(0)["w"])
        assert model.get_constant_names() == ["w", "b"] and model.get_constant_names(unset_only=True) == ["b"]
    with Model(tiny_artifact) as model:
        assert model.get_constant_names() == [] and model.get_constant_names(False) == ["w", "b"]


def swap_under_load(
    model: Model, runs: int, threads: int, swaps: int, device: str = "cpu", graph: bool = False
) -> set[int]:
    """At least `runs` runs in several threads while another swaps two sets of weights at least `swaps` times; returns
    which of the two were seen. The first two swaps each wait for a run that began after them, so that both sets are
    used however the threads are scheduled; the others come whenever they can. On a card, each thread has a stream of
    its own."""
    x, m = (torch.from_numpy(array).to(device) for array in tiny_inputs(4, 8))
    sets = [{"w": W, "b": B}, {"w": W * 3, "b": B - 5}]
    answers: list[bytes] = []

    def run(y: torch.Tensor, s: torch.Tensor, stream: int) -> bytes:
        return model.run([x, m], [y, s], stream, graph_mode=graph)["y"].cpu().numpy().tobytes()

    def buffers() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.empty(4, 16, device=device), torch.empty(4, device=device)

    for values in sets:
        model.set_many_constants(values)
        answers.append(run(*buffers(), 0))
    assert answers[0] != answers[1]
    seen: set[int] = set()
    wrong: list[int] = []
    swapped: list[int] = []
    ended: list[int] = []
    failed: list[Exception] = []
    done = threading.Event()

    def work() -> None:
        stream = None if device == "cpu" else torch.cuda.Stream()
        y, s = buffers()
        for i in itertools.count():
            if (i >= runs // threads and len(swapped) >= swaps) or wrong or failed:
                return
            try:
                result = run(y, s, 0 if stream is None else stream.cuda_stream)
            except Exception as error:
                return failed.append(error)
            ended.append(i)
            if result in answers:
                seen.add(answers.index(result))
            else:
                wrong.append(i)

    def swap() -> None:
        turn = 0
        while not done.is_set() and not failed:
            try:
                model.set_many_double_buffer_constants(sets[turn])
                model.swap_constants()
            except Exception as error:
                return failed.append(error)
            swapped.append(turn)
            turn = 1 - turn
            before = len(ended)
            # of one run more than there are threads, at least one began after the swap
            while len(swapped) <= 2 and len(ended) <= before + threads and not (done.is_set() or failed or wrong):
                time.sleep(0.0001)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    swapper = threading.Thread(target=swap)
    for thread in (swapper, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    swapper.join()
    assert not failed, failed[0]
    assert not wrong, f"{len(wrong)} of {runs} answers are of neither set"
    return seen


@pytest.mark.parametrize(
    ("num_runtimes", "runs"), [(2, 600), *(pytest.param(n, 10_000, marks=pytest.mark.full) for n in (1, 2, 4))]
)
def test_answers_under_swaps_are_of_the_old_or_the_new_weights(library: Path, num_runtimes: int, runs: int) -> None:
    with Model.from_library(library, "cpu", num_runtimes=num_runtimes) as model:
        assert swap_under_load(model, runs, 16 if runs > 1000 else 4, runs // 20) == {0, 1}


def test_the_folds_of_an_artifact_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = LINEAR.replace("%x, %w :", "%x, %v :").replace(
        "  %0 =", "  %v = ait.mul %w, %w : !ait.tensor<8 x 8 x f32>\n  %0 ="
    )
    module = parse_source(context(), decode(text.encode(), "linear.mlir"))
    artifact = compile_module(module, output=tmp_path / "linear.ait", constants=weights(0))
    read: list[str] = []
    read_folds = folds.read_folds
    monkeypatch.setattr(folds, "read_folds", lambda text: read.append(text) or read_folds(text))
    with Model(artifact) as model:
        assert sorted(model.get_constant_names(False)) == ["b", "w"]
        model.set_constant("w", weights(1)["w"])
        np.testing.assert_allclose(answer(model), X @ (weights(1)["w"] ** 2).T + weights(0)["b"], rtol=1e-4, atol=1e-5)
    assert len(read) == 1
