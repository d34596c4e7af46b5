"""Finds the libraries whose functions a graph calls, and writes the hash of each file into the IR."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.errors import InputError
from ait_mlir.host.kernel_libraries import find_kernel_library
from ait_mlir.ir.pipeline import PassError


def resolve(op: CallFfiOp) -> None:
    """Write the hash of the library into a call; `PassError` if the library or the function in it does not exist."""
    if op.library_name is None or op.sha256 is not None:
        return
    try:
        library = find_kernel_library(op.library_name)
    except InputError as error:
        raise PassError(str(error), op) from None
    if op.function.data not in library.functions:
        raise PassError(
            f"kernel library '{library.name}' ({library.path}) has no function {op.function.data!r}; "
            f"it has {', '.join(library.functions)}",
            op,
        )
    op.properties["sha256"] = StringAttr(library.sha256)


@dataclass(frozen=True)
class ResolveLibrariesPass(ModulePass):
    """Find the library of each `ait.call_ffi` by name, check that it has the function, and record the hash of its file.
    A call that has a hash keeps it."""

    name = "resolve-libraries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for call in op.walk():
            if isinstance(call, CallFfiOp):
                resolve(call)
