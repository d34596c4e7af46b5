"""Operators of the graph that `Model.debug_sorted_graph` shows read and write parts of other tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from ait_mlir.compiler.transform.documented_graph import documented_graph
from ait_mlir.compiler.transform.transform_utils import check_graph_validity
from ait_mlir.frontend import IntVar, Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.utils.graph_utils import get_sorted_ops

BATCH, INNER = IntVar([1, 8], name="batch"), IntVar([1, 8], name="inner")
_numbers = itertools.count()


def x(*shape: int | IntVar, dtype: str = "float16") -> Tensor:
    return Tensor(shape=list(shape), dtype=dtype, name=f"x{next(_numbers)}", is_input=True)


def tanh(tensor: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.TANH)(tensor)


def cos(tensor: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.COS)(tensor)


def view(tensor: Tensor, *shape: int | IntVar) -> Tensor:
    return ops.reshape()(tensor, list(shape))


def cut(tensor: Tensor, axis: int, start: int, end: int) -> Tensor:
    starts, ends = [None] * tensor.rank, [None] * tensor.rank
    starts[axis], ends[axis] = start, end
    return ops.dynamic_slice()(tensor, starts, ends)


def join(*tensors: Tensor, dim: int = 1) -> Tensor:
    return ops.concatenate()(list(tensors), dim)


def graph_of(*outputs: Tensor) -> list[Tensor]:
    for i, tensor in enumerate(outputs):
        tensor.mark_as_output(f"y{i}")
    graph = documented_graph(outputs)
    assert check_graph_validity(graph, raiseError=True)
    return graph


def names(graph: list[Tensor]) -> list[str]:
    return sorted(op._attrs["op"] for op in get_sorted_ops(graph))


FUSED = "fused_elementwise"


def heads(dtype: str = "float16") -> Tensor:
    return ops.gemm_rcr()(x(BATCH, 6, 8, dtype=dtype), x(4, 8, dtype=dtype))


def halves() -> list[Tensor]:
    return ops.split()(x(12, 4, 16), 8, 2)


PLACES: dict[str, tuple[Callable[[], Tensor | list[Tensor]], list[str], int]] = {
    # a view beside an operator that has strides
    "a product that is parted": (lambda: cos(view(heads(), BATCH, 24)), ["gemm_rcr", FUSED], 4),
    "a view of an input": (lambda: tanh(view(x(BATCH, 4, 6), BATCH, 24)), [FUSED], 2),
    "views in a row": (
        lambda: cos(ops.unsqueeze(1)(view(ops.bmm_rrr()(x(BATCH, 4, 6), x(BATCH, 6, 2)), BATCH, 8))),
        ["bmm_rrr", FUSED],
        4,
    ),
    "a norm and a reduction": (
        lambda: [tanh(view(ops.layernorm([4])(x(BATCH, 6, 4)), BATCH, 24)), view(ops.reduce_sum(2)(x(3, 6, 4)), 18)],
        [FUSED, "layernorm", "reduce_sum"],
        5,
    ),
    "a view that is an output": (lambda: view(tanh(x(BATCH, 4, 6)), BATCH, 24), [FUSED], 2),
    "a view with another dynamic dim": (
        lambda: tanh(view(cos(x(BATCH, 6, 4)), -1, 4)), [FUSED, FUSED, "reshape"], 4,
    ),
    "a view between others": (lambda: ops.softmax()(view(x(BATCH, 4, 6), BATCH, 24), 1), ["reshape", "softmax"], 3),
    "an output that is viewed": (
        lambda: (lambda y: [y, tanh(view(y, BATCH, 24))])(cos(x(BATCH, 4, 6))), [FUSED, FUSED], 3,
    ),
    # a result that a concatenation alone reads
    "elementwise results": (
        lambda: join(tanh(x(BATCH, 4)), x(BATCH, 2), cos(x(BATCH, 6))), [FUSED, FUSED, "concatenate"], 4,
    ),
    "all operands of a concatenation": (lambda: join(heads(), heads(), dim=2), ["gemm_rcr", "gemm_rcr"], 5),
    "products in rows of one stride": (
        lambda: join(view(heads(), BATCH, 6, 2, 2), x(BATCH, 6, 3, 2), dim=2), ["concatenate", "gemm_rcr"], 4,
    ),
    "rows with a gap inside of them": (
        lambda: join(view(heads(), BATCH, 6, 2, 2), x(BATCH, 6, 2, 3), dim=3), ["concatenate", "gemm_rcr"], 5,
    ),
    "products of three dims along a middle one": (
        lambda: join(heads(), x(BATCH, 2, 4), dim=1), ["concatenate", "gemm_rcr"], 5,
    ),
    "a batched product of columns": (
        lambda: join(ops.bmm_rrr()(x(BATCH, 4, 6), x(BATCH, 6, 2)), x(BATCH, 4, 1), dim=2), ["bmm_rrr", "concatenate"], 4,
    ),
    "a batched product of rows": (
        lambda: join(ops.bmm_rcr()(x(BATCH, 4, 6), x(BATCH, 2, 6)), x(BATCH, 4, 1), dim=2), ["bmm_rcr", "concatenate"], 4,
    ),
    "rows that a view joins": (
        lambda: join(view(ops.bmm_rcr()(x(BATCH, 4, 6), x(BATCH, 2, 6)), BATCH, 8), x(BATCH, 1)),
        ["bmm_rcr", "concatenate"],
        5,
    ),
    "rows of every batch": (
        lambda: join(view(ops.perm102_bmm_rrr()(x(BATCH, 3, 8), x(3, 8, 4)), BATCH, 12), x(BATCH, 1)),
        ["concatenate", "perm102_bmm_rrr"],
        4,
    ),
    "sums along the last dim, and along another": (
        lambda: join(ops.reduce_sum(2)(x(BATCH, 6, 4)), ops.reduce_sum(1)(x(BATCH, 4, 6))),
        ["concatenate", "reduce_sum", "reduce_sum"],
        4,
    ),
    "a concatenation along a dynamic dim": (
        lambda: join(tanh(x(3, BATCH)), x(3, INNER)), [FUSED, "concatenate"], 4,
    ),
    "a result that is read twice": (
        lambda: (lambda y: join(y, x(BATCH, 2), y))(tanh(x(BATCH, 4))), [FUSED, "concatenate"], 4,
    ),
    # slices and splits
    "a slice of a factor": (lambda: ops.gemm_rcr()(cut(x(24, 32), 1, 10, 16), x(4, 6)), ["gemm_rcr"], 3),
    "an odd distance": (lambda: ops.gemm_rcr()(cut(x(8, 23), 1, 8, 16), x(4, 8)), ["dynamic_slice", "gemm_rcr"], 4),
    "an odd distance in f32": (
        lambda: ops.gemm_rcr()(cut(x(8, 23, dtype="float32"), 1, 8, 16), x(4, 8, dtype="float32")), ["gemm_rcr"], 3,
    ),
    "rows of a slice in one": (
        lambda: ops.gemm_rcr()(view(cut(x(BATCH, 8, 4), 1, 0, 4), BATCH, 16), x(4, 16)), ["gemm_rcr"], 3,
    ),
    "rows of a slice apart": (
        lambda: ops.gemm_rcr()(view(cut(x(BATCH, 4, 8), 2, 0, 4), BATCH, 16), x(4, 16)), ["dynamic_slice", "gemm_rcr"], 4,
    ),
    "a slice of rows of three dims": (
        lambda: ops.gemm_rcr()(cut(x(BATCH, 8, 4), 1, 0, 4), x(4, 4)), ["dynamic_slice", "gemm_rcr"], 4,
    ),
    "a slice as the bias": (lambda: ops.gemm_rcr_bias()(x(4, 8), x(6, 8), cut(x(9), 0, 0, 6)), ["dynamic_slice", "gemm_rcr_bias"], 5),
    "a slice along two dims": (lambda: tanh(cut(cut(x(9, 9), 0, 1, 5), 1, 1, 5)), ["dynamic_slice", FUSED], 3),
    "a slice that elementwise operators read": (lambda: tanh(cut(x(BATCH, 9), 1, 1, 5)), [FUSED], 2),
    "a slice that another operator reads": (
        lambda: (lambda s: [tanh(s), ops.softmax()(s, 1)])(cut(x(BATCH, 9), 1, 1, 5)),
        ["dynamic_slice", FUSED, "softmax"],
        4,
    ),
    "a split that products read": (
        lambda: [ops.bmm_rcr()(part, x(12, 3, 8)) for part in halves()], ["bmm_rcr", "bmm_rcr"], 5,
    ),
    "a split that a concatenation reads": (lambda: join(*halves()[::-1], dim=2), ["concatenate"], 2),
    "a split that is joined along another dim": (lambda: join(*halves()[::-1], dim=1), ["concatenate", "split"], 4),
    "a split that products and a concatenation read": (
        lambda: (lambda a, b: [ops.bmm_rcr()(a, x(12, 3, 8)), join(b, b, dim=2)])(*halves()),
        ["bmm_rcr", "concatenate"],
        4,
    ),
    "a part that two products read": (
        lambda: (lambda a, b: [ops.bmm_rcr()(t, x(12, 3, 8)) for t in (a, a, b)])(*halves()),
        ["bmm_rcr", "bmm_rcr", "bmm_rcr", "split"],
        9,
    ),
    "a split that others read": (lambda: [tanh(part) for part in halves()], [FUSED, FUSED, "split"], 5),
}  # fmt: skip


@pytest.mark.parametrize("what", PLACES)
def test_what_is_read_and_written_in_place(what: str):
    build, operators, tensors = PLACES[what]
    built = build()
    graph = graph_of(*([built] if isinstance(built, Tensor) else built))
    assert (names(graph), len(graph)) == (sorted(operators), tensors)


def test_several_operators_write_one_tensor():
    a, b, c = x(BATCH, 4), x(BATCH, 2), x(BATCH, 6)
    graph = graph_of(join(tanh(a), b, cos(c)))
    (joined,) = [t for t in graph if t._attrs["is_output"]]
    made = {op._attrs["op"] for op in joined._attrs["src_ops"]}
    (concat,) = [op for op in joined._attrs["src_ops"] if op._attrs["op"] == "concatenate"]
    assert len(joined._attrs["src_ops"]) == 3 and made == {FUSED, "concatenate"}
    assert concat._attrs["input_masks"] == [False, True, False]
    assert [t._attrs["name"] for t in concat._attrs["inputs"]] == [b._attrs["name"]]


SAME: dict[str, tuple[Callable[[Tensor], Tensor | list[Tensor]], int]] = {
    "the same function": (lambda a: [ops.softmax()(tanh(a), 0), ops.softmax()(tanh(a), 1)], 1),
    "other functions": (lambda a: [ops.softmax()(tanh(a), 0), ops.softmax()(cos(a), 1)], 2),
    "other inputs": (lambda a: [ops.softmax()(tanh(a), 0), ops.softmax()(tanh(x(12, 8)), 1)], 2),
    "the same function of what it made": (lambda a: [ops.softmax()(tanh(ops.softmax()(tanh(a), d)), 0) for d in (0, 1)], 3),
    "two outputs": (lambda a: [tanh(a), tanh(a)], 1),
    "parts of a concatenation": (lambda a: join(tanh(a), tanh(a)), 1),
    "a part and a tensor": (lambda a: [join(tanh(a), x(12, 2)), ops.softmax()(tanh(a), 1)], 1),
    "the same slice": (lambda a: [ops.softmax()(tanh(cut(a, 1, 0, 4)), d) for d in (0, 1)], 1),
    "slices at other places": (lambda a: [ops.softmax()(tanh(cut(a, 1, d, 4 + d)), d) for d in (0, 1)], 2),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_elementwise_operators_that_compute_the_same(what: str):
    build, count = SAME[what]
    built = build(x(12, 8))
    graph = graph_of(*([built] if isinstance(built, Tensor) else built))
    assert names(graph).count(FUSED) == count


def test_a_group_of_products_reads_a_split():
    parts = ops.split()(x(4, 16), 8, 1)
    outputs = ops.group_gemm_rcr()([[part, x(6, 8)] for part in parts])
    assert names(graph_of(*outputs)) == ["group_gemm_rcr"]
    joined = join(*ops.group_gemm_rcr()([[x(4, 8), x(6, 8)], [x(4, 8), x(2, 8)]]))
    assert names(graph_of(joined)) == ["group_gemm_rcr"]


def gelu(tensor: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.GELU)(tensor)


WIDTHS: dict[str, tuple[Callable[[], Tensor], tuple[str, list[str], str, str]]] = {
    "whole rows": (lambda: tanh(x(BATCH, 256)), ("uint4", ["uint4"], "half2", "half")),
    "f32": (lambda: tanh(x(BATCH, 6, dtype="float32")), ("uint2", ["uint2"], "float", "float")),
    "bf16": (lambda: tanh(x(6, dtype="bfloat16")), ("uint", ["uint"], "bfloat16_2", "bfloat16")),
    "i64": (lambda: x(6, dtype="int64") + x(6, dtype="int64"), ("uint4", ["uint4", "uint4"], "int64_t", "int64_t")),
    "a dynamic row": (lambda: tanh(x(8, INNER)), ("half", ["half"], "half", "half")),
    "an odd row": (lambda: tanh(x(BATCH, 7)), ("half", ["half"], "half", "half")),
    "a function of one element": (lambda: gelu(x(BATCH, 8)), ("uint4", ["uint4"], "half", "half")),
    "a repeated row": (lambda: x(BATCH, 4, 8) + x(8), ("uint4", ["uint4", "uint4"], "half2", "half")),
    "a repeated element": (lambda: x(BATCH, 4, 8) + x(4, 1), ("uint4", ["uint4", "half"], "half2", "half")),
    "rows that are repeated": (lambda: x(4, 3, 2) + x(4, 1, 2), ("uint", ["uint", "uint"], "half2", "half")),
    "a part behind an odd start": (lambda: tanh(cut(x(4, 16), 1, 3, 11)), ("half", ["half"], "half", "half")),
    "a part of rows": (lambda: tanh(cut(x(16, 12), 0, 2, 6)), ("uint4", ["uint4"], "half2", "half")),
    "a part of a result": (lambda: join(tanh(x(4, 8)), x(4, 3)), ("half", ["half"], "half", "half")),
}


@pytest.mark.parametrize("what", WIDTHS)
def test_types_of_reads_are_those_of_aitemplate(what: str):
    make, expected = WIDTHS[what]
    graph = graph_of(make())
    (operator,) = [op for op in get_sorted_ops(graph) if op._attrs["op"] == FUSED]
    attrs = operator._attrs
    found = (attrs["max_read_t"], [t for _, t in sorted(attrs["read_types"])], attrs["op_t"], attrs["data_t"])
    assert found == expected


def test_dtypes_without_such_types():
    (operator,) = get_sorted_ops(graph_of(tanh(x(8, dtype="float64"))))
    assert "max_read_t" not in operator._attrs
