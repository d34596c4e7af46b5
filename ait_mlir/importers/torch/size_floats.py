"""Floats that a model computes from dims, such as `x.shape[0] ** 0.5`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.errors import NotSupported
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.tracing import TraceAgain
from ait_mlir.importers.torch.writer import ImportWriter

_OF_TWO: Mapping[str, Callable[[ImportWriter, SSAValue, SSAValue], SSAValue]] = {
    "Add": ImportWriter.add,
    "Mul": ImportWriter.mul,
    "FloatTrueDiv": ImportWriter.div,
    "IntTrueDiv": ImportWriter.div,
    "FloatPow": lambda w, a, b: w.pointwise("pow", a, b),
    "Max": ImportWriter.maximum,
    "Min": ImportWriter.minimum,
}
"""By the class of an expression of SymPy."""
FUNCTIONS = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
"""The functions of `math` that PyTorch computes of dims; the names of our ops, too."""
_OPAQUE = "OpaqueUnaryFn_"


def size_float(w: ImportWriter, value: Any, table: DimTable) -> SSAValue:
    """A `SymFloat` of the program as an f64 of rank 0. Raises `NotSupported` for functions without a row."""
    return _written(w, value.node.expr, table)


def _written(w: ImportWriter, e: Any, table: DimTable) -> SSAValue:
    try:
        numerator, denominator = table.fraction(e)
    except NotSupported:
        pass
    else:
        whole = w.number(numerator, f64)
        return whole if denominator == 1 else w.div(whole, w.scalar(denominator, f64))
    kind = type(e).__name__
    if e.is_number:
        return w.scalar(float(e), f64)
    if kind == "FloatPow" and e.args[0].is_number and float(e.args[0]) == math.e:
        return w.pointwise("exp", _written(w, e.args[1], table))
    if kind == "Pow" and e.args[1].is_Integer and e.args[1] > 0:  # SymPy's form of a product of equal factors
        return functools.reduce(w.mul, [_written(w, e.args[0], table)] * int(e.args[1]))
    if kind in _OF_TWO:
        return functools.reduce(functools.partial(_OF_TWO[kind], w), (_written(w, a, table) for a in e.args))
    if kind.removeprefix(_OPAQUE) in FUNCTIONS:
        return w.pointwise(kind.removeprefix(_OPAQUE), _written(w, e.args[0], table))
    raise NotSupported(f"the float {e} of dims is not supported; compute it with tensors")


@contextlib.contextmanager
def no_example_floats() -> Generator[None]:
    """A context in which `float()` of a float that depends on dims raises `NotSupported`.

    PyTorch would return the float's value for the sizes of the example.
    """
    node = torch.fx.experimental.sym_node.SymNode
    own = node.guard_float

    def guard_float(self: Any, file: str, line: int) -> float:
        if self.expr.free_symbols:
            raise NotSupported(f"the float {self.expr} depends on dims, but a number is needed; compute with tensors")
        return own(self, file, line)

    node.guard_float = guard_float
    try:
        yield
    finally:
        node.guard_float = own


def _logarithm(x: Any, base: float = math.e) -> Any:
    return torch._sym_log2(x) * (1 / math.log2(base))


def _decimal_logarithm(x: Any) -> Any:
    return torch._sym_log2(x) / math.log2(10)  # not a factor, by which `trials` knows `math.log(x, 10)`


def _logarithm_of_next(x: Any) -> Any:
    return _logarithm(x + 1)


def _whole_root(x: Any) -> Any:
    return math.floor(torch._sym_sqrt(x))


def _power_of(base: float) -> Callable[[Any], Any]:
    def power(x: Any) -> Any:
        return base ** torch.sym_float(x)

    return power


def _times(factor: float) -> Callable[[Any], Any]:
    def product(x: Any) -> Any:
        return x * factor

    return product


_COMPOSED: Mapping[str, Callable[..., Any]] = {
    "log": _logarithm,
    "log10": _decimal_logarithm,
    "log1p": _logarithm_of_next,
    "isqrt": _whole_root,
    "exp": _power_of(math.e),
    "exp2": _power_of(2.0),
    "radians": _times(math.pi / 180),
    "degrees": _times(180 / math.pi),
}
"""Functions of `math` by others."""


@contextlib.contextmanager
def float_functions() -> Generator[None]:
    """A context in which functions of `math` and NumPy keep numbers that depend on dims: `math.log(x.shape[0])`. Their
    own functions need a float, which would fix the dim. PyTorch's check of a program accepts them.
    """
    _tables_of_dynamo()
    verifier = torch._export.verifier.Verifier
    of_dims = {name: getattr(torch, f"_sym_{name}") for name in FUNCTIONS} | dict(_COMPOSED)
    allowed = verifier.allowed_op_types

    def allowed_op_types(self: Any) -> tuple[Any, ...]:
        return *allowed(self), _OfDims

    with contextlib.ExitStack() as stack:
        for place in (math, np):
            for name, function in of_dims.items():
                if (own := getattr(place, name, None)) is not None:
                    stack.callback(setattr, place, name, own)
                    setattr(place, name, _of_either(own, function))
        stack.callback(setattr, verifier, "allowed_op_types", allowed)
        verifier.allowed_op_types = allowed_op_types
        yield


def _tables_of_dynamo() -> None:
    """Make Dynamo's tables of NumPy's functions, which it makes in its first trace and keeps. Made while functions are
    replaced, they would lack NumPy's own; and since they hold functions by address, any function that is later made at
    the address of a replacement would be taken for one of NumPy.
    """
    torch._dynamo.trace_rules.is_numpy(None)
    torch._dynamo.variables.misc.get_np_to_tnp_map()


class _IntType(type):
    """The type of `Int`, which behaves as `int` does."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        is_of_dims = len(args) == 1 and isinstance(args[0], torch.SymFloat)
        return math.trunc(args[0]) if is_of_dims else int(*args, **kwargs)


class Int(int, metaclass=_IntType):
    """`int`, which keeps the whole part of a float of dims as a dim expression. `int` itself must return a number."""


class WholeParts:
    """The modules of Python whose code takes `int()` of floats of dims."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        """Their names and values."""

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """A context for traces: `int` is `Int` in the modules that are known; a further module raises `TraceAgain`."""
        kept = torch.SymFloat.__int__

        def whole(x: Any) -> int:
            frame = inspect.currentframe()
            assert frame is not None and frame.f_back is not None
            names = frame.f_back.f_globals
            is_own = "int" not in names and names.get("__name__", "").partition(".")[0] != "torch"
            if is_own and x.node.expr.free_symbols and x.node.has_hint():
                self.found.append(names)
                raise TraceAgain
            return kept(x)

        with contextlib.ExitStack() as stack:
            for names in self.found:
                names["int"] = Int
                stack.callback(names.pop, "int")
            stack.callback(setattr, torch.SymFloat, "__int__", kept)
            torch.SymFloat.__int__ = whole
            yield


def _of_either(own: Callable[..., Any], of_dims: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `of_dims` for numbers that depend on dims, and `own` for others."""

    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        is_of_dims = bool(args) and isinstance(args[0], torch.SymInt | torch.SymFloat)
        return (of_dims if is_of_dims else own)(*args, **kwargs)

    return function


class _OfDimsType(type):
    """The type of `_OfDims`, whose instances are functions of PyTorch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return getattr(instance, "__name__", "").removeprefix("_sym_") in FUNCTIONS


class _OfDims(metaclass=_OfDimsType):
    """PyTorch's functions of numbers that depend on dims."""
