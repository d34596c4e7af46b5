"""The writer of the builder: it checks ops in the scope of their dims, and leaves them detached until the graph is
built.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.types import DimsAttr, TensorType
from ait_mlir.dims import DimError, Scope
from ait_mlir.frontend.assume import EQUATIONS, AssumingScope
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import Symbols, scope_from
from ait_mlir.frontend.tensor import Tensor


class TensorWriter(Writer):
    """Writes the ops of one call of an operator, on values whose dims are `symbols`. Each result gets its tensor.

    `fail` makes the errors; `mark` is called with each op.
    """

    def __init__(
        self,
        symbols: Symbols,
        fail: Callable[[str], BuildError] = BuildError,
        mark: Callable[[Operation], None] = lambda op: None,
    ) -> None:
        self._holder = ModuleOp([])
        super().__init__(self._holder.body.block)
        self.symbols, self.fail, self.mark = symbols, fail, mark
        self._scope = scope_from(symbols)
        self._holder.properties["dims"] = DimsAttr(self._scope)

    @property
    def scope(self) -> Scope:
        return self._scope

    def insert(self, op: AitOp) -> Operation:
        """Return the op; it joins a block when the graph is built, or at once in the step of a loop."""
        if self.block is not self._holder.body.block:
            self.block.add_op(op)
            return op
        self.mark(op)
        for result in op.results:
            if isinstance(result.type, TensorType):
                Tensor.of(result, self.symbols)
        return op

    def invalid(self, message: str) -> Exception:
        return self.fail(message)

    def check(self, op: AitOp, infer: bool = False) -> None:
        """Verify an op; one that fails only because dims are not proved to be equal assumes that they are."""
        if op.parent is None:
            self.block.add_op(op)
            try:
                self.check(op, infer)
            finally:
                op.detach()
            return
        try:
            self._check_in(self.scope, op, infer)
        except BuildError as error:
            assuming = AssumingScope(self.symbols)
            try:
                self._check_in(assuming, op, infer)
            except BuildError:
                assuming.equations.clear()
            if not assuming.equations:
                raise self.fail(str(error)) from None
            setattr(op, EQUATIONS, tuple(assuming.equations))

    def _check_in(self, scope: Scope, op: AitOp, infer: bool) -> None:
        self._holder.properties["dims"] = DimsAttr(scope)
        try:
            if infer:
                op.infer()
            else:
                op.verify_()
        except (VerifyException, DimError) as error:
            raise BuildError(str(error)) from None
        finally:
            self._holder.properties["dims"] = DimsAttr(self._scope)
