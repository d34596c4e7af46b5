"""Scans as loops of launches on the card, plainly and as recorded graphs, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ait_mlir.driver import emit, literal_array, run_to_phase
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks.check_semantics import param_types
from ait_mlir.reference import evaluate_graph
from ait_mlir.reference.sampling import RandomParams
from ait_mlir.runtime import Model
from tests.e2e.scans import SCANS
from tests.e2e.support import parse_graph

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", SCANS)
def test_against_the_reference(name: str, tmp_path) -> None:
    target = Target("cuda", default_arch("cuda"))
    module, graph = parse_graph(SCANS[name])
    params = RandomParams(param_types(module), 0)
    planned = parse_graph(SCANS[name])[0]
    run_to_phase(planned, "planned", CompileOptions("cuda", target.arch))
    code = emit(planned)
    model = Model.from_library(
        build_library(code.files, target, tmp_path),
        "cuda",
        constants={n: literal_array(value) for n, value in code.literals.items()},
    )
    for param in model.get_constant_names(unset_only=True):
        model.set_constant(param, np.asarray(params[param]))
    rng = np.random.default_rng(0)
    for b, s in ((3, 5), (1, 1), (2, 0), (3, 2)):
        values = {"x": rng.standard_normal((s, b, 4)).astype("f4"), "h": rng.standard_normal((b, 4)).astype("f4")}
        exact = evaluate_graph(graph, values, params, {"b": b, "s": s})
        given = {n: torch.from_numpy(v).cuda() for n, v in values.items()}
        for graph_mode in (False, True, True, True):  # plainly, then recorded, then replayed
            found = model.run_with_tensors(given, graph_mode=graph_mode)
            for output, want in exact.items():
                torch.testing.assert_close(
                    found[output].cpu().double(), torch.from_numpy(want).double(), rtol=1e-4, atol=1e-4
                )
