"""Rows of a table, and rows written over others."""

from __future__ import annotations

from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import BITS, SUMS

STRIDED = {0: ("30", "1"), 1: ("1", "2*b"), 2: ("s*50", "50", "1")}

EMBEDDING = Spec(
    "embedding",
    (
        *(form(
            f"{layout}-{ids}", "embedding %a, %b", "11 x 24 x T", f"b x s x {ids}", to="b x s x 24 x T", below={1: 11},
            strides=STRIDED if layout == "strided" else {}, offset=int(layout == "strided"),
        ) for layout in ("plain", "strided") for ids in ("i32", "i64")),
        form("long", "embedding %a, %b", "5 x (64*s) x T", "2 x i64", to="2 x (64*s) x T", below={1: 5}),
    ),
    BITS,
    "b = 0 to 9, s = 0 to 900",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 8, "s": 700}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 70}),
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
)  # fmt: skip


def embeddings(name: str, *tables: tuple[str, str], ids: str = "i64", **options: object) -> Form:
    """Lookups in tables of 11 rows, of these (width, places)."""
    names = ["%" + c for c in "abcdefghijkl"[: 2 * len(tables)]]
    operands = [x for width, places in tables for x in (f"11 x {width} x T", " x ".join((*places.split(" x "), ids)))]
    return form(
        name,
        f"grouped_embedding {', '.join(names)}",
        *operands,
        to=[f"{places} x {width} x T" for width, places in tables],
        below=dict.fromkeys(range(1, 2 * len(tables), 2), 11),
        **options,
    )


GROUPED_EMBEDDING = Spec(
    "grouped_embedding",
    (
        embeddings("plain", ("24", "b"), ("24", "b"), ("24", "b")),
        embeddings("i32", ("16", "b x s"), ("7", "s"), ids="i32"),
        embeddings("unequal", ("64", "b x 3"), ("1", "s"), ("(8*s)", "b"), ("s", "b x s")),
        embeddings("one", ("24", "b x s")),
        embeddings(
            "parts", ("24", "b"), ("40", "b"),
            strides={1: ("2",), 3: ("2",), 4: ("64", "1"), 5: ("64", "1")}, offset=1,
        ),
    ),
    BITS,
    "b = 0 to 9, s = 0 to 900",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 8, "s": 700}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 70}),
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
)  # fmt: skip

CACHE, ROWS = "b x 3 x 9 x 16 x T", "b x 3 x 2 x 16 x T"
UPDATE_SLICE = Spec(
    "update_slice",
    (
        form("one", "update_slice %a, %b at %c dim 2", CACHE, "b x 3 x 1 x 16 x T", "i64", below={2: 9}),
        form("several", "update_slice %a, %b at %c dim 2", CACHE, ROWS, "i32", below={2: 8}),
        form(
            "one-strided", "update_slice %a, %b at %c dim 2", CACHE, "b x 3 x 1 x 16 x T", "i64", below={2: 9},
            strides={0: ("432", "1", "48", "3"), 1: ("48", "1", "48", "3"), 3: ("432", "1", "48", "3")},
        ),
        form("places", "update_slice %a, %b at %c dim 2", CACHE, ROWS, "2 x i32", below={2: 9}),
        form("first", "update_slice %a, %b at %c dim 0", "7 x b x s x T", "3 x b x s x T", "3 x i64", below={2: 7}),
        form("last", "update_slice %a, %b at %c dim 1", "b x 11 x T", "b x 2 x T", "i64", below={2: 10}, offset=1),
        form("vector", "update_slice %a, %b at %c dim 0", "13 x T", "5 x T", "i32", below={2: 9}),
        form(
            "turned", "update_slice %a, %b at %c dim 2", CACHE, ROWS, "i64", below={2: 8},
            strides={0: ("432", "16", "48", "1"), 1: ("96", "16", "48", "1"), 3: ("432", "16", "48", "1")},
        ),
    ),
    BITS,
    "b = 0 to 9, s = 0 to 900",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 8, "s": 70}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}),
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
)  # fmt: skip

MASKED_SELECT = Spec(
    "masked_select",
    (
        form("elements", "masked_select %a, %b", "b x s x T", "b x s x i1", to=("count x T", "i64")),
        form("rows", "masked_select %a, %b", "b x s x 5 x T", "b x s x i1", to=("count x 5 x T", "i64"), offset=1),
    ),
    BITS,
    "b = 0 to 9, s = 0 to 4000, count = 0 to b*s bound",
    tuple({"b": b, "s": s, "count": b * s} for b, s in ((3, 5), (1, 1), (0, 4), (1, 256), (8, 3900))),
    tuple({"b": b, "s": s, "count": b * s} for b, s in ((3, 5), (1, 1), (0, 4), (2, 130), (3, 2900))),
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
    without={
        "codegen": "forms side by side would bind one dim; tests/codegen/corpus.py has a graph of its own",
        "graphs": "random graphs declare no dims that ops bind",
    },
)  # fmt: skip

GRID = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 8, "s": 70})
GATHER = Spec(
    "gather",
    (
        form("rows", "gather %a at(%b) dims [0] kept [1]", "11 x 24 x T", "s x 1 x i64", to="s x 24 x T", below={1: 11}),
        form(
            "rows-turned", "gather %a at(%b) dims [0] kept [0]", "11 x b x T", "1 x s x i32", to="b x s x T", below={1: 11},
        ),
        form(
            "middle", "gather %a at(%b) dims [1] kept [0, 3]", "b x 9 x 16 x T", "s x 2 x 1 x i32",
            to="b x s x 2 x 16 x T", below={1: 9}, offset=1,
        ),
        form(
            "elements", "gather %a at(%b) dims [1] kept [0, 2]", "b x 9 x 5 x T", "b x s x 5 x i64",
            to="b x s x 5 x T", below={1: 9}, strides={0: ("45", "1", "9"), 1: ("5*s", "1", "s"), 2: ("s*10", "10", "2")},
        ),
        form(
            "two", "gather %a at(%b, %c) dims [0, 2] kept [2]", "7 x s x 9 x T", "b x 1 x 1 x i64", "3 x 1 x i64",
            to="b x 3 x s x T", below={1: 7, 2: 9},
        ),
        form("one", "gather %a at(%b) dims [0] kept []", "13 x T", "i32", to="T", below={1: 13}),
    ),
    BITS,
    "b = 0 to 9, s = 0 to 900",
    GRID, GRID[:3],
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
)  # fmt: skip
LONG = ({"b": 2, "s": 4097}, {"b": 3, "s": 300}, {"b": 1, "s": 9000})
"""More places than a block sorts, and fewer."""
_KINDS = ("set", "add", "mul", "max", "min")
COLUMNS = ({"b": 1, "s": 300}, {"b": 1, "s": 50})
"""Places for which a warp has a row, and for which a thread has one."""
SCATTER = Spec(
    "scatter",
    (
        *(
            form(
                f"{kind}-rows", f"scatter {kind} %a, %b at(%c) dims [0] kept [1]", "11 x 24 x T", "s x 24 x T",
                "s x 1 x i64", below={2: 11},
                without=frozenset({"graphs"} if kind == "mul" else ()),  # products leave the range of 16-bit floats
            )
            for kind in _KINDS
        ),
        *(
            form(
                f"{kind}-elements", f"scatter {kind} %a, %b at(%c) dims [1] kept [0, 2]", "b x 9 x 5 x T",
                "b x s x 5 x T", "b x s x 5 x i32", below={2: 9},
            )
            for kind in ("set", "add")
        ),
        form(
            "add-two", "scatter add %a, %b at(%c, %d) dims [0, 2] kept [2]", "7 x s x 9 x T", "3 x s x T",
            "b x 1 x 1 x i64", "3 x 1 x i64", below={2: 7, 3: 9}, offset=1,
        ),
        form(
            "max-strided", "scatter max %a, %b at(%c) dims [1] kept [0]", "b x 9 x T", "b x s x T", "s x i64",
            below={2: 9}, strides={0: ("1", "b"), 1: ("1", "b"), 2: ("3",), 3: ("1", "b")},
        ),
        form("set-scalar", "scatter set %a, %b at(%c) dims [0] kept [1]", "11 x s x T", "T", "1 x i64", below={2: 11}),
        form(
            "add-counts", "scatter add %a, %b at(%c) dims [0] kept []", "13 x T", "s x T", "s x i64", below={2: 13},
            types=("i64",), envs=LONG[:1], few=LONG[:1], both=True,
        ),
        form("add-vector", "scatter add %a, %b at(%c) dims [0] kept []", "13 x T", "s x T", "s x i32", below={2: 13}),
        form(
            "add-long", "scatter add %a, %b at(%c) dims [0] kept [1]", "600 x 8 x T", "s x 8 x T", "s x 1 x i32", below={2: 600},
            types=("f16", "f32"), envs=LONG, few=LONG, both=True,
        ),
        *(
            form(
                f"{kind}-many", f"scatter {kind} %a, %b at(%c) dims [1] kept [0]", "70 x 13 x T", "70 x s x T", "70 x s x i64",
                below={2: 13}, types=("f16", "f32", "i64"), envs=LONG[1:2], few=({"b": 1, "s": 300}, {"b": 1, "s": 3}), both=True,
            )
            for kind in ("add", "set")
        ),
        *(
            form(
                f"{kind}-columns", f"scatter {kind} %a, %b at(%c) dims [1] kept [0]", "70 x 13 x T", "70 x s x T", "70 x s x i64",
                below={2: 13}, types=types, envs=COLUMNS, few=COLUMNS, both=True, strides=dict.fromkeys(range(4), ("1", "70")),
            )
            for kind, types in (("add", ("f16", "i64")), ("set", ("bf16", "i8")), ("max", ("f32",)))
        ),
        *(
            form(
                f"{kind}-wide{name}", f"scatter {kind} %a, %b at(%c) dims [1] kept [0]", "72 x 16 x T", "72 x s x T", "72 x s x i64",
                below={2: 16}, types=types, envs=COLUMNS, few=COLUMNS, both=True, strides=strides,
            )
            for kind, types in (("add", ("f16",)), ("set", ("f16", "f32")))
            for name, strides in (("", {}), ("-columns", dict.fromkeys(range(4), ("1", "72"))))
        ),
        form(
            "set-tags", "scatter set %a, %b at(%c) dims [1] kept [0]", "64 x 3001 x T", "64 x s x T", "64 x s x i32", below={2: 3001},
            types=("f32",), envs=({"b": 1, "s": 520},), few=({"b": 1, "s": 520},), both=True,
        ),
        form(
            "set-few", "scatter set %a, %b at(%c) dims [0] kept [1]", "600 x 8 x T", "70 x 8 x T", "70 x 1 x i64", below={2: 600},
            types=("f16",), envs=LONG[:1], few=LONG[:1], both=True,
        ),
        form(
            "set-long", "scatter set %a, %b at(%c) dims [1] kept [0]", "b x 13 x T", "b x s x T", "b x s x i64", below={2: 13},
            types=("bf16", "i8"), envs=LONG, few=LONG, both=True,
        ),
    ),
    SUMS,
    "b = 0 to 9, s = 0 to 9000",
    GRID, GRID[:3],
    ("f16", "bf16", "f32", "i8", "ui8", "i64"),
)  # fmt: skip

SPECS = (EMBEDDING, GROUPED_EMBEDDING, UPDATE_SLICE, MASKED_SELECT, GATHER, SCATTER)
