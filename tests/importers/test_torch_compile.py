"""`torch.compile(model, backend="ait")`: compiled where that can be, as before where it cannot."""

from __future__ import annotations

import inspect
import logging
import pkgutil

import pytest
import torch
from torch import nn
from xdsl.utils.exceptions import VerifyException

from ait_mlir.errors import RunError
from ait_mlir.importers.torch import dynamo
from ait_mlir.importers.torch.dynamo import register


@pytest.fixture(autouse=True)
def backend():
    register()
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    return caplog


class Broken(nn.Module):
    """Two graphs with a decision between them, the first of which is ours and the second is not."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.first(x).relu()
        if float(y[0, 0]) > 1e9:
            y = y * 2
        return torch.special.bessel_j0(self.second(y))


def test_sizes_that_change_are_compiled_once_more(log):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        for batch in (2, 3, 5, 9):
            x = torch.randn(batch, 8)
            torch.testing.assert_close(fast(x), model(x))
    assert [r.message for r in log.records] == ["a graph of 3 operations is compiled"] * 2


def test_what_is_not_ours_runs_in_pytorch(log):
    model = Broken().eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        torch.testing.assert_close(fast(x), model(x))
    told = [r.message for r in log.records]
    assert sum("is compiled" in t for t in told) >= 1
    (refused,) = [t for t in told if "runs in PyTorch" in t]
    line = inspect.getsourcelines(Broken.forward)[1] + 4
    place = f"{__file__}:{line} in forward: return torch.special.bessel_j0(self.second(y))"
    assert f"aten.special_bessel_j0.default, used once, first at {place}" in refused


def test_weights_that_are_written_to_are_taken_again():
    model = nn.Linear(8, 4).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        before = fast(x)
        model.weight.mul_(3)
        torch.testing.assert_close(fast(x), model(x))
        assert not torch.equal(fast(x), before)


def test_weights_that_are_replaced_are_taken_again():
    model = nn.Linear(8, 4).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        fast(x)
        model.weight = nn.Parameter(torch.randn(4, 8))
        torch.testing.assert_close(fast(x), model(x))


class Counting(nn.Module):
    """Writes an input, a buffer and a count of calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3, 4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, out):
        self.sum.add_(x)
        self.calls.add_(1)
        out[:, 1:2] = x[:, :1]
        return self.sum * 2


def test_what_a_graph_writes_is_written_in_the_callers_tensors(log):
    model, twin = Counting().eval(), Counting().eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        for _ in range(3):
            x, out = torch.randn(3, 4), torch.zeros(4, 3).t()
            expected = out.clone()
            held = model.sum, model.sum._version, model.sum.data_ptr()
            torch.testing.assert_close(fast(x, out), twin(x, expected))
            assert model.sum is held[0] and model.sum._version > held[1] and model.sum.data_ptr() == held[2]
            torch.testing.assert_close((model.sum, model.calls, out), (twin.sum, twin.calls, expected))
    assert [r.message for r in log.records] == ["a graph of 5 operations is compiled"]


def test_a_run_that_fails_half_way_is_not_repeated_on_what_it_wrote():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("sum", torch.zeros(4))
            self.register_buffer("rows", torch.zeros(4, 2))

        def forward(self, x, at):
            self.sum.add_(x)
            self.rows.index_copy_(0, at, x[:2].reshape(1, 2))
            return self.sum + 1

    fast = torch.compile(Late().eval(), backend="ait")
    with torch.no_grad():
        fast(torch.ones(4), torch.tensor([1]))
        with pytest.raises(RunError, match="place 9 of row 0 is outside of the dim, which has 4"):
            fast(torch.ones(4), torch.tensor([9]))


STAGES = {
    "the export": ("ait_mlir.importers.torch.compiled", "capture"),
    "the import": ("ait_mlir.importers.torch.compiled", "import_program"),
    "a row": ("ait_mlir.importers.torch.program", "bind"),
    "an op that is not valid": ("ait_mlir.importers.torch.program", "bind"),
    "a pass": ("ait_mlir.driver", "run_to_phase"),
    "the C++ compiler": ("ait_mlir.lowering.build", "_build"),
    "loading": ("ait_mlir.runtime.artifact", "read"),
    "a call": ("ait_mlir.importers.torch.compiled", "CompiledModule.run"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_fault_of_ours_at_any_stage_leaves_the_program_as_it_was(stage, log, monkeypatch):
    def fail(*args, **kwargs):
        raise VerifyException("ait.relu: out of order") if "not valid" in stage else ZeroDivisionError("out of order")

    module, _, name = (STAGES[stage][0] + "." + STAGES[stage][1]).rpartition(".")
    monkeypatch.setattr(pkgutil.resolve_name(module), name, fail)
    model = nn.Sequential(nn.Linear(8, 5), nn.ReLU()).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        torch.testing.assert_close(fast(x), model(x))
    assert any("runs in PyTorch" in r.message and "out of order" in r.message for r in log.records), log.text


def test_training_stays_with_pytorch(log):
    model = nn.Linear(8, 4)
    fast = torch.compile(model, backend="ait")
    fast(torch.randn(2, 8)).sum().backward()
    assert model.weight.grad is not None
    assert "it needs gradients" in log.records[0].message


def test_an_unknown_option_is_refused():
    fast = torch.compile(nn.Linear(8, 4).eval(), backend="ait", options={"speed": 3})
    with torch.no_grad(), pytest.raises(Exception, match="unknown option 'speed'"):
        fast(torch.randn(2, 8))


@pytest.mark.parametrize("setting", ["highest", "high", "medium"])
def test_precision_is_that_of_torch(setting, monkeypatch):
    taken = []
    build = dynamo.build
    monkeypatch.setattr(dynamo, "build", lambda *args, **options: taken.append(args[1]) or build(*args, **options))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        torch.compiler.reset()
        with torch.no_grad():
            torch.compile(torch.nn.Linear(4, 4), backend="ait")(torch.ones(1, 4))
            torch.compiler.reset()
            torch.compile(torch.nn.Linear(4, 4), backend="ait", options={"precision": "medium"})(torch.ones(1, 4))
            torch.compiler.reset()
            with pytest.raises(Exception, match="precision is 'tf32', expected \"highest\""):
                torch.compile(torch.nn.Linear(4, 4), backend="ait", options={"precision": "tf32"})(torch.ones(1, 4))
    finally:
        torch.set_float32_matmul_precision(before)
    assert [options.precision for options in taken] == [setting, "medium"]
