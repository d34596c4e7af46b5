"""Bags of rows, and sequences laid end to end."""

from __future__ import annotations

from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import BITS, SUMS

GRAPHS = "random graphs make no offsets"


def bag(name: str, text: str, *operands: str, bags: str = "o", **options: object) -> Form:
    offsets = (
        f"o x {'i64' if 'i64' in name else 'i32'}" if bags == "o" else f"(o + 1) x {'i64' if 'i64' in name else 'i32'}"
    )
    ids = f"n x {'i64' if 'i64' in name else 'i32'}"
    return form(
        name, f"embedding_bag {text}", "11 x 24 x T", ids, offsets, *operands, to="o x 24 x T", below={1: 11},
        offsets={2: ("n", 6)}, **options,
    )  # fmt: skip


EMBEDDING_BAG = Spec(
    "embedding_bag",
    (
        bag("sum-i64", "sum %a, %b, %c"),
        bag("mean-i32", "mean %a, %b, %c padding 3"),
        bag("max-i64", "max %a, %b, %c padding 0 closed", bags="o + 1"),
        bag("weighted-i32", "sum %a, %b, %c weights %d closed", "n x T", bags="o + 1"),
        bag(
            "strided-i64", "mean %a, %b, %c", strides={0: ("30", "1"), 1: ("1",), 2: ("1",), 3: ("29", "1")}, offset=1,
        ),
    ),
    SUMS,
    "o = 0 to 40, n = 0 to 900",
    ({"o": 3, "n": 9}, {"o": 1, "n": 1}, {"o": 4, "n": 0}, {"o": 0, "n": 0}, {"o": 40, "n": 900}),
    ({"o": 3, "n": 9}, {"o": 1, "n": 1}, {"o": 4, "n": 0}, {"o": 0, "n": 0}),
    without={"graphs": GRAPHS},
)  # fmt: skip

WORDS = "b = 0 to 90, t = 0 to 900, s = 0 to 90, words = jagged(t, b, 0 to 7), nested = jagged(t, b, 0 to 3, 0 to 5)"


def at(b: int, t: int, s: int) -> dict[str, int]:
    return {"b": b, "t": t, "s": s, "words": t, "nested": t}


ENVS = (at(3, 9, 5), at(1, 1, 1), at(4, 0, 0), at(0, 0, 0), at(80, 270, 90))
FEW = ENVS[:4]
ONE, TWO = {1: ("t", 7)}, {1: ("s", 3), 2: ("t", 5)}
MOVED = ("f16", "bf16", "f32", "i8", "ui8", "i64")

MAKE_JAGGED = Spec(
    "make_jagged",
    (form("rows", "make_jagged %a offsets(%b)", "t x 5 x T", "(b + 1) x i32", to="words x 5 x T", offsets=ONE),),
    BITS,
    WORDS,
    ENVS,
    FEW,
    MOVED,
    without={"graphs": GRAPHS},
)
JAGGED_TO_PADDED = Spec(
    "jagged_to_padded",
    (
        form("one", "jagged_to_padded %a offsets(%b) value 1.5", "words x 16 x T", "(b + 1) x i32", to="b x 7 x 16 x T", offsets=ONE),
        form("vector", "jagged_to_padded %a offsets(%b) value -1.0", "words x T", "(b + 1) x i64", to="b x 7 x T", offsets=ONE, offset=1),
        form("two", "jagged_to_padded %a offsets(%b, %c) value 0.0", "nested x 3 x T", "(b + 1) x i32", "(s + 1) x i32", to="b x 3 x 5 x 3 x T", offsets=TWO),
    ),
    BITS,
    WORDS,
    ENVS,
    FEW,
    MOVED,
    without={"graphs": GRAPHS},
)  # fmt: skip
PADDED_TO_JAGGED = Spec(
    "padded_to_jagged",
    (
        form("one", "padded_to_jagged %a offsets(%b)", "b x 7 x 16 x T", "(b + 1) x i32", to="words x 16 x T", offsets=ONE),
        form("vector", "padded_to_jagged %a offsets(%b)", "b x 7 x T", "(b + 1) x i64", to="words x T", offsets=ONE, offset=1),
        form("two", "padded_to_jagged %a offsets(%b, %c)", "b x 3 x 5 x 3 x T", "(b + 1) x i32", "(s + 1) x i32", to="nested x 3 x T", offsets=TWO),
    ),
    BITS,
    WORDS,
    ENVS,
    FEW,
    MOVED,
    without={"graphs": GRAPHS},
)  # fmt: skip
PRODUCT = Spec(
    "jagged_vector_product",
    (
        form("words", "jagged_vector_product %a, %b offsets(%c)", "b x 2 x 7 x T", "words x 2 x 16 x T", "(b + 1) x i32", to="b x 2 x 16 x T", offsets={2: ("t", 7)}),
        form("odd", "jagged_vector_product %a, %b offsets(%c)", "b x 3 x 7 x T", "words x 3 x 5 x T", "(b + 1) x i64", to="b x 3 x 5 x T", offsets={2: ("t", 7)}, offset=1),
    ),
    SUMS,
    WORDS,
    ENVS,
    FEW,
    without={"graphs": GRAPHS},
)  # fmt: skip

SPECS = (EMBEDDING_BAG, MAKE_JAGGED, JAGGED_TO_PADDED, PADDED_TO_JAGGED, PRODUCT)
