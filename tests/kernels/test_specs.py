"""Every op of the specifications on the CPU: each form, element type, dims of 0 and 1, strides, special values."""

from __future__ import annotations

import pytest

from tests import tiers
from tests.kernels.harness import Library
from tests.specs import FAMILIES
from tests.specs.draw import draw, sample

DRAWN = draw("cpu")
SAMPLE = sample("cpu")
SPECIAL = [name for name, drawn in DRAWN.items() if drawn.spec.special is not None]
FAMILY_OF = {name: family for family in FAMILIES for name in draw("cpu", [family])}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    """By family, those that tests ask for."""
    return {}


@pytest.fixture
def library(libraries: dict[str, Library], name: str, tmp_path_factory: pytest.TempPathFactory) -> Library:
    family = FAMILY_OF[name]
    if family not in libraries:
        chosen = tiers.of_tier(draw("cpu", [family]), SAMPLE)
        cases = [DRAWN[key].case for key in chosen]
        libraries[family] = Library(cases, tmp_path_factory.mktemp(family))
    return libraries[family]


@pytest.mark.parametrize("name", tiers.params(DRAWN, SAMPLE))
def test_against_the_reference(library: Library, name: str) -> None:
    drawn = DRAWN[name]
    drawn.spec.close.check(library, drawn.case, drawn.type)


@pytest.mark.parametrize("name", tiers.params(SPECIAL, SAMPLE))
def test_special_values(library: Library, name: str) -> None:
    drawn = DRAWN[name]
    assert drawn.spec.special is not None
    drawn.spec.close.check_special(library, drawn.case, drawn.spec.special, drawn.type)
