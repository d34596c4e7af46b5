"""Every op of the specifications on the card: each form and element type, special values."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import library_of
from tests.kernels.harness import Library
from tests.specs import FAMILIES
from tests.specs.draw import draw

pytestmark = pytest.mark.gpu

DRAWN = {family: draw("gpu", [family]) for family in FAMILIES}
NAMES = [(family, name) for family, drawn in DRAWN.items() for name in drawn]
SPECIAL = [(family, name) for family, name in NAMES if DRAWN[family][name].spec.special is not None]


@pytest.fixture(scope="module")
def libraries() -> dict[str, Library]:
    """The requested specifications, by family."""
    return {}


@pytest.fixture
def library(libraries: dict[str, Library], family: str, request: pytest.FixtureRequest) -> Library:
    if family not in libraries:
        suite = {(family, name): drawn.case for name, drawn in DRAWN[family].items()}
        libraries[family] = library_of(request, suite)
    return libraries[family]


@pytest.mark.parametrize(("family", "name"), NAMES, ids=lambda x: x)
def test_against_the_reference(library: Library, family: str, name: str) -> None:
    drawn = DRAWN[family][name]
    drawn.spec.close.on_gpu().check(library, drawn.case, drawn.type)


@pytest.mark.parametrize(("family", "name"), SPECIAL, ids=lambda x: x)
def test_special_values(library: Library, family: str, name: str) -> None:
    drawn = DRAWN[family][name]
    assert drawn.spec.special is not None
    drawn.spec.close.check_special(library, drawn.case, drawn.spec.special, drawn.type)
