"""Fuses elementwise operators into the convolution before them."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.conv import (
    conv2d,
    conv2d_bias,
    conv2d_bias_add,
    conv2d_bias_add_relu,
    conv2d_bias_relu,
    conv2d_bias_sigmoid,
    transposed_conv2d,
    transposed_conv2d_bias,
    transposed_conv2d_bias_relu,
)
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor


def fuse_conv_elementwise(sorted_graph: list[Tensor], _: str | None = None) -> list[Tensor]:
    """The graph with elementwise operators that are a convolution's only users fused as its epilogue.

    Any chain of elementwise operators of the convolution's shape is fused, in its order; the chains of
    `get_conv2d_bias_elementwise_patterns` get the documented names. The second argument is not used.
    """
    return apply("fuse_conv_elementwise", sorted_graph)


Pattern = tuple[tuple[Operator, ...], type[Operator]]


def get_conv2d_bias_elementwise_patterns() -> list[Pattern]:
    """The documented chains and the operators that replace them, longest first.

    `fuse_conv_elementwise` is not limited to them: an epilogue is a region of any elementwise operators.
    """
    add, relu, sigmoid = (elementwise(func) for func in (FuncEnum.ADD, FuncEnum.RELU, FuncEnum.SIGMOID))
    once = (1, 0)  # stride and pad
    found: Sequence[Pattern] = (
        ((conv2d_bias(*once), add, relu), conv2d_bias_add_relu),
        ((conv2d_bias(*once), add), conv2d_bias_add),
        ((conv2d_bias(*once), relu), conv2d_bias_relu),
        ((conv2d_bias(*once), sigmoid), conv2d_bias_sigmoid),
        ((conv2d(*once), add), conv2d_bias),
        ((transposed_conv2d_bias(*once), relu), transposed_conv2d_bias_relu),
        ((transposed_conv2d(*once), add, relu), transposed_conv2d_bias_relu),
        ((transposed_conv2d(*once), add), transposed_conv2d_bias),
    )
    return sorted(found, key=lambda pattern: -len(pattern[0]))
