"""`Module`: layers made of parameters and other layers, named by their attributes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, ClassVar

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["Dropout", "Identity", "Module", "ModuleDict", "ModuleList", "Sequential"]


class Module:
    """A layer: assign parameters and modules to attributes in `__init__`, and compute in `forward`.

    >>> layer = nn.Linear(768, 3072)
    >>> [name for name, _ in layer.named_parameters()]
    ['weight', 'bias']
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules held directly, by attribute name."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names, starting with this module's own."""
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield prefix + name, value
        for name, child in self.children():
            yield from child.named_parameters(f"{prefix}{name}.")

    def parameters(self) -> Iterator[Parameter]:
        return (parameter for _, parameter in self.named_parameters())

    def name_parameter_tensor(self, prefix: str = "", separator: str = "_") -> None:
        """Give every parameter its dotted name, with `separator` for the dots; "." keeps the names of a state dict."""
        for name, parameter in self.named_parameters():
            parameter.tensor().name = (prefix + name).replace(".", separator)


class OperatorLayer(Module):
    """Base of a layer that is one operator: its options, and the tensors that it takes, are those of the operator."""

    OPERATOR: ClassVar[type[Operator]]

    def __init__(self, *options: Any, **named: Any):
        self.operator = self.OPERATOR(*options, **named)

    def forward(self, *inputs: Tensor) -> Any:
        return self.operator(*inputs)


class ModuleList(Module):
    """Modules in order, named by their index."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.items = list(modules)

    def append(self, module: Module) -> None:
        self.items.append(module)

    def children(self) -> Iterator[tuple[str, Module]]:
        return ((str(i), module) for i, module in enumerate(self.items))

    def __iter__(self) -> Iterator[Module]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Module:
        return self.items[index]


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None):
        self.items_by_name = dict(modules or {})

    def children(self) -> Iterator[tuple[str, Module]]:
        return iter(self.items_by_name.items())

    def keys(self) -> KeysView[str]:
        return self.items_by_name.keys()

    def values(self) -> ValuesView[Module]:
        return self.items_by_name.values()

    def items(self) -> ItemsView[str, Module]:
        return self.items_by_name.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self.items_by_name

    def __getitem__(self, name: str) -> Module:
        return self.items_by_name[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.items_by_name[name] = module


class Sequential(ModuleList):
    """Modules applied one after another, named by their index, or by the keys of a dict of modules."""

    def __init__(self, *modules: Module | Mapping[str, Module]):
        named: list[tuple[str, Module]] = []
        for i, module in enumerate(modules):
            if not hasattr(module, "items") and not isinstance(module, Module):
                raise BuildError(f"Sequential takes modules, or a dict of modules; found {module!r}")
            named += [(str(i), module)] if isinstance(module, Module) else module.items()
        super().__init__(module for _, module in named)
        self.names = [name for name, _ in named]

    def append(self, module: Module) -> None:
        self.names.append(str(len(self.items)))
        super().append(module)

    def children(self) -> Iterator[tuple[str, Module]]:
        return zip(self.names, self.items, strict=True)

    def forward(self, x: Any) -> Any:
        for module in self.items:
            x = module(x)
        return x


class Identity(Module):
    """The input."""

    def forward(self, x: Any) -> Any:
        return x


class Dropout(Module):
    """The input: dropout acts in training only."""

    def __init__(self, p: float = 0.5):
        self.p = p

    def forward(self, x: Any) -> Any:
        return x
