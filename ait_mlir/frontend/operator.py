"""`Operator`: the base of the classes in `ops`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

from xdsl.ir import Attribute, Operation, Region

from ait_mlir import hooks
from ait_mlir.building.formulas import Value
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.frontend.accessor import TensorAccessor
from ait_mlir.frontend.arguments import checked
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntVar, Symbols, merge_symbols
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.writer import TensorWriter

_OPERATOR = "_ait_operator"
Found = TypeVar("Found")


class _Calls(threading.local):
    """The outermost call of an operator that is under way in a thread."""

    outermost: Operator | None = None


_calls = _Calls()


class Operator:
    """An operator of the builder: construct it with its options, then call it on tensors.

    >>> y = ops.gemm_rcr_bias()(x, weight, bias)

    A call adds `ait` ops to the model and returns their results. Raises `BuildError` if the inputs do not fit together
    or an argument has another type than declared; the error names the operator and its inputs. The inputs are the
    tensors among the arguments of the call; an operator that reads others calls `begin`.
    """

    op_name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = _remembered(checked(vars(cls)["__init__"]))
        if "__call__" in vars(cls):
            cls.__call__ = _recorded(checked(vars(cls)["__call__"]))

    constructor_arguments: Mapping[str, Any] = MappingProxyType({})
    label: str | None = None
    """The operator's name in error messages, if it is not `_attrs["op"]`."""

    @checked
    def __init__(self) -> None:
        self.set_up()

    def set_up(self) -> None:
        """Set what every operator has, before the `__init__` of its class."""
        if "_attrs" in vars(self):
            return
        self._attrs: dict[str, Any] = {
            "op": self.op_name or type(self).__name__,
            "name": None,
            "depth": 0,
            "nop": False,
            "has_profiler": False,
            "inputs": None,
            "outputs": None,
        }
        self.call_arguments: tuple[Sequence[Any], Mapping[str, Any]] = (), {}
        self.called_with: list[Tensor] = []
        """The inputs that the ops of the last call read; `_attrs["inputs"]` may name others since."""
        self.made: list[Tensor] = []
        """The results of the last call; tensors in `_attrs["outputs"]` may take their places since."""
        self.sized_by: list[Tensor] = []
        """Inputs of the model of which the last call used a dim and nothing else. They live as long as the operator."""
        self.part_of: Operator | None = None
        """The operator that took the place of this one."""

    @property
    def attrs(self) -> dict[str, Any]:
        """`_attrs`, which users of the documented API write."""
        return self._attrs

    def take_attrs(self, other: Operator) -> None:
        """Replace the attributes by a copy of another operator's."""
        self._attrs = dict(other._attrs)

    @property
    def name(self) -> str:
        return self.label or self._attrs["op"]

    @property
    def inputs(self) -> list[Tensor]:
        return self._attrs["inputs"] or []

    @inputs.setter
    def inputs(self, tensors: Sequence[Tensor]) -> None:
        self._attrs["inputs"] = list(tensors)

    @property
    def outputs(self) -> list[Tensor]:
        return self._attrs["outputs"] or []

    @outputs.setter
    def outputs(self, tensors: Sequence[Tensor]) -> None:
        self._attrs["outputs"] = list(tensors)

    @property
    def depth(self) -> int:
        """The largest depth of an input; a result is one deeper."""
        return self._attrs["depth"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add the operator to the model; every class has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def gen_function(self) -> str:
        """The C++ source of the launches that compute the operator, for the current target, or that of this machine
        outside of a `with target:`.

        Raises `NotImplementedError` for an operator that was not called. An operator that brings its own templates
        returns its own source.
        """
        return hooks.operator_source(self)

    def gen_profiler(self, workdir: str | None = None, dynamic_profiling_strategy: object = None) -> None:
        """Write the source that `profile` times to `WORKDIR/profiler/OPERATOR/STRATEGY.cc`, by default below the
        current directory. The strategy is MIN, MAX or HINTS, the default."""
        hooks.write_profiler(self, workdir, dynamic_profiling_strategy)

    def profile(
        self,
        workdir: str = "./",
        devices: Sequence[int] | None = None,
        dynamic_profiling_strategy: object = "MAX",
    ) -> None:
        """Choose the kernels of the operator, and of those that it depends on, by their times on `devices`, card 0 by
        default; `_attrs["kernels"]` names them. See `compiler.transform.profile`."""
        hooks.profile_operator(self, workdir, devices, dynamic_profiling_strategy)

    def _set_depth(self) -> None:
        """Record the operator as a user of its inputs, `_attrs["inputs"]`."""
        for tensor in self.inputs:
            tensor.users.add(self)
        self._attrs["depth"] = max((tensor.depth for tensor in self.inputs), default=0)

    def _get_op_attributes(self) -> dict[str, Any]:
        """The arguments of the constructor, by name: `type(op)(**op._get_op_attributes())` makes an equal operator."""
        return dict(self.constructor_arguments)

    def replace_input_tensor(self, old_tensor: Tensor, new_tensor: Tensor) -> None:
        """Read `new_tensor` wherever the operator reads `old_tensor`; both have the same shape and dtype."""
        self.inputs = [new_tensor if tensor is old_tensor else tensor for tensor in self.inputs]

    def take_the_place_of(self, operators: Sequence[Operator]) -> None:
        """Replace operators that were called: this one reads `inputs` and computes `outputs` instead."""
        for operator in operators:
            operator.part_of = self
            for tensor in (*operator.inputs, *self.inputs):
                tensor.users.discard(operator)
        self._set_depth()
        self.called_with, self.made = self.inputs[:], self.outputs[:]
        for tensor in self.outputs:
            tensor.sources, tensor.made_by = StableSet([self]), self

    def record(self) -> None:
        """Record the inputs and the results of a call, for `_attrs`, sorting and rewiring."""
        fresh = [t for t in self.outputs if not t.sources and not any(t is read for read in self.inputs)]
        if not fresh:
            return
        self._set_depth()
        self.called_with, self.made = self.inputs[:], self.outputs[:]
        self._attrs["input_accessors"] = [TensorAccessor(tensor) for tensor in self.inputs]
        self._attrs["output_accessors"] = [TensorAccessor(tensor) for tensor in self.outputs]
        read = {name for tensor in self.inputs for name in tensor.symbols}
        new = [symbol for tensor in fresh for name, symbol in tensor.symbols.items() if name not in read]
        self.sized_by = [tensor for symbol in new for ref in symbol.inputs if (tensor := ref()) is not None]
        for tensor in fresh:
            tensor.sources.add(self)
            tensor.made_by, tensor.depth = self, self.depth + 1

    def begin(self, *inputs: Tensor) -> None:
        """Start a call on `inputs`, which `_attrs` and error messages show."""
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
        properties: Mapping[str, Any] | None = None,
        result_types: Sequence[Attribute] | None = None,
        regions: int | Sequence[Region] = 0,
        symbols: Symbols | None = None,
        num_results: int = 1,
    ) -> list[Tensor]:
        """Add an op and return its results. Properties are Python values or attributes, `symbols` dims that
        properties or result types use."""
        w = self.writer(*operands, symbols=symbols)
        values = [t.value for t in operands]
        made = w.ops(op_class, *values, properties=properties, results=result_types, regions=regions, count=num_results)
        return [Tensor.of(result, w.symbols) for result in made]

    def writer(self, *inputs: Tensor | IntVar, symbols: Symbols | None = None) -> TensorWriter:
        """The writer for ops of this call on these tensors and dims; `symbols` are further dims that the ops use."""
        try:
            table = merge_symbols(*(t.symbols for t in inputs), *([] if symbols is None else [symbols]))
        except BuildError as error:
            raise self.fail(str(error)) from None
        return TensorWriter(table, self.fail, functools.partial(mark_operator, operator=_calls.outermost or self))

    def write(self, composition: Callable[..., Value], *arguments: Any, **named: Any) -> Tensor:
        """Add a composition to the model and return its result, which ends the call.

        Tensors among the arguments, also in lists, are passed as values, dims as expressions, other arguments
        unchanged.
        """
        return self.finish(self.written(composition, *arguments, **named))

    def written(self, composition: Callable[..., Value], *arguments: Any, **named: Any) -> Tensor:
        """Like `write`, for a value in the middle of a call."""
        w, found = self._written(composition, arguments, named)
        return Tensor.of(w.full(found), w.symbols)

    def write_all(self, composition: Callable[..., Sequence[Value]], *arguments: Any, **named: Any) -> list[Tensor]:
        """Add a composition of several results to the model and return them, which ends the call."""
        w, found = self._written(composition, arguments, named)
        self.outputs = [Tensor.of(w.full(value), w.symbols) for value in found]
        return self.outputs

    def _written(
        self, composition: Callable[..., Found], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[TensorWriter, Found]:
        w = self.writer(*_handles([*arguments, *named.values()]))
        return w, composition(w, *map(_plain, arguments), **{name: _plain(a) for name, a in named.items()})

    def emit_one(
        self,
        op_class: type[AitOp],
        operands: Sequence[Tensor],
        properties: Mapping[str, Any] | None = None,
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
        """`dim` counted from the front, for a tensor with `extra` more dims than `tensor`; a negative `dim` counts from
        the end.
        """
        rank = tensor.rank + extra
        if not -rank <= dim < rank:
            raise self.fail(f"dim {dim} is out of range for rank {rank}")
        return dim % rank

    def pseudo_code(self, with_shape: bool = False) -> str:
        """The operator as a line: `(y) = gemm_rcr(x, w)`."""
        made, read = (", ".join(t.pseudo_code(with_shape) for t in ts) for ts in (self.outputs, self.inputs))
        return f"({made}) = {self.name}({read})"

    def __repr__(self) -> str:
        return f"Operator({self.name})"


def mark_operator(op: Operation, operator: Operator) -> None:
    """Record `operator` as the operator that added `op`."""
    setattr(op, _OPERATOR, operator)


def operator_of(op: Operation) -> Operator | None:
    """The operator whose call added `op`, or that took its place."""
    found: Operator | None = getattr(op, _OPERATOR, None)
    while found is not None and found.part_of is not None:
        found = found.part_of
    return found


def _handles(arguments: Iterable[Any]) -> list[Tensor | IntVar]:
    """The tensors and dims among arguments, also in lists of them."""
    found: list[Tensor | IntVar] = []
    for argument in arguments:
        if isinstance(argument, list | tuple):
            found += _handles(cast("Sequence[Any]", argument))
        elif isinstance(argument, Tensor | IntVar):
            found.append(argument)
    return found


def _plain(argument: Any) -> Any:
    """An argument converted for a composition: a tensor to its value, a dim to its expression."""
    match argument:
        case Tensor():
            return argument.value
        case IntVar():
            return argument.expr
        case list() | tuple():
            return [_plain(a) for a in cast("Sequence[Any]", argument)]
        case _:
            return argument


Method = Callable[..., Any]


def _remembered(method: Method) -> Method:
    """`__init__` of an operator, which records the arguments of the most derived class for `_get_op_attributes`."""
    signature = functools.cache(lambda: inspect.signature(method))

    @functools.wraps(method)
    def init(self: Operator, *args: Any, **kwargs: Any) -> None:
        if "constructor_arguments" not in vars(self):
            self.constructor_arguments = {}
            self.set_up()
            method(self, *args, **kwargs)
            bound = signature().bind(self, *args, **kwargs)
            self.constructor_arguments = dict([*bound.arguments.items()][1:])
        else:
            method(self, *args, **kwargs)

    return init


def _recorded(method: Method) -> Method:
    """`__call__` of an operator: all ops added during the outermost call belong to its operator, also those of inner
    calls.

    The operator's inputs are those of the outermost call, not those that it passes to a base class.
    """
    order = functools.cache(lambda: [*inspect.signature(method).parameters])

    @functools.wraps(method)
    def call(self: Operator, *args: Any, **kwargs: Any) -> Any:
        if _calls.outermost is self:
            return method(self, *args, **kwargs)
        named = (kwargs[name] for name in order() if name in kwargs) if kwargs else ()
        if tensors := [t for t in _handles([*args, *named]) if isinstance(t, Tensor)]:
            self.inputs = self.called_with = tensors
        if _calls.outermost is not None:
            return method(self, *args, **kwargs)
        _calls.outermost = self
        self.call_arguments = args, kwargs
        try:
            result = method(self, *args, **kwargs)
        finally:
            _calls.outermost = None
        self.record()
        return result

    return call


@contextmanager
def calls_of_its_own() -> Generator[None]:
    """A context in which an operator that is called owns the ops that it adds, although another operator's call
    surrounds it.

    For operators that call a function of the user.
    """
    outermost, _calls.outermost = _calls.outermost, None
    try:
        yield
    finally:
        _calls.outermost = outermost
