"""The adapter. Model Explorer looks for it in a module of this name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ait_mlir.tools.model_explorer.graphs import read_graphs

explorer: Any = import_module("model_explorer")


class AitAdapter(explorer.Adapter):
    """Shows IR at any phase, and the planned IR of an artifact."""

    metadata = explorer.AdapterMetadata(
        id="ait_mlir",
        name="ait_mlir",
        description="IR of the dialects ait and ait_rt, and the planned IR of artifacts",
        fileExts=["mlir", "ait"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The graphs of a file, with kernels behind the model, because Model Explorer opens the largest graph of the
        first collection. Nodes stay dictionaries: Model Explorer turns all of it into JSON."""
        make = explorer.graph_builder
        kinds = {kind: [make.Graph(**graph) for graph in graphs] for kind, graphs in read_graphs(model_path).items()}
        return {"graphCollections": [make.GraphCollection(kind, graphs) for kind, graphs in kinds.items()]}
