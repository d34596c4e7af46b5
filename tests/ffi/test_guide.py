"""The code blocks of tvm-ffi's Kernel Library Guide on the CPU, from Python. Those on a card: tests/gpu/test_guide.py."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi

from ait_mlir.host.kernel_libraries import KernelLibrary


@pytest.fixture
def library(kernels: KernelLibrary) -> Any:
    return tvm_ffi.load_module(str(kernels.path))


def test_attributes_of_a_view_and_of_a_tensor(library):
    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    told = library.attributes(whole[:, 1:4], whole.to(torch.float16)).splitlines()
    assert told == [
        "dim 2 sizes 4 3 size(-1) 3 strides 6 1 stride(0) 6 numel 12 device 1:0 dtype 2,32,1 strided data",
        "dim 2 sizes 4 6 size(-1) 6 strides 6 1 stride(0) 6 numel 24 device 1:0 dtype 2,16,1 contiguous data",
    ]


def test_attributes_of_a_tensor_in_python(library):
    tensor = library.nd_alloc((2, 3))
    assert isinstance(tensor, tvm_ffi.Tensor)
    assert tuple(tensor.shape) == (2, 3) and tuple(tensor.strides) == (3, 1)
    assert str(tensor.dtype) == "float32" and str(tensor.device) == "cpu:0"
    np.testing.assert_array_equal(np.from_dlpack(tensor), np.arange(6, dtype=np.float32).reshape(2, 3))


def test_from_env_alloc_uses_the_allocator_of_the_framework(library):
    """With a torch tensor among the arguments the result is a torch tensor, in memory of PyTorch."""
    x, y = torch.randn(3, 5), torch.randn(3, 5)
    result = library.func(x, y)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, y) and result.data_ptr() not in (x.data_ptr(), y.data_ptr())


def test_from_env_alloc_without_a_framework_is_an_error_that_says_so(library):
    with pytest.raises(RuntimeError, match="allocator"):
        library.func(np.zeros(3, np.float32), np.zeros(3, np.float32))


def test_from_nd_alloc_frees_what_it_allocates(library):
    before = library.nd_alive()
    tensor = library.nd_alloc((4,))
    shared = torch.from_dlpack(tensor)
    assert library.nd_alive() == before + 1
    del tensor
    gc.collect()
    assert library.nd_alive() == before + 1 and shared.tolist() == [0, 1, 2, 3]
    del shared
    gc.collect()
    assert library.nd_alive() == before


@pytest.mark.parametrize("versioned", [False, True])
def test_to_and_from_dlpack_share_the_memory(library, versioned):
    x = torch.arange(6, dtype=torch.int64).reshape(2, 3).T
    result = torch.from_dlpack(library.through_dlpack(x, versioned))
    assert result.data_ptr() == x.data_ptr() and result.stride() == (1, 3)
    own = tvm_ffi.from_dlpack(x)
    assert torch.from_dlpack(own).data_ptr() == x.data_ptr()


def test_optional_inputs_outputs_and_workspace(library):
    func = library.passing
    input: torch.Tensor = torch.randn(2, 4)
    output: torch.Tensor = torch.empty(2, 4)
    workspace: torch.Tensor = torch.empty(8)
    assert func(input, None, output, workspace) is None
    assert torch.equal(output, input)
    func(input, torch.ones(2, 4), output, workspace)
    assert torch.equal(output, input + 1)


def test_the_stream_of_the_environment(library):
    """The CPU has none; a card's is the framework's (tests/gpu/test_guide.py)."""
    assert library.stream(torch.zeros(1)) == 0


def test_numpy_and_jax_tensors(library):
    import jax.numpy as jnp

    out = np.empty((2, 4), np.float32)
    library.passing(np.full((2, 4), 2, np.float32), None, out, np.empty(8, np.float32))
    assert (out == 2).all()
    library.passing(jnp.full((2, 4), 3, jnp.float32), jnp.ones((2, 4), jnp.float32), out, np.empty(8, np.float32))
    assert (out == 4).all()


def test_what_a_function_does_not_take_is_an_error_that_names_it(library):
    with pytest.raises(TypeError, match=r"Expected 4 but got 1|Mismatched number of arguments"):
        library.passing(torch.zeros(1))
    with pytest.raises(TypeError, match="argument #0"):
        library.passing(1.5, None, torch.zeros(1), torch.zeros(1))
    with pytest.raises(AttributeError, match="nothing"):
        library.nothing(1)
