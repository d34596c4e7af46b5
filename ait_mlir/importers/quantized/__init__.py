"""Quantises the weights of imported models by recipes, and reports what that changes."""

from __future__ import annotations

from ait_mlir.importers.quantized.model import Quantized, quantize, quantize_imported
from ait_mlir.importers.quantized.recipes import RECIPES, Recipe, recipe_named
from ait_mlir.importers.quantized.report import LayerReport, Report, Times

__all__ = [
    "RECIPES",
    "LayerReport",
    "Quantized",
    "Recipe",
    "Report",
    "Times",
    "quantize",
    "quantize_imported",
    "recipe_named",
]
