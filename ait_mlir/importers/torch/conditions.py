"""Proves the conditions on dims that a program asserts, so that a run need not check them; refuses the others."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.errors import AitError
from ait_mlir.importers.torch.dims import DimTable
from ait_mlir.importers.torch.errors import NotSupported
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.signature import read_inputs
from ait_mlir.importers.torch.trials import Unknown, tried, values
from ait_mlir.importers.torch.writer import ImportWriter

ASSERTION = "aten._assert_scalar.default"
ITEM, SIZE = "aten.item.default", "aten.sym_size.int"

_RELATIONS: Mapping[str, Callable[[Scope, Expr, Expr], bool]] = {
    "eq": lambda scope, a, b: scope.equal(a, b),
    "ne": lambda scope, a, b: scope.lt(a, b) or scope.lt(b, a) or _is_assumed(a, b),
    "le": lambda scope, a, b: scope.le(a, b),
    "lt": lambda scope, a, b: scope.lt(a, b),
    "ge": lambda scope, a, b: scope.le(b, a),
    "gt": lambda scope, a, b: scope.lt(b, a),
}
_OPPOSITE = {"eq": "ne", "ne": "eq", "le": "gt", "gt": "le", "lt": "ge", "ge": "lt"}


def _is_assumed(a: Expr, b: Expr) -> bool:
    """Whether a condition says that a dim is not 1, which PyTorch's traces assume of every dynamic dim."""
    return b.as_int() == 1 and a.symbols == frozenset((str(a),))


def is_proved(condition: Any, table: DimTable) -> bool:
    """Whether a condition, a bool or a node of the program, holds for all values of the dims.

    The proof uses the nodes that compute the condition. PyTorch's own value is not enough: it assumes that every
    asserted condition is true.
    """
    if isinstance(condition, bool):
        return condition
    try:
        return _holds(condition, table, wanted=True)
    except NotSupported:
        return False


_KINDS = {
    "Equality": "eq",
    "Unequality": "ne",
    "LessThan": "le",
    "StrictLessThan": "lt",
    "GreaterThan": "ge",
    "StrictGreaterThan": "gt",
}
"""The relations of SymPy."""


def unproved_guards(program: Any, table: DimTable) -> list[str]:
    """The conditions of a program's trace, as text, that are not proved to hold for all values of the dims.

    Conditions that a size is not 1 are left out: PyTorch asks them to find out whether a dim broadcasts, and dims here
    never do.
    """
    environment = _environment(program)
    guards = [environment.simplify(guard.expr) for guard in environment.guards] if environment is not None else []
    return list(dict.fromkeys(str(guard) for guard in guards if not _is_true(guard, table)))


def failing_conditions(program: Any, table: DimTable) -> list[str]:
    """The conditions of an exported program on the sizes of its arguments, as text, that do not hold for all values of
    the dims: neither proved nor true for all values that are tried. PyTorch checks them in each call.
    """
    inputs = {item.name: item.node.meta["val"].shape for item in read_inputs(program).tensors}
    found: list[str] = []
    for text in getattr(program, "_guards_code", None) or ():
        with contextlib.suppress(*_NO_CONDITION):
            if not _is_text_true(ast.parse(text, mode="eval").body, inputs, table):
                found.append(_SIZE_OF.sub(lambda size: f"{_input_of(size)}.shape[{size[2]}]", text))
    return found


_NO_CONDITION = (NotSupported, AitError, SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError)
"""Errors of a text that is no condition on sizes."""
_SIZE_OF = re.compile(r"L((?:\['\w+'\]|\[\d+\])+)\.size\(\)\[(\d+)\]")


def _input_of(size: re.Match[str]) -> str:
    """The name of the input of a size in a condition, such as `args_0` of `L['args'][0].size()[1]`."""
    return "_".join(re.findall(r"\w+", size[1]))


_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.LtE: "le",
    ast.Lt: "lt",
    ast.GtE: "ge",
    ast.Gt: "gt",
}
_OF_SIZES: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _is_text_true(condition: ast.expr, inputs: Mapping[str, Any], table: DimTable) -> bool:
    """Whether a condition, as Python's syntax, holds for all values of the dims; no code of the text runs."""
    if isinstance(condition, ast.BoolOp):
        join = all if isinstance(condition.op, ast.And) else any
        return join(_is_text_true(part, inputs, table) for part in condition.values)
    if not isinstance(condition, ast.Compare) or any(type(op) not in _COMPARED for op in condition.ops):
        raise NotSupported("a condition that is no comparison")
    sides = [_size_of_text(side, inputs, table) for side in (condition.left, *condition.comparators)]
    kinds = [_COMPARED[type(op)] for op in condition.ops]
    numbers = {n.value for n in ast.walk(condition) if isinstance(n, ast.Constant) and isinstance(n.value, int)}
    return all(
        (kind == "ne" and 1 in (a.as_int(), b.as_int()))
        or _RELATIONS[kind](table.scope(), a, b)
        or not _fails(getattr(operator, kind), a, b, numbers, table.scope())
        for kind, a, b in zip(kinds, sides, sides[1:], strict=False)
    )


MOST_TRIED = 1 << 14
"""The most values of all dims of a condition together that are tried."""


def _fails(compare: Callable[[int, int], bool], a: Expr, b: Expr, numbers: set[int], scope: Scope) -> bool:
    """Whether two sizes compare otherwise for some tried values of their dims. Sizes of 0 and 1 are no part of
    PyTorch's traces."""
    dims = [scope[name] for name in sorted(a.symbols | b.symbols)]
    within = [tried(max(dim.lo, 2), dim.hi, numbers) for dim in dims]
    envs = ({dim.name: n for dim, n in zip(dims, each, strict=True)} for each in itertools.product(*within))
    return not all(compare(a.evaluate(env), b.evaluate(env)) for env in itertools.islice(envs, MOST_TRIED))


def _size_of_text(size: ast.expr, inputs: Mapping[str, Any], table: DimTable) -> Expr:
    if isinstance(size, ast.Constant) and isinstance(size.value, int):
        return const(size.value)
    if isinstance(size, ast.BinOp) and type(size.op) in _OF_SIZES:
        a, b = (_size_of_text(side, inputs, table) for side in (size.left, size.right))
        return _OF_SIZES[type(size.op)](a, b)
    named = _SIZE_OF.fullmatch(ast.unparse(size))
    shape = inputs.get(_input_of(named), ()) if named is not None else ()
    if named is None or int(named[2]) >= len(shape):
        raise NotSupported("a size that is not one of an argument")
    return table.expr(shape[int(named[2])])


def multiples(program: Any) -> dict[str, int]:
    """For the symbols that must be multiples of a number by the conditions of a program's trace, that number."""
    found: dict[str, int] = {}
    if (environment := _environment(program)) is None:
        return found
    for guard in environment.guards:
        condition = environment.replace(guard.expr)
        is_equality = condition.is_Relational and condition.rel_op == "=="
        remainder, *others = condition.args if is_equality else (condition,)
        if others != [0] or type(remainder).__name__ not in ("Mod", "PythonMod"):
            continue
        factor, quotient = (remainder.args[0] / remainder.args[1]).as_coeff_Mul()  # without common factors
        if quotient.is_Symbol and factor.is_Rational:
            found[str(quotient)] = math.lcm(found.get(str(quotient), 1), int(factor.q))
    return {symbol: by for symbol, by in found.items() if by > 1}


def _environment(program: Any) -> Any:
    """PyTorch's record of the symbols of a program; None if it has none."""
    sizes = (s for n in program.graph.nodes for s in getattr(n.meta.get("val"), "shape", ()) if not isinstance(s, int))
    return next((size.node.shape_env for size in sizes), None)


def written(w: ImportWriter, condition: Any, table: DimTable) -> SSAValue:
    """A condition of SymPy on the dims as a bool of rank 0. Raises `NotSupported` for other conditions."""
    kind = type(condition).__name__
    if kind in ("And", "Or"):
        parts = [written(w, part, table) for part in condition.args]
        return functools.reduce(w.both if kind == "And" else w.either, parts)
    if kind == "Not":
        return w.where(written(w, condition.args[0], table), 0, w.scalar(1, i1))
    if kind in ("BooleanTrue", "BooleanFalse"):
        return w.scalar(int(kind == "BooleanTrue"), i1)
    if kind not in _KINDS:
        raise NotSupported(f"the condition {condition} is not one of dims; choose with torch.where")
    a, b = (w.natural(Affine.filled((), table.converted(side))) for side in condition.args)
    return w.compare(_KINDS[kind], a, b)


def _is_true(condition: Any, table: DimTable) -> bool:
    """Whether a condition of SymPy holds for all values of the dims."""
    kind = type(condition).__name__
    if kind in ("And", "Or"):
        return (all if kind == "And" else any)(_is_true(part, table) for part in condition.args)
    if kind not in _KINDS:
        return kind == "BooleanTrue"
    try:
        a, b = map(table.converted, condition.args)
    except NotSupported:
        return False
    of_one = kind == "Unequality" and 1 in (a.as_int(), b.as_int())
    return of_one or _RELATIONS[_KINDS[kind]](table.scope(), a, b)


def is_true_of_floats(condition: Any, table: DimTable) -> bool:
    """Whether a condition of SymPy on floats of one dim holds for each of its values."""
    try:
        return all(holds for _, _, holds in values(condition, table.symbols_of(condition), table.scope()))
    except (NotSupported, Unknown):
        return False


def is_about_values(condition: Any) -> bool:
    """Whether a node of a condition depends on a number that a tensor holds, or on a size that the run binds."""
    if not hasattr(condition, "all_input_nodes"):
        return False
    is_bound = str(condition.target) == SIZE and torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(
        condition.meta["val"]
    )
    return str(condition.target) == ITEM or bool(is_bound) or any(map(is_about_values, condition.all_input_nodes))


def is_only_asserted(node: Any) -> bool:
    """Whether a number read from a tensor is used only in conditions that are asserted."""
    return all(
        str(user.target).startswith(("aten._assert_scalar", "aten.sym_constrain_range"))
        or (user.op != "output" and not isinstance(user.meta.get("val"), torch.Tensor) and is_only_asserted(user))
        for user in node.users
    )


def is_only_returned(node: Any) -> bool:
    """Whether a number read from a tensor is used only as a result of the model and in asserted conditions."""
    return all(
        user.op == "output" or (is_only_asserted(user) and not isinstance(user.meta.get("val"), torch.Tensor))
        for user in node.users
    )


def _holds(node: Any, table: DimTable, wanted: bool) -> bool:
    name: str = getattr(getattr(node, "target", None), "__name__", "")
    if name in ("sym_not", "not_"):
        return _holds(node.args[0], table, not wanted)
    if name in ("and_", "or_"):
        join = all if (name == "and_") == wanted else any
        return join(_holds(part, table, wanted) for part in node.args)
    if name not in _RELATIONS:
        return False
    a, b = (table.expr(part.meta["val"] if hasattr(part, "meta") else part) for part in node.args)
    return _RELATIONS[name if wanted else _OPPOSITE[name]](table.scope(), a, b)
