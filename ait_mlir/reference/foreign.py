"""Reference semantics of a call of a kernel library: the function itself, called on NumPy arrays."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.foreign import OPERAND, RESULT, SIZE, WORKSPACE, CallFfiOp, is_bool, refused_function
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.errors import InputError
from ait_mlir.host.kernel_libraries import find_kernel_library
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, reference, storage_dtype, widen


def foreign_function(op: CallFfiOp) -> Callable[..., Any]:
    """The function of a call; `EvaluationError` if no such function runs on the CPU."""
    import tvm_ffi

    function, name = op.function.data, op.library_name
    if (reason := refused_function(name, function)) is not None:  # the op may not be verified
        raise EvaluationError(f"ait.call_ffi: {reason}")
    if name is None:
        found: Any = cast(Any, tvm_ffi).get_global_func(function, allow_missing=True)
        if found is None:
            raise EvaluationError(f"ait.call_ffi: the process has registered no function {function!r}")
        return found
    try:
        library = find_kernel_library(name)
    except InputError as error:
        raise EvaluationError(f"ait.call_ffi: {str(error).splitlines()[0]}") from None
    if library.on_gpu:
        raise EvaluationError(
            f"ait.call_ffi: kernel library '{name}' holds code for a GPU; the reference runs on the CPU"
        )
    if op.sha256 is not None and op.sha256.data != library.sha256:
        raise EvaluationError(
            f"ait.call_ffi: kernel library '{name}' ({library.path}) has SHA-256 {library.sha256}, "
            f"expected {op.sha256.data}"
        )
    try:
        return cast(Any, tvm_ffi).load_module(str(library.path)).get_function(function)
    except (AttributeError, RuntimeError) as error:
        raise EvaluationError(f"ait.call_ffi: {function!r} of kernel library '{name}': {error}") from None


@reference(CallFfiOp)
def call_ffi(op: CallFfiOp, arrays: Arrays, evaluation: Evaluation) -> Arrays:
    """The results of the function, written into arrays of NaN (integers: all bits set) to show unwritten elements."""
    function = foreign_function(op)
    results = [_empty(evaluation.shape(r.type), tensor_type(r).element_type) for r in op.results]
    given = [_stored(a, tensor_type(v).element_type) for a, v in zip(arrays, op.operands, strict=True)]
    operands, outs = iter(given), iter(results)
    sizes = iter(() if op.sizes is None else op.sizes.data)
    values: list[Any] = []
    for a in op.all_arguments():
        if a == OPERAND:
            values.append(_tensor(next(operands)))
        elif a == RESULT:
            values.append(_tensor(next(outs)))
        elif a == SIZE:
            values.append(next(sizes).evaluate(evaluation.dims))
        elif a == WORKSPACE and op.workspace_bytes is not None:
            values.append(_tensor(np.zeros(op.workspace_bytes.evaluate(evaluation.dims), np.uint8)))
        else:
            values.append(_scalar(a))
    try:
        returned = function(*values)
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise EvaluationError(f"ait.call_ffi: {op.function.data!r} raised {type(error).__name__}: {said[-1]}") from None
    if returned is not None and returned != 0:
        raise EvaluationError(f"ait.call_ffi: {op.function.data!r} returned {returned!r}, expected nothing")
    return [widen(a, tensor_type(r).element_type) for a, r in zip(results, op.results, strict=True)]


def _stored(array: Array, element_type: Attribute) -> Array:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array.astype(storage_dtype(element_type)))


def _empty(shape: tuple[int, ...], element_type: Attribute) -> Array:
    array = np.empty(shape, storage_dtype(element_type))
    array.view(np.uint8).fill(0 if array.dtype == np.bool_ else 0xFF) if array.size and array.ndim else array.fill(0)
    return array


def _tensor(array: Array) -> Any:
    """An array as a tvm-ffi argument: a torch tensor if PyTorch is installed, so that the function can allocate."""
    if importlib.util.find_spec("torch") is None:
        if array.dtype.name == "bfloat16":
            raise EvaluationError("ait.call_ffi: bf16 arguments need PyTorch, because NumPy does not share them")
        return array
    torch = cast(Any, importlib.import_module("torch"))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _scalar(a: Attribute) -> Any:
    if isinstance(a, StringAttr):
        return a.data
    if isinstance(a, FloatAttr):
        return a.value.data
    if is_bool(a):
        return str(a) == "true"
    if isinstance(a, IntegerAttr):
        return a.value.data
    return None
