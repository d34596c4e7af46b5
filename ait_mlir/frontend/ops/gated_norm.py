"""Layer norms of several inputs, and x * sigmoid(layernorm(x)): a norm and an elementwise op for each."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.ops.norm import layernorm
from ait_mlir.frontend.ops.view import unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "batch_layernorm_sigmoid_mul", "group_layernorm", "group_layernorm_sigmoid_mul", "layernorm_sigmoid_mul",
]  # fmt: skip


def gate(x: Tensor, y: Tensor) -> Tensor:
    """x * sigmoid(y)"""
    return x * elementwise(FuncEnum.SIGMOID)(y)


class layernorm_sigmoid_mul(Operator):
    """One operator in place of the three that were called for x * sigmoid(layernorm(x)); returns their result."""

    def __init__(self, layer_norm: Operator, sigmoid: Operator, mul: Operator):
        if not (layer_norm.outputs and sigmoid.outputs and mul.outputs):
            raise BuildError("layernorm_sigmoid_mul: layer_norm, sigmoid and mul must have been called before")
        product = [sigmoid.outputs[0], layer_norm.inputs[0]]
        if sigmoid.inputs != layer_norm.outputs or mul.inputs not in (product, product[::-1]):
            raise BuildError("layernorm_sigmoid_mul: the operators do not compute x * sigmoid(layer_norm(x))")
        self.inputs, self.outputs = layer_norm.inputs, mul.outputs

    def __call__(self) -> Tensor:
        return self.outputs[0]


class batch_layernorm_sigmoid_mul(Operator):
    """x * sigmoid(layernorm(x)) with factors for each batch: x is [B, M, N], `gamma` and `beta` are [B, N]."""

    def __init__(self, normalized_shape: Sequence[DimLike] | None = None):
        self.shape = normalized_shape

    def __call__(
        self,
        x: Tensor,
        gamma: Tensor | None = None,
        beta: Tensor | None = None,
        normalized_shape: Sequence[DimLike] | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if x.rank != 3:
            raise self.fail(f"x must have 3 dims, [B, M, N], found {x.describe()}")
        for what, given in (("gamma", gamma), ("beta", beta)):
            if given is not None and list(given.type.dims) != [x.type.dims[0], x.type.dims[2]]:
                raise self.fail(
                    f"{what} must have shape [{x.type.dims[0]}, {x.type.dims[2]}], found {given.describe()}"
                )
        shape = normalized_shape or self.shape or x.shape()[2:]
        if len(shape) != 1:
            raise self.fail(f"normalized_shape must have 1 dim, found {len(shape)}")
        y = layernorm()(x, normalized_shape=shape, eps=eps)
        y = y if gamma is None else y * unsqueeze(1)(gamma)
        return self.finish(gate(x, y if beta is None else y + unsqueeze(1)(beta)))


class group_layernorm(Operator):
    """`layernorm` of each input with its own gamma, beta and normalized_shape; inputs may differ in size."""

    def __init__(self, normalized_shape: Sequence[Sequence[DimLike]] | None = None):
        self.shapes = normalized_shape

    def __call__(
        self,
        inputs: Sequence[Tensor],
        gammas: Sequence[Tensor | None],
        betas: Sequence[Tensor | None],
        normalized_shapes: Sequence[Sequence[DimLike]] | None = None,
        eps: float = 1e-5,
    ) -> list[Tensor]:
        self.begin(*inputs, *(t for t in (*gammas, *betas) if t is not None))
        shapes = normalized_shapes or self.shapes or [None] * len(inputs)
        if not len(inputs) == len(gammas) == len(betas) == len(shapes):
            counts = f"{len(gammas)} gammas, {len(betas)} betas and {len(shapes)} normalized_shapes"
            raise self.fail(f"needs one of each for {len(inputs)} inputs, found {counts}")
        groups = zip(inputs, gammas, betas, shapes, strict=True)
        self.outputs = [self.finished(x, layernorm()(x, gamma, beta, shape, eps)) for x, gamma, beta, shape in groups]
        return self.outputs

    def finished(self, x: Tensor, y: Tensor) -> Tensor:
        """The result, given the norm `y` of `x`."""
        return y


class group_layernorm_sigmoid_mul(group_layernorm):
    """x * sigmoid(layernorm(x)) of each input; arguments as in `group_layernorm`."""

    def finished(self, x: Tensor, y: Tensor) -> Tensor:
        return gate(x, y)
