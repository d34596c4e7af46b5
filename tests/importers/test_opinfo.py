"""PyTorch's own samples of its operations: all that import are right, and what does not import is refused, not a crash.

`python -m tests.importers.opinfo` prints how many samples of each operation pass and why the others are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from tests import tiers
from tests.importers import opinfo
from tests.importers.opinfo_places import are_places, misplaced
from tests.importers.opinfo_shares import COMPOSED, PARTIAL

PARTS = 8
SAMPLED = 1
"""The most samples of an operation that `make test` imports of three parts of eight; `make test-full` imports all."""

OTHER_TYPES = (torch.int64, torch.bool, torch.float16, torch.bfloat16)


def whole() -> list[str]:
    """The operations of which every sample in float32 is imported."""
    names = dict.fromkeys([*opinfo.with_rows(), *COMPOSED])
    return [name for name in names if name not in PARTIAL]


def chosen(names: Sequence[str], dtype: torch.dtype, most: int | None) -> list[opinfo.Sample]:
    operations = opinfo.operations()
    return [s for name in names for s in opinfo.spread(opinfo.samples_of(operations[name], dtype), most)]


def told(samples: Sequence[opinfo.Sample], *allowed: str) -> str:
    """The samples whose outcome is not allowed."""
    return "\n".join(f"{s.name}: {s.outcome}" for s in samples if not s.outcome.startswith(allowed))


def test_the_tables_name_operations() -> None:
    assert {*PARTIAL, *COMPOSED} <= set(opinfo.operations())
    assert not {*PARTIAL, *opinfo.with_rows()} & set(COMPOSED)


X = torch.tensor([[3.0, 1.0, 3.0, torch.nan], [2.0, 2.0, 0.0, 5.0]])
ORDER, EQUAL = [[1, 0, 2, 3], [2, 0, 1, 3]], [[1, 2, 0, 3], [2, 1, 0, 3]]
FOUND = {
    "sort": ((), 1, ORDER, EQUAL, {"other elements": [[0, 1, 2, 3], [2, 0, 1, 3]], "twice": [[1, 0, 0, 3], ORDER[1]]}),
    "argsort": ((), 0, ORDER, EQUAL, {"other elements": [ORDER[0], [0, 2, 1, 3]], "shape": ORDER[:1]}),
    "topk": ((2,), 1, [[3, 0], [3, 0]], [[3, 2], [3, 1]], {"other": [[3, 1], [3, 0]], "twice": [[3, 3], [3, 0]]}),
    "mode": ((), 1, [2, 1], [0, 0], {"other elements at 1 of 2": [2, 2], "outside": [2, 4]}),
    "max.reduction_with_dim": ((1,), 1, [3, 3], [3, 3], {"other elements": [0, 3], "outside": [3, -1]}),
    "argmin": ((1,), 0, [3, 2], [3, 2], {"other elements": [1, 2], "shape": [[3, 2]]}),
    "argmax": ((), 0, 3, 3, {"other elements": 7, "outside": 8}),
}


@pytest.mark.parametrize("name", FOUND)
def test_wrong_places_are_rejected(name: str) -> None:
    """The elements at the places decide, and a stable order is compared place by place."""
    args, result, given, equal, wrong = FOUND[name]
    assert are_places(name, result, {}) and not are_places(name, result, {"stable": True})
    for good in (given, equal):
        assert misplaced(name, [X, *args], {}, np.array(good), torch.tensor(given)) is None
    for told_, bad in wrong.items():
        assert told_ in (misplaced(name, [X, *args], {}, np.array(bad), torch.tensor(given)) or "")


@pytest.mark.parametrize("part", tiers.params(range(PARTS), [0, 3]))
def test_samples_are_right(part: int, record_property: pytest.RecordProperty) -> None:
    """The first of each operation of some parts; all of all in the full tier."""
    samples = chosen(whole()[part::PARTS], torch.float32, None if tiers.FULL else SAMPLED)
    opinfo.run(samples)
    record_property("samples", opinfo.summary(samples))
    assert not told(samples, "passed")


@pytest.mark.full
@pytest.mark.parametrize("name", PARTIAL)
def test_a_share_of_the_samples_is_right(name: str) -> None:
    """The others are refused with a reason."""
    found = opinfo.count(name)
    share = PARTIAL[name][0]
    assert not found.bugs, str(found)
    assert found.passed / len(found.outcomes) >= share, str(found)


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", OTHER_TYPES, ids=str)
def test_other_types_are_right_or_refused(dtype: torch.dtype, part: int) -> None:
    samples = chosen([*whole(), *PARTIAL][part::PARTS], dtype, 6)
    opinfo.run(samples)
    assert not told(samples, "passed", "refused")
