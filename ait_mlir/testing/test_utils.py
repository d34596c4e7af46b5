"""Helpers of unit tests of models: they select the cases for this machine, make random tensors, and find operators."""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import torch

from ait_mlir.frontend.intvar import IntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops import CausalType
from ait_mlir.frontend.target import Target, detect_target
from ait_mlir.frontend.tensor import Tensor, normalize_dtype
from ait_mlir.testing.benchmark_pt import benchmark_torch_function
from ait_mlir.utils.graph_utils import get_sorted_ops
from ait_mlir.utils.torch_utils import string_to_torch_dtype


class TestEnv(Enum):
    """The hardware that a test needs. The CPU runs all tests except tests for ROCm."""

    CUDA_LESS_THAN_SM80 = 1
    CUDA_SM80 = 2
    CUDA_SM90 = 3
    ROCM = 100


SUFFIXES: dict[str, TestEnv] = {
    "bf16": TestEnv.CUDA_SM80,
    "sm80": TestEnv.CUDA_SM80,
    "sm90": TestEnv.CUDA_SM90,
    "rocm": TestEnv.ROCM,
}
"""The environment that a test needs, by the end of its name; other tests need any NVIDIA GPU."""


def runnable(target: Target) -> set[TestEnv]:
    """The test environments that a target can run."""
    if target.kind == "rocm":
        return {TestEnv.ROCM}
    arch = int(target.arch.removeprefix("sm_").rstrip("af") or 90) if target.kind == "cuda" else 90
    newest = {TestEnv.CUDA_SM80} if arch >= 80 else set[TestEnv]()
    return {TestEnv.CUDA_LESS_THAN_SM80, *newest} | ({TestEnv.CUDA_SM90} if arch >= 90 else set())


def filter_test_cases_by_params(params: Mapping[TestEnv, Sequence[Any]]) -> dict[str, Any]:
    """The arguments of `parameterized.expand` for the cases that this machine runs."""
    here = runnable(detect_target())
    return {"input": [case for env, cases in params.items() if env in here for case in cases], "skip_on_empty": True}


def filter_test_cases_by_test_env(cls: type[unittest.TestCase]) -> None:
    """Remove the tests of a class that this machine cannot run; the ends of their names give their environments."""
    here = runnable(detect_target())
    for name in [name for name in vars(cls) if name.startswith("test_")]:
        needs = next((env for end, env in SUFFIXES.items() if name.endswith(end)), TestEnv.CUDA_LESS_THAN_SM80)
        if needs not in here:
            delattr(cls, name)


def current_test_id() -> str:
    """The name of the running test, usable as a file name; "" outside of pytest."""
    name = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return "".join(c if c.isalnum() else "_" for c in name)


@contextmanager
def env_variables(**kwargs: object) -> Generator[None]:
    """Set environment variables until the block ends; a variable whose value is None is removed."""
    before = {name: os.environ.get(name) for name in kwargs}

    def put(values: Mapping[str, object]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    put(kwargs)
    try:
        yield
    finally:
        put(before)


def device() -> str:
    """The device for the tensors of a test: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def get_random_torch_tensor(shape: int | Sequence[int], dtype: str = "float16") -> torch.Tensor:
    """A random tensor: normally distributed numbers, or True and False with equal probability. A number as shape is one
    dim."""
    if normalize_dtype(dtype) == "bool":
        return get_random_torch_tensor(shape, "float32") < 0.5
    return torch.randn(_extents(shape), device=device()).to(_torch_dtype(dtype))


def get_torch_empty_tensor(shape: int | Sequence[int], dtype: str = "float16") -> torch.Tensor:
    return torch.empty(_extents(shape), device=device(), dtype=_torch_dtype(dtype))


def get_torch_zeros_tensor(shape: int | Sequence[int], dtype: str = "float16") -> torch.Tensor:
    return torch.zeros(_extents(shape), device=device(), dtype=_torch_dtype(dtype))


def get_torch_full_tensor(shape: int | Sequence[int], fill_value: float, dtype: str = "float16") -> torch.Tensor:
    return torch.full(_extents(shape), fill_value, device=device(), dtype=_torch_dtype(dtype))


def _extents(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _torch_dtype(dtype: str) -> Any:
    return string_to_torch_dtype(normalize_dtype(dtype))


def has_op(sorted_ops: Sequence[Operator], op_name: str) -> bool:
    """Whether one of the operators has this `_attrs["op"]`."""
    return any(op._attrs["op"] == op_name for op in sorted_ops)  # pyright: ignore[reportPrivateUsage]


def graph_has_op(graph: Sequence[Tensor], op_name: str) -> bool:
    """Whether an operator with this `_attrs["op"]` computes one of the tensors."""
    return has_op(get_sorted_ops(graph), op_name)


def count_ops(sorted_ops: Sequence[Operator], op_name: str) -> int:
    """How many operators have this `_attrs["op"]`."""
    return sum(has_op([op], op_name) for op in sorted_ops)


def gen_input_tensor(shape: Sequence[Any], dtype: str = "float16", name: str | None = None) -> Tensor:
    """An input of a model."""
    return Tensor(shape=shape, dtype=dtype, name=name, is_input=True)


def get_src_op(tensor: Tensor) -> Operator:
    """The operator that computes a tensor."""
    (operator,) = tensor.src_ops()
    return operator


def get_src_op_name(tensor: Tensor) -> str:
    """`_attrs["op"]` of the operator that computes a tensor."""
    return get_src_op(tensor)._attrs["op"]  # pyright: ignore[reportPrivateUsage]


def get_src_input(tensor: Tensor) -> Tensor:
    """The first input of the operator that computes a tensor."""
    return get_src_op(tensor).inputs[0]


def get_shape(shape: Sequence[IntVar], dim_to_value_dict: Mapping[str, int]) -> list[int]:
    """The numbers of a shape, with the values of dynamic dims by name."""
    return [dim.expr.evaluate(dim_to_value_dict) for dim in shape]


EPILOGUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Identity": lambda x: x,
    "Sigmoid": torch.sigmoid,
    "SiLu": torch.nn.functional.silu,
    "ReLu": torch.relu,
    "Tanh": torch.tanh,
}


def epilogue_math_name_to_torch_fn(epilogue_math_name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The PyTorch function for an `epilogue_math_name` of the back-to-back products."""
    if (found := EPILOGUES.get(epilogue_math_name)) is None:
        raise NotImplementedError(f"no epilogue is named {epilogue_math_name}; expected one of {', '.join(EPILOGUES)}")
    return found


def get_attn_mask_per_causal_type(m: int, n: int, causal_type: CausalType, torch_dtype: Any) -> torch.Tensor:
    """The mask of a back-to-back product: 1 for a score that counts, else 0."""
    ones = torch.ones((m, n), dtype=torch_dtype, device=device())
    match causal_type:
        case CausalType.NO_CAUSAL:
            return ones
        case CausalType.LOWER_LEFT_EMPTY:
            return torch.triu(ones)
        case CausalType.UPPER_RIGHT_EMPTY:
            return torch.tril(ones)
        case _:
            raise NotImplementedError(f"no mask for {causal_type}")


def init_random_weights(module: torch.nn.Module) -> None:
    """Fill the weight of a layer with numbers between 0 and 1: for `torch.nn.Module.apply`."""
    if isinstance(weight := getattr(module, "weight", None), torch.Tensor):
        torch.nn.init.uniform_(weight)


def benchmark_module(
    name: str,
    inputs: torch.Tensor,
    outputs: torch.Tensor,
    pt_mod: Callable[[torch.Tensor], Any],
    ait_mod: Any,
    iters: int = 100,
    permute_inputs: Sequence[int] | None = None,
) -> None:
    """Print the times of a module of PyTorch and of a model with one input and one output, in milliseconds.

    `permute_inputs` are the dims of the model's input, if they are in another order.
    """
    given = inputs if permute_inputs is None else inputs.permute(*permute_inputs).contiguous()
    theirs = benchmark_torch_function(iters, pt_mod, inputs)
    ait_mod.benchmark_with_tensors([given], [outputs], count=iters)  # does not count
    ours, _, _ = ait_mod.benchmark_with_tensors([given], [outputs], count=iters)
    for kind, found in (("pt", theirs), ("ait", ours)):
        print(f"{name}_{kind}: batch_size: {inputs.shape[0]}, {found} ms")
