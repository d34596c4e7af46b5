"""`ops.scan`: loops with carried values from Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ait_mlir.frontend import IntVar, Tensor, compile_model, nn, ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import build_module
from tests.frontend.support import evaluate

SEQ, BATCH = IntVar([0, 32], name="seq"), IntVar([1, 4])


def tensor(*shape, name: str, dtype: str = "float32") -> Tensor:
    return Tensor(shape=list(shape), dtype=dtype, name=name, is_input=True)


def test_a_running_product_that_captures_values_of_the_model():
    x, y = tensor(SEQ, 3, name="x"), tensor(3, name="y")
    twice = y * 2.0  # made once, outside of the loop

    def step(xt, product):
        new = product * xt + twice
        return [new], [new, xt]

    [last], [seen, same] = ops.scan(step)([x], [y])
    text = str(build_module([last, seen, same]))
    assert text.index("ait.mul") < text.index("ait.scan")
    rng = np.random.default_rng(0)
    for length in (0, 1, 4):
        values = {"x": rng.random((length, 3)), "y": rng.random(3)}
        product, products = values["y"], []
        for row in values["x"]:
            product = product * row + 2 * values["y"]
            products.append(product)
        got = evaluate([last, seen, same], values, seq=length)
        np.testing.assert_allclose(got[0], product)
        np.testing.assert_allclose(got[1], np.array(products).reshape(length, 3))
        np.testing.assert_array_equal(got[2], values["x"])


def test_along_the_last_dim_in_reverse_and_dims_without_a_name():
    x, h = tensor(BATCH, SEQ, name="x"), tensor(BATCH, name="h")
    [last], [sums] = ops.scan(lambda xt, s: ([s + xt], [s + xt]), dim=-1, reverse=True)([x], [h])
    assert [str(d) for d in sums.shape()] == [str(d) for d in x.shape()]
    text = str(build_module([last, sums]))
    assert "dim 1 reverse {" in text and "_dim" in text and "x_dim_0" in text
    values = {"x": np.arange(6.0).reshape(2, 3), "h": np.array([10.0, 20.0])}
    got = evaluate([last, sums], values, seq=3, x_dim_0=2)
    np.testing.assert_array_equal(got[1], [[13, 13, 12], [32, 29, 25]])


@pytest.mark.parametrize(
    ("step", "xs", "message"),
    [
        (lambda xt, h: ([h], [h]), [], "needs a tensor to take slices of"),
        (lambda xt, h: h, ["x"], "a step returns two lists"),
        (lambda xt, h: ([1.0], [h]), ["x"], r"a step returns tensors, found 1\.0"),
        (lambda xt, h: ([], [h]), ["x"], "1 values are carried, a step returns 0"),
        (lambda xt, h: ([ops.cast()(h, "float16")], []), ["x"], "its type may not change"),
        (lambda xt, h: ([h], [h]), ["x", "z"], "scanned tensor 1 has 7 slices, tensor 0 has seq"),
    ],
)
def test_what_is_refused(step, xs, message):
    given = {"x": tensor(SEQ, 3, name="x"), "z": tensor(7, 3, name="z")}
    if len(xs) == 2:
        step = lambda xt, zt, h: ([h], [h])  # noqa: E731
    with pytest.raises(BuildError, match=message):
        ops.scan(step)([given[name] for name in xs], [tensor(3, name="h")])


def test_a_slice_may_not_leave_its_step():
    kept: list[Tensor] = []

    def step(xt, h):
        kept.append(xt)
        return [h + xt], []

    [last], [] = ops.scan(step)([tensor(SEQ, 3, name="x")], [tensor(3, name="h")])
    with pytest.raises(BuildError, match="is used outside of the step"):
        build_module([last, kept[0] + last])


STACKED = {"num_layers": 2, "bidirectional": True, "batch_first": True, "bias": False}


@pytest.mark.parametrize(("kind", "options"), [("LSTM", {}), ("GRU", STACKED), ("RNN", {})])
def test_recurrent_layers_agree_with_pytorch(kind, options, tmp_path):
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(12, 16, **options).eval()
    ours = getattr(nn, kind)(12, 16, **options, dtype="float32")
    ours.name_parameter_tensor(separator=".")
    x = tensor(*((BATCH, SEQ) if options else (SEQ, BATCH)), 12, name="x")
    given = [tensor(4, BATCH, 16, name="h")] if options else [tensor(BATCH, 16, name=n) for n in "hc"[: len(kind) - 2]]
    if kind == "RNN":
        given = []  # zeros
    outputs = [t.mark_as_output(f"y{i}") for i, t in enumerate(ours(x, *given))]
    with compile_model(outputs, "cpu", tmp_path, kind.lower(), constants=theirs.state_dict()) as model:
        for length, batch in [(1, 1), (2, 3), (20, 4)]:
            values = {"x": torch.randn(*((batch, length) if options else (length, batch)), 12)}
            values |= {"hc"[i]: torch.randn(*((4,) if options else ()), batch, 16) for i in range(len(given))}
            got = model.run_with_tensors(values)
            state = [v if options else v[None] for n, v in values.items() if n != "x"]
            with torch.no_grad():
                y, end = theirs(values["x"], *([tuple(state)] if kind == "LSTM" else state))
            ends = end if kind == "LSTM" else (end,)
            for i, want in enumerate([y, *(t if options or not given else t[0] for t in ends)]):
                torch.testing.assert_close(got[f"y{i}"], want)


def test_several_layers_need_a_state_each():
    layer = nn.GRU(12, 16, num_layers=2, dtype="float32")
    with pytest.raises(BuildError, match=r"the state must be \[2, batch, 16\]"):
        layer(tensor(SEQ, BATCH, 12, name="x"), tensor(BATCH, 16, name="h"))
