"""Executable reference semantics of every op; passes and kernels are tested against them.

`evaluate_graph` runs an `ait.graph`, `run_program` an `ait_rt.program`, both on NumPy arrays in float64.
"""

from __future__ import annotations

from ait_mlir.families import modules
from ait_mlir.reference.core import RULES, Evaluation, EvaluationError, reference
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.reference.interpreter import run_program

modules(__name__)  # registers the semantics of the ops of each family

__all__ = ["RULES", "Evaluation", "EvaluationError", "evaluate_graph", "reference", "run_program"]
