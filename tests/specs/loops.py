"""Loops over elements: folds, reads through index expressions and through indices."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Form, Spec, form
from tests.specs.tolerance import BITS, MAPS, ROWS

DIMS = "b = 0 to 9, s = 0 to 3000"
ENVS = ({"b": 3, "s": 5}, {"b": 0, "s": 7}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 7, "s": 1031})
FEW = ({"b": 2, "s": 5}, {"b": 1, "s": 33}, {"b": 3, "s": 0})


def loops(name: str, nest: str, body: str, *operands: str, to: str, **options: object) -> Form:
    """A nest of loops over the operands `%a, %b, ...`, which are `%p, %q, ...` in its region."""
    inputs = ", ".join(f"%{n}" for n, _ in zip("abc", operands, strict=False))
    arguments = ", ".join(f"%{n}: !ait.tensor<{t}>" for n, t in zip("pqr", operands, strict=False))
    return form(name, f"loops({inputs}) for ({nest}) {{ ^bb0({arguments}): {body} }}", *operands, to=to, **options)


def fold(kind: str, nest: str, body: str, result: str = "S") -> str:
    return f"ait.fold {kind} for ({nest}) {{ {body} }} : {result}"


def softmax(place: str) -> str:
    """Softmax along the dim that the place of `k0` names, at `d1`."""
    at = place.replace("k0", "d1")
    read, yield_e = f"%v = ait.at %p[{place}] : S", "ait.yield %e : S"
    shifted = "%d = ait.sub %v, %m : S %e = ait.exp %d : S"
    return (
        f"%m = {fold('max', 'k0 = s', f'{read} ait.yield %v : S')} "
        f"%t = {fold('add', 'k0 = s', f'{read} {shifted} {yield_e}')} "
        f"%w = ait.at %p[{at}] : S %f = ait.sub %w, %m : S %g = ait.exp %f : S %y = ait.div %g, %t : S ait.yield %y : S"
    )


LOGSUMEXP = (
    f"%m = {fold('max', 'k0 = s', '%v = ait.at %p[d0, k0] : S ait.yield %v : S')} "
    f"%t = {fold('add', 'k0 = s', '%v = ait.at %p[d0, k0] : S %d = ait.sub %v, %m : S %e = ait.exp %d : S ait.yield %e : S')} "
    "%l = ait.log %t : S %y = ait.add %l, %m : S ait.yield %y : S"
)
COL2IM = fold(
    "add", "k0 = 3",
    "%v = ait.at %p[d0, k0, (d1 - k0) floordiv 2] else 0.0 : S %z = ait.constant 0.0 : S %n = ait.constant 0 : i64 "
    "%r = ait.index ((d1 - k0) mod 2) : i64 %h = ait.compare eq %r, %n : i1 %w = ait.where %h, %v, %z : S ait.yield %w : S",
)  # fmt: skip
REFLECTED = "s - 1 - max(s - 1 - max(d1 - 2, 2 - d1), max(d1 - 2, 2 - d1) - s + 1)"

FOLDS = Spec(
    "loops",
    (
        loops("logsumexp", "d0 = b", LOGSUMEXP, "b x s x T", to="b x T"),
        loops("softmax", "d0 = b, d1 = s", softmax("d0, k0"), "b x s x T", to="b x s x T"),
        loops("softmax-middle", "d0 = b, d1 = s, d2 = 9", softmax("d0, k0, d2"), "b x s x 9 x T", to="b x s x 9 x T"),
        loops(
            "columns", "d0 = s", f"%t = {fold('add', 'k0 = b', '%v = ait.at %p[k0, d0] : S ait.yield %v : S')} ait.yield %t : S",
            "b x s x T", to="s x T",
        ),
        loops("softmax-short", "d0 = b, d1 = s, d2 = 5", softmax("d0, d1, k0").replace("k0 = s", "k0 = 5").replace("[d0, d1, d1]", "[d0, d1, d2]"),
              "b x s x 5 x T", to="b x s x 5 x T"),
        loops(
            "windows", "d0 = b, d1 = s", f"%m = {fold('max', 'k0 = 3', '%v = ait.at %p[d0, 2*d1 + k0 - 1] else -8.0 : S ait.yield %v : S')} "
            "ait.yield %m : S", "b x (2*s) x T", to="b x s x T",
        ),
        loops("col2im", "d0 = b, d1 = 2*s + 1", f"%t = {COL2IM} ait.yield %t : S", "b x 3 x s x T", to="b x (2*s + 1) x T"),
    ),
    ROWS, DIMS, ENVS, FEW,
)  # fmt: skip
MOVES = Spec(
    "loops",
    (
        loops(
            "turned", "d0 = s, d1 = b, d2 = 8", "%v = ait.at %p[d1, s - 1 - d0, d2] : S ait.yield %v : S",
            "b x s x 8 x T", to="s x b x 8 x T",
        ),
        loops("zeros", "d0 = b, d1 = s + 5", "%v = ait.at %p[d0, d1 - 3] else 0 : S ait.yield %v : S", "b x s x T", to="b x (s + 5) x T",
              types=INTEGERS),
        loops(
            "rows", "d0 = s, d1 = 24", "%i = ait.at %q[d0] : i64 %v = ait.at %p[%i, d1] : S ait.yield %v : S",
            "100 x 24 x T", "s x i64", to="s x 24 x T", below={1: 100},
        ),
        loops(
            "places", "d0 = b",
            f"%m, %i = {fold('argmax', 'k0 = s + 1', '%v = ait.at %p[d0, k0] : S ait.yield %v : S', 'S, i64')} ait.yield %i : i64",
            "b x (s + 1) x T", to="b x i64",
        ),
    ),
    BITS, DIMS, ENVS, FEW, (*FLOATS, *INTEGERS),
)  # fmt: skip
MAPPED = Spec(
    "loops",
    (
        loops(
            "resized", "d0 = b, d1 = 2*s, d2 = 14",
            "%v = ait.at %p[d0, d1 floordiv 2, d2 floordiv 2] : S %w = ait.at %q[d1 floordiv 2, 0] : S "
            "%y = ait.add %v, %w : S ait.yield %y : S",
            "b x s x 7 x T", "s x 1 x T", to="b x (2*s) x 14 x T",
        ),
        loops(
            "shifted", "d0 = b, d1 = s", "%v = ait.at %p[d0, d1 - 2] else 0.5 : S %w = ait.at %p[d0, d1 + 1] else 0.0 : S "
            "%e = ait.tanh %v : S %y = ait.add %e, %w : S ait.yield %y : S", "b x s x T", to="b x s x T",
        ),
        loops(
            "narrow", "d0 = s, d1 = b, d2 = 3", "%v = ait.at %p[d1, d0, d2] : S %c = ait.at %q[d1, d0] : i1 "
            "%y = ait.exp %v : S %z = ait.where %c, %y, %v : S ait.yield %z : S", "b x s x 3 x T", "b x s x i1", to="s x b x 3 x T",
        ),
        loops(
            "reflected", "d0 = b, d1 = s + 4", f"%v = ait.at %p[d0, {REFLECTED}] : S %y = ait.tanh %v : S ait.yield %y : S",
            "b x s x T", to="b x (s + 4) x T",
        ),
    ),
    MAPS, "b = 0 to 9, s = 3 to 3000", ({"b": 3, "s": 5}, {"b": 0, "s": 3}, {"b": 7, "s": 1031}), ({"b": 2, "s": 5},),
)  # fmt: skip
SPECS = (FOLDS, MOVES, MAPPED)
