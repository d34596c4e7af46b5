"""Trained files that packages bring, compiled for the CPU: as exact as onnxruntime."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import ait_mlir  # noqa: E402
from ait_mlir.reference import evaluate_graph  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

LARGEST = 1.1
"""The largest error over that of onnxruntime."""
HIDDEN = 128
"""The size of silero's state."""


@dataclass(frozen=True)
class Trained:
    """A file of a package."""

    package: str
    file: str
    runs: tuple[dict[str, tuple[int, ...]], ...]
    """The shapes of the inputs of each run."""
    values: dict[str, int] = field(default_factory=dict[str, int])
    """Inputs with a fixed value."""
    integers: int = 0
    """The number below which the inputs are whole; 0 for floats."""


def images(*shapes: tuple[int, ...], name: str = "x") -> tuple[dict[str, tuple[int, ...]], ...]:
    return tuple({name: shape} for shape in shapes)


def voices(length: int) -> tuple[dict[str, tuple[int, ...]], ...]:
    return tuple({"input": (n, length), "state": (2, n, HIDDEN)} for n in (1, 3, 8))


TEXTS = ((4, 3, 48, 192), (4, 3, 48, 192), (4, 3, 48, 192), (2, 3, 48, 163))
CASES: dict[str, Trained] = {
    "voice": Trained("silero_vad", "silero_vad_half.onnx", voices(576)),
    "voice-16k": Trained("silero_vad", "silero_vad.onnx", voices(576), {"sr": 16000}),
    "voice-8k": Trained("silero_vad", "silero_vad.onnx", voices(288), {"sr": 8000}),
    "voice-opset15": Trained("silero_vad", "silero_vad_16k_op15.onnx", voices(576), {"sr": 16000}),
    "voice-ifless": Trained("silero_vad", "silero_vad_op18_ifless.onnx", voices(576), {"sr": 16000}),
    "voice-fixed": Trained("silero_vad", "silero_vad_openvino_16k.onnx", voices(576)[:1] * 4),
    "voice-sequence": Trained(
        "silero_vad",
        "silero_vad_16k_sequence.onnx",
        tuple({"input": (n, 576), "h": (1, 1, HIDDEN), "c": (1, 1, HIDDEN)} for n in (1, 9, 20)),
    ),
    "file-type": Trained("magika", "model.onnx", ({"bytes": (1, 2048)}, {"bytes": (3, 2048)}), integers=257),
    "text-boxes-4": Trained("rapidocr_onnxruntime", "ch_PP-OCRv4_det_infer.onnx", images((1, 3, 96, 160))),
    "text-4": Trained("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", images(*TEXTS)),
    "text-direction": Trained("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", images(*TEXTS[:3])),
    "text-boxes-6": Trained("rapidocr", "PP-OCRv6_det_small.onnx", images((1, 3, 96, 160))),
    "text-6": Trained("rapidocr", "PP-OCRv6_rec_small.onnx", images(*TEXTS)),
    "captcha": Trained("ddddocr", "common.onnx", images((1, 1, 64, 96), (1, 1, 64, 163), name="input1")),
    "captcha-boxes": Trained("ddddocr", "common_det.onnx", images((1, 3, 416, 416), name="images")),
    # a number near a tie rounds to one or the other integer of 8 bits, in other images by either model: the error of an
    # image is 1e-7 without one and 5e-3 with one, so that only the sum over many images compares the models
    "captcha-int8": Trained(
        "ddddocr", "common_old.onnx", images(*((1, 1, 64, w) for w in (80, 96, 120, 160)), name="input1") * 6
    ),
}


def path_of(case: Trained) -> Path:
    """The file in the installed package, which is not imported."""
    spec = importlib.util.find_spec(case.package)
    folders = [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]
    found = [path for folder in folders for path in sorted(folder.rglob(case.file))]
    if not found:
        pytest.skip(f"the package {case.package} with the file {case.file} is not installed")
    return found[0]


def mean_square(x: Any) -> float:
    return float((x * x).mean())


@pytest.mark.parametrize("name", [n if n == "voice" else pytest.param(n, marks=pytest.mark.full) for n in CASES])
def test_a_trained_file_is_as_exact_as_onnxruntime(name: str) -> None:
    case = CASES[name]
    path = path_of(case)
    values = {n: np.array(v, np.int64) for n, v in case.values.items()}
    loaded = ait_mlir.load_onnx(path, values=values)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    squares = [0.0, 0.0]
    for shapes in case.runs:
        given: dict[str, Any] = {
            n: rng.integers(0, case.integers, s).astype(np.int32)
            if case.integers
            else rng.uniform(-1, 1, s).astype(np.float32)
            for n, s in shapes.items()
        }
        graph = loaded.imported.graph
        dims = suite.dims_of(graph, given)
        exact: dict[str, Any] = loaded.imported.named(evaluate_graph(graph, given, loaded.imported.constants, dims))
        ours, theirs = loaded.run(given), session.run(None, {**given, **values})
        for (title, true), other in zip(exact.items(), theirs, strict=True):
            assert np.shape(ours[title]) == other.shape
            for i, found in enumerate((ours[title], other)):
                squares[i] += mean_square(np.asarray(found, np.float64) - true) / mean_square(true)
    assert squares[0] ** 0.5 <= LARGEST * squares[1] ** 0.5
