"""Every op of the specifications on the CPU: each form, element type, dims of 0 and 1, strides, special values.

`make test` compiles as few as have each op, and in each family each element type, as they are shipped, and the others
quickly: g++ takes up to five times as long to unroll and vectorize their loops, which differ in strides and epilogues.
"""

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


def shipped() -> set[str]:
    """The names of the suites that `make test` compiles as shipped."""
    chosen: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for name, drawn in DRAWN.items():
        new = {(FAMILY_OF[name], drawn.type), ("op", drawn.spec.op)} - seen
        if name in SAMPLE and new:
            chosen.add(name)
            seen |= new
    return chosen


AS_SHIPPED = shipped()


@pytest.fixture(scope="module")
def libraries() -> dict[tuple[str, bool], Library]:
    """The requested suites, by family and whether they are compiled quickly."""
    return {}


@pytest.fixture
def library(libraries: dict[tuple[str, bool], Library], name: str, tmp_path_factory: pytest.TempPathFactory) -> Library:
    family = FAMILY_OF[name]
    key = (family, is_quick(name))
    if key not in libraries:
        chosen = tiers.of_tier(draw("cpu", [family]), SAMPLE)
        cases = [DRAWN[other].case for other in chosen if is_quick(other) == is_quick(name)]
        with pytest.MonkeyPatch.context() as patch:
            if is_quick(name):
                tiers.quickly(patch)
            libraries[key] = Library(cases, tmp_path_factory.mktemp(family))
    return libraries[key]


def is_quick(name: str) -> bool:
    return not tiers.FULL and name not in AS_SHIPPED


@pytest.mark.parametrize("name", tiers.params(DRAWN, SAMPLE))
def test_against_the_reference(library: Library, name: str) -> None:
    drawn = DRAWN[name]
    drawn.spec.close.check(library, drawn.case, drawn.type)


@pytest.mark.parametrize("name", tiers.params(SPECIAL, SAMPLE))
def test_special_values(library: Library, name: str) -> None:
    drawn = DRAWN[name]
    assert drawn.spec.special is not None
    drawn.spec.close.check_special(library, drawn.case, drawn.spec.special, drawn.type)
