"""The rows of docs/from_aitemplate.md on refused uses: each one is tried."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ait_mlir.compiler import transform
from ait_mlir.frontend import BuildError, IntVar, Tensor, build_module, nn, ops
from ait_mlir.frontend.ops import FuncEnum

BATCH, SEQ = IntVar([1, 16], name="batch"), IntVar([1, 16], name="seq")


def x(*shape: int | IntVar, name: str = "x", dtype: str = "float32") -> Tensor:
    return Tensor(shape=list(shape), dtype=dtype, name=name, is_input=True)


def a_number_and_a_dim() -> None:
    with pytest.raises(BuildError, match="batch"):
        x(BATCH, 4) + x(8, 4, name="y")


def no_dims_express_it() -> None:
    with pytest.raises(BuildError, match="the dim that is -1 is not known"):
        ops.reshape()(x(BATCH, SEQ), [-1, 4])
    quarter = IntVar([1, 4], name="quarter")
    ops.reshape()(x(BATCH, quarter * 4), [-1, 4])


def two_ranges() -> None:
    other = IntVar([1, 8], name="batch")
    with pytest.raises(BuildError, match="batch"):
        build_module(x(BATCH, 4) + x(other, 4, name="y"))


def two_dtypes() -> None:
    half = x(4, dtype="float16", name="y")
    with pytest.raises(BuildError, match=r"ops\.cast"):
        x(4) + half
    assert (x(4) + ops.cast()(half, "float32")).dtype() == "float32"


def one_operand() -> None:
    with pytest.raises(BuildError, match="takes 2 operands; found 1"):
        ops.elementwise(FuncEnum.MUL)(x(4))


def the_given_list() -> None:
    graph = transform.toposort(ops.identity()(x(4)) + 1.0)
    before = list(graph)
    assert transform.remove_no_ops(graph) != before and graph == before


def accessors() -> None:
    y = x(4) + 1.0
    (operator,) = y.src_ops()
    (accessor,) = operator._attrs["output_accessors"]
    assert (accessor.tensor, accessor.whole) == (y, True)
    with pytest.raises(AttributeError, match="update_base_tensor"):
        accessor.update_base_tensor(y, 0, 0)


def checks_of_one_tensor() -> None:
    y = x(4) + 1.0
    y._attrs["check_outputs"] = y._attrs["check_nan_and_inf"] = True
    assert y._attrs["check_outputs"] and "check" not in str(build_module(y))


def missing(*modules: str) -> Callable[[], None]:
    def attempt() -> None:
        for module in modules:
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"ait_mlir.utils.{module}")

    return attempt


def no_such_layer() -> None:
    assert not hasattr(nn, "AdsGenAttention")


def masks_of_sequences() -> None:
    with pytest.raises(BuildError, match="mask_seq is not supported; pass shorter sequences"):
        nn.MultiheadAttention(8, 1, 4, num_heads=2, mask_seq=1)


def shapes_that_were_read() -> None:
    a = x(4)
    y = a + 1.0
    with pytest.raises(BuildError, match="operators were called on the tensor before"):
        a._attrs["shape"] = [8]
    (operator,) = y.src_ops()
    operator._attrs["inputs"] = [x(8, name="b")]
    with pytest.raises(BuildError, match="call the operator again"):
        build_module(y)


def one_tensor_twice() -> None:
    a = x(4)
    y = a + a
    (operator,) = y.src_ops()
    operator._attrs["inputs"] = [x(4, name="b"), x(4, name="c")]
    with pytest.raises(BuildError, match="call the operator again"):
        build_module(y)


TRIED: dict[str, Callable[[], None]] = {
    "a dim and a number that may differ": a_number_and_a_dim,
    "a condition that no dims can express": no_dims_express_it,
    "two ranges for one dim name": two_ranges,
    "tensors of f16 and f32 in one elementwise operator": two_dtypes,
    "an elementwise function of two operands with one": one_operand,
    "a transformation that changes the given list": the_given_list,
    "changes of a `TensorAccessor`": accessors,
    '`_attrs["check_nan_and_inf"]` and `_attrs["check_outputs"]`': checks_of_one_tensor,
    "`utils.json_utils`": missing("json_utils"),
    "`utils.environ`": missing("environ", "misc", "io"),
    "`nn.AdsGenAttention`": no_such_layer,
    "`mask_seq` of `nn.MultiheadAttention`": masks_of_sequences,
    "setting `shape` or `dtype` of a tensor that operators have read": shapes_that_were_read,
    "an operator with several inputs that are one tensor": one_tensor_twice,
}
"""What tries a row, by the start of its first cell."""


HELD_BY: dict[str, tuple[str, ...]] = {
    "`Model.get_output_dtype` returns": ("runtime/test_model.py", "test_maps_and_descriptions"),
    "A row of `mem_eff_attention` that": ("frontend/test_ops.py", "test_attention_of_sequences_with_lengths"),
    "`compile_model` leaves the tensors": ("frontend/test_compile.py", "test_the_graph_that_a_model_was_compiled_from"),
    "Places of `concatenate` that": (
        "frontend/test_from_aitemplate_ops.py",
        "test_masked_inputs_of_a_concatenation_are_zeros",
    ),
    "A weight that only your own operators read": (
        "outside/test_templates.py",
        "test_what_follows_from_weights_is_computed_once",
    ),
    "Fused elementwise operators round once": ("importers/test_differences.py", "test_a_row_says_what_both_compute"),
    "Values that follow from weights without data": (
        "frontend/test_compile_arguments.py",
        "test_folding_at_load_and_no_optimization",
    ),
    "The compiler fuses more than": ("frontend/test_products.py", "test_b2b_bmm_is_one_launch"),
    "`ait inspect` and": ("tools/test_explain.py", "test_a_report_can_be_written_of_any_passes"),
    "As in AITemplate's graph": (
        "frontend/test_documented_graph.py",
        "test_norms_that_do_not_wait_for_each_other_are_a_group",
        "frontend/test_documented_places.py",
        "test_what_is_read_and_written_in_place",
    ),
    "AITemplate's graph has more tensors": (),
    "Tests that count these": (),
    "Files that AITemplate writes": (),
}
"""The files and functions of the tests that hold each sentence below the table, by its start; none for one about
AITemplate.
"""


def section() -> str:
    page = (Path(__file__).parents[2] / "docs" / "from_aitemplate.md").read_text()
    return page.partition("## What is refused, and why")[2].partition("\n## ")[0]


def rows() -> list[str]:
    table = re.findall(r"^\| (.*?) \|", section(), re.MULTILINE)
    return [cell for cell in table if not cell.startswith("|")]


def sentences() -> list[str]:
    prose = " ".join(line for line in section().splitlines() if not line.startswith("|"))
    return re.split(r"(?<=\.) +(?=[`A-Z])", prose.strip())


@pytest.mark.parametrize("row", rows())
def test_the_row_is_true(row: str) -> None:
    (attempt,) = [tried for start, tried in TRIED.items() if row.startswith(start)]
    attempt()


def test_every_attempt_has_a_row() -> None:
    assert len(rows()) == len(TRIED)


def test_each_sentence_below_the_table_has_a_test() -> None:
    root = Path(__file__).parents[1]
    for sentence in sentences():
        (held,) = [tests for start, tests in HELD_BY.items() if sentence.startswith(start)]
        for file, function in zip(held[::2], held[1::2], strict=True):
            assert f"def {function}(" in (root / file).read_text(), sentence
    assert len(sentences()) == len(HELD_BY)
