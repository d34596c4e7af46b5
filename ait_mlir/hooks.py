"""Functions that a lower layer calls and a higher layer defines; `ait_mlir/__init__.py` sets them.

Importing any module of the package runs that file first, so they are set before they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

fold_value: Callable[[Any, Mapping[str, Any], Any], Any]
"""The value of a fold (`reference/folds.py`) of a loaded model, from the data of its sources, for a target. The runtime
calls it; `driver.value_at_load` is behind it."""

operator_source: Callable[[Any], str]
"""The C++ of an operator of the Python builder; it is `frontend.source.source_of`."""

write_profiler: Callable[[Any, str | None, object], None]
"""Writes the source of an operator to a directory, for a strategy; it is in `frontend/source.py`."""

profile_operator: Callable[[Any, str, Sequence[int] | None, object], None]
"""Chooses the kernels of an operator by time; it is in `compiler/transform/profile.py`."""

documented_graph: Callable[[Sequence[Any], bool, bool], list[Any]]
"""The graph that computes tensors of the Python builder in the documented operators, optimised or not, with constants
folded or not. `compile_model` gives it to the model; it is in `compiler/transform/documented_graph.py`."""

module_html: Callable[[Any], str]
"""A module as HTML, which notebooks show; it is in `tools/language/html.py`."""
