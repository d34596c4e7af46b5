"""`@operator`: makes a class an op, and registers its text, shape function, reference, kernels, patterns and rows."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar, cast, overload

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrSizedOperandSegments, VerificationContext, irdl_op_definition
from xdsl.utils.exceptions import PyRDLError, VerifyException

from ait_mlir import outside
from ait_mlir.dialects import outside as base
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.outside import default_syntax, fields, python_values
from ait_mlir.dims import DimError, Expr
from ait_mlir.lowering.authored import Cpp, Ffi
from ait_mlir.lowering.kernels.outside import CppKernel, FfiKernel
from ait_mlir.lowering.target import KINDS
from ait_mlir.operators import calls
from ait_mlir.outside import OperatorError, Site, counted, line_of, message_of, place_of
from ait_mlir.reference.core import Arrays, Evaluation, Rule
from ait_mlir.reference.outside import call_reference
from ait_mlir.rewrites.engine.errors import PatternError
from ait_mlir.rewrites.engine.language import PatternFamily, PatternSet

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_RESERVED = frozenset(("ait", "ait_rt", "builtin", "pdl", "sdy", "external"))
_EXTRAS = ("reference", "kernels", "patterns", "torch", "cpp", "SYNTAX", "OPERAND_NAMES", "WORK", "CHEAP", "MONOTONE")
"""Attributes of the class that are no fields of the op."""

OpT = TypeVar("OpT", bound="type[AitOp]")


class Op(calls.Callable_, base.Op):
    __doc__ = base.Op.__doc__


class Elementwise(calls.Callable_, base.Elementwise):
    __doc__ = base.Elementwise.__doc__


@overload
def operator(cls: OpT) -> OpT: ...
@overload
def operator(*, replace: bool = False) -> Callable[[OpT], OpT]: ...
def operator(cls: Any = None, *, replace: bool = False) -> Any:
    """Make a subclass of `Op` or `Elementwise` an operator of the compiler; returns its op class.

    The class has `name` ("mine.rotate"), fields (`operand_def`, `prop_def`, `result_def`), `infer_result_types` (the
    shape function; elementwise ops have one) and `reference`, a static function on NumPy arrays. It may have `kernels`
    (by target: `Cpp`, `Jinja` or `Ffi`), `cpp` (elementwise), `patterns`, `torch` (names of PyTorch operations, or rows
    by name) and `SYNTAX`. With `replace` it takes the place of an operator of the same name. Raises `OperatorError`
    with the place of the class.
    """
    site = Site.of(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    if cls is None:
        return partial(_register, replace=replace, site=site)
    return _register(cls, replace, site)


def _register(cls: type[AitOp], replace: bool, site: Site) -> type[AitOp]:
    place = place_of(cls, site)
    try:
        return _made(cls, place, replace, site)
    except OperatorError as error:
        text = str(error)
        raise OperatorError(text if place in text else f"{place}: {text}") from error
    except (PyRDLError, TypeError, ValueError) as error:
        raise OperatorError(f"{place}: {cls.__name__}: {error}") from error


def _made(cls: type[AitOp], place: str, replace: bool, site: Site) -> type[AitOp]:
    _check(cls)
    bases = tuple(_plain.get(found, found) for found in cls.__bases__)
    cls = cls if bases == cls.__bases__ else _copy(cls, bases)
    plain = _copy(cls, bases)
    op = _op_class(cls)
    _plain[op] = plain
    setattr(op, "infer_result_types", _checked_shapes(op.infer_result_types))  # noqa: B010
    op.SEGMENTED = any(isinstance(o, AttrSizedOperandSegments) for o in op.get_irdl_definition().options)
    if cls.SYNTAX is AitOp.SYNTAX:
        op.SYNTAX = default_syntax(op)
    if issubclass(op, base.Elementwise):
        _check_scalars(op)
        op.CPP = getattr(cls, "cpp")  # noqa: B009
        op.OPERAND_NAMES = tuple(name for name, _ in op.get_irdl_definition().operands)
    _check_reference(op)
    patterns = tuple(getattr(cls, "patterns", ()))
    kernels = _kernels(op, getattr(cls, "kernels", {}))
    row = outside.Outside(op, place, _rule(op), kernels, patterns, calls.torch_rows(op), (site,))
    before = outside.rows().get(op.name)
    outside.add(row, replace)
    try:
        _check_patterns(op.name, cls.__module__, patterns)
    except (OperatorError, ValueError):
        outside.remove(op.name)
        if before is not None:
            outside.add(before)
        raise
    return op


def _checked_shapes(infer: Callable[[Any], Sequence[Attribute]]) -> Callable[[Any], Sequence[Attribute]]:
    """A shape function whose mistakes are errors of the op, with the author's line."""

    @wraps(infer)
    def checked(self: AitOp) -> Sequence[Attribute]:
        try:
            types = infer(self)
        except (VerifyException, DimError):
            raise
        except Exception as error:
            place = line_of(infer, error)
            raise self.fail(f"its shape function failed at {place}: {message_of(error)}") from error
        found = cast("Sequence[object]", types if isinstance(types, list | tuple) else (None,))
        if not all(isinstance(t, Attribute) for t in found):
            given = str(types) if isinstance(types, Attribute) else repr(types)
            raise self.fail(f"its shape function returned {given}, expected a list with the type of each result")
        if (count := len(self.results)) != len(found):
            raise self.fail(
                f"its shape function returned {counted(len(found), 'type')}, but the op has {counted(count, 'result')}"
            )
        return types

    return checked


_plain: dict[type, type[AitOp]] = {}
"""A copy of the class as its author wrote it, by op class: an op class cannot be derived from."""


def _copy(cls: type[AitOp], bases: tuple[type, ...]) -> type[AitOp]:
    members = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    members["__annotations__"] = dict(cls.__annotations__)
    return cast(Any, type(cls))(cls.__name__, bases, members)


def _op_class(cls: type[AitOp]) -> type[AitOp]:
    """The op class of an author's class; attributes that are no fields are set aside while xDSL reads the class."""
    aside: list[tuple[type, str, Any]] = []
    for found in cls.__mro__:
        if found.__module__.startswith(__package__ or "") or not issubclass(found, Op | Elementwise):
            continue
        for name in _EXTRAS:
            if name in vars(found):
                aside.append((found, name, vars(found)[name]))
                delattr(found, name)
                found.__annotations__.pop(name, None)
    try:
        op = irdl_op_definition(cls)
    finally:
        for found, name, value in aside:
            setattr(found, name, value)
    return op


def _check(cls: type) -> None:
    """Raise `OperatorError` for a class without a required part."""
    if not issubclass(cls, base.Op | base.Elementwise):
        raise OperatorError(f"{cls.__name__} is no operator; derive it from ait_mlir.operators.Op or Elementwise")
    name = cls.__dict__.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.partition(".")[0] in _RESERVED:
        raise OperatorError(
            f"{cls.__name__} has the name {name!r}; expected one like 'mine.rotate': a dialect of yours, "
            "a dot, a name, both of small letters, digits and _"
        )
    if getattr(cls, "infer_result_types") is AitOp.infer_result_types:  # noqa: B009
        raise OperatorError(
            f"{name} has no shape function; define infer_result_types(self), which returns the types of the results, "
            "as in: return [self.x.type]"
        )
    if not callable(getattr(cls, "reference", None)):
        raise OperatorError(
            f"{name} has no reference; define a static method reference, which computes the results with NumPy"
        )
    if issubclass(cls, base.Elementwise) and not isinstance(getattr(cls, "cpp", None), str):
        raise OperatorError(f"{name} has no expression; set cpp, as in: cpp = 'x * x + 1'")


def _check_scalars(op: type[AitOp]) -> None:
    """Raise `OperatorError` for a field of an elementwise op that only takes tensors, because a fused op
    takes scalars.
    """
    definition = op.get_irdl_definition()
    for kind, found in (("operand", definition.operands), ("result", definition.results)):
        for name, field in found:
            try:
                field.constr.verify((f32,), VerificationContext())
            except VerifyException:
                raise OperatorError(
                    f"{op.name}: {name} is not for every type, but an elementwise operator is one on scalars, too; "
                    f"write {name} = {kind}_def()"
                ) from None


def _check_reference(op: type[AitOp]) -> None:
    """Raise `OperatorError` if `reference` cannot be called with the operands, and the properties by name."""
    definition = op.get_irdl_definition()
    operands = [name for name, _ in definition.operands]
    named = [name for name in definition.properties if name != "operandSegmentSizes"]
    function = cast("Callable[..., object]", getattr(op, "reference"))  # noqa: B009
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C
        return
    try:
        found.bind(*operands, **dict.fromkeys(named))
    except TypeError as error:
        expected = ", ".join([*operands, *(["*", *named] if named else [])])
        raise OperatorError(
            f"{op.name}: reference{found} does not take what the op has: {error}; "
            f"expected a static method, reference({expected})"
        ) from None


def _kernels(op: type[AitOp], given: object) -> tuple[CppKernel | FfiKernel, ...]:
    """The kernels by target as `Kernel`s."""
    if not isinstance(given, Mapping):
        raise OperatorError(
            f"{op.name}: kernels is {given!r}; expected a dict from target to kernel: {{'cpu': Cpp(...)}}"
        )
    made: list[CppKernel | FfiKernel] = []
    for key, source in cast("Mapping[object, object]", given).items():
        kinds: list[str] = ["cuda", "rocm"] if key == "gpu" else [str(key)]
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise OperatorError(f"{op.name}: {unknown[0]!r} is no target; expected gpu or one of {', '.join(KINDS)}")
        if isinstance(source, Cpp):
            made += [CppKernel(op, kind, source) for kind in kinds]
        elif isinstance(source, Ffi):
            made += [FfiKernel(op, kind, source) for kind in kinds]
        else:
            raise OperatorError(f"{op.name}: the kernel for {key} is {source!r}; expected a Cpp, a Jinja or an Ffi")
    return tuple(made)


def _check_patterns(name: str, module: str, patterns: Sequence[object]) -> None:
    """Compile the patterns, which may use the constraints, finders and native rewrites of their module."""
    from ait_mlir.rewrites.apply import compiled
    from ait_mlir.rewrites.families import CONSTRAINTS, FINDERS, NATIVES

    if patterns and (found := sys.modules.get(module)) is not None:
        for registry in (CONSTRAINTS, FINDERS, NATIVES):
            registry.add_module(found)
    for found in patterns:
        if not isinstance(found, PatternFamily):
            raise OperatorError(f"{name}: {found!r} is no pattern; write it as a function under @pattern()")
    try:
        if patterns:
            compiled(PatternSet(cast("tuple[PatternFamily, ...]", tuple(patterns))))
    except PatternError as error:
        raise OperatorError(f"{name}: a pattern is wrong: {error}") from error


def _rule(op: type[AitOp]) -> Rule:
    """The reference of an operator as a rule of the evaluator."""
    function = cast("Callable[..., Any]", getattr(op, "reference"))  # noqa: B009

    def rule(found: Operation, arrays: Arrays, ev: Evaluation) -> Arrays:
        given = list(arrays)
        arguments: list[Any] = []
        for _, values, several in fields(cast(AitOp, found)):
            taken = [given.pop(0) for _ in values]
            arguments.append(taken if several else taken[0] if taken else None)
        options = {
            name: [v.evaluate(ev.dims) if isinstance(v, Expr) else v for v in cast("list[Any]", value)]
            if isinstance(value, list)
            else value
            for name, value in python_values(cast(AitOp, found)).items()
        }
        return call_reference(function, arguments, options, found, ev)

    return rule
