"""`Operator`: the base of the classes in `ops`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar

from xdsl.ir import Attribute, Operation, Region

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.frontend.arguments import checked
from ait_mlir.frontend.emit import make_op
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import Symbols, merge_symbols
from ait_mlir.frontend.tensor import Tensor

_OPERATOR = "_ait_operator"


class Operator:
    """An operator of the builder: construct it with its options, then call it on tensors.

    >>> y = ops.gemm_rcr_bias()(x, weight, bias)

    A call adds `ait` ops to the model and returns their results. Raises `BuildError` if the inputs do not fit together
    or an argument has another type than declared; the error names the operator and its inputs.
    """

    op_name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for method in ("__init__", "__call__"):
            if method in vars(cls):
                setattr(cls, method, checked(vars(cls)[method]))

    def __init__(self) -> None:
        self.name = self.op_name or type(self).__name__
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.extra: dict[str, Any] = {}

    @property
    def _attrs(self) -> OperatorAttrs:
        return OperatorAttrs(self)

    def begin(self, *inputs: Tensor) -> None:
        """Start a call on `inputs`: they are what `_attrs` and error messages show."""
        for i, tensor in enumerate(inputs):
            if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BuildError(f"{self.name}: input {i} must be a Tensor, found {tensor!r}")
        self.inputs = list(inputs)

    def finish(self, output: Tensor) -> Tensor:
        """End a call that has one result."""
        self.outputs = [output]
        return output

    def emit(
        self,
        op_class: type[AitOp],
        operands: Sequence[Tensor],
        properties: Mapping[str, Attribute] | None = None,
        result_types: Sequence[Attribute] | None = None,
        regions: int | Sequence[Region] = 0,
        symbols: Symbols | None = None,
        num_results: int = 1,
    ) -> list[Tensor]:
        """Add an op and return its results. `symbols` are dims that the result types or properties use."""
        try:
            table = merge_symbols(*(t.symbols for t in operands), *([] if symbols is None else [symbols]))
            op = make_op(op_class, [t.value for t in operands], table, properties, result_types, regions, num_results)
        except BuildError as error:
            raise self.fail(str(error)) from None
        setattr(op, _OPERATOR, self)
        return [Tensor.of(result, table) for result in op.results]

    def emit_one(
        self,
        op_class: type[AitOp],
        operands: Sequence[Tensor],
        properties: Mapping[str, Attribute] | None = None,
        result_types: Sequence[Attribute] | None = None,
        regions: int = 0,
        symbols: Symbols | None = None,
    ) -> Tensor:
        """Add an op that has one result."""
        return self.emit(op_class, operands, properties, result_types, regions, symbols)[0]

    def fail(self, message: str) -> BuildError:
        """The error to raise: the operator, its inputs, the message."""
        return BuildError(f"{self.name}({', '.join(t.describe() for t in self.inputs)}): {message}")

    def axis(self, tensor: Tensor, dim: int, extra: int = 0) -> int:
        """`dim`, counted from the end where negative, of a tensor with `extra` more dims than now."""
        rank = tensor.rank + extra
        if not -rank <= dim < rank:
            raise self.fail(f"dim {dim} is out of range for rank {rank}")
        return dim % rank

    def __repr__(self) -> str:
        return f"Operator({self.name})"


class OperatorAttrs(MutableMapping[str, Any]):
    """`Operator._attrs`: name, inputs and outputs of the last call, and other entries that were added."""

    KEYS = ("op", "name", "inputs", "outputs")

    def __init__(self, operator: Operator):
        self._operator = operator

    def __getitem__(self, key: str) -> Any:
        match key:
            case "op" | "name":
                return self._operator.name
            case "inputs":
                return list(self._operator.inputs)
            case "outputs":
                return list(self._operator.outputs)
            case _:
                return self._operator.extra[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self.KEYS:
            raise BuildError(f'"{key}" of {self._operator.name} follows from how it is called; it is not set')
        self._operator.extra[key] = value

    def __delitem__(self, key: str) -> None:
        del self._operator.extra[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.KEYS, *self._operator.extra])

    def __len__(self) -> int:
        return len(self.KEYS) + len(self._operator.extra)


def operator_of(op: Operation) -> Operator | None:
    """The operator whose call added `op`."""
    return getattr(op, _OPERATOR, None)
