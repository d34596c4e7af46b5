"""A small model library written by hand, and an artifact around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.runtime import Model, artifact
from ait_mlir.runtime.manifest import DimInfo, Manifest, TensorInfo

SOURCE = Path(__file__).parent / "tiny_model.cc"
W, B = np.float32([2.5]), np.float32([-1.0])


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `tiny_model.cc`."""
    return build_library({"model.cc": SOURCE.read_text()}, Target("cpu", "native"), tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def model(library: Path) -> Iterator[Model]:
    """The tiny model with its constants set."""
    with Model.from_library(library, "cpu", constants={"w": W, "b": B}, num_runtimes=2) as model:
        yield model


@pytest.fixture
def manifest() -> Manifest:
    return Manifest(
        name="tiny",
        target="cpu",
        arch="native",
        inputs=(TensorInfo("x", "float32", ("batch", "2*seq")), TensorInfo("m", "float32", ("batch", "seq"))),
        outputs=(TensorInfo("y", "float32", ("batch", "2*seq")), TensorInfo("s", "float32", ("batch",))),
        dims=(DimInfo("batch", 0, 8), DimInfo("seq", 1, 16, (4, 8))),
    )


@pytest.fixture
def tiny_artifact(tmp_path: Path, library: Path, manifest: Manifest) -> Path:
    """The tiny model as an artifact, with both constants bound."""
    return artifact.write(tmp_path / "tiny.ait", manifest, "// IR\n", library, {"w": W, "b": B})


def tiny_inputs(batch: int, seq: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs x [batch, 2*seq] and m [batch, seq], f32: multiples of 1/256, so that nothing the tiny
    model computes is rounded.
    """
    random = np.random.default_rng(seed)
    shapes = (batch, 2 * seq), (batch, seq)
    x, m = (random.integers(0, 256, shape).astype(np.float32) / 256 for shape in shapes)
    return x, m


def tiny_reference(x: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The expected result of the tiny model."""
    y = x * W[0] + B[0] * np.repeat(m, 2, axis=1)
    return y, y.sum(axis=1)
