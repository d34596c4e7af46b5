"""Tensors of the frameworks, and results in the framework of the arguments."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError
from ait_mlir.runtime import Model
from ait_mlir.runtime.frameworks import framework_of
from tests.runtime.conftest import tiny_inputs, tiny_reference


def test_results_are_in_the_framework_of_the_arguments(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    y, s = tiny_reference(x, m)
    for make, kind in ((np.asarray, np.ndarray), (torch.from_numpy, torch.Tensor), (jnp.asarray, jax.Array)):
        result = model.run_with_tensors({"x": make(x), "m": make(m)})
        assert isinstance(result["y"], kind) and isinstance(result["s"], kind)
        np.testing.assert_allclose(np.asarray(result["y"]), y, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(result["s"]), s, rtol=1e-5)
    mixed = model.run_with_tensors([jnp.asarray(x), torch.from_numpy(m)])
    assert isinstance(mixed["y"], torch.Tensor)
    assert isinstance(model.run_with_tensors([jnp.asarray(x), m])["y"], jax.Array)


def test_results_of_jax_are_computed_further_and_stay(model: Model) -> None:
    x, m = (jnp.asarray(array) * 2 for array in tiny_inputs(4, 3))
    first = model.run_with_tensors([x, m])["y"]
    kept = np.array(first)
    second = model.run_with_tensors([first, m])["y"] + 1
    np.testing.assert_allclose(second, tiny_reference(kept, np.asarray(m))[0] + 1, rtol=1e-5)
    np.testing.assert_array_equal(first, kept)


def test_empty_tensors_of_jax(model: Model) -> None:
    result = model.run_with_tensors([jnp.zeros((0, 4)), jnp.zeros((0, 2))])
    assert isinstance(result["y"], jax.Array) and result["y"].shape == (0, 4)


def test_jax_arrays_are_never_written(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    y = jnp.zeros((2, 4), jnp.float32)
    with pytest.raises(InputError, match="output 'y' is a JAX array, which cannot be written"):
        model.run([x, m], [y, np.empty(2, np.float32)])
    with pytest.raises(InputError, match="JAX arrays cannot be written: call run_with_tensors without outputs"):
        model.make_outputs([jnp.asarray(x), m])
    assert not np.asarray(y).any()
    into = np.empty((2, 4), np.float32)
    model.run([jnp.asarray(x), jnp.asarray(m)], [into, np.empty(2, np.float32)])
    np.testing.assert_allclose(into, tiny_reference(x, m)[0], rtol=1e-6)


def test_the_framework_of_tensors() -> None:
    array, tensor, of_jax = np.zeros(1), torch.zeros(1), jnp.zeros(1)
    of_cupy = type("ndarray", (), {"__module__": "cupy"})()
    assert framework_of([]) == framework_of([array, np.float32(1)]) == "numpy"
    assert framework_of([array, of_jax]) == "jax"
    assert framework_of([of_jax, of_cupy]) == "cupy"
    assert framework_of([of_cupy, of_jax, tensor]) == "torch"
