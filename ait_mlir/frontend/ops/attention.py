"""Scaled dot-product attention."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import DenseArrayBase, i32

from ait_mlir.compositions.index import scattered
from ait_mlir.dialects.ait.attention import AttentionOp, RaggedAttentionOp
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import ge, lt, where
from ait_mlir.frontend.ops.index import update_slice
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.view import permute, reshape, split, squeeze, unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = ["attention", "flash_attention", "mem_eff_attention", "ragged_attention", "update_cache"]


class _Attention(Operator):
    def __init__(self, causal: bool = False, scale: float | None = None, window: int | None = None):
        self.causal, self.scale, self.window = causal, scale, window

    def _scale_for(self, q: Tensor) -> float:
        """The factor of the scores."""
        head_size = q.type.dims[-1].as_int() if q.rank else None
        if self.scale is None and head_size is None:
            raise self.fail("the head size is dynamic; give the scale")
        return self.scale if self.scale is not None else float(head_size or 1) ** -0.5


class attention(_Attention):
    """softmax(scale * q @ k^T + mask) @ v (arXiv:1706.03762).

    q is [batch, heads, S, D], k [batch, groups, L, D], v [batch, groups, L, E]; the result is [batch, heads, S, E].
    `groups` divides `heads`: each head of k and v serves heads / groups heads of q. `mask` is added and broadcasts to
    [batch, heads, S, L]. `scale` is 1 / sqrt(D) if None. With `causal`, the last row sees all columns and each row
    above it one less. With `window`, a row sees only columns at a distance below `window` from its own column.

    If S is at most 64, k and v may be concatenations of a cache and new rows: the kernel reads both parts without a
    copy.
    """

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        operands = [t for t in (q, k, v, mask) if t is not None]
        self.begin(*operands)
        properties = {"scale": self._scale_for(q), "causal": self.causal, "window": self.window}
        return self.finish(self.emit_one(AttentionOp, operands, properties))


class ragged_attention(_Attention):
    """Attention of sequences of different lengths, each as by `attention`; see `ait.ragged_attention`.

    - Padded: q [batch, heads, S, D], k [batch, groups, L, D], v [batch, groups, L, E]; `lengths_kv` [batch] says how
      many rows of k and v each sequence has, `lengths_q` [batch] how many of q. The other rows of the result are 0.
    - Paged: k is [pages, groups, page, D] and v [pages, groups, page, E], a pool that all sequences share. `pages`
      [batch, N] lists the pages of each sequence in order, `lengths_kv` [batch] how many of their rows it has.
    - Packed: q, k and v are [1, heads, total, D]; `offsets` [batch + 1] says where the rows of each sequence start.

    The integer tensors are all int32 or all int64. The last row of q of a sequence stands at its last column. With
    `causal` it sees all columns, and each row above it one less. With `window` a row sees only columns at a distance
    below `window`. A row that sees no column is 0.
    """

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        lengths_kv: Tensor | None = None,
        lengths_q: Tensor | None = None,
        pages: Tensor | None = None,
        offsets: Tensor | None = None,
    ) -> Tensor:
        integers = (lengths_kv, lengths_q, pages, offsets)
        operands = [q, k, v, *(t for t in integers if t is not None)]
        self.begin(*operands)
        sizes = DenseArrayBase.from_list(i32, [3, *(int(t is not None) for t in integers)])
        options = {"scale": self._scale_for(q), "causal": self.causal, "window": self.window}
        properties = {**options, "operandSegmentSizes": sizes}
        return self.finish(self.emit_one(RaggedAttentionOp, operands, properties))


class update_cache(Operator):
    """A cache of keys or values with new rows written to it; returns the cache.

    - Contiguous: the cache is [batch, groups, L, D], `rows` [batch, groups, S, D], and `places` [batch, S] says where
      in L each row goes, for each batch.
    - Paged: the cache is a pool [pages, page, groups, D], `rows` [batch, S, groups, D], and `places` [batch, S] has
      for each row its page times the rows of a page, plus its row in the page.

    `places` is int32 or int64. If the result replaces the input `cache` (`mark_as_output`), only the rows are written.
    A place outside of the cache, for example because it is full, is invalid: on a CPU the run fails before it writes,
    on a GPU the row is skipped.
    """

    def __init__(self, paged: bool = False):
        self.paged = paged

    def __call__(self, cache: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        if cache.rank != 4 or rows.rank != 4 or places.rank != 2:
            raise self.fail("expected a cache and rows of rank 4 and places of rank 2")
        if not self.paged:
            batch, count = places.shape()
            index = reshape()(places, [batch, 1, count, 1])
            return self.write(scattered, "set", cache, rows, [index], [2], [0, 1, 3])
        pages, page, groups, size = cache.shape()
        batch, count = places.shape()
        flat = reshape()(cache, [pages * page, groups, size])
        new = reshape()(rows, [batch * count, groups, size])
        written = update_slice(dim=0)(flat, new, reshape()(places, [batch * count]))
        return self.finish(reshape()(written, [pages, page, groups, size]))


class mem_eff_attention(Operator):
    """Attention under its documented name: inputs as for `attention`, result [batch, S, heads, E].

    With `causal`, row i of q sees the columns up to i, also where S and L differ. With `variable_seq_length_kv` the
    call needs `lengths_kv`, an int tensor [batch] or [batch, 1] with the number of rows of k and v of each sequence:
    later columns are not seen. With `variable_seq_length_q` it needs `lengths_q`: later rows of the result are 0. A row
    that sees no column is 0. `use_grouped_fmha` is not needed for grouped heads. Dropout is for training and must be 0.
    """

    def __init__(
        self,
        causal: bool,
        dropout: float = 0,
        variable_seq_length_kv: bool = False,
        variable_seq_length_q: bool = False,
        use_grouped_fmha: bool = False,
        scale: float | None = None,
    ):
        if dropout != 0:
            raise BuildError(f"mem_eff_attention: dropout is {dropout}, but this is inference; leave it 0")
        self.causal, self.scale, self.grouped = causal, scale, use_grouped_fmha
        self.variable_kv, self.variable_q = variable_seq_length_kv, variable_seq_length_q

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        lengths_kv: Tensor | None = None,
        lengths_q: Tensor | None = None,
    ) -> Tensor:
        for name, flag, given in (("kv", self.variable_kv, lengths_kv), ("q", self.variable_q, lengths_q)):
            if flag != (given is not None):
                wanted = f"lengths_{name}" if flag else f"no lengths_{name}"
                raise self.fail(f"variable_seq_length_{name} is {flag}, so it takes {wanted}")
        if q.rank != 4 or k.rank != 4:
            raise self.fail("q and k must be [batch, heads, rows, size]")
        is_self = lengths_q is lengths_kv
        lengths_kv, lengths_q = (None if t is None else self._flat(t) for t in (lengths_kv, lengths_q))
        if lengths_kv is not None and (not self.causal or is_self):
            y = ragged_attention(self.causal, self.scale)(q, k, v, lengths_kv, lengths_q)
            return self.finish(permute()(y, [0, 2, 1, 3]))
        is_square = q.type.dims[2] == k.type.dims[2]
        mask = self._mask(q, k, lengths_kv, is_square)
        y = attention(self.causal and is_square, self.scale)(q, k, v, mask)
        if lengths_q is not None:
            y = where()(self._within(lengths_q, q.shape()[2], [1, -1, 1]), y, 0.0)
        return self.finish(permute()(y, [0, 2, 1, 3]))

    def _flat(self, lengths: Tensor) -> Tensor:
        """Lengths of [batch, 1] as [batch]."""
        if lengths.rank == 1:
            return lengths
        if lengths.rank != 2 or lengths.type.dims[1].as_int() != 1:
            raise self.fail(f"lengths must be [batch] or [batch, 1], found {lengths.describe()}")
        return squeeze(1)(lengths)

    def _within(self, lengths: Tensor, count: IntVar, shape: list[int]) -> Tensor:
        """Whether a place, of `count`, is within the length of its sequence: [batch, *shape]."""
        places = reshape()(arange(lengths.dtype())(count), [1, *shape])
        return lt()(places, reshape()(lengths, [lengths.shape()[0], 1, 1, 1]))

    def _mask(self, q: Tensor, k: Tensor, lengths: Tensor | None, is_square: bool) -> Tensor | None:
        """What is added to the scores: -inf behind the lengths, and above the diagonal where there are not as many rows
        as columns. None if nothing is hidden.
        """
        rows, columns = q.shape()[2], k.shape()[2]
        seen = None if lengths is None else self._within(lengths, columns, [1, 1, -1])
        if self.causal and not is_square:
            row, column = unsqueeze(1)(arange("int32")(rows)), unsqueeze(0)(arange("int32")(columns))
            below = ge()(row, column)
            seen = below if seen is None else where()(below, seen, False)
        return None if seen is None else where()(seen, 0.0, -math.inf, q.dtype())


class flash_attention(Operator):
    """Self attention of packed sequences.

    x [total, 3, heads, size] holds q, k and v; the result is [total, heads, size]. `cu_seqlens`, an int tensor of
    `batch_size` + 1, says where each sequence starts and ends; `max_seq_len` is the most rows of a sequence. Dropout is
    for training and must be 0.
    """

    def __init__(self, batch_size: int, dropout: float, max_seq_len: int, causal: bool):
        if dropout != 0:
            raise BuildError(f"flash_attention: dropout is {dropout}, but this is inference; leave it 0")
        self.batch_size, self.max_seq_len, self.causal = batch_size, max_seq_len, causal

    def __call__(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        if x.rank != 4 or x.type.dims[1].as_int() != 3:
            raise self.fail("x must be [total, 3, heads, size]")
        if cu_seqlens.rank != 1 or cu_seqlens.type.dims[0].as_int() != self.batch_size + 1:
            raise self.fail(f"cu_seqlens must have {self.batch_size + 1} offsets, one more than sequences")
        parts = (squeeze(1)(part) for part in split()(x, 1, dim=1))
        q, k, v = (unsqueeze(0)(permute()(part, [1, 0, 2])) for part in parts)
        y = ragged_attention(self.causal)(q, k, v, offsets=cu_seqlens)
        return self.finish(permute()(squeeze(0)(y), [1, 0, 2]))
