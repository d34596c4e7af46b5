"""Jagged tensors and bags of rows in the builder, against PyTorch and NumPy."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
import torch

from ait_mlir.errors import RunError
from ait_mlir.frontend import BuildError, IntVar, JaggedDim, JaggedIntVar, Tensor, build_module, compile_model, ops
from ait_mlir.frontend.ops import FuncEnum

BATCH, TOTAL, MORE = IntVar([0, 8], name="batch"), IntVar([0, 90], name="total"), IntVar([1, 40], name="more")
LONGEST = 6


def tensor(*shape, name, dtype="float32"):
    return Tensor(shape=list(shape), name=name, dtype=dtype, is_input=True)


def offsets(name="offsets", count=BATCH + 1):
    return tensor(count, name=name, dtype="int32")


def jagged(x, starts):
    return ops.make_jagged(BATCH, [JaggedDim(0, LONGEST)])(x, [starts])


def padded(rows, starts, value):
    out = np.full((len(starts) - 1, LONGEST, *rows.shape[1:]), value, rows.dtype)
    for i, (begin, end) in enumerate(itertools.pairwise(starts)):
        out[i, : end - begin] = rows[begin:end]
    return out


def test_an_input_that_only_gives_the_total_stays_an_input():
    x, starts, like = (
        tensor(3, LONGEST, 4, name="x"),
        offsets(count=4),
        tensor(IntVar([1, 9], name="rows"), name="like"),
    )
    rows = ops.padded_dense_to_jagged(like.shape()[0])(x, [starts])
    text = str(build_module([rows.mark_as_output("y")]))
    assert "%like: !ait.tensor<rows x f32>" in text
    assert "dims {rows = 1 to 9, count = jagged(rows, 3, 0 to 6)}" in text


def test_an_input_that_only_gives_a_dim_lives_as_long_as_what_it_sizes():
    def made() -> list[Tensor]:
        total, count = (tensor(IntVar([1, 9], name=name), name=f"like_{name}") for name in ("rows", "n"))
        rows = ops.padded_dense_to_jagged(total.shape()[0])(tensor(3, LONGEST, 4, name="x"), [offsets(count=4)])
        return [rows.mark_as_output("y"), ops.full()([count.shape()[0], 2], 1.0).mark_as_output("z")]

    outputs = made()
    gc.collect()
    text = str(build_module(outputs))
    assert "%like_rows: !ait.tensor<rows x f32>" in text and "%like_n: !ait.tensor<n x f32>" in text


def test_a_total_that_no_input_has_is_an_error():
    rows = ops.padded_dense_to_jagged(IntVar([1, 9], name="rows"))(tensor(3, LONGEST, 4, name="x"), [offsets(count=4)])
    with pytest.raises(BuildError, match='follows from the dim "rows", which no input has: give an input this dim'):
        build_module([rows.mark_as_output("y")])


def test_operators_agree_with_numpy(tmp_path):
    x, starts = tensor(TOTAL, 2, 4, name="x"), offsets()
    dense, vectors = tensor(BATCH, LONGEST, 2, 4, name="dense"), tensor(BATCH, 2, LONGEST, name="vectors")
    lengths = tensor(BATCH, name="lengths", dtype="int32")
    j = jagged(x, starts)
    both = j * 2.0 + dense  # the rows of `dense` that the sequences have
    again = ops.padded_dense_to_jagged(j.shape()[0])(ops.jagged_to_padded_dense(0.0)(j), [starts])
    outputs = {
        "padded": ops.jagged_to_padded_dense(7.0)(both),
        "same": ops.elementwise(FuncEnum.SUB)(again, j),
        "product": ops.batched_dense_vec_jagged_2d_mul()(vectors, j),
        "starts": ops.jagged_lengths_to_offsets()(lengths),
        "present": ops.jagged_lengths_to_presences()(lengths, LONGEST, "float32"),
    }
    marked = [t.mark_as_output(name) for name, t in outputs.items()]
    rng = np.random.default_rng(0)
    with compile_model(marked, "cpu", tmp_path, "jagged") as model:
        for count in (0, 1, 3, 8):
            sizes = rng.integers(0, LONGEST + 1, count).astype(np.int32)
            begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
            rows = rng.standard_normal((begins[-1], 2, 4)).astype(np.float32)
            beside = rng.standard_normal((count, LONGEST, 2, 4)).astype(np.float32)
            vector = rng.standard_normal((count, 2, LONGEST)).astype(np.float32)
            given = {"x": rows, "offsets": begins, "dense": beside, "vectors": vector, "lengths": sizes}
            got = model.run_with_tensors({n: torch.from_numpy(a) for n, a in given.items()})
            present = np.arange(LONGEST) < sizes[:, None]
            want = np.where(present[..., None, None], padded(rows, begins, 0) * 2 + beside, 7)
            np.testing.assert_allclose(got["padded"].numpy(), want, rtol=1e-6)
            np.testing.assert_array_equal(got["same"].numpy(), np.zeros_like(rows))
            np.testing.assert_allclose(
                got["product"].numpy(),
                np.einsum("bhn,bnhd->bhd", vector, padded(rows, begins, 0)),
                rtol=1e-5,
                atol=1e-6,
            )
            np.testing.assert_array_equal(got["starts"].numpy(), begins)
            np.testing.assert_array_equal(got["present"].numpy(), present.astype(np.float32))
        given["offsets"] = begins[::-1].copy()
        with pytest.raises(RunError, match=r"offset \d+ at place \d of offsets 0 is"):
            model.run_with_tensors({n: torch.from_numpy(a) for n, a in given.items()})


def test_the_same_sequences_are_one_dim():
    x, y, z = (tensor(TOTAL, 4, name=n) for n in "xyz")
    starts, others = offsets(), offsets("others")
    a, b = ops.make_jagged(BATCH, [JaggedDim(0, LONGEST)])([x, y], [starts])
    assert isinstance(a.shape()[0], JaggedIntVar) and a.shape()[0] == b.shape()[0]
    assert a.shape()[0].total_length() == TOTAL and a.shape()[0].batch_dim() == BATCH
    assert a.shape()[0].get_max_dense_shape() == [BATCH, LONGEST]
    text = str(build_module([a + b]))
    assert "jagged(total, batch, 0 to 6)" in text and "ait.add %" in text
    with pytest.raises(BuildError, match="dim 0 of rhs is"):
        a + jagged(z, others)


def test_nested_sequences():
    x, outer, inner = tensor(TOTAL, 4, name="x"), offsets(), offsets("inner", MORE)
    j = ops.make_jagged(BATCH, [JaggedDim(0, 3), JaggedDim(0, 5)])(x, [outer, inner])
    dense = ops.jagged_to_padded_dense()(j)
    assert [str(d) for d in dense.shape()] == ["batch", "3", "5", "4"]
    bias = tensor(4, name="bias")
    assert (j + bias).shape() == j.shape()
    spread = tensor(BATCH, 1, 5, 4, name="spread")
    text = str(build_module([j + spread]))
    assert "ait.expand %spread" in text and "ait.padded_to_jagged" in text


def test_the_longest_sequence_may_be_a_dim(tmp_path):
    longest = IntVar([0, 12], name="longest")
    level = JaggedDim(0, longest)
    assert level.max_value() == longest and level == JaggedDim(0, IntVar([0, 12], name="longest"))
    assert level != JaggedDim(0, 12) and "longest" in repr(level)
    x, starts, dense = tensor(TOTAL, 3, name="x"), offsets(), tensor(BATCH, longest, 3, name="dense")
    j = ops.make_jagged(BATCH, [level])(x, [starts])
    dim = j.shape()[0]
    assert isinstance(dim, JaggedIntVar)
    assert dim.jagged_dims() == [level] and dim.get_max_dense_shape() == [BATCH, longest]
    back = ops.padded_dense_to_jagged(dim)(dense, [starts])
    marked = [(j + dense).mark_as_output("sum"), ops.jagged_to_padded_dense(7.0)(back).mark_as_output("padded")]
    assert "jagged(total, batch, 0 to longest)" in str(build_module(marked))
    rows, begins = torch.randn(7, 3), torch.tensor([0, 1, 4, 6, 7], dtype=torch.int32)
    with compile_model(marked, "cpu", tmp_path, "longest") as model:
        for size in (3, 12):
            beside = torch.randn(4, size, 3)
            got = model.run_with_tensors({"x": rows, "offsets": begins, "dense": beside})
            taken = torch.cat([d[:n] for d, n in zip(beside, begins.diff().tolist(), strict=True)])
            torch.testing.assert_close(got["sum"], rows + taken)
            held = torch.arange(size)[None, :, None] < begins.diff()[:, None, None]
            torch.testing.assert_close(got["padded"], torch.where(held, beside, 7.0))
        with pytest.raises(RunError, match="offset"):
            model.run_with_tensors({"x": rows, "offsets": begins, "dense": torch.randn(4, 2, 3)})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x, o: ops.jagged_to_padded_dense()(x), "is not jagged; make it by make_jagged"),
        (lambda x, o: ops.make_jagged(BATCH, [JaggedDim(0, 3)])(x, []), "offsets for each level"),
        (lambda x, o: ops.make_jagged(BATCH + 1, [JaggedDim(0, 3)])(x, [o]), "expected one more than the batch"),
        (lambda x, o: ops.padded_dense_to_jagged(TOTAL)(x, [o, o]), "needs offsets for each level, and a tensor"),
        (lambda x, o: JaggedDim(3, 2), "between a number of at least 0 and a number or a dim; found 3 and 2"),
        (lambda x, o: JaggedDim(MORE, 50), "between a number of at least 0"),
        (lambda x, o: JaggedIntVar(TOTAL, BATCH, []), "needs a JaggedDim for each"),
        (lambda x, o: ops.embedding_bag("median")(x, o, o), 'mode "median" is unknown'),
    ],
)
def test_what_is_wrong_is_told(wrong, message):
    with pytest.raises(BuildError, match=message):
        wrong(tensor(TOTAL, 4, name="x"), offsets())


def test_embedding_bag_agrees_with_pytorch(tmp_path):
    ids, starts, weights = tensor(TOTAL, name="ids", dtype="int64"), offsets(), tensor(TOTAL, name="weights")
    table = Tensor(shape=[20, 12], name="table", dtype="float32")
    out = ops.embedding_bag("sum", padding_idx=3, include_last_offset=True)(table, ids, starts, weights)
    data = torch.randn(20, 12)
    with compile_model(out.mark_as_output("y"), "cpu", tmp_path, "bag", constants={"table": data.numpy()}) as model:
        given = torch.randint(0, 20, (30,)), torch.tensor([0, 4, 4, 30]), torch.rand(30)
        got = model.run_with_tensors({"ids": given[0], "offsets": given[1].int(), "weights": given[2]})["y"]
        want = torch.nn.functional.embedding_bag(
            given[0], data, given[1], per_sample_weights=given[2], mode="sum", padding_idx=3, include_last_offset=True
        )
        torch.testing.assert_close(got, want)
