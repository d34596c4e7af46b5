"""Random graphs through every pass, from text to a planned program, against the reference: no difference."""

from __future__ import annotations

import pytest

from ait_mlir.passes.pipelines import passes_between
from tests import tiers
from tests.fuzz.run import TARGETS, checked
from tests.generator import random_graph
from tests.lit.round_trip import check_round_trip

BATCHES, PER_BATCH = 10, 20


@pytest.mark.parametrize("batch", tiers.params(range(BATCHES), range(0, BATCHES, 4)))
def test_random_graphs(batch: int) -> None:
    checks = 0
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        text = random_graph(seed)
        try:
            checks += checked(text, passes_between("imported", "planned", TARGETS[seed % len(TARGETS)]))
        except BaseException as e:
            raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\n{text}") from e
    print(f"{PER_BATCH} graphs, {checks} evaluations compared")
    assert checks > 4 * PER_BATCH


def test_random_graphs_round_trip() -> None:
    for seed in range(0, BATCHES * PER_BATCH, 7):
        check_round_trip(random_graph(seed))


def test_the_generator_covers_what_breaks_compilers() -> None:
    texts = [random_graph(seed) for seed in range(BATCHES * PER_BATCH)]
    for what in (
        "!ait.tensor<f32>",
        "!ait.tensor<0 x ",
        "> strides [",
        " x 1 x ",
        "f16>",
        "bf16>",
        "f64>",
        "i64>",
        "ait.embedding",
        "ait.softmax",
        "ait.gemm rcc",
        "ait.bmm crc",
        "ait.where",
        '"y3"',
        "= 0 to 4",
        "= 2 to 2",
    ):
        assert any(what in text for text in texts), what
