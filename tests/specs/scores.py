"""Changes of attention's scores, as text: regions, and the types of the operands that they read.

`T` is the element type of q, `S` the type of a score; `H` stands for the heads of q, `L` for the columns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scores:
    """`body` computes `%yielded` from the score `%score` and the elements `%0`, `%1`, ... of operands."""

    operands: tuple[str, ...]
    body: str
    elements: tuple[str, ...] = ()
    """The types of the elements; by default all are like a score."""

    def text(self, names: list[str]) -> str:
        """The clause, with these names of the operands."""
        kinds = self.elements or ("S",) * len(self.operands)
        arguments = "".join(f", %{i}: {kind}" for i, kind in enumerate(kinds))
        return f" scores({', '.join(names)}) {{\n  ^bb0(%score: S{arguments}):\n{self.body}    ait.yield %yielded : S\n  }}"


SCORES = {
    "bias": Scores(("H x s x L x T",), "    %yielded = ait.add %score, %0 : S\n"),
    "biases": Scores(
        ("b x 1 x 1 x L x S", "1 x H x s x L x T"),
        "    %term = ait.add %score, %0 : S\n    %yielded = ait.add %term, %1 : S\n",
    ),
    # slopes times the distance of columns from the end
    "alibi": Scores(
        ("H x 1 x 1 x S", "L x T"), "    %term = ait.mul %0, %1 : S\n    %yielded = ait.add %score, %term : S\n"
    ),
    "cap": Scores(
        (),
        "    %number = ait.constant 0.5 : S\n    %term = ait.mul %score, %number : S\n    %high = ait.tanh %term : S\n"
        "    %other = ait.constant 2.0 : S\n    %yielded = ait.mul %high, %other : S\n",
    ),
    # a score of 0 where two numbers, of the row and of the column, differ
    "groups": Scores(
        ("s x 1 x i32", "b x 1 x 1 x L x i32"),
        "    %same = ait.compare eq %0, %1 : i1\n    %number = ait.constant 0.0 : S\n    %yielded = ait.where %same, %score, %number : S\n",
        ("i32", "i32"),
    ),
    # rows of few columns that see none, by -inf, and by the least number of a type
    "hidden": Scores(
        ("b x 1 x s x L x i1",),
        "    %number = ait.constant -inf : S\n    %yielded = ait.where %0, %score, %number : S\n",
        ("i1",),
    ),
    "least": Scores(
        ("b x 1 x s x L x i1",),
        "    %number = ait.constant -3.4028234663852886e+38 : S\n    %yielded = ait.where %0, %score, %number : S\n",
        ("i1",),
    ),
    "choice": Scores(
        ("b x 1 x s x L x i1",),
        "    %number = ait.constant -3.0 : S\n    %yielded = ait.where %0, %score, %number : S\n",
        ("i1",),
    ),
}


def scores_of(name: str, heads: int, columns: str) -> Scores:
    """The scores of a name, for these heads of q and so many columns."""
    found = SCORES[name]
    operands = tuple(o.replace("H x", f"{heads} x").replace("L x", f"{columns} x") for o in found.operands)
    return Scores(operands, found.body, found.elements)
