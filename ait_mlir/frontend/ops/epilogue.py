"""The steps that composite names list after a product or a convolution: `gemm_rcr_bias_gelu`, `conv2d_bias_add_relu`.

Each word becomes one elementwise op on the result; the passes fuse these ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

ACTIVATIONS: dict[str, FuncEnum] = {
    "relu": FuncEnum.RELU,
    "sigmoid": FuncEnum.SIGMOID,
    "tanh": FuncEnum.TANH,
    "gelu": FuncEnum.GELU,
    "fast_gelu": FuncEnum.FASTGELU,
    "swish": FuncEnum.SILU,
    "silu": FuncEnum.SILU,
    "hardswish": FuncEnum.HARDSWISH,
}

COMBINERS: dict[str, FuncEnum] = {"bias": FuncEnum.ADD, "add": FuncEnum.ADD, "mul": FuncEnum.MUL}
"""Words that take a tensor."""


def steps_of(words: str) -> tuple[str, ...]:
    """The steps in a part of a name: `("bias", "fast_gelu")` for `bias_fast_gelu`."""
    return tuple(word.replace("-", "_") for word in words.replace("fast_gelu", "fast-gelu").split("_") if word)


def operands_of(
    operator: Operator, steps: Sequence[str], names: Sequence[str], given: Sequence[Tensor], named: Mapping[str, Tensor]
) -> list[Tensor]:
    """The tensors that `steps` take: those `given` in order, then the `named` ones, by their documented `names`."""
    names = names[: sum(step in COMBINERS for step in steps)]
    rest = [named[name] for name in names[len(given) :] if name in named]
    if len(given) + len(rest) != len(names) or len(rest) != len(named):
        found = " and ".join([str(len(given)), *(f"{name}=" for name in named)])
        expected = f" ({', '.join(names)})" if names else ""
        raise operator.fail(f"takes {len(names)} more tensors{expected}; {found} were given")
    return [*given, *rest]


def apply_steps(operator: Operator, steps: Sequence[str], y: Tensor, extras: Sequence[Tensor]) -> Tensor:
    """Apply the ops of `steps` to `y`; each word of `COMBINERS` takes the next of `extras`."""
    remaining = iter(extras)
    for step in steps:
        y = _combine(operator, step, y, next(remaining)) if step in COMBINERS else elementwise(ACTIVATIONS[step])(y)
    return y


def _combine(operator: Operator, step: str, y: Tensor, extra: Tensor) -> Tensor:
    if step == "bias" and (extra.rank != 1 or extra.type.dims[0] is not y.type.dims[-1]):
        raise operator.fail(f"the bias must have shape [{y.type.dims[-1]}], found {extra.describe()}")
    result = elementwise(COMBINERS[step])(y, extra)
    if result.rank != y.rank or result.type.num_elements() is not y.type.num_elements():
        raise operator.fail(f'the operand of "{step}", {extra.describe()}, enlarges the result {y.describe()}')
    return result
