"""Operators that normalise and keep the shape: softmax, layernorm, rms_norm, group_norm, instance_norm, batch_norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, i32

from ait_mlir.compositions import norm
from ait_mlir.dialects.ait import norm as ait
from ait_mlir.dims import const
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "batch_norm", "group_norm", "group_norm_swish", "instance_norm", "layernorm", "rms_norm", "softmax",
]  # fmt: skip


class softmax(Operator):
    """exp(x) divided by its sum along `dim`, by default the last dim."""

    def __call__(self, x: Tensor, dim: int | None = None) -> Tensor:
        axis = self.axis(x, -1 if dim is None else dim)
        return self.finish(self.emit_one(ait.SoftmaxOp, [x], {"dim": axis}))


class _Norm(Operator):
    op_class: ClassVar[type[ait.NormOp]]

    def __init__(self, normalized_shape: Sequence[DimLike] | Tensor | None = None):
        self.shape = normalized_shape.shape() if isinstance(normalized_shape, Tensor) else normalized_shape

    def __call__(
        self,
        x: Tensor,
        gamma: Tensor | None = None,
        beta: Tensor | None = None,
        normalized_shape: Sequence[DimLike] | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        operands = [t for t in (x, gamma, beta) if t is not None]
        self.begin(*operands)
        shape = normalized_shape if normalized_shape is not None else self.shape
        if shape is None:
            given = gamma or beta
            if given is None:
                raise self.fail("needs normalized_shape, gamma or beta to know which dims to normalise over")
            shape = given.shape()
        self._attrs |= {"normalized_shape": [as_dim(dim) for dim in shape], "eps": eps}
        found = [dim.expr for dim in self._attrs["normalized_shape"]]
        if not 1 <= len(found) <= x.rank or list(x.type.dims[x.rank - len(found) :]) != found:
            raise self.fail(f"normalized_shape [{', '.join(map(str, found))}] is not the end of the input's shape")
        sizes = [1, int(gamma is not None), int(beta is not None), 0, 0]
        properties = {
            "axes": len(found),
            "eps": eps,
            "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes),
        }
        return self.finish(self.emit_one(self.op_class, operands, properties, regions=2))


class layernorm(_Norm):
    """Normalise over the trailing dims to mean 0 and variance 1, then scale by `gamma`, shift by `beta`.

    The method is that of arXiv:1607.06450. `normalized_shape`, an argument of the constructor or of the call, gives the
    dims; by default they are the dims of `gamma` or `beta`. The constructor also takes a tensor of that shape.
    """

    op_class = ait.LayerNormOp


class rms_norm(_Norm):
    """Divide by the root of the mean square over the trailing dims, then scale by `gamma`, shift by `beta`.

    The method is that of arXiv:1910.07467; arguments as in `layernorm`.
    """

    op_class = ait.RmsNormOp


class group_norm(Operator):
    """Normalise each of `num_groups` groups of neighbouring channels over all places, then scale and shift.

    The method is that of arXiv:1803.08494. x is [batch, ..., channels], `gamma` and `beta` are [channels]. A number
    after them is `eps`.
    """

    def __init__(self, num_groups: int, num_channels: int):
        if num_groups < 1 or num_channels % num_groups:
            raise BuildError(f"group_norm: {num_groups} groups do not divide {num_channels} channels")
        self.groups, self.channels = num_groups, num_channels

    @staticmethod
    def get_input_shapes(x: Tensor, gamma: Tensor | None, beta: Tensor | None) -> list[list[IntVar] | None]:
        """The shapes of the input, the scale and the shift; None for a missing scale or shift."""
        return [None if tensor is None else tensor.shape() for tensor in (x, gamma, beta)]

    def __call__(
        self,
        x: Tensor,
        gamma: Tensor | None = None,
        beta: Tensor | None = None,
        normalized_shape: Sequence[DimLike] | float | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if isinstance(normalized_shape, int | float):
            normalized_shape, eps = None, float(normalized_shape)
        shape = [as_dim(dim).expr for dim in normalized_shape or ()]
        if shape not in ([], [const(self.channels)]):
            raise self.fail(f"normalized_shape must be [{self.channels}], found [{', '.join(map(str, shape))}]")
        if x.rank < 2 or x.type.dims[-1].as_int() != self.channels:
            raise self.fail(f"needs [batch, ..., {self.channels}]")
        for what, given in (("gamma", gamma), ("beta", beta)):
            if given is not None and [dim.as_int() for dim in given.type.dims] != [self.channels]:
                raise self.fail(f"{what} must have shape [{self.channels}], found {given.describe()}")
        sizes = [1, int(gamma is not None), int(beta is not None), 0]
        properties = {
            "dim": x.rank - 1,
            "groups": self.groups,
            "eps": eps,
            "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes),
        }
        operands = [t for t in (x, gamma, beta) if t is not None]
        return self.finish(self.emit_one(ait.GroupNormOp, operands, properties, [x.type], regions=1))


class group_norm_swish(group_norm):
    """silu(group_norm(x)); arguments as in `group_norm`."""

    def __call__(
        self,
        x: Tensor,
        gamma: Tensor | None = None,
        beta: Tensor | None = None,
        normalized_shape: Sequence[DimLike] | float | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        return self.finish(elementwise(FuncEnum.SILU)(super().__call__(x, gamma, beta, normalized_shape, eps)))


class instance_norm(Operator):
    """Normalise each channel of each batch over all places, then scale and shift (arXiv:1607.08022).

    x is [batch, ..., channels], `gamma` and `beta` are [channels].
    """

    def __init__(self, eps: float = 1e-5):
        self.eps = eps

    def __call__(self, x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None) -> Tensor:
        channels = x.type.dims[-1].as_int() if x.rank >= 2 else None
        if channels is None:
            raise self.fail("needs [batch, ..., a fixed number of channels]")
        return self.finish(group_norm(channels, channels)(x, gamma, beta, eps=self.eps))


class batch_norm(Operator):
    """(x - mean) / sqrt(var + eps) * gamma + beta for each channel, the last dim of x, with stored statistics."""

    def __init__(self, eps: float = 1e-5):
        self.eps = eps

    def __call__(
        self, x: Tensor, mean: Tensor, var: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None
    ) -> Tensor:
        given = [t for t in (mean, var, gamma, beta) if t is not None]
        self.begin(x, *given)
        for t in given:
            if t.rank != 1 or x.rank < 1 or t.type.dims[0] != x.type.dims[-1]:
                raise self.fail(f"needs statistics and factors of the channels of {x.describe()}, found {t.describe()}")
        return self.write(norm.batch_norm, x, mean, var, gamma, beta, self.eps, x.rank - 1)
