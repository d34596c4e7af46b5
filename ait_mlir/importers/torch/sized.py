"""Functions of PyTorch whose sizes may be dims: PyTorch would fix these dims during a trace."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ait_mlir.importers.torch import composed
from ait_mlir.importers.torch.library import torch


def _is_dynamic(*sizes: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in sizes)


def _larger(a: Any, b: Any) -> Any:
    return torch.sym_max(a, b)


# ** ranges **


def _evenly_spaced(start: Any, end: Any, steps: Any, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
    """`torch.linspace`; floats are counted from the nearer end."""
    made = dtype or torch.get_default_dtype()
    if not _is_dynamic(steps) or not made.is_floating_point:
        return torch.linspace(start, end, steps, dtype=dtype, device=device, **rest)
    places = torch.arange(steps, device=device).to(made)
    step = (end - start) / _larger(steps - 1, 1)
    return torch.where(places < _larger(steps // 2, 1), start + step * places, end - step * (steps - 1 - places))


def _powers_spaced(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: Any = None, device: Any = None, **rest: Any
) -> Any:
    """`torch.logspace`"""
    made = dtype or torch.get_default_dtype()
    if not _is_dynamic(steps) or not made.is_floating_point:
        return torch.logspace(start, end, steps, base, dtype=dtype, device=device, **rest)
    return base ** _evenly_spaced(start, end, steps, dtype=made, device=device)


def _frequencies(own: Callable[..., Any], half: bool) -> Callable[..., Any]:
    """`torch.fft.fftfreq`, and `rfftfreq` for `half` of them."""

    def frequencies(n: Any, d: float = 1.0, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
        if not _is_dynamic(n):
            return own(n, d, dtype=dtype, device=device, **rest)
        places = torch.arange(n // 2 + 1 if half else n, device=device)
        whole = places if half else torch.where(places <= (n - 1) // 2, places, places - n)
        return whole.to(dtype or torch.get_default_dtype()) * (1 / (n * d))

    return frequencies


def _one_hot(x: Any, num_classes: Any = -1) -> Any:
    if not _is_dynamic(num_classes):
        return torch.nn.functional.one_hot(x, num_classes)
    return (x[..., None] == torch.arange(num_classes, device=x.device)).to(torch.int64)


def _filled(own: Callable[..., Any], ones: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.full` and its kin, whose number may be a float of dims."""

    def filled(*args: Any, **options: Any) -> Any:
        value = options["fill_value"] if "fill_value" in options else args[1]
        if not isinstance(value, torch.SymFloat):
            return own(*args, **options)
        made = ones(*args[:1], **{name: option for name, option in options.items() if name != "fill_value"})
        return (made * value).to(made.dtype)

    return filled


def _gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """`torch.gradient`: differences of neighbours over their distance."""
    if not _is_dynamic(*input.shape) or edge_order != 1 or not isinstance(spacing, int | float):
        return torch.gradient(input, spacing=spacing, dim=dim, edge_order=edge_order)
    found: list[Any] = []
    for axis in range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim:
        n = input.shape[axis]
        torch._check(n >= 2)
        at = torch.arange(n, device=input.device)
        above, below = (at + 1).clamp(max=n - 1), (at - 1).clamp(min=0)
        rows, distance = input.movedim(axis, -1), (above - below).to(input.dtype) * spacing
        found.append(((rows[..., above] - rows[..., below]) / distance).movedim(-1, axis))
    return found


# ** windows **


def _window(own: Callable[..., Any], weights: Callable[..., Any]) -> Callable[..., Any]:
    """A window of PyTorch; `weights` computes those of 0, 1, ..., last from a number and the rest of the arguments. A
    periodic one is the longer one without its last weight.
    """

    def window(
        window_length: Any, periodic: Any = True, *args: Any, dtype: Any = None, device: Any = None, **options: Any
    ) -> Any:
        if not _is_dynamic(window_length):
            return own(window_length, periodic, *args, dtype=dtype, device=device, **options)
        numbers = {k: v for k, v in options.items() if k not in ("layout", "pin_memory", "requires_grad")}
        last = window_length if periodic else window_length - 1
        places = torch.arange(window_length, device=device).to(dtype or torch.get_default_dtype())
        found = weights(places, _larger(last, 1), *args, **numbers)
        return torch.where(torch.full((), window_length, device=device) == 1, 1.0, found)

    return window


def _raised_cosine(places: Any, last: Any, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return alpha - beta * (places * (2 * math.pi / last)).cos()


def _hann(places: Any, last: Any) -> Any:
    return _raised_cosine(places, last, 0.5, 0.5)


def _blackman(places: Any, last: Any) -> Any:
    angle = places * (2 * math.pi / last)
    return 0.42 - 0.5 * angle.cos() + 0.08 * (2 * angle).cos()


def _triangle(places: Any, last: Any) -> Any:
    rising = places * (2 / last)
    return torch.where(rising <= 1, rising, 2 - rising)


def _kaiser(places: Any, last: Any, beta: float = 12.0) -> Any:
    apart = places * (2 / last) - 1
    width = beta * (1 - apart * apart).clamp(min=0).sqrt()
    return torch.special.i0(width) / torch.special.i0(torch.full((), beta, dtype=places.dtype, device=places.device))


# ** pairs **


def _in_triangle(row: Any, col: Any, offset: int) -> Any:
    """How many elements [row, col] lie on a diagonal and below it."""

    def up_to(last: Any) -> Any:  # the sum of the numbers 1, 2, ..., last, none of them above col
        last = _larger(last, 0)
        whole = torch.sym_min(last, col)
        return whole * (whole + 1) // 2 + col * (last - whole)

    return up_to(row + offset) - up_to(offset)


def _places_of_triangle(row: Any, col: Any, offset: Any = 0, *, lower: bool, device: Any, dtype: Any) -> Any:
    """The places of the elements on one side of a diagonal, row by row: [2, count]."""
    count = _in_triangle(row, col, offset) if lower else row * col - _in_triangle(row, col, offset - 1)
    rows = torch.arange(row, device=device)
    first = torch.zeros_like(rows) if lower else (rows + offset).clamp(0, col)
    ends = ((rows + (offset + 1)).clamp(0, col) if lower else col - first).cumsum(0)
    at = torch.arange(count, device=device)
    i = torch.searchsorted(ends, at, right=True)
    before = torch.nn.functional.pad(ends, (1, 0))
    return torch.stack([i, at - before[i] + first[i]]).to(dtype or torch.int64)


def _triangle_indices(own: Callable[..., Any], lower: bool) -> Callable[..., Any]:
    """`torch.tril_indices` and `torch.triu_indices`"""

    def indices(row: Any, col: Any, offset: int = 0, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
        if not _is_dynamic(row, col):
            return own(row, col, offset, dtype=dtype or torch.int64, device=device or "cpu", **rest)
        return _places_of_triangle(row, col, offset, lower=lower, device=device, dtype=dtype)

    return indices


def _combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """`torch.combinations` of x [n]: [count, r]"""
    n = x.shape[0]
    if r == 0:
        return x.new_empty(0)
    chosen = n + (r - 1) if with_replacement else n
    count = math.prod(chosen - i for i in range(r)) // math.factorial(r)
    places = [torch.arange(n, device=x.device).reshape([-1 if d == axis else 1 for d in range(r)]) for axis in range(r)]
    is_chosen = torch.ones([n] * r, dtype=torch.bool, device=x.device)
    for a, b in itertools.pairwise(places):
        is_chosen = is_chosen & ((a <= b) if with_replacement else (a < b))
    number = is_chosen.flatten().to(torch.int64).cumsum(0)
    at = torch.searchsorted(number, torch.arange(count, device=x.device) + 1)
    columns: list[Any] = []
    for _ in range(r):
        columns, at = [x[at % n], *columns], at // n
    return torch.stack(columns, 1)


# ** images **


def _pool_of_mean(own: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """`torch.nn.functional.adaptive_avg_pool1d` and its kin. PyTorch's operation asks whether there is one part."""

    def pool(input: Any, output_size: Any) -> Any:
        sizes = _sizes_of_parts(input, output_size, rank)
        if not _is_dynamic(*sizes):
            return own(input, output_size)
        aten = torch.ops.aten
        if rank == 1:  # a pool over two dims with a first dim of 1
            return aten._adaptive_avg_pool2d(input.unsqueeze(-2), [1, *sizes]).squeeze(-2)
        return (aten._adaptive_avg_pool2d if rank == 2 else aten._adaptive_avg_pool3d)(input, sizes)

    return pool


def _sizes_of_parts(x: Any, output_size: Any, rank: int) -> list[Any]:
    """The number of parts along each of the last `rank` dims.

    `output_size` is one number for all dims or one for each; None stands for the size of the dim.
    """
    given: Sequence[Any] = [output_size] * rank if isinstance(output_size, int | torch.SymInt | None) else output_size
    return [n if size is None else size for n, size in zip(x.shape[-rank:], given, strict=True)]


def _pool_of_largest(own: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """`torch.nn.functional.adaptive_max_pool1d` and its kin, along one dim after the other."""

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        sizes = _sizes_of_parts(input, output_size, rank)
        if not _is_dynamic(*sizes):
            return own(input, output_size, return_indices)
        for axis, size in enumerate(sizes, input.dim() - rank):
            input = _of_parts(input, axis, size)[0].amax(-1).movedim(-1, axis)
        return input

    return pool


def _pool_and_places(own: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """`torch.nn.functional.adaptive_max_pool1d_with_indices` and its kin, along the last dim first: of equal elements
    the first one in row-major order is taken.
    """

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        sizes = _sizes_of_parts(input, output_size, rank)
        if not _is_dynamic(*sizes):
            return own(input, output_size)
        places, row = torch.zeros_like(input, dtype=torch.int64), 1
        for axis, size in reversed(list(enumerate(sizes, input.dim() - rank))):
            parts, at = _of_parts(input, axis, size)
            found, best = parts.max(-1)
            chosen = at.expand(parts.shape).gather(-1, best[..., None])[..., 0]
            places = (places.movedim(axis, -1).gather(-1, chosen) + chosen * row).movedim(-1, axis)
            row = row * input.shape[axis]
            input = found.movedim(-1, axis)
        return input, places

    return pool


def _of_parts(x: Any, axis: int, count: Any) -> tuple[Any, Any]:
    """x with `axis` cut into `count` parts of about equal size, and the index of each element along `axis`.

    The first result has two last dims in place of `axis`: the parts, and the elements of a part. Neighbouring parts may
    share one element; a shorter part repeats its last element.
    """
    n, part = x.shape[axis], torch.arange(count, device=x.device)[:, None]
    first, behind = part * n // count, ((part + 1) * n + (count - 1)) // count
    at = torch.minimum(first + torch.arange(n // count + 2, device=x.device), behind - 1)
    return x.movedim(axis, -1)[..., at], at


def _affine_grid(own: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.nn.functional.affine_grid` and `torch.affine_grid_generator`"""

    def grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
        spatial = size[2:]
        if not _is_dynamic(*spatial):
            return own(theta, size, align_corners)
        options = {"dtype": theta.dtype, "device": theta.device}
        axes: list[Any] = []
        for n in reversed(spatial):
            end = 1.0 if align_corners else (n - 1) / n
            axis = _evenly_spaced(-end, end, n, **options)
            axes.append(torch.where(torch.full((), n, device=theta.device) == 1, 0.0, axis))  # a dim of 1 is the centre
        rank = len(axes)
        shaped = [axis.reshape([-1 if d == rank - 1 - i else 1 for d in range(rank)]) for i, axis in enumerate(axes)]
        whole = [a.expand(*spatial) for a in (*shaped, torch.ones([1] * rank, **options))]
        points = torch.stack(whole, -1).reshape(1, -1, rank + 1, 1) * theta.mT[:, None]
        return points.sum(-2).reshape(size[0], *spatial, rank)

    return grid


# ** the table **


def _nothing(x: Any) -> bool:
    return False


def _without_any(own: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `own` without its check for values out of range, which is a call of `torch.any`."""

    def unchecked(*args: Any, **options: Any) -> Any:
        kept, torch.any = torch.any, _nothing
        try:
            return own(*args, **options)
        finally:
            torch.any = kept

    return unchecked


def _table() -> Mapping[Any, Callable[..., Any]]:
    functional = torch.nn.functional
    windows: dict[str, Callable[..., Any]] = {
        "hann": _hann,
        "hamming": _raised_cosine,
        "blackman": _blackman,
        "bartlett": _triangle,
        "kaiser": _kaiser,
    }
    return {
        torch.bincount: composed.bincount_in_parts,
        torch.Tensor.bincount: composed.bincount_in_parts,
        torch.full: _filled(torch.full, torch.ones),
        torch.full_like: _filled(torch.full_like, torch.ones_like),
        torch.linspace: _evenly_spaced,
        torch.logspace: _powers_spaced,
        torch.gradient: _gradient,
        torch.fft.fftfreq: _frequencies(torch.fft.fftfreq, half=False),
        torch.fft.rfftfreq: _frequencies(torch.fft.rfftfreq, half=True),
        functional.one_hot: _one_hot,
        **{f: _window(f, made) for n, made in windows.items() for f in (getattr(torch, f"{n}_window"),)},
        torch.tril_indices: _triangle_indices(torch.tril_indices, lower=True),
        torch.triu_indices: _triangle_indices(torch.triu_indices, lower=False),
        torch.combinations: _combinations,
        **{f: _pool_of_mean(f, n) for n in (1, 2, 3) for f in (getattr(functional, f"adaptive_avg_pool{n}d"),)},
        **{f: _pool_of_largest(f, n) for n in (1, 2, 3) for f in (getattr(functional, f"adaptive_max_pool{n}d"),)},
        **{
            f: _pool_and_places(f, n)
            for n in (1, 2, 3)
            for f in (getattr(functional, f"adaptive_max_pool{n}d_with_indices"),)
        },
        functional.ctc_loss: composed.ctc_loss,
        torch.ctc_loss: composed.ctc_loss,
        functional.affine_grid: _affine_grid(functional.affine_grid),
        torch.affine_grid_generator: _affine_grid(torch.affine_grid_generator),
        functional.gaussian_nll_loss: _without_any(functional.gaussian_nll_loss),
    }


_TABLE = _table()
_Mode: Any = torch.overrides.TorchFunctionMode


class KeptSizes(_Mode):  # pyright: ignore[reportUntypedBaseClass]
    """A context for a trace: operations that PyTorch would call with sizes of the example keep these sizes as dims.

    The functions of this file replace them: `bincount(minlength=4)` has the size `4 + count`, and `linspace` any number
    of steps.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _TABLE.get(func, func)(*args, **(kwargs or {}))
