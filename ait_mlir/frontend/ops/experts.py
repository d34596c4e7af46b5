"""Mixtures of experts: several feed-forward layers; each token uses a few of them."""

from __future__ import annotations

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.ops.gemm import gemm_rcr
from ait_mlir.frontend.ops.grouped import ragged_gemm
from ait_mlir.frontend.ops.index import index_select
from ait_mlir.frontend.ops.norm import softmax
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.reduce import reduce_sum, topk
from ait_mlir.frontend.ops.sorting import argsort, search_sorted, sort
from ait_mlir.frontend.ops.view import chunk, permute021, reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = ["mixture_of_experts"]


class mixture_of_experts(Operator):
    """For each token, the weighted sum of the results of the `top_k` experts with the largest router weights.

    x and the result are [..., hidden], `router` is [experts, hidden], `gate_up` [experts, 2 * inner, hidden] and `down`
    [experts, hidden, inner]. An expert computes `(activation(x @ gate^T) * (x @ up^T)) @ down^T`. The weights are a
    softmax over all experts; the weights of the chosen experts are divided by their sum, unless `normalize` is false
    (arXiv:2401.04088). Tokens are sorted by expert, so that two grouped products replace a loop over the experts.
    """

    def __init__(self, top_k: int, activation: FuncEnum = FuncEnum.SILU, normalize: bool = True):
        self.top_k, self.activation, self.normalize = top_k, activation, normalize

    def __call__(self, x: Tensor, router: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
        experts = router.type.dims[0].as_int()
        if experts is None or not 1 <= self.top_k <= experts:
            raise self.fail(f"chooses {self.top_k} of {router.type.dims[0]} experts, expected 1 to their number")
        if gate_up.rank != 3 or down.rank != 3:
            raise self.fail("gate_up must be [experts, 2 * inner, hidden] and down [experts, hidden, inner]")
        tokens = reshape()(x, [-1, x.shape()[-1]])
        weights, chosen = topk(self.top_k)(softmax()(gemm_rcr()(tokens, router), -1))
        if self.normalize:
            weights = weights / reduce_sum(-1, keepdim=True)(weights)
        expert, order = sort()(reshape()(chosen, [-1]))
        ends = search_sorted(right=True)(expert, arange()(experts))
        rows = index_select(0)(tokens, elementwise(FuncEnum.DIV)(order, self.top_k))
        gate, up = chunk()(ragged_gemm()(rows, permute021()(gate_up), ends), 2, -1)
        made = ragged_gemm()(elementwise(self.activation)(gate) * up, permute021()(down), ends)
        back = index_select(0)(made, argsort()(order))
        count = tokens.shape()[0]
        weighted = reshape()(back, [count, self.top_k, x.shape()[-1]]) * reshape()(weights, [count, self.top_k, 1])
        return self.finish(reshape()(reduce_sum(1)(weighted), x.shape()))
