"""Models of one file share their constants; scratch memory from the framework's allocator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError
from ait_mlir.runtime import AITemplateAllocatorKind, Model
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference


def answer(model: Model) -> np.ndarray:
    """The expected result of the model for the inputs of `tiny_inputs`."""
    return model.run_with_tensors(list(tiny_inputs(4, 5)))["y"]


def expected(scale: float = 1.0) -> np.ndarray:
    return tiny_reference(*tiny_inputs(4, 5))[0] * scale


def constant_bytes(model: Model) -> int:
    """Bytes that the model holds before its first run."""
    return model.stats()["bytes"]


def test_the_second_model_of_a_file_has_no_copy(tiny_artifact: Path) -> None:
    with Model(tiny_artifact) as first, Model(tiny_artifact) as second:
        assert (constant_bytes(first), constant_bytes(second)) == (768, 0)
        np.testing.assert_allclose(answer(second), expected(), rtol=1e-6)
    with Model(tiny_artifact) as first, Model(tiny_artifact, share_constants=False) as apart:
        assert (constant_bytes(first), constant_bytes(apart)) == (768, 768)
    with Model(tiny_artifact) as first, Model(tiny_artifact, verify_weights=False) as apart:
        assert (constant_bytes(first), constant_bytes(apart)) == (768, 768)


def test_the_constants_live_as_long_as_the_last_model(tiny_artifact: Path) -> None:
    first = Model(tiny_artifact)
    second = Model(tiny_artifact)
    first.close()
    del first
    np.testing.assert_allclose(answer(second), expected(), rtol=1e-6)
    second.close()
    with Model(tiny_artifact) as later:
        assert constant_bytes(later) == 768


def test_setting_constants_changes_one_model(tiny_artifact: Path) -> None:
    with Model(tiny_artifact) as first, Model(tiny_artifact) as second, Model(tiny_artifact) as third:
        second.set_constants({"w": 2 * W, "b": 2 * B})
        assert constant_bytes(second) == 768
        third.set_many_double_buffer_constants({"w": 3 * W, "b": 3 * B})
        np.testing.assert_allclose(answer(third), expected(), rtol=1e-6)
        third.swap_constants()
        for model, scale in ((first, 1), (second, 2), (third, 3)):
            np.testing.assert_allclose(answer(model), expected(scale), rtol=1e-6)
        third.set_many_double_buffer_constants({"w": 4 * W, "b": 4 * B})  # what was the shared set is not written
        third.swap_constants()
        first.set_constants({"w": 5 * W, "b": 5 * B})  # alone now, so in place
        for model, scale in ((first, 5), (second, 2), (third, 4)):
            np.testing.assert_allclose(answer(model), expected(scale), rtol=1e-6)
        with Model(tiny_artifact) as fourth:
            np.testing.assert_allclose(answer(fourth), expected(), rtol=1e-6)


def test_a_value_that_is_refused_leaves_the_shared_ones(tiny_artifact: Path) -> None:
    with Model(tiny_artifact) as first, Model(tiny_artifact) as second:
        with pytest.raises(InputError, match="constant 'w' has shape"):
            second.set_constant("w", np.zeros((2, 2), np.float32))
        assert constant_bytes(second) == 0
        for model in (first, second):
            np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)


def test_scratch_memory_of_the_framework(library: Path) -> None:
    """The arena comes from PyTorch's allocator in a call with torch tensors, else from the model's own."""
    x, m = map(torch.tensor, tiny_inputs(4, 5))
    kind = AITemplateAllocatorKind.FRAMEWORK
    with Model.from_library(library, "cpu", constants={"w": W, "b": B}, allocator_kind=kind) as model:
        model.run_with_tensors([x[:1], m[:1]])
        with torch.profiler.profile(profile_memory=True) as found:
            y = model.run_with_tensors([x, m], [torch.empty(4, 10), torch.empty(4)])["y"]
        np.testing.assert_allclose(y.numpy(), expected(), rtol=1e-6)
        sizes = {event.nbytes() for event in found.profiler.kineto_results.events() if event.name() == "[memory]"}
        assert 4 * 5 * 8 + 255 in sizes
    with Model.from_library(library, "cpu", constants={"w": W, "b": B}, allocator_kind=kind) as model:
        np.testing.assert_allclose(answer(model), expected(), rtol=1e-6)
        assert model.stats()["bytes"] == 768 + 4 * 5 * 8
