"""Networks with random weights against PyTorch: one of each family in `make test`, all of them in `make test-full`."""

from __future__ import annotations

import pytest

from tests import tiers
from tests.networks.check import check
from tests.networks.networks import NETWORKS, REASONS

pytest.importorskip("transformers")

SHARD_BY_TEST = True  # each row stands alone
SAMPLED = [name for name, network in NETWORKS.items() if network.sampled]
WORKING = [name for name in NETWORKS if name not in REASONS]


@pytest.mark.parametrize("name", tiers.params(WORKING, SAMPLED))
def test_a_network_agrees_with_eager_at_two_batches(name):
    outcome = check(NETWORKS[name])
    assert outcome.passed, (outcome.stage, outcome.error, outcome.missing, outcome.ratios)


@pytest.mark.full
@pytest.mark.parametrize("name", REASONS)
def test_what_cannot_be_imported_is_said_with_its_place(name):
    outcome = check(NETWORKS[name])
    assert not outcome.passed, f"{name} works: remove its reason"
    assert outcome.stage == "import" and (outcome.missing or " at " in outcome.error), outcome
