"""Helpers of the rows of several families."""

from __future__ import annotations

from contextlib import suppress

from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine, Mask, reach
from ait_mlir.dims import DimError, Expr
from ait_mlir.importers.torch.call import Call, NotSupported, as_expr
from ait_mlir.rewrites.engine.numbers import stored


def operand(c: Call, name: str, element: Attribute) -> SSAValue:
    """A tensor or scalar argument as a value of `element` that broadcasts to the result; numbers are rounded to it."""
    found = c.arguments[name]
    return c.w.number(stored(found, element), element) if isinstance(found, int | float) else term(c, name, element)


def term(c: Call, name: str, element: Attribute) -> SSAValue:
    """A tensor or scalar argument of arithmetic, for which PyTorch does not round numbers to f16 or bf16."""
    found = c.arguments[name]
    if isinstance(found, bool | int | float | Expr):
        return c.w.number(found, element)
    return c.w.cast(c.natural(name), element)


def as_affine(c: Call, name: str) -> Affine | None:
    """An integer argument as a formula of its indices, or None: the least integer of 64 bits is too large for a
    formula.
    """
    found = c.arguments[name]
    if isinstance(found, bool):
        return None
    if isinstance(found, int | Expr):
        with suppress(DimError):
            return Affine.filled((), found)
        return None
    return found if isinstance(found, Affine) else None


def window_of(mask: Mask, causal: bool) -> tuple[int | None, Mask]:
    """The width of the mask's band around the diagonal, or None, and the rest of the mask. Unless `causal`, the band
    must be equally wide on both sides.
    """
    before = {f: w for f in mask.formulas if (w := reach(f, right=False)) is not None}
    after = {f: w for f in mask.formulas if (w := reach(f, right=True)) is not None}
    if not before or not (causal or min(before.values()) == min(after.values(), default=None)):
        return None, mask
    rest = tuple(f for f in mask.formulas if f not in before and (causal or f not in after))
    return min(before.values()), Mask(mask.dims, rest, mask.values)


# ** windows over the last dims **


def each(given: object, rank: int) -> list[int]:
    """An argument for each dim; one number is used for all."""
    numbers = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    known = [as_expr(n).as_int() for n in numbers]  # pyright: ignore[reportUnknownVariableType]
    if any(n is None for n in known):
        raise NotSupported(f"found {given!r}, expected numbers that are known")
    return [n for n in known if n is not None] * (rank if len(known) == 1 else 1)
