"""The table of ONNX operators: a row writes one operator in `ait`; a file holds one family.

A key of `ROWS` is the name of an operator, or the names of several that one row writes, with spaces between. Operators
of other domains than ONNX's have the domain before the name: `com.microsoft.Gelu`.
"""

from __future__ import annotations

from ait_mlir.families import modules
from ait_mlir.importers.onnx.call import Row
from ait_mlir.importers.onnx.library import onnx

MODULES = (
    "elementwise", "attention", "contraction", "conv", "data", "view", "reduction", "norm", "index", "control",
    "resize", "recurrent", "detection", "fourier", "quantized", "linear_algebra", "contributed",
    "numeric_ml",
)  # fmt: skip

TABLE: dict[str, Row] = {
    name: row for file in modules(__name__, MODULES) for names, row in file.ROWS.items() for name in names.split()
}
"""Rows by the name of the operator."""


def row_named(domain: str, name: str) -> Row | None:
    """The row of an operator."""
    return TABLE.get(name if domain in ("", "ai.onnx") else f"{domain}.{name}")


_RANDOM = "random numbers are not supported; make them an input"
_STRINGS = "strings are not supported; compute them outside of the model"
_TRAINING = "it is for training; export the model for inference"

ADVICE: dict[str, str] = {
    **dict.fromkeys(
        ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"), _RANDOM
    ),
    **dict.fromkeys(("StringSplit", "StringNormalizer", "StringConcat", "RegexFullMatch", "TfIdfVectorizer"), _STRINGS),
    **dict.fromkeys(("Adagrad", "Adam", "Momentum", "Gradient"), _TRAINING),
    "ImageDecoder": "decoding images is not supported; decode them outside of the model",
}
"""The reasons for operators that no row can translate."""


def advice(domain: str, name: str, version: int) -> str:
    """Why an operator without a row is not supported."""
    if name in ADVICE:
        return ADVICE[name]
    official = "" if domain == "ai.onnx" else domain
    if official in ("", "ai.onnx.ml") and not onnx.defs.has(name, official):
        return "there is no such operator; check the name and its domain"
    return "the operator is not supported; write it with others, or as a function of the model"


__all__ = ["advice", "row_named"]
