"""Recurrent layers of PyTorch become one launch a layer and direction, with the meaning of their loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.recurrence import RecurrenceOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait_rt.program import LaunchOp, ProgramOp
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.torch import from_torch
from ait_mlir.ir.context import context
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.recurrence import KERNELS
from ait_mlir.options import CompileOptions
from ait_mlir.passes.form_recurrences import FormRecurrencesPass
from ait_mlir.passes.launch_cost import slow_launches
from ait_mlir.reference.graph import evaluate_graph
from tests.kernels.recurrence import plan, recurrence

CUDA = Target("cuda", "sm_90a")
LAYERS = {
    "lstm": lambda: nn.LSTM(5, 4, num_layers=2, bidirectional=True),
    "gru": lambda: nn.GRU(5, 4, batch_first=True),
    "tanh": lambda: nn.RNN(5, 4, bias=False),
    "relu": lambda: nn.RNN(5, 4, nonlinearity="relu", bidirectional=True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_meaning_stays(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 3, 5, dtype=torch.float64)
    imported = from_torch(LAYERS[name]().double().eval(), (x,))
    given = {imported.inputs.tensors[0].name: x.numpy()}
    want = evaluate_graph(imported.graph, given, imported.constants, {})
    FormRecurrencesPass().apply(context(), imported.module)
    imported.module.verify()
    ops = list(imported.module.walk())
    assert any(isinstance(op, RecurrenceOp) for op in ops) and not any(isinstance(op, ScanOp) for op in ops)
    found = evaluate_graph(imported.graph, given, imported.constants, {})
    for output, value in want.items():
        np.testing.assert_allclose(found[output], value, rtol=1e-12, atol=1e-12)


def planned(layer: nn.Module, *shape: int, options: CompileOptions = CompileOptions("cuda", "sm_90a")) -> ModuleOp:
    dtype = next(layer.parameters()).dtype
    module = from_torch(layer.eval(), (torch.zeros(*shape, dtype=dtype),)).module
    run_to_phase(module, "planned", options)
    return module


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_layer_is_one_launch_behind_its_product(dtype: torch.dtype) -> None:
    module = planned(nn.GRU(64, 96, batch_first=True).to(dtype), 4, 50, 64)
    names = [op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp)]
    assert names[1].startswith("recurrence") and not any("recurrence" in n for n in (names[0], *names[2:])), names
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    assert not list(slow_launches(module, program, CUDA))  # steps that wait for each other are no bytes


@pytest.mark.parametrize(("batch", "formed"), [(1, True), (4, True), (64, False)])
def test_on_a_cpu_few_rows_are_one_launch(batch: int, formed: bool) -> None:
    module = planned(nn.LSTM(64, 128), 50, batch, 64, options=CompileOptions("cpu"))
    assert formed == any("recurrence" in op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp))


def test_a_weight_that_does_not_fit_keeps_the_loop() -> None:
    module = planned(nn.LSTM(64, 2048).half(), 50, 4, 64)
    assert not any("recurrence" in op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (plan(3, 8, 4, 1), "cluster is 3, expected one of 1, 2, 4, 8, 16"),
        (plan(1, 9, 4, 1), "rows is 9, expected one of 8, 16, 32"),
        (plan(1, 8, 8, 2), "across times split is 16, at most 8 warps are supported"),
        (plan(1, 8, 1, 4), "split is 4, more than there are parts of 32 columns of h"),
        ({"warps": 4}, "unknown configuration 'warps'; its keys are across, cluster, rows, split"),
    ],
)
def test_a_plan_that_cannot_run(config: dict[str, int], message: str) -> None:
    op = recurrence("f16", "rnn", 64, plan(1, 8, 4, 1)).op
    assert KERNELS[0].config_problem(op, config, CUDA) == message
    assert KERNELS[0].config_problem(op, plan(1, 8, 4, 1), CUDA) is None


def test_clusters_need_a_card_that_has_them() -> None:
    op, old = recurrence("bf16", "rnn", 64, plan(1, 8, 4, 1)).op, Target("cuda", "sm_80")
    assert KERNELS[0].config_problem(op, plan(2, 8, 2, 2), old) == "cluster is 2, but blocks of sm_80 form no clusters"
    assert all(config["cluster"] == 1 for config in KERNELS[0].configs(op, old))
