"""Calls of functions of kernel libraries on tvm-ffi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import SymbolRefAttr

from ait_mlir.dialects.ait.foreign import RESULT, WORKSPACE, CallFfiOp, call_properties
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim, merge_symbols
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor, tensor_type

__all__ = ["call_ffi"]


class call_ffi(Operator):
    """Call a function of a kernel library, which writes its results into the tensors that the compiler passes.

    >>> norm = ops.call_ffi("my_kernels", "rms_norm")
    >>> y = norm(x, weight, 1e-6, outputs=[(x.shape(), "float16")])

    `library` is the name of a kernel library (`ait_mlir.add_kernel_library`, or a file in `AIT_KERNEL_PATH`); None for
    a function that the process registers (`tvm_ffi.register_global_func`). The arguments are tensors, None, numbers,
    booleans, strings and dims, which are passed as integers. After them the function gets a tensor for each output,
    then the workspace of `workspace` bytes. `call_ffi.RESULT` and `call_ffi.WORKSPACE` among the arguments change this
    order. `strided`: the function reads the strides of its arguments. The result is a tensor, or a list of several.
    """

    RESULT: ClassVar[SymbolRefAttr] = RESULT
    WORKSPACE: ClassVar[SymbolRefAttr] = WORKSPACE

    def __init__(
        self, library: str | None, function: str, workspace: IntVar | int | None = None, strided: bool = False
    ) -> None:
        self.library, self.function = library, function
        self.workspace, self.strided = workspace, strided

    def __call__(
        self,
        *arguments: Tensor | IntVar | SymbolRefAttr | bool | int | float | str | None,
        outputs: object,
    ) -> Tensor | list[Tensor]:
        tensors = [a for a in arguments if isinstance(a, Tensor)]
        self.begin(*tensors)
        pairs = _pairs(outputs)
        if pairs is None:
            raise self.fail(f'outputs are {outputs!r}, expected a list of pairs as in [(x.shape(), "float16")]')
        given = [a.value if isinstance(a, Tensor) else a.expr if isinstance(a, IntVar) else a for a in arguments]
        scratch = None if self.workspace is None else as_dim(self.workspace)
        try:
            properties = call_properties(
                self.library, self.function, given, None if scratch is None else scratch.expr, self.strided
            )
        except ValueError as error:
            raise self.fail(str(error)) from None
        sizes = [as_dim(dim) for shape, _ in pairs for dim in shape]
        sizes += [a for a in arguments if isinstance(a, IntVar)] + ([] if scratch is None else [scratch])
        results = [tensor_type(shape, dtype) for shape, dtype in pairs]
        table = merge_symbols(*(dim.symbols for dim in sizes))
        self.outputs = self.emit(CallFfiOp, tensors, properties, results, symbols=table)
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs


def _pairs(outputs: object) -> list[tuple[Sequence[DimLike], str]] | None:
    """The shape and dtype of each output; None if `outputs` is not a list of such pairs."""
    if not isinstance(outputs, list | tuple) or not outputs:
        return None
    found: list[tuple[Sequence[DimLike], str]] = []
    for output in cast("Sequence[object]", outputs):
        if not isinstance(output, list | tuple) or len(pair := cast("Sequence[object]", output)) != 2:
            return None
        shape, dtype = pair
        if not isinstance(shape, list | tuple) or not isinstance(dtype, str):
            return None
        dims = cast("Sequence[object]", shape)
        if not all(isinstance(dim, IntVar | int) for dim in dims):
            return None
        found.append((cast("Sequence[DimLike]", dims), dtype))
    return found
