"""Functions of tensors of PyTorch that build a graph when they are called, and keep it."""

from __future__ import annotations

from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.graph.decorators import graph_cache
from ait_mlir.graph.errors import cudnnGraphNotSupportedError
from ait_mlir.graph.handle import Handle, create_handle
from ait_mlir.graph.wrapper import Graph
from ait_mlir.runtime.data import torch_module

ACTIVATIONS = ("silu", "identity")


def causal_conv1d(x: Any, weight: Any, bias: Any = None, activation: str = "identity") -> Any:
    """A convolution of each channel of x [batch, channels, length] with its own taps of weight [channels, taps], which
    reads nothing after a position; then the bias [channels] is added, and the activation "silu" or "identity" applied.

    Returns a tensor like x. Raises `InputError` for other shapes or another activation.
    """
    torch: Any = torch_module()
    for name, tensor, rank in (("x", x, 3), ("weight", weight, 2), ("bias", bias, 1)):
        if tensor is None and name == "bias":
            continue
        given: Any = tensor
        if torch is None or not isinstance(given, torch.Tensor) or given.dim() != rank:
            raise InputError(f"causal_conv1d: {name} is {_told(tensor)}, expected a torch tensor with {rank} dims")
        if given.shape[0 if rank < 3 else 1] != x.shape[1]:
            raise InputError(f"causal_conv1d: {name} is {_told(tensor)}, but x has {x.shape[1]} channels")
    if activation not in ACTIVATIONS:
        raise InputError(f"causal_conv1d: activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        raise cudnnGraphNotSupportedError("causal_conv1d has no gradient: detach its tensors, or use torch.no_grad()")
    image, taps = x.detach(), weight.detach()[:, None]
    row = None if bias is None else bias.detach()[None, :, None]
    graph = _causal_conv1d(image, taps, row, activation)
    return graph(*(t for t in (image, taps, row) if t is not None), handle=handle_of(x))


def handle_of(x: Any) -> Handle:
    """A handle for the device of a tensor, with PyTorch's current stream there."""
    torch: Any = torch_module()
    return create_handle(x.device, torch.cuda.current_stream(x.device) if x.is_cuda else None)


def _told(tensor: Any) -> str:
    shape = getattr(tensor, "shape", None)
    return f"a {type(tensor).__name__}" + ("" if shape is None else f" of shape {list(shape)}")


def _key(x: Any, weight: Any, bias: Any, activation: str) -> Any:
    given = tuple((t.shape, t.stride(), t.dtype, t.device) for t in (x, weight, bias) if t is not None)
    return given, bias is None, activation


@graph_cache(key_fn=_key)
def _causal_conv1d(x: Any, weight: Any, bias: Any, activation: str) -> Graph:
    taps = weight.shape[2]
    inputs = ["conv::image", "conv::weight", *(() if bias is None else ("bias::bias",))]
    with Graph(io_data_type=x.dtype, handle=handle_of(x), inputs=inputs, outputs=["y"]) as g:
        y = g.conv_fprop(
            image=x, weight=weight, pre_padding=[taps - 1], post_padding=[0], stride=[1], dilation=[1], name="conv"
        )
        y = y if bias is None else g.bias(y, bias, name="bias")
        y = g.swish(y) if activation == "silu" else g.identity(y)
        y.set_output(True).set_name("y")
    g.graph.bound.clear()
    return g
