"""Numbers of buffers that a model reads in Python are known to the trace."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from ait_mlir.importers.torch import ImportFailure, from_torch  # noqa: E402
from ait_mlir.importers.torch.numbers import BufferNumbers  # noqa: E402
from tests.importers.meaning import B, check_meaning  # noqa: E402


class Reads(torch.nn.Module):
    """Reads numbers of buffers in all ways."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("length", torch.tensor(3))
        self.register_buffer("scale", torch.tensor([0.5], dtype=torch.float64))
        self.register_buffer("scaled", torch.tensor(True))
        self.register_buffer("sizes", torch.tensor([2, 4]), persistent=False)

    def forward(self, x):
        if self.scaled:
            x = x * self.scale.item() + float(self.scale)
        first, second = self.sizes.tolist()
        pieces = x.split([first, second], 1)
        parts = [x[:, :size] for size in self.sizes]
        return x[:, : int(self.length)], x[:, -self.length.item() :], *pieces, *parts, x[:, self.sizes.sum() - 1]


def test_numbers_are_those_of_the_buffers() -> None:
    check_meaning(Reads().eval(), (torch.randn(2, 6, dtype=torch.float64),), ({0: B},))


def test_a_buffer_that_the_model_changes_has_no_number() -> None:
    class Counts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.tensor(1))

        def forward(self, x):
            y = x[:, : int(self.calls)] + 1
            self.calls += 1
            return y

    with pytest.raises(ImportFailure, match="changes its buffer 'calls' and reads its number"):
        from_torch(Counts().eval(), (torch.randn(2, 6),))


def test_a_number_of_an_input_is_not_known() -> None:
    class Takes(torch.nn.Module):
        def forward(self, x, n):
            return x[:, : int(n)] + 1

    with pytest.raises(ImportFailure):
        from_torch(Takes().eval(), (torch.randn(2, 6), torch.tensor(3)))


def test_a_trace_looks_only_at_what_makes_or_changes_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the thousands of calls that read shapes and flags; nor does it list all buffers for a new tensor."""
    looked: list[str] = []
    compute, listed = BufferNumbers._compute, torch.nn.Module.named_buffers
    monkeypatch.setattr(
        BufferNumbers, "_compute", lambda self, f, *rest: looked.append(f.__name__) or compute(self, f, *rest)
    )
    lists: list[object] = []
    monkeypatch.setattr(
        torch.nn.Module, "named_buffers", lambda self, *a, **k: lists.append(self) or listed(self, *a, **k)
    )
    layers = [torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1), torch.nn.BatchNorm2d(4)) for _ in range(8)]
    from_torch(torch.nn.Sequential(*layers).eval(), (torch.randn(2, 4, 6, 6),))
    assert {"conv2d", "batch_norm"} <= set(looked) and not {"__get__", "stride", "dim"} & set(looked)
    assert len(lists) < 40
