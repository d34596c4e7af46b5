"""Groups of ops as one definition of an element, beside what the ops compute: sizes of 0 and 1, broadcasting, views."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.elementwise import WhereOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, LoopsOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.elements import NoElements, has_elements
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from tests.elements.support import as_loops, assert_same

DIMS = "b = 0 to 4, s = 0 to 9, r = 1 to 6"
ENVS = ({"b": 2, "s": 5, "r": 3}, {"b": 1, "s": 1, "r": 1}, {"b": 0, "s": 3, "r": 6}, {"b": 4, "s": 0, "r": 2})


def graph(body: str, *inputs: str) -> str:
    """A graph on `%a, %b, ...` whose only output is `%y`, defined by the last line."""
    lines = [line.strip() for line in body.strip().splitlines()]
    typed = [
        f"{name} = ait.{text} : !ait.tensor<{'>, !ait.tensor<'.join(t.split('; '))}>"
        for name, text, t in (
            (part.strip() for part in (line.partition("=")[0], *line.partition("=")[2].rsplit(":", 1)))
            for line in lines
        )
    ]
    result = typed[-1].rsplit(" : ", 1)[1]
    arguments = ", ".join(f"%{n}: !ait.tensor<{t}>" for n, t in zip("abcdef", inputs, strict=False))
    return (
        f"ait.graph @g({arguments}) dims {{{DIMS}}} {{\n  "
        + "\n  ".join(typed)
        + f'\n  ait.output "y" %y : {result}\n}}'
    )


GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "logsumexp": (
        """%m = reduce max %a dims [1] : b x f32
        %n = reshape %m : b x 1 x f32
        %d = sub %a, %n : b x s x f32
        %e = exp %d : b x s x f32
        %t = reduce sum %e dims [1] : b x f32
        %l = log %t : b x f32
        %y = add %l, %m : b x f32""",
        ("b x s x f32",),
    ),
    "log-softmax": (
        """%p = softmax %a dim 0 : b x s x f32
        %y = log %p : b x s x f32""",
        ("b x s x f32",),
    ),
    "cosine": (
        """%p = mul %a, %b : b x s x f32
        %d = reduce sum %p dims [1] : b x f32
        %q = mul %a, %a : b x s x f32
        %r = reduce sum %q dims [1] : b x f32
        %t = mul %b, %b : b x s x f32
        %u = reduce sum %t dims [1] : b x f32
        %v = mul %r, %u : b x f32
        %w = rsqrt %v : b x f32
        %y = mul %d, %w : b x f32""",
        ("b x s x f32", "b x s x f32"),
    ),
    "pool-of-an-image": (
        """%p = permute %a [0, 2, 3, 1] : b x 9 x (s + 2) x 3 x f16
        %q = pool mean %p window [3, 3] stride [2, 2] pad [1, 1] ceil exclude_pad : b x 5 x (min((s + 3) floordiv 2 + 1, (s + 4) floordiv 2)) x 3 x f16
        %y = permute %q [0, 3, 1, 2] : b x 3 x 5 x (min((s + 3) floordiv 2 + 1, (s + 4) floordiv 2)) x f16""",
        ("b x 3 x 9 x (s + 2) x f16",),
    ),
    "resize-of-a-sum": (
        """%p = add %a, %b : b x r x 4 x 2 x f32
        %y = resize linear %p : b x (2*r) x 7 x 2 x f32""",
        ("b x r x 4 x 2 x f32", "r x 1 x 2 x f32"),
    ),
    "norm-of-a-pad": (
        """%p = pad constant %a before [0, 2] value 0.5 : b x (s + 5) x f16
        %q = relu %p : b x (s + 5) x f16
        %y = layer_norm %q axes 1 eps 1e-05 : b x (s + 5) x f16""",
        ("b x s x f16",),
    ),
    "pad-of-a-sum": (
        """%p = add %a, %b : b x s x f32
        %q = exp %p : b x s x f32
        %y = pad constant %q before [1, -1] : (b + 3) x (s + 1) x f32""",
        ("b x s x f32", "s x f32"),
    ),
    "pad-of-a-pad": (
        """%p = pad reflect %a before [0, 1] : b x (r + 3) x f32
        %y = pad circular %p before [0, 2] : b x (r + 6) x f32""",
        ("b x (r + 1) x f32",),
    ),
    "softmax-of-heads": (
        """%p = reshape %a : b x s x 4 x 6 x f32
        %q = permute %p [0, 2, 1, 3] : b x 4 x s x 6 x f32
        %y = softmax %q dim 2 : b x 4 x s x 6 x f32""",
        ("b x s x 24 x f32",),
    ),
    "merged-heads": (
        """%q = permute %a [0, 2, 1, 3] : b x s x 4 x 6 x f32
        %p = reshape %q : (b*s) x 24 x f32
        %e = exp %p : (b*s) x 24 x f32
        %y = reduce max %e dims [0] : 24 x f32""",
        ("b x 4 x s x 6 x f32",),
    ),
    "roll": (
        """%p = slice %a offsets [0, r] : b x s x f32
        %q = slice %a offsets [0, 0] : b x r x f32
        %c = concat %p, %q dim 1 : b x (s + r) x f32
        %y = sigmoid %c : b x (s + r) x f32""",
        ("b x (s + r) x f32",),
    ),
    "halves": (
        """%p, %q = split %a dim 1 : b x s x f32; b x s x f32
        %r = silu %p : b x s x f32
        %y = mul %r, %q : b x s x f32""",
        ("b x (2*s) x f32",),
    ),
    "loss-of-a-row": (
        """%m = reduce max %a dims [1] : b x f32
        %n = reshape %m : b x 1 x f32
        %d = sub %a, %n : b x r x f32
        %e = exp %d : b x r x f32
        %t = reduce sum %e dims [1] : b x f32
        %l = log %t : b x f32
        %g = gather %d at(%b) dims [1] kept [0] : b x 1 x f32
        %h = reshape %g : b x f32
        %y = sub %l, %h : b x f32""",
        ("b x r x f32", "b x 1 x i64"),
    ),
    "variance-of-the-means": (
        """%m = reduce mean %a dims [2] : b x r x f64
        %y = reduce var %m dims [1] correction 1 : b x f64""",
        ("b x r x s x f64",),
    ),
    "place-of-the-largest-sum": (
        """%m = reduce sum %a dims [0] : r x s x i32
        %y = argmax %m dim 0 : s x i64""",
        ("b x r x s x i32",),
    ),
    "rounds-by-a-cast": (
        """%p = cast %a : b x s x f16
        %q = cast %p : b x s x f32
        %y = sub %a, %q : b x s x f32""",
        ("b x s x f32",),
    ),
    "rows-of-a-table": (
        """%e = embedding %a, %b : b x s x 6 x f16
        %p = permute %e [1, 0, 2] : s x b x 6 x f16
        %y = rms_norm %p axes 1 eps 1e-06 : s x b x 6 x f16""",
        ("11 x 6 x f16", "b x s x i32"),
    ),
    "windows-at-constant-places": (
        """%i = constant [0, 1, 2, 2, 3, 4] : 2 x 3 x 1 x i64
        %j = constant [-1, 0, 1] : 3 x 1 x i64
        %k = constant -1 : i64
        %l = add %j, %k : 3 x 1 x i64
        %g = gather %a at(%i, %l) dims [1, 2] kept [2] : 2 x 3 x b x f16
        %y = relu %g : 2 x 3 x b x f16""",
        ("b x 5 x 3 x f16",),
    ),
    "groups": (
        """%n = group_norm %a dim 1 groups 2 eps 1e-05 : b x 4 x s x f32
        %y = adaptive_pool max %n : b x 3 x s x f32""",
        ("b x 4 x s x f32",),
    ),
    "matrix-vector": (
        """%p = add %a, %b : b x s x f32
        %q = gemm rcr %p, %c epilogue(%d) { ^bb0(%x: f32, %e: f32): %t = ait.add %x, %e : f32 ait.yield %t : f32 } : b x 1 x f32
        %y = exp %q : b x 1 x f32""",
        ("b x s x f32", "s x f32", "1 x s x f32", "b x 1 x f32"),
    ),
    "vector-matrix": ("%y = gemm ccr %a, %b : 1 x r x f32", ("s x 1 x f32", "r x s x f32")),
    "vectors-transposed": ("%y = gemm rrc %a, %b : 1 x s x f32", ("s x r x f32", "r x 1 x f32")),
    "many-rows": ("%y = gemm rrr %a, %b : b x s x 1 x f32", ("b x s x r x f32", "r x 1 x f32")),
    "batch-of-vectors": ("%y = bmm rrr %a, %b : b x 3 x 1 x s x f32", ("b x 1 x 1 x r x f32", "3 x r x s x f32")),
    "depthwise": (
        """%p = permute %a [0, 2, 3, 1] : b x 7 x 9 x 6 x f32
        %q = relu %p : b x 7 x 9 x 6 x f32
        %t = conv %q, %b stride [2, 1] pad [1, 0] dilation [1, 2] groups 6 epilogue(%c) { ^bb0(%x: f32, %e: f32): %s = ait.add %x, %e : f32 ait.yield %s : f32 } : b x 4 x 5 x 6 x f32
        %y = permute %t [0, 3, 1, 2] : b x 6 x 4 x 5 x f32""",
        ("b x 6 x 7 x 9 x f32", "6 x 3 x 3 x 1 x f32", "6 x f32"),
    ),
    "everything": (
        """%p = softmax %a dim 1 : b x s x f32
        %q = mul %p, %b : b x s x f32
        %y = reduce sum %q dims [0, 1] : f32""",
        ("b x s x f32", "1 x f32"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_groups_compute_what_their_ops_compute(name: str) -> None:
    body, inputs = GROUPS[name]
    text = graph(body, *inputs)
    module, _ = as_loops(text)
    for seed, env in enumerate(ENVS):
        assert_same(text, module, env, seed)


def test_places_that_are_an_expression_need_no_table() -> None:
    loops = loops_of("windows-at-constant-places")
    assert len(loops.operands) == 1 and not any(isinstance(op, WhereOp) for op in loops.body.walk())
    assert "[d2, 2*d0 + d1, (d1 + 1) mod 3]" in str(loops)


@pytest.mark.parametrize("places", ["[0, 1, 3]", "[3, 4, 5]", "[-6, -5, -4]"])
def test_other_places_are_read(places: str) -> None:
    """They are no expression, or it is not proved to be inside of the dim: negative ones are told apart."""
    body = f"%i = constant {places} : 3 x 1 x i64\n%y = gather %a at(%i) dims [0] kept [1] : 3 x b x f16"
    _, loops = as_loops(graph(body, "5 x b x f16"))
    assert any(isinstance(op, WhereOp) for op in loops.body.walk())


def loops_of(name: str) -> LoopsOp:
    body, inputs = GROUPS[name]
    return as_loops(graph(body, *inputs))[1]


def count(loops: LoopsOp, op_class: type[AtOp] | type[FoldOp]) -> int:
    return sum(isinstance(op, op_class) for op in loops.body.walk())


@pytest.mark.parametrize("name", ["matrix-vector", "vector-matrix", "many-rows", "batch-of-vectors"])
def test_a_product_with_a_vector_is_one_fold(name: str) -> None:
    assert count(loops_of(name), FoldOp) == 1


@pytest.mark.parametrize(("rows", "factor"), [("1", 'param "w" : 5 x 3 x f32'), ("s", "neg %b : 5 x 3 x f32")])
def test_products_of_matrices_and_with_weights_have_no_elements(rows: str, factor: str) -> None:
    text = graph(f"%w = {factor}\n%y = gemm rrr %a, %w : {rows} x 3 x f32", f"{rows} x 5 x f32", "5 x 3 x f32")
    product = next(op for op in parse_text(context(), text).walk() if op.name == "ait.gemm")
    assert not has_elements(product)


PLANES = ("b x 6 x 7 x 9 x f32", "6 x 3 x 3 x 1 x f32", "6 x 5 x 5 x 1 x f32", "6 x 3 x 3 x 2 x f32")


@pytest.mark.parametrize(
    ("body", "has"),
    [
        ("%p = permute %a [0, 2, 3, 1] : b x 7 x 9 x 6 x f32\n%y = conv %p, %b groups 6 : b x 5 x 7 x 6 x f32", True),
        ("%y = conv %a, %e groups 9 : b x 4 x 5 x 9 x f32", False),
        ("%p = permute %a [0, 3, 2, 1] : b x 9 x 7 x 6 x f32\n%y = conv %p, %b groups 6 : b x 7 x 5 x 6 x f32", False),
        ("%p = permute %a [0, 2, 3, 1] : b x 7 x 9 x 6 x f32\n%y = conv %p, %c groups 6 : b x 3 x 5 x 6 x f32", False),
        ("%p = permute %a [0, 2, 3, 1] : b x 7 x 9 x 6 x f32\n%y = conv %p, %d groups 3 : b x 5 x 7 x 6 x f32", False),
        (
            "%p = permute %a [0, 2, 3, 1] : b x 7 x 9 x 6 x f32\n"
            "%y = conv %p, %b transposed groups 6 : b x 9 x 11 x 6 x f32",
            False,
        ),
    ],
    ids=["planes", "channels-last", "other-order", "large-window", "groups", "transposed"],
)
def test_depthwise_convolutions_of_planes_have_elements(body: str, has: bool) -> None:
    conv = next(
        op for op in parse_text(context(), graph(body, *PLANES, "9 x 3 x 3 x 1 x f32")).walk() if op.name == "ait.conv"
    )
    assert has_elements(conv) == has


def test_equal_folds_and_reads_are_one() -> None:
    """log(sum(exp(a - max))) + max: one maximum, one sum; each reads an element once."""
    loops = loops_of("logsumexp")
    assert (count(loops, FoldOp), count(loops, AtOp)) == (2, 2)
    assert [op.name for op in loops.block.ops] == ["ait.fold", "ait.fold", "ait.log", "ait.add", "ait.yield"]


def test_what_does_not_depend_on_a_fold_stands_outside_of_it() -> None:
    """The sum over all rows of softmax: a row's folds stand in the fold over rows, not in that over columns."""
    loops = loops_of("everything")
    (outer,) = [op for op in loops.block.ops if isinstance(op, FoldOp)]
    assert len(outer.sizes) == 2
    nested = [op for op in outer.block.ops if isinstance(op, FoldOp)]
    assert len(nested) == 2
    factor = next(op for op in loops.block.ops if isinstance(op, AtOp))
    assert str(factor.index()[0]) == "0"


def test_reads_are_only_moved_to_where_they_are_within_the_tensor() -> None:
    """A fold of no columns reads nothing, so a read that the fold does not change is proved in it alone."""
    text = graph("%p = add %a, %b : b x s x f32\n%y = reduce sum %p dims [1] : b x f32", "b x s x f32", "b x s x f32")
    _, loops = as_loops(text.replace("%b: !ait.tensor<b x s x f32>", "%b: !ait.tensor<b x 1 x f32>"))
    assert [op.name for op in loops.block.ops] == ["ait.at", "ait.fold", "ait.yield"]
    assert scope_of(loops).le(0, loops.sizes[0])


@pytest.mark.parametrize(
    ("body", "inputs", "message"),
    [
        (
            "%p = slice %a offsets [1, 0] : 10 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "checked against the dim that it indexes",
        ),
        (
            "%p = concat %a, %a dim 0 : 22 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "a concat is read at a value",
        ),
        (
            "%p = reshape %a : 22 x 3 x f16\n%y = embedding %p, %b : b x s x 3 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "a reshape is read at a value",
        ),
        (
            "%p = pad circular %a before [1, 0] : 12 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "a padded dim is read at a value",
        ),
        (
            "%p = slice %a offsets [0, 0] : 10 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "checked against the dim that it indexes",
        ),
        (
            "%p = expand %a : 5 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("1 x 6 x f16", "b x s x i64"),
            "checked against the dim that it indexes",
        ),
        (
            "%p = reshape %a : 1 x 6 x f16\n%y = embedding %p, %b : b x s x 6 x f16",
            ("6 x f16", "b x s x i64"),
            "checked against the dim that it indexes",
        ),
        (
            "%p = pad constant %a before [0, 1] : 11 x 7 x f16\n%y = embedding %p, %b : b x s x 7 x f16",
            ("11 x 6 x f16", "b x s x i64"),
            "would read the padding",
        ),
        (
            "%e = embedding %a, %b : b x 6 x f16\n%y = concat %e, %c dim 0 : (2 * b) x 6 x f16",
            ("11 x 6 x f16", "b x i64", "b x 6 x f16"),
            "would not fail under a condition",
        ),
        (
            "%e = embedding %a, %b : b x 6 x f16\n%y = pad constant %e before [1, 0] : (b + 1) x 6 x f16",
            ("11 x 6 x f16", "b x i64"),
            "would not fail under a condition",
        ),
    ],
)
def test_an_index_that_is_a_value_is_checked_where_the_model_has_it(
    body: str, inputs: tuple[str, ...], message: str
) -> None:
    with pytest.raises(NoElements, match=message):
        as_loops(graph(body, *inputs))
