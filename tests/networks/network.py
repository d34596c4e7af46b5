"""One row of the list of networks: how a network and its arguments are made, and which dims are dynamic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import Dim

BATCH, LENGTH = Dim("batch", min=1, max=8), Dim("length", min=1, max=48)

Arguments = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Network:
    """A network with random weights and the arguments of one call, by batch and length of the sequence."""

    make: Callable[[], torch.nn.Module]
    arguments: Callable[[int, int], Arguments]
    dynamic: Mapping[str, Mapping[int, Any]] = field(default_factory=dict[str, Mapping[int, Any]])
    """The dynamic dims for `torch.export`, by the name of the argument."""
    sampled: bool = False
    """Whether `make test` runs it; `make test-full` runs all."""

    @property
    def has_any_length(self) -> bool:
        """Whether the length is dynamic; otherwise it is that of the export."""
        return any(dim is LENGTH for dims in self.dynamic.values() for dim in dims.values())


def made(network: Network) -> torch.nn.Module:
    """The network with random weights, also in the scales, shifts and statistics of norms."""
    torch.manual_seed(0)
    model = network.make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer += 0.1 * torch.randn_like(buffer)
            elif name.endswith("running_var"):
                buffer *= 1 + 0.2 * torch.rand_like(buffer)
    return model
