"""What cannot be imported is said at once, with the place in the model's source and what to do."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.export import Dim

import ait_mlir
from ait_mlir.errors import InputError
from ait_mlir.importers.torch import ImportFailure, UnsupportedOps, from_torch, import_program
from tests.importers.meaning import B, S, check_meaning

X = torch.randn(3, 8)
BATCH = ({0: Dim("batch", max=16)},)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("count", torch.zeros(8))


class Control(Base):
    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x)
        return x


class Item(Base):
    def forward(self, x):
        return x[: int(x[0, 0].item())]


class TwoUnsupported(Base):
    def forward(self, x):
        y = torch.special.bessel_j0(self.linear(x))
        return torch.special.bessel_j0(y) + torch.rand_like(y)


class Fixed(Base):
    def forward(self, x):
        return self.linear(x).reshape(3, 8)


class Shorts(Base):
    def forward(self, x):
        return x.to(torch.uint16)


class Eigenvalues(Base):
    """Beside an operation that PyTorch decomposes."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x):
        return self.cell(x) * torch.linalg.eigvalsh(x.T @ x)


class OfComplex(Base):
    def forward(self, x):
        return torch.cov(torch.complex(x, x)).real


class NotAMultiple(Base):
    def forward(self, x):
        return self.linear(x) if x.shape[0] % 8 else x


class AlwaysTheSame(Base):
    """A question about the dims that PyTorch cannot answer, and the ranges do."""

    def forward(self, x):
        n = x.shape[0]
        return self.linear(x) if min(16 * n, 32 * n) == 16 * n and n * n < 300 else x


REFUSED = {
    NotAMultiple: r"a dim that was to be dynamic is not, for the condition at .*test_refusals.py:\d+ in forward: return "
    r"self.linear\(x\) if x.shape\[0\] % 8 else x: Not all values of batch .* % 8\) != 0",
    Control: r"decides by the values of a tensor at .*test_refusals.py:\d+ in forward: if x.sum\(\) > 0:.*torch.where",
    Item: r"decides by the values of a tensor at .*test_refusals.py:\d+ in forward: return x\[:",
    Fixed: r"a dim that was to be dynamic is not, fixed at .*test_refusals.py:\d+ in forward.*batch.*constant \(3\)",
    OfComplex: r"test_refusals.py:\d+ in forward: return torch.cov.*: covariances of complex numbers are not supported",
    Eigenvalues: r"1 operation of the model cannot be imported:\s+aten._linalg_eigh.default, used once, first at "
    r".*test_refusals.py:\d+ in forward: return self.cell\(x\) \* torch.linalg.eigvalsh",
    Shorts: r"aten.to.dtype, used once(.|\n)*uint16 are not supported",
}


@pytest.mark.parametrize("model", REFUSED, ids=lambda m: m.__name__)
def test_a_refusal_names_the_place(model, tmp_path, capsys):
    with pytest.raises(ImportFailure, match=REFUSED[model]):
        ait_mlir.compile(model().eval(), (X.clone(),), dynamic_shapes=BATCH, workdir=tmp_path / "work")
    assert not (tmp_path / "work").exists()
    assert capsys.readouterr() == ("", "")


def test_a_condition_that_the_ranges_prove_is_none():
    imported = from_torch(AlwaysTheSame().eval(), (X,), dynamic_shapes=BATCH)
    assert "batch = 0 to 16" in str(imported.module) or "batch = 1 to 16" in str(imported.module)
    assert "ait.gemm" in str(imported.module)


class Shift(nn.Module):
    """The shift of relative positions. PyTorch asks whether dims are multiples, to make strides of the result; the
    answer differs at length 1.
    """

    def forward(self, x):
        b, s, _ = x.shape
        return x.repeat(1, 1, 2).reshape(b, 2 * s, s)[:, 1:].reshape(b, s, 2 * s - 1)


def test_conditions_that_decide_only_about_strides_are_none():
    check_meaning(Shift().eval(), (torch.randn(2, 5, 5, dtype=torch.float64),), ({0: B, 1: S, 2: S},))


def test_a_program_that_asserts_what_is_not_proved_is_refused():
    given = {"dynamic_shapes": BATCH, "strict": False, "prefer_deferred_runtime_asserts_over_guards": True}
    program = torch.export.export(NotAMultiple().eval(), (X,), **given)
    with pytest.raises(
        UnsupportedOps, match=r"demands .*Mod.*, which the ranges of the dims do not prove; narrow them"
    ):
        import_program(program)


def test_all_unsupported_operations_are_listed_with_their_counts():
    with pytest.raises(UnsupportedOps) as caught:
        from_torch(TwoUnsupported().eval(), (X,), dynamic_shapes=BATCH)
    found = {item.operation: item for item in caught.value.found}
    assert {name: item.count for name, item in found.items()} == {
        "aten.special_bessel_j0.default": 2,
        "aten.rand_like.default": 1,
    }
    assert re.search(
        r"test_refusals.py:\d+ in forward: y = torch.special.bessel_j0", found["aten.special_bessel_j0.default"].place
    )
    assert "random numbers" in found["aten.rand_like.default"].advice


MISUSED = {
    "training mode": lambda: from_torch(nn.Linear(8, 8), (X,)),
    "2 weights are on the meta device .* 'weight'": lambda: from_torch(nn.Linear(8, 8, device="meta").eval(), (X,)),
    "expected a torch.nn.Module, found function": lambda: from_torch(lambda x: x, (X,)),
    "example_inputs must be a list or tuple; found a Tensor": lambda: from_torch(nn.Linear(8, 8).eval(), X),
    "too many positional arguments": lambda: from_torch(nn.Linear(8, 8).eval(), (X, X)),
    "same reduction dim": lambda: from_torch(nn.Linear(8, 8).eval(), (torch.randn(2, 7),)),
    "dynamic_shapes does not fit .*'input'": lambda: from_torch(
        nn.Linear(8, 8).eval(), (X,), dynamic_shapes={"y": {0: Dim("b")}}
    ),
}


@pytest.mark.parametrize("message", MISUSED)
def test_misuse_is_explained(message):
    with pytest.raises(ImportFailure, match=message):
        MISUSED[message]()


UNSUPPORTED = {
    "polygamma is supported up to order 8, found 9": lambda x: torch.polygamma(9, x),
    "writing at a mask and at other indices together is not supported": lambda x: x.index_put(
        (x[:, 0] > 0, torch.tensor([0])), x.sum()
    ),
    "indexing with several masks is not supported": lambda x: x[x[:, 0] > 0, x.sum(0) > 0],
}


class Applies(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("message", UNSUPPORTED)
def test_what_a_row_cannot_do_is_explained(message):
    with pytest.raises(ImportFailure, match=re.escape(message)):
        from_torch(Applies(UNSUPPORTED[message]).eval(), (X,), dynamic_shapes=BATCH)


def test_a_declared_minimum_is_too_small_for_an_operation():
    batch = ({0: Dim("batch", min=1, max=16)},)
    with pytest.raises(ImportFailure, match=re.escape("k is 2, expected 1 to batch")):
        from_torch(Applies(lambda x: x.topk(2, 0)[0]).eval(), (X,), dynamic_shapes=batch)


class ScaledOnce(Base):
    """Halves its weights in the first call."""

    def __init__(self):
        super().__init__()
        self.is_scaled = False

    def forward(self, x):
        if not self.is_scaled:
            with torch.no_grad():
                self.linear.weight.div_(2)
        self.is_scaled = True
        return self.linear(x)


def test_a_model_that_changes_its_weights_in_the_first_call_alone_is_imported_after_it():
    model = ScaledOnce().eval()
    before = model.linear.weight.detach().clone()
    imported = from_torch(model, (X,), dynamic_shapes=BATCH)
    assert model.is_scaled and torch.equal(model.linear.weight, before / 2)
    assert torch.equal(torch.from_numpy(imported.constants["linear.weight"]), before / 2)


def test_a_program_with_dropout_says_what_to_do():
    program = torch.export.export(nn.Dropout(0.5).train(), (X,))
    with pytest.raises(UnsupportedOps, match=r"dropout is active; call model.eval\(\)"):
        import_program(program)


class Flagged(nn.Module):
    def forward(self, x, parts, *, double=False):
        return {"sum": x + parts[0], "same": parts[1] * 2 if double else x}


@pytest.fixture(scope="module")
def flagged():
    example = (X, [X, X])
    return ait_mlir.compile(Flagged().eval(), example, {"double": True}, dynamic_shapes=None)


def test_the_result_has_the_structure_of_the_model(flagged):
    a, b, c = torch.randn(3, 3, 8)
    got, want = flagged(a, [b, c], double=True), Flagged()(a, [b, c], double=True)
    assert list(got) == list(want)
    assert all(torch.equal(got[key], want[key]) for key in want)
    turned = torch.randn(8, 3).t()  # not contiguous
    assert torch.equal(flagged(turned, [b, c], double=True)["sum"], turned + b)


CALLS = {
    r"arguments are \(_, \[_\], double=_\), but the model was exported with \(_, \[_, _\], double=_\)": lambda m: m(
        X, [X], double=True
    ),
    r"arguments are \(_, \[_, _\]\)": lambda m: m(X, [X, X]),
    "is False, but the model was exported with True": lambda m: m(X, [X, X], double=False),
    "has type int, expected a tensor": lambda m: m(3, [X, X], double=True),
    "dtype float64, expected float32": lambda m: m(X.double(), [X, X], double=True),
    r"shape \[2, 8\], expected \[3, 8\]": lambda m: m(X[:2], [X, X], double=True),
}


@pytest.mark.parametrize("message", CALLS)
def test_arguments_that_do_not_fit_are_refused(flagged, message):
    with pytest.raises(InputError, match=message):
        CALLS[message](flagged)


class BeyondIntegers(nn.Module):
    def forward(self, x):
        return x + (torch.arange(8) * 2**61)[5:]


def test_an_integer_that_no_formula_can_hold_is_refused_with_its_place():
    with pytest.raises(UnsupportedOps, match=r"(?s)aten\.slice\.Tensor.*test_refusals\.py"):
        from_torch(BeyondIntegers().eval(), (torch.arange(3),))


def test_hints_name_dims_of_the_model():
    dim = torch.export.Dim("batch", min=1, max=8)
    model, x = torch.nn.Linear(4, 4).eval(), torch.randn(2, 4)
    told = "hints: unknown dim 'bach'; did you mean 'batch'?; the dims are batch"
    with pytest.raises(ImportFailure, match=re.escape(told)):
        ait_mlir.compile(model, (x,), dynamic_shapes=({0: dim},), hints={"bach": [1]})
    with pytest.raises(ImportFailure, match=r"hints must be None or a dict, each value a list.*found \{'batch': 1\}"):
        ait_mlir.compile(model, (x,), dynamic_shapes=({0: dim},), hints={"batch": 1})
    with pytest.raises(ImportFailure, match=r"hints: 'batch' has the hint 100 outside its range \d+ to \d+"):
        ait_mlir.compile(model, (x,), dynamic_shapes=({0: dim},), hints={"batch": [100]})


class OverRows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[0]
        for row in x:
            total = total + row
        return total


class While(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t, total = 0, x[0]
        while t < x.shape[0]:
            total, t = total + x[t], t + 1
        return total


@pytest.mark.parametrize("model", [OverRows(), While()])
def test_other_loops_over_a_dynamic_dim_name_the_one_that_is_imported(model: nn.Module) -> None:
    with pytest.raises(ImportFailure, match=r"test_refusals\.py.*; write a loop over a dynamic dim as `for t in range\(n\)`"):
        from_torch(model.eval(), (torch.randn(5, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
