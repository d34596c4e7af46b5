"""Replaces compositions that PyTorch does in C++ with the example's sizes by compositions that keep dims dynamic."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any

from ait_mlir.importers.torch import composed
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.tracing import example_size

MANY_POINTS = 25
"""The most points for which PyTorch computes distances from differences."""


def _covariance(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """`torch.cov` of rows [n, observations] without its warning that there are too few observations."""
    if x.is_complex():
        raise NotImplementedError("covariances of complex numbers are not supported")
    x = x.reshape(1, -1) if x.dim() < 2 else x
    given = [w for w in (fweights, aweights) if w is not None]
    weights = given[0] if len(given) == 1 else given[0] * given[1] if given else None
    count = torch.ones(x.shape[1], dtype=torch.int64, device=x.device).sum() if weights is None else weights.sum()
    centred = x - ((x if weights is None else x * weights).sum(1) / count)[:, None]
    if aweights is None or correction == 0:
        freedom = count - correction
    else:
        freedom = count - correction * (weights * aweights).sum() / count
    weighted = centred if weights is None else centred * weights
    return ((centred @ weighted.mT) / freedom.clamp(min=0)).squeeze()


def _correlation(x: Any) -> Any:
    """`torch.corrcoef` of rows [n, observations]."""
    c = _covariance(x)
    if c.dim() == 0:
        return c / c
    deviations = c.diagonal().sqrt()
    return (c / deviations[:, None] / deviations[None, :]).clamp(-1, 1)


def _kronecker(a: Any, b: Any) -> Any:
    """`torch.kron`: each element of `a` by all of `b`."""
    rank = max(a.dim(), b.dim())
    a = a.reshape(*(1,) * (rank - a.dim()), *a.shape)
    b = b.reshape(*(1,) * (rank - b.dim()), *b.shape)
    products = a[(..., *(slice(None), None) * rank)] * b[(..., *(None, slice(None)) * rank)]
    return products.reshape([m * n for m, n in zip(a.shape, b.shape, strict=True)])


def _powers(x: Any, N: Any = None) -> Any:
    """`torch.linalg.vander` of x [..., n]: powers [..., n, N] from 0. Raises `ValueError`."""
    if isinstance(N, int) and N < 2:
        raise ValueError(f"linalg.vander of {N} columns, expected at least 2")
    return _columns(x.reshape(1) if x.dim() == 0 else x, N)


def _columns(x: Any, N: Any) -> Any:
    columns = torch.arange(x.shape[-1] if N is None else N, device=x.device)
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.int64)
    return torch.where(columns == 0, 1, x[..., None]).cumprod(-1)


def _vandermonde(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """`torch.vander` of x [n]: powers [n, N], the largest first unless `increasing`."""
    powers = _columns(x, N)
    return powers if increasing else powers.flip(1)


def _depends_on_values(size: Any) -> bool:
    """Whether a size is known only in a run."""
    return isinstance(size, torch.SymInt) and not size.node.has_hint()


def _is_static(condition: Any) -> bool:
    """Whether a condition on dims is known to hold, without adding a guard."""
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(condition))


def _chunks(x: Any, chunks: int, dim: int = 0) -> Any:
    """`torch.chunk` with the number of pieces that the example has."""
    n = x.shape[dim]
    return _split(x, 0 if isinstance(n, int) and n == 0 else (n + chunks - 1) // chunks, dim, chunks)


def _split(x: Any, size: Any, dim: int = 0, most: int = 1) -> Any:
    """x split along a dim into pieces of `size`: as many as in the example, for which conditions on the dims are added.
    PyTorch would compute the number as a rounded quotient of dims, which fixes the dims to the example's sizes.
    """
    n = x.shape[dim]
    if _depends_on_values(n) or _depends_on_values(size):
        count = int((n + size - 1) // size)  # PyTorch refuses this conversion with a clear error
    else:
        count = -(-example_size(n) // max(example_size(size), 1)) if example_size(n) else most
    if not _is_static(count * size == n):
        torch._check((count - 1) * size < n)
        torch._check(n <= count * size)
    return x.split_with_sizes([*[size] * (count - 1), n - (count - 1) * size], dim)


def _sections(x: Any, sections: int, dim: int = 0) -> Any:
    """`torch.tensor_split` into a number of pieces: the first ones are longer by one element if the rest demands it."""
    n = x.shape[dim]
    if isinstance(n, int) and n == 0:
        sizes = [0] * (sections - 1)
    else:
        sizes = [(n + sections - 1 - i) // sections for i in range(sections - 1)]
    return x.split_with_sizes([*sizes, n - sum(sizes)], dim)


def _take_along(x: Any, indices: Any, dim: int | None = None) -> Any:
    """`torch.take_along_dim`: a gather after the other dims are broadcast."""
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % x.dim()
    pairs = list(zip(x.shape, indices.shape, strict=True))
    shape = [b if isinstance(a, int) and a == 1 else a for a, b in pairs]

    def wide(t: Any) -> Any:
        return t.expand([t.shape[d] if d == axis else n for d, n in enumerate(shape)])

    return wide(x).gather(axis, wide(indices))


def _max_pool(
    x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """`torch.max_pool1d` as a pool over two dims with a first dim of 1, because PyTorch's check
    would fix the length.
    """
    return _max_pool_and_places(x, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _max_pool_and_places(
    x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """`torch.nn.functional.max_pool1d_with_indices`, likewise."""
    kernel, step, pad, spread = (
        v if isinstance(v, int) else next(iter(v), None) for v in (kernel_size, stride, padding, dilation)
    )
    step = kernel if step is None else step
    pooled = torch.ops.aten.max_pool2d_with_indices(
        x.unsqueeze(-2), [1, kernel], [1, step], [0, pad], [1, spread], ceil_mode
    )
    return tuple(y.squeeze(-2) for y in pooled)


def _runs(x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """`torch.unique_consecutive`: PyTorch's trace has the wrong shape for a dim that is counted from the end."""
    axis = dim if dim is None else dim % max(x.dim(), 1)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.aten.unique_consecutive(x, return_inverse, return_counts, axis)


def _distances(a: Any, b: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    """`torch.cdist`: a product of matrices if the example has many points; PyTorch decides it for each call."""
    many = max(example_size(a.shape[-2]), example_size(b.shape[-2])) > MANY_POINTS
    if p != 2 or compute_mode == 2 or (compute_mode != 1 and not many):
        return torch.ops.aten._cdist_forward(a, b, p, 2)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (x.expand(*batch, *x.shape[-2:]) for x in (a, b))
    lengths, widths = (x.square().sum(-1, keepdim=True) for x in (a, b))
    # in this order, each step reads the product, a row and a column: all of them fit its epilogue
    return (widths.mT - 2 * (a @ b.mT) + lengths).clamp(min=0).sqrt()


def _gru_cell(x: Any, hidden: Any, of_x: Any, of_hidden: Any, bias_x: Any = None, bias_hidden: Any = None) -> Any:
    """`torch.gru_cell`: on a CUDA card PyTorch calls a kernel of which its trace does not know the shapes."""
    linear = torch.nn.functional.linear
    return composed.gru_cell(linear(x, of_x, bias_x), linear(hidden, of_hidden, bias_hidden), hidden)[0]


def _first_of(function: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """`function` with only its first result."""
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def _fill_diagonal(x: Any, fill_value: Any, wrap: bool = False) -> Any:
    """`fill_diagonal_`; `wrap` begins a new diagonal in the rows after a square."""
    places = [
        torch.arange(n, device=x.device).reshape([-1 if b == a else 1 for b in range(x.dim())])
        for a, n in enumerate(x.shape)
    ]
    if wrap and x.dim() == 2:
        chosen = (places[0] - places[1]) % (x.shape[1] + 1) == 0
    else:
        chosen = functools.reduce(lambda a, b: a & b, (place == places[0] for place in places[1:]))
    return x.copy_(torch.where(chosen, fill_value, x))


@contextlib.contextmanager
def compositions() -> Generator[None]:
    """A context for a trace in which the operations of this file are composed by its functions."""
    aten = torch.ops.aten
    table: dict[Any, Callable[..., Any]] = {
        aten.cdist.default: _distances,
        aten.chunk.default: _chunks,
        aten.cov.default: _covariance,
        aten.corrcoef.default: _correlation,
        aten.fill_diagonal_.default: _fill_diagonal,
        aten.fake_quantize_per_tensor_affine.default: _first_of(composed.fake_quantize),
        aten.fake_quantize_per_tensor_affine.tensor_qparams: _first_of(composed.fake_quantize),
        aten.fake_quantize_per_channel_affine.default: _first_of(composed.fake_quantize_channels),
        aten.gru_cell.default: _gru_cell,
        aten.kron.default: _kronecker,
        aten.vander.default: _vandermonde,
        aten.linalg_vander.default: _powers,
        aten.max_pool1d.default: _max_pool,
        aten.max_pool1d_with_indices.default: _max_pool_and_places,
        aten.split.Tensor: _split,
        aten.take_along_dim.default: _take_along,
        aten.tensor_split.sections: _sections,
    }
    autograd = torch._C.DispatchKey.Autograd
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, autograd)
    kernels = {op: dict.fromkeys(keys, function) for op, function in table.items()}
    kernels[aten.unique_consecutive.default] = {autograd: _runs}  # the function itself calls the operation
    with contextlib.ExitStack() as stack:
        for op, own in kernels.items():
            kept = dict(op.py_kernels)
            stack.callback(op._dispatch_cache.clear)
            stack.callback(op.py_kernels.update, kept)
            stack.callback(op.py_kernels.clear)
            op.py_kernels.update(own)
            op._dispatch_cache.clear()
        yield
