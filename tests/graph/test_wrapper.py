"""`Graph`, which is called like a function, as scripts of cuDNN call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.bad_input import Graph as GraphError
from tests.graph.bad_input import Input, Step, raises

X, W = torch.randn(2, 8, 16, generator=torch.manual_seed(0)), torch.randn(1, 16, 4)
EXPECTED = torch.relu(X @ W)


def made(**options: Any) -> tuple[Any, Any]:
    """relu(x @ w), and its output; all graphs share one program."""
    with cudnn.Graph(handle=cudnn.create_handle(device="cpu"), **options) as g:
        y = g.relu(g.matmul(X, W, name="mm"), name="act").set_output(True)
    return g, y


def close(found: Any, expected: torch.Tensor = EXPECTED) -> None:
    torch.testing.assert_close(torch.as_tensor(found), expected, atol=1e-5, rtol=1e-5)


def test_positional_tensors_follow_the_declared_inputs():
    g, y = made(inputs=["mm::B", "mm::0"], outputs=["act::OUT_0"])
    close(g(W, X))
    close(g(2 * W, X), 2 * EXPECTED)
    close(g(W, X, handle=cudnn.create_handle(device="cpu")))
    g.set_io_tuples([X, "mm::1"], [y])
    close(g(X, W))


def test_positional_tensors_without_a_declaration_are_in_the_order_of_creation():
    g, _ = made()
    close(g(X, W))


def test_a_dict_by_name_is_returned_with_the_outputs():
    g, y = made()
    out = torch.empty_like(EXPECTED)
    given = {"mm::A": X, "mm::B": W, "act::OUT_0": out}
    assert g(given) is given
    close(out)
    results = g({"mm::A": X, "mm::1": W})
    assert results.keys() == {"mm::A", "mm::1", "act::OUT_0"}
    close(results["act::OUT_0"])
    a, b = g.graph.get_inputs()
    close(g({a.get_uid(): X, b: W, y: out})[y])


def test_arrays_of_numpy():
    g, _ = made()
    close(g(X.numpy(), W.numpy()))
    assert isinstance(g({"mm::A": X.numpy(), "mm::B": np.zeros_like(W)})["act::OUT_0"], torch.Tensor)


def test_a_set_name_names_the_output():
    with cudnn.Graph(handle=cudnn.create_handle(device="cpu"), inputs=["mm::A", "mm::B"], outputs=["out"]) as g:
        g.relu(g.matmul(X, W, name="mm"), name="act").set_output(True).set_name("out")
    close(g(X, W))
    out = torch.empty_like(EXPECTED)
    g({"mm::A": X, "mm::B": W, "out": out})
    close(out)


def test_the_results_of_norms_have_the_names_of_cudnn():
    x, s, b = torch.randn(6, 32, 1, 1), torch.randn(1, 32, 1, 1), torch.randn(1, 32, 1, 1)
    with cudnn.Graph(
        handle=cudnn.create_handle(device="cpu"),
        inputs=["ln::input", "ln::scale", "ln::bias", "ln::epsilon"],
        outputs=["ln::Y", "ln::MEAN", "ln::INV_VARIANCE"],
    ) as g:
        results = g.layernorm(
            name="ln",
            input=x,
            norm_forward_phase=cudnn.norm_forward_phase.TRAINING,
            scale=s,
            bias=b,
            epsilon=torch.full((1, 1, 1, 1), 1e-3),
        )
        for t in results:
            t.set_output(True)
    y, mean, inverse = g(x, s, b, torch.full((1, 1, 1, 1), 1e-2))
    close(y, torch.nn.functional.layer_norm(x, (32, 1, 1), s[0], b[0], 1e-2))
    close(mean, x.mean(1, keepdim=True))
    close(inverse, (x.var(1, unbiased=False, keepdim=True) + 1e-2).rsqrt())


def test_the_caller_may_own_the_workspace():
    with cudnn.Graph(handle=cudnn.create_handle(device="cpu"), workspace_alloc=False) as g:
        g.matmul(g.exp(X), W, name="product").set_output(True)
    size = g.get_workspace_size()
    assert size > 0
    with raises(Input, "workspace_alloc=False", f"{size} bytes"):
        g(X, W)
    close(g(X, W, workspace=torch.empty(size, dtype=torch.uint8)), X.exp() @ W)


def test_bad_calls():
    g, _ = made()
    with raises(Input, "takes 2 inputs (mm::A, mm::B), got 3"):
        g(X, W, X)
    with raises(Input, "has no tensor 'mm::Z'", "mm::A, mm::B, act::OUT_0"):
        g({"mm::Z": X})
    with raises(Input, "has no tensor 'a Tensor that no operation was given'"):
        g.set_io_tuples([X.clone(), W], ["act::OUT_0"])
    with raises(Input, "inputs name tensor 'mm::A' twice"):
        g.set_io_tuples(["mm::A", "mm::0"], ["act::OUT_0"])
    with raises(Input, "tensor 'act::OUT_0' is none of the inputs"):
        g.set_io_tuples(["mm::A", "act::OUT_0"], ["act::OUT_0"])
    with raises(Input, "inputs are 'mm::A', expected a list"):
        g.set_io_tuples("mm::A", ["act::OUT_0"])
    inside = cudnn.Graph(handle=cudnn.create_handle(device="cpu"))
    inside.matmul(X, W, name="mm")
    with raises(Step, "inside its `with` block"):
        inside(X, W)
    with raises(GraphError, "has a node 'mm' already"):
        inside.matmul(X, W, name="mm")


def test_an_exception_in_the_block_passes():
    with pytest.raises(KeyError, match="mine"), cudnn.Graph(handle=cudnn.create_handle(device="cpu")):
        raise KeyError("mine")
