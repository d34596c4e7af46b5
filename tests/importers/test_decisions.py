"""Models that decide by sizes as no trace of the example shows: small sizes, equal sizes, multiples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.export import Dim  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.importers.torch.errors import ImportFailure  # noqa: E402
from tests.importers.blind import Function  # noqa: E402
from tests.importers.meaning import B, check_meaning  # noqa: E402

DIFFER: dict[str, tuple[Callable[[Any], Any], int]] = {
    "equal to one": (lambda x: x * 2 if x.shape[0] == 1 else x * 3, 2),
    "more than one": (lambda x: x - x.mean(0) if x.shape[0] > 1 else x, 2),
    "of a product": (lambda x: x * 2 if 2 * x.shape[0] < 3 else x, 2),
    "in a tuple": (lambda x: x * 2 if x.shape[0] in (0, 1) else x, 2),
    "squeeze": (lambda x: x.squeeze().sum(0), 2),
    "squeeze a dim": (lambda x: x.squeeze(0) + 1, 2),
    "squeeze dims": (lambda x: x.squeeze((0, 1)) + 1, 2),
    "empty": (lambda x: x + 1 if x.shape[0] else x.new_zeros(2, 4), 1),
    "at least one": (lambda x: x.new_zeros(max(x.shape[0], 1)), 1),
}
"""By the least size from which on all sizes are computed alike."""
ALIKE: dict[str, Callable[[Any], Any]] = {
    "a causal row": lambda x: scaled_dot_product_attention(x, x, x, is_causal=bool(x.shape[0] > 1)),
    "a dim of one": lambda x: x[:, :1].squeeze(1) + 1,
    "the rank comes back": lambda x: x.squeeze(0).reshape(-1, 4) * 2,
    "another constant": lambda x: x * (x.shape[0] if x.shape[0] != 1 else 1.0),
    "no condition": lambda x: x.softmax(0).sum(1, keepdim=True),
}


def least(function: Callable[[Any], Any], **options: int) -> int:
    """The least size of the first dim that an import takes."""
    module = Function(function).eval()
    imported = from_torch(module, (torch.randn(3, 4),), dynamic_shapes=(({0: Dim("n", max=6, **options)},),))
    (dim,) = imported.graph.scope
    return int(dim.lo)


@pytest.mark.parametrize("name", DIFFER)
def test_a_size_that_is_computed_otherwise_is_left_out(name: str) -> None:
    function, minimum = DIFFER[name]
    assert least(function) == minimum
    assert least(function, min=2) == 2
    if minimum == 2:
        with pytest.raises(ImportFailure, match=r"for n = 1 than .* it decides at .*declare Dim\('n', min=2\)"):
            least(function, min=1)


@pytest.mark.parametrize("name", ALIKE)
def test_a_size_that_is_computed_alike_stays(name: str) -> None:
    assert least(ALIKE[name]) == 0
    check_meaning(Function(ALIKE[name]).eval(), (torch.randn(2, 4).double(),), ({0: B},))


OF_SIZES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a number": (lambda x, y: x * 2 if x.shape[0] == 5 else x, "n = 5"),
    "a large number": (lambda x, y: x * 2 if x.shape[0] == 40 else x, "n = 40"),
    "one of": (lambda x, y: x * 2 if x.shape[0] in (7, 9) else x, "n = 7"),
    "equal sizes": (lambda x, y: x * 2 if x.shape == y.shape else x, "n = 4"),
    "a multiple": (lambda x, y: x * 2 if x.shape[0] % y.shape[0] == 0 else x, "m = 1"),
    "of all elements": (lambda x, y: x * 2 if x.numel() == 20 else x, "n = 5"),
    "a sum of two": (lambda x, y: x * 2 if x.shape[0] + y.shape[0] == 50 else x, "n = 1, m = 49"),
    "both one": (lambda x, y: x * 2 if x.shape[0] == 1 and y.shape[0] == 1 else x, "n = 1, m = 1"),
    "one behind one": (lambda x, y: (x * 2 if y.shape[0] == 1 else x) if x.shape[0] == 1 else x, "n = 1, m = 1"),
    "a product": (lambda x, y: x * 2 if x.shape[0] * y.shape[0] == 1 else x, "n = 1, m = 1"),
}
"""Functions of n x 4 and m x 4 numbers, 3 and 4 in the example, and sizes for which they differ."""


@pytest.mark.parametrize("name", OF_SIZES)
def test_sizes_that_are_computed_otherwise_are_refused(name: str) -> None:
    function, sizes = OF_SIZES[name]
    dims = {0: Dim("n", min=1, max=50)}, {0: Dim("m", min=1, max=50)}
    with pytest.raises(ImportFailure, match=f"something else for {sizes} than for the example's sizes"):
        from_torch(Function(function).eval(), (torch.randn(3, 4), torch.randn(4, 4)), dynamic_shapes=(dims,))


@pytest.mark.parametrize("example", [torch.zeros(3, 4), torch.ones(3, 4)])
def test_equal_numbers_in_the_example_hide_nothing(example: Any) -> None:
    function = Function(lambda x: x * 2 if x.shape[0] == 1 else x * x * x).eval()
    with pytest.raises(ImportFailure, match="for n = 1"):
        from_torch(function, (example,), dynamic_shapes=(({0: Dim("n", min=1, max=6)},),))


def test_sizes_that_the_model_refuses_are_left_out() -> None:
    def function(x: Any) -> Any:
        assert x.shape[0] > 1
        return x * 2

    assert least(function) == 2
    with pytest.raises(ImportFailure, match="for n = 1"):
        least(function, min=1)


class Counter(torch.nn.Module):
    """A module with state and a decision by a size."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x + self.calls if x.shape[0] > 1 else x + self.calls + 0


def test_the_comparison_changes_no_state() -> None:
    module, x = Counter().eval(), torch.ones(3, 4)
    imported = from_torch(module, (x,), dynamic_shapes={"x": {0: Dim("n", max=6)}})
    assert module.calls == 0 and imported.state["calls"] == 0 and (x == 1).all()
    (dim,) = imported.graph.scope
    assert dim.lo == 0


def test_each_dim_has_its_own_least_size() -> None:
    function = Function(lambda x: x * 2 if x.shape[1] > 1 else x * 3).eval()
    dims = {0: Dim("n", max=6), 1: Dim("m", max=6)}
    imported = from_torch(function, (torch.randn(3, 4),), dynamic_shapes=((dims,),))
    assert {d.name: d.lo for d in imported.graph.scope} == {"n": 0, "m": 2}


class Writes(torch.nn.Module):
    """A module that changes a weight, or a buffer, for one size alone."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.writes_weight = False

    def forward(self, x: Any) -> Any:
        self.calls.add_(7 if x.shape[0] == 1 else 1)
        if x.shape[0] == 1 and self.writes_weight:
            self.weight.mul_(2)
        return x * self.weight


def test_another_state_is_another_result() -> None:
    with pytest.raises(ImportFailure, match="for n = 1"):
        from_torch(Writes().eval(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=1)},))


def test_the_comparison_changes_no_weight() -> None:
    module = Writes().eval()
    module.writes_weight = True
    from_torch(module, (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=1)},))
    assert (module.weight == 1).all() and module.calls == 0


def test_random_numbers_go_on_as_before() -> None:
    function = Function(lambda x: x * 2 if x.shape[0] == 1 else x * 3).eval()
    torch.manual_seed(3)
    expected = torch.randn(4)
    torch.manual_seed(3)
    from_torch(function, (torch.zeros(3, 4),), dynamic_shapes=(({0: Dim("n", max=6)},),))
    assert torch.equal(torch.randn(4), expected)


def exported(function: Callable[[Any, Any], Any]) -> Any:
    dims = {0: Dim("n", min=2, max=9)}, {0: Dim("m", min=2, max=9)}
    return torch.export.export(
        Function(function).eval(), (torch.randn(3, 4), torch.randn(4, 4)), dynamic_shapes=(dims,)
    )


@pytest.mark.parametrize("name", ["equal sizes", "a multiple"])
def test_an_exported_program_needs_its_conditions(name: str, tmp_path: Path) -> None:
    program = exported(OF_SIZES[name][0])
    torch.export.save(program, tmp_path / "program.pt2")
    for given in (program, torch.export.load(tmp_path / "program.pt2")):
        with pytest.raises(ImportFailure, match=r"exported for sizes with .*shape\[0\]"):
            from_torch(given)


@pytest.mark.parametrize(
    "function", [lambda x, y: x * 2 if x.shape[0] > 9 else x, lambda x, y: x + y.sum() if x.shape[0] != 1 else x]
)
def test_conditions_that_the_ranges_prove_are_no_obstacle(function: Callable[[Any, Any], Any]) -> None:
    assert {d.name: d.lo for d in from_torch(exported(function)).graph.scope}.keys() == {"args_0_dim_0", "args_1_dim_0"}


@pytest.mark.parametrize(
    "text", [f"L['x'].size()[{'9' * 5000}] != 2", "\0", "(" * 5000, "L['args'][0].size()[0] % 0 == 1", "print(1)", "L"]
)
def test_texts_that_are_no_conditions_run_nothing(text: str) -> None:
    program = exported(lambda x, y: x + y.sum())
    program._guards_code = [text]
    assert from_torch(program).graph is not None
