"""PyTorch operations that have no row, as functions of other operations: parts of floats, sampling,
segments, counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ait_mlir.importers.torch import linear_algebra
from ait_mlir.importers.torch.dims import UNBOUNDED
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.steps import Range, run

PRECISION = {
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
    "float32": (24, -149, 127),
    "float64": (53, -1074, 1023),
}
"""The bits of a mantissa, and the exponents of the smallest and of the largest power of 2 that a type holds."""


# ** floats by their parts **


def _exponent(x: Any) -> tuple[Any, Any, int]:
    """The position in a list of powers of 2 of the largest power up to |x| (-1 for 0), the list, and its smallest
    exponent.
    """
    _, least, most = PRECISION["float64" if x.dtype == torch.float64 else "float32"]
    first = torch.arange(max(-least, most) + 1, device=x.device) == 0
    below, above = (torch.where(first, 1.0, factor).to(x.dtype).cumprod(0) for factor in (0.5, 2.0))  # exact powers
    powers = torch.cat([below[1 : 1 - least].flip(0), above[: most + 1]])
    return torch.bucketize(x.abs(), powers, right=True) - 1, powers, least


def _wide(x: Any) -> Any:
    return x if x.dtype == torch.float64 else x.float()


def _at(numbers: Any, index: Any) -> Any:
    """The numbers at the positions in `index`, which may have any shape; the result has this shape."""
    return numbers.gather(0, index.reshape(-1)).reshape(index.shape)


def frexp(x: Any) -> tuple[Any, Any]:
    """`torch.frexp`: a mantissa from 0.5 to 1 and an exponent; 0, infinities and NaN are their own mantissas."""
    wide = _wide(x)
    index, powers, least = _exponent(wide)
    is_number = (wide.abs() < torch.inf) & (wide != 0)
    exponent = torch.where(is_number, index + (least + 1), 0)
    first = exponent.div(2, rounding_mode="floor")  # two factors, because 2 ** -exponent may overflow
    parts = [_at(powers, -part - least) for part in (first, exponent - first)]
    return (wide * parts[0] * parts[1]).to(x.dtype), exponent.int()


def nextafter(x: Any, y: Any) -> Any:
    """`torch.nextafter`: the next number after x towards y."""
    dtype = torch.result_type(x, y)
    bits, lowest, _ = PRECISION[str(dtype).removeprefix("torch.")]
    x, y = torch.broadcast_tensors(_wide(x.to(dtype)), _wide(y.to(dtype)))
    index, powers, least = _exponent(x)
    size, largest = x.abs(), torch.finfo(dtype).max
    grows = (y > x) == (x > 0)
    is_power = size == _at(powers, index.clamp(min=0))
    step = index - (bits - 1) - (is_power & ~grows).long()
    step = _at(powers, step.clamp(min=lowest - least))
    moved = torch.where(grows, size + step, torch.where(size == torch.inf, largest, size - step))
    moved = torch.where(x == 0, powers[lowest - least], moved)
    is_negative = torch.where(x == 0, y < 0, x < 0)
    result = torch.where(x == y, y, torch.where(is_negative, -moved, moved))
    return torch.where((x == x) & (y == y), result, torch.nan).to(dtype)


# ** counts and distances **


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """`torch.bincount`; the run binds its size: 1 more than the largest number, at least `minlength`. The run fails for
    a number below 0, and for one that reaches both `UNBOUNDED` and `minlength`.
    """
    counts = _counts(x, weights, max(UNBOUNDED, minlength))
    return counts[torch.arange(counts.shape[0], device=x.device) <= _largest(x, minlength - 1)]


def bincount_in_parts(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """`bincount` of a size that is `minlength` and a number that the run binds: its first counts can be read."""
    counts = _counts(input, weights, max(UNBOUNDED, minlength))
    first, others = counts[:minlength], counts[minlength:]
    if not others.shape[0]:
        return first
    rest = others[torch.arange(minlength, counts.shape[0], device=input.device) <= _largest(input, minlength - 1)]
    if not minlength:
        return rest
    return torch.cat([first[:, None], rest[:, None]])[:, 0]  # of vectors, PyTorch asks whether they are empty


def _counts(x: Any, weights: Any, size: int) -> Any:
    """How often each number below `size` is in x, or the sum of its weights."""
    if weights is not None and weights.dtype != torch.float32:
        weights = weights.double()
    ones = torch.ones_like(x, dtype=torch.int64) if weights is None else weights
    return ones.new_zeros(size).scatter_add(0, torch.where(x < 0, size, x.long()), ones)


def _largest(x: Any, least: int) -> Any:
    """The largest number of x, at least `least`."""
    return torch.cat([x.long(), x.new_full((1,), least, dtype=torch.int64)]).amax()


def repeat_interleave(repeats: Any, output_size: int | None = None) -> Any:
    """The index of each element as often as `repeats` says; without `output_size`, the run binds how many there are.

    Counts below 0, a sum that is not `output_size`, and one above `UNBOUNDED` without it, are an error of the run.
    """
    ends = repeats.long().cumsum(0)
    total, count = ends[-1], repeats.shape[0]
    if output_size is not None:
        places = torch.arange(output_size, device=repeats.device)
        fits = (total == output_size) & (repeats >= 0).all()
        found = torch.searchsorted(ends, places, right=True)
        return torch.where(fits, found, count).to(repeats.dtype)  # which is no index
    fits = (total <= UNBOUNDED) & (repeats >= 0).all()
    zero = ends.new_zeros(UNBOUNDED).scatter(0, torch.where(fits, 0, UNBOUNDED)[None], ends.new_zeros(1))
    places = zero + torch.arange(UNBOUNDED, device=repeats.device)
    found = torch.searchsorted(ends, places, right=True)
    return found[places < total].to(repeats.dtype)


def pdist(x: Any, p: float = 2.0) -> Any:
    """`torch.pdist`: the distances of all pairs of rows of x [n, m], [n * (n - 1) / 2]."""
    n = x.shape[0]
    # the number of pairs after each pair
    behind = n * (n - 1) // 2 - 1 - torch.arange(n * (n - 1) // 2, device=x.device)
    rows = ((8 * behind + 1).double().sqrt().sub(1) / 2).floor().long()  # solves rows * (rows + 1) / 2 <= behind
    rows = rows - (rows * (rows + 1) // 2 > behind).long() + ((rows + 1) * (rows + 2) // 2 <= behind).long()
    first, second = n - 2 - rows, n - 1 - (behind - rows * (rows + 1) // 2)
    apart = x[first] - x[second]
    if p != float("inf"):
        return torch.linalg.vector_norm(apart, p, dim=-1)
    return torch.nn.functional.pad(apart, (0, 0, 0, 1)).abs().amax(-1)[:-1]  # PyTorch refuses the maximum of zero rows


# ** segments **

_SEGMENTS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -torch.inf),
    "min": ("amin", torch.inf),
}
"""For each kind the reduction of a scatter, and the value of a segment without elements."""


def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """`torch.segment_reduce`; the run fails for segments that do not cover the data, unless `unsafe`."""
    if indices is not None or (lengths is None) == (offsets is None):
        raise NotImplementedError("segment_reduce needs either lengths or offsets")
    axis = axis % data.dim()
    if offsets is None:
        offsets = torch.nn.functional.pad(lengths.cumsum(-1), (1, 0))
    places = torch.arange(data.shape[axis], dtype=offsets.dtype, device=data.device).expand(data.shape[: axis + 1])
    segments = torch.searchsorted(offsets.contiguous(), places.contiguous(), right=True)
    count = offsets.shape[-1] - 1
    if unsafe:  # elements outside of all segments go to an extra last segment
        segments = torch.where(segments > 0, segments - 1, count)
        whole = _reduced(data, reduce, segments, count + 1, axis, initial)
        return whole.narrow(axis, 0, count)
    return _reduced(data, reduce, segments - 1, count, axis, initial)


def _reduced(data: Any, reduce: str, segments: Any, bins: Any, axis: int, initial: float | None) -> Any:
    """The data reduced along `axis` by segment; `segments` has the number of the segment of each position."""
    segments = segments[(..., *(None,) * (data.dim() - axis - 1))].expand(data.shape)
    kind, neutral = _SEGMENTS[reduce]
    shape = (*data.shape[:axis], bins, *data.shape[axis + 1 :])
    start = data.new_full(shape, neutral if initial is None else initial)
    result = start.scatter_reduce(axis, segments, data, kind)
    if reduce != "mean":
        return result
    count = torch.zeros(shape, dtype=torch.int64, device=data.device)
    count = count.scatter_add(axis, segments, torch.ones_like(segments))
    return torch.where(count > 0, result / count, torch.nan if initial is None else initial)


# ** windows and points of images **


def fractional_max_pool(rank: int) -> Any:
    """Fractional max pools over the last `rank` dims; each plane has a sample for each of these dims."""

    def pool(x: Any, kernel: Sequence[int], output: Sequence[int], samples: Any) -> tuple[Any, Any]:
        sizes, is_batched = x.shape[-rank:], x.dim() == rank + 2
        planes = x if is_batched else x[None]
        at = torch.zeros((1,) * (2 + 2 * rank), dtype=torch.int64, device=x.device)
        for axis in range(rank):
            sample = samples[..., rank - 1 - axis if rank == 2 else axis, None].to(x.dtype)
            starts = _starts(sample, sizes[axis], output[axis], kernel[axis])
            window = starts[..., None] + torch.arange(kernel[axis], device=x.device)  # [N, C, out, kernel]
            split = [1] * (2 * rank)
            split[axis], split[rank + axis] = output[axis], kernel[axis]
            at = at * sizes[axis] + window.reshape(*window.shape[:2], *split)
        at = at.flatten(2 + rank)
        flat = planes.flatten(2)
        at = at.expand(*flat.shape[:2], *at.shape[2:])
        values, best = flat.gather(2, at.flatten(2)).reshape(at.shape).max(-1)
        places = at.gather(-1, best[..., None])[..., 0]
        return (values, places) if is_batched else (values[0], places[0])

    return pool


def _starts(sample: Any, size: Any, count: int, kernel: int) -> Any:
    """The starts of the windows: at even steps, shifted by a random number; the last window ends at the end."""
    if count == 1:
        return torch.zeros_like(sample, dtype=torch.int64) + (size - kernel)
    step = (size - kernel) / (count - 1)
    number = torch.arange(count, device=sample.device)
    starts = ((number.to(sample.dtype) + sample) * step).long() - (sample * step).long()
    return torch.where(number == count - 1, size - kernel, starts)


def grid_sampler(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """`F.grid_sample`; over three dims as a sum of the eight neighbours of each point."""
    if x.dim() == 4:
        return torch.ops.aten.grid_sampler_2d(x, grid, mode, padding, align)
    if mode == 2:
        raise NotImplementedError("grid_sample over three dims is bilinear or nearest")
    sizes = x.shape[2:]
    at = [_coordinate(grid[..., 2 - axis], sizes[axis], padding, align) for axis in range(3)]
    flat = x.flatten(2)

    def values(corner: Sequence[Any]) -> tuple[Any, Any]:
        """The values [N, C, D, H, W] at whole coordinates, and whether these are in the image."""
        place: Any = 0
        inside: Any = True
        for axis in range(3):
            inside = (corner[axis] >= 0) & (corner[axis] < sizes[axis]) & inside
            place = place * sizes[axis] + corner[axis].clamp(0, sizes[axis] - 1).long()
        found = flat.gather(2, place.flatten(1)[:, None].expand(-1, x.shape[1], -1))
        return found.reshape(*x.shape[:2], *grid.shape[1:4]), inside

    if mode == 1:
        found, inside = values([c.round() for c in at])
        return torch.where(inside[:, None], found, 0)
    low = [c.floor() for c in at]
    result = torch.zeros((), dtype=x.dtype, device=x.device)
    for upper in itertools.product((0, 1), repeat=3):
        found, inside = values([a + b for a, b in zip(low, upper, strict=True)])
        weight: Any = 1
        for c, a, b in zip(at, low, upper, strict=True):
            weight = weight * (c - a if b else a + 1 - c)
        result = result + torch.where(inside[:, None], found * weight[:, None], 0)
    return result


def _coordinate(given: Any, size: Any, padding: int, align: bool) -> Any:
    """A coordinate from -1 to 1 in pixels. `padding`: 0 pads with zeros, 1 with the border, 2 by reflection."""
    at = (given + 1) / 2 * (size - 1) if align else ((given + 1) * size - 1) / 2
    if padding == 2:
        low, span = (0.0, size - 1) if align else (-0.5, size)
        if align and isinstance(size, int) and size == 1:
            return torch.zeros_like(at)
        apart = (at - low).abs()
        turns, rest = (apart / span).floor(), apart.fmod(span)
        at = torch.where(turns % 2 == 0, rest + low, span - rest + low)
    return at.clamp(0, size - 1) if padding else at


# ** cells of recurrent layers, as fused kernels of a GPU **


def lstm_cell(a: Any, b: Any, cell: Any, bias_a: Any = None, bias_b: Any = None) -> tuple[Any, Any, Any]:
    """A step of an LSTM whose products are done; the last result is for training."""
    gates = a + b if bias_a is None else a + b + bias_a + bias_b
    into, kept, value, out = gates.chunk(4, 1)
    cell = kept.sigmoid() * cell + into.sigmoid() * value.tanh()
    return out.sigmoid() * cell.tanh(), cell, gates


def gru_cell(a: Any, b: Any, hidden: Any, bias_a: Any = None, bias_b: Any = None) -> tuple[Any, Any]:
    """A step of a GRU whose products are done; the last result is for training."""
    a, b = (a, b) if bias_a is None else (a + bias_a, b + bias_b)
    (r, z, n), (s, y, m) = a.chunk(3, 1), b.chunk(3, 1)
    new, kept = (n + (r + s).sigmoid() * m).tanh(), (z + y).sigmoid()
    return new + kept * (hidden - new), torch.cat([a, b[:, : 2 * hidden.shape[1]]], 1)


def cartesian_product(tensors: Any) -> Any:
    """`torch.cartesian_prod`"""
    if len(tensors) == 1:
        return tensors[0]
    return torch.stack([t.flatten() for t in torch.meshgrid(*tensors, indexing="ij")], 1)


# ** products of 16-bit floats with results of 32 bits **


def wide_product(a: Any, b: Any, out_dtype: Any) -> Any:
    """`torch.mm` and `torch.bmm` with `out_dtype`: the result is not rounded to the type of the operands."""
    return a.to(out_dtype) @ b.to(out_dtype)


# ** quantized numbers **


def fake_quantize(x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> tuple[Any, Any]:
    """Numbers rounded to multiples of the scale within a range around a zero point, and which were in the range."""
    q = (x * (1 / scale)).round() + zero_point
    inside = (q >= quant_min) & (q <= quant_max)
    return ((q.clamp(quant_min, quant_max) - zero_point) * scale).to(x.dtype), inside


def fake_quantize_channels(
    x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> tuple[Any, Any]:
    """`fake_quantize` with a scale and a zero point for each index of an axis."""
    shape = [-1 if a == axis % x.dim() else 1 for a in range(x.dim())]
    return fake_quantize(x, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def fake_quantize_tensor(x: Any, scale: Any, zero: Any, enabled: Any, low: int, high: int) -> tuple[Any, Any]:
    """`fake_quantize` with a scale and a zero point in tensors, where it is enabled."""
    result, inside = fake_quantize(x, scale, zero, low, high)
    return torch.where(enabled != 0, result, x), inside | (enabled == 0)


# ** losses **


def wide_loss(operation: Any) -> Callable[..., tuple[Any, Any]]:
    """PyTorch's decomposition of a negative log likelihood, in f32 for 16-bit floats: their sum over a batch may be
    beyond f16, though the mean is not.
    """
    decomposition: Any = torch._decomp.decomposition_table[operation]

    def loss(x: Any, target: Any, weight: Any, *rest: Any) -> tuple[Any, Any]:
        weight = None if weight is None else _wide(weight)
        found, total = decomposition(_wide(x), target, weight, *rest)
        return found.to(x.dtype), total.to(x.dtype)

    return loss


def _vector(numbers: Any, device: Any) -> Any:
    """Whole numbers, some of them dims, or a tensor of them as a vector of int64."""
    if not isinstance(numbers, torch.Tensor):
        numbers = torch.stack([torch.full((), n, dtype=torch.int64, device=device) for n in numbers])
    return numbers.reshape(-1).to(device, torch.int64)


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> Any:
    """`torch.nn.functional.ctc_loss` of log probabilities [T, N, C] or [T, C]; targets are [N, S], or all in a row."""
    x = log_probs if log_probs.dim() == 3 else log_probs[:, None]
    steps, batch, _ = x.shape
    inputs, lengths = (_vector(n, x.device) for n in (input_lengths, target_lengths))
    # between the labels, before and behind them stand blanks
    padded = torch.nn.functional.pad(targets.to(torch.int64), (0, 1))
    places = torch.arange(2 * padded.shape[-1] - 1, device=x.device)
    at = (places // 2).expand(batch, -1)
    is_label = (places % 2 == 1) & (at < lengths[:, None])
    if targets.dim() == 2:
        labels = padded.gather(1, at)
    else:
        first = (lengths.cumsum(0) - lengths)[:, None]
        labels = padded[(first + at).clamp(max=padded.shape[0] - 1)]
    labels = torch.where(is_label, labels, blank)
    before = torch.nn.functional.pad(labels, (2, 0), value=blank)[:, :-2]
    may_skip = is_label & (places >= 2) & (labels != before)
    logs = x.gather(2, labels.expand(steps, -1, -1))

    def step(paths: Any, slices: Sequence[Any]) -> tuple[Any, list[Any]]:
        log, number = slices
        near = torch.nn.functional.pad(paths, (2, 0), value=-torch.inf)
        ways = torch.stack([paths, near[:, 1:-1], torch.where(may_skip, near[:, :-2], -torch.inf)])
        best = ways.amax(0)
        best = torch.where(best == -torch.inf, 0, best)
        after = (ways - best).exp().sum(0).log() + best + log
        return torch.where((number < inputs)[:, None], after, paths), []

    start = torch.where(places == 0, 0.0, -torch.inf).to(x.dtype).expand(batch, -1)
    paths, _ = run(step, Range.of(steps), start, [(logs, 0, 0, None)], counts=True, names=[])
    last = 2 * lengths[:, None]
    ends = paths.gather(1, torch.cat([last, (last - 1).clamp(min=0)], 1))
    ends = torch.where(torch.stack([lengths >= 0, lengths > 0], 1), ends, -torch.inf)
    loss = -torch.logsumexp(ends, 1)
    if zero_infinity:
        loss = torch.where(loss == torch.inf, 0, loss)
    if reduction in ("mean", 1):
        return (loss / lengths.clamp(min=1)).mean()
    return loss.sum() if reduction in ("sum", 2) else loss.reshape(log_probs.shape[1:-1])


def table() -> dict[Any, Callable[..., Any]]:
    """The function for each operation."""
    aten = torch.ops.aten
    return {
        **{op: wide_loss(op) for op in (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)},
        aten.frexp.Tensor: frexp,
        aten.nextafter.default: nextafter,
        aten.bincount.default: bincount,
        **{op.dtype: wide_product for op in (aten.mm, aten.bmm)},
        aten.cartesian_prod.default: cartesian_product,
        aten.repeat_interleave.Tensor: repeat_interleave,
        aten._thnn_fused_lstm_cell.default: lstm_cell,
        aten._thnn_fused_gru_cell.default: gru_cell,
        aten.fake_quantize_per_tensor_affine_cachemask.default: fake_quantize,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: fake_quantize_tensor,
        aten.fake_quantize_per_channel_affine_cachemask.default: fake_quantize_channels,
        aten._pdist_forward.default: pdist,
        aten.segment_reduce.default: segment_reduce,
        aten.fractional_max_pool2d.default: fractional_max_pool(2),
        aten.fractional_max_pool3d.default: fractional_max_pool(3),
        aten.grid_sampler.default: grid_sampler,
        aten.grid_sampler_3d.default: grid_sampler,
        **linear_algebra.table(),
    }
