"""Tensors of the builder that say how their memory lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.frontend import BuildError, IntVar, Target, Tensor, build_module, compile_model, ops


def product(pitch: IntVar) -> Tensor:
    """Rows of a wider matrix times a weight, into the left half of rows of 64."""
    x = Tensor([IntVar([1, 16], name="rows"), 24], "x", dtype="float32", is_input=True, strides=[pitch * 8, 1])
    y = ops.gemm_rcr()(x, Tensor([32, 24], "w", dtype="float32"))
    return y.mark_as_output("y", strides=[64, 1])


def test_a_product_on_rows_of_a_wider_matrix(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((32, 24), np.float32)
    y = product(IntVar([3, 8], name="pitch"))
    text = str(build_module(y))
    assert "%x: !ait.tensor<rows x 24 x f32> strides [8*pitch, 1]) dims {rows = 1 to 16, pitch = 3 to 8}" in text
    assert 'ait.output "y" %y strides [64, 1] : !ait.tensor<rows x 32 x f32>' in text
    model = compile_model(y, Target("cpu"), tmp_path, "product", constants={"w": w})
    for rows, pitch in ((5, 40), (1, 24), (16, 64)):
        x = np.random.default_rng(rows).standard_normal((rows, pitch), np.float32)[:, :24]
        out = np.full((rows, 64), 7, np.float32)
        model.run([x], [out[:, :32]])
        np.testing.assert_allclose(out[:, :32], x @ w.T, rtol=1e-5, atol=1e-5)
        assert (out[:, 32:] == 7).all()
    assert model.stats()["copies"] == 0 and len(model._library.launches) == 1


def test_a_dim_that_only_strides_have_needs_no_name() -> None:
    y = product(IntVar([3, 8]))
    assert "strides [8*x_stride_0, 1]) dims {rows = 1 to 16, x_stride_0 = 3 to 8}" in str(build_module(y))


def test_a_dim_of_sizes_in_strides() -> None:
    n, m = IntVar([1, 8], name="n"), IntVar([1, 8], name="m")
    x = Tensor([n, m], "x", is_input=True, strides=[1, n])
    y = ops.permute()(x, [1, 0]).mark_as_output("y")
    assert "%x: !ait.tensor<n x m x f16> strides [1, n]) dims {n = 1 to 8, m = 1 to 8}" in str(build_module(y))


def test_wrong_strides_are_refused() -> None:
    with pytest.raises(BuildError, match="only an input has strides"):
        Tensor([4, 8], strides=[8, 1])
    with pytest.raises(BuildError, match="only an input has strides"):
        Tensor([], value=1.0, strides=[])
    with pytest.raises(BuildError, match=r"a dim is an int, an IntVar or an IntImm; found 1\.5"):
        Tensor([4, 8], is_input=True, strides=[1.5, 1])
    x = Tensor([4, 8], "x", is_input=True)
    with pytest.raises(BuildError, match="is an input, whose strides are given when it is made"):
        x.mark_as_output("y", strides=[16, 1])
    y = ops.elementwise(ops.FuncEnum.RELU)(x).mark_as_output("y", strides=[IntVar([8, 64], name="pitch"), 1])
    with pytest.raises(BuildError, match=r'"y" .* has strides with the dim "pitch", which no input has'):
        build_module(y)
    for strides, told in (([8], "expected 2 of them"), ([4, 1], "a place of its own")):
        with pytest.raises(BuildError, match=told):
            ops.elementwise(ops.FuncEnum.RELU)(x).mark_as_output("y", strides=strides)
        with pytest.raises(BuildError, match=f'"x" .* has strides|of "x" .*{told}'):
            Tensor([4, 8], "x", is_input=True, strides=strides)
