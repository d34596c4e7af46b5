"""Every op of the specifications on the card: each form and element type, special values."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
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
def library(libraries: dict[str, Library], family: str, tmp_path_factory: pytest.TempPathFactory) -> Library:
    if family not in libraries:
        cases = [drawn.case for drawn in DRAWN[family].values()]
        folder = tmp_path_factory.mktemp(family)
        libraries[family] = Library(cases, folder, Target("cuda", default_arch("cuda")))
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
