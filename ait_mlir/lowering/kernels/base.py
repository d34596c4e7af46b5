"""The interface of kernels: `Kernel`; `Launch`, the argument of its `emit`; and `Emission`, its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.estimates import Terms, in_a_model, table_for
from ait_mlir.lowering.kernels.amounts import bytes_moved
from ait_mlir.lowering.target import Target

Strides = tuple[Expr, ...]
Config = Mapping[str, int]
"""The parameters of a kernel as the IR has them: `{"tile_m": 128}`."""
OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Arg:
    """One buffer as the kernel function sees it: a typed pointer called `name`, strides in elements.

    A run never writes a `constant` buffer, so a kernel may read it before the previous launch has ended. An `unread`
    result need not be written.
    """

    name: str
    type: TensorType
    strides: Strides
    constant: bool = False
    unread: bool = False

    def is_contiguous(self) -> bool:
        return is_contiguous(self.type.dims, self.strides)


@dataclass(frozen=True)
class Launch(Generic[OpT]):
    """The argument of `emit`: the op, its buffers in the order of operands and results, a configuration.

    `dims` maps the name of a dim to its C++ variable. `between` are the row-major buffers that the kernel requested to
    pass values from one of its launches to the next.
    """

    op: OpT
    ins: Sequence[Arg]
    outs: Sequence[Arg]
    dims: Mapping[str, str]
    config: Config
    target: Target
    between: Sequence[Arg] = ()
    masked: str | None = None
    """The bound dim whose value the kernel must read from the device memory `n` (`const int64_t*`), if any. The C++
    variable of this dim in `dims` has its largest value.
    """

    @property
    def scope(self) -> Scope:
        return scope_of(self.op)

    @property
    def place(self) -> Literal["cpu", "gpu"]:
        """The namespace and the folder of the templates: `ait::gpu`, `ait/kernels/gpu/`."""
        return "gpu" if self.target.is_gpu else "cpu"

    def cpp(self, *exprs: Expr) -> str:
        """The expressions in C++, with commas between: `dim_0, 768`."""
        return ", ".join(e.cpp(self.dims) for e in exprs)

    def size(self, expr: Expr, called: str) -> str:
        """The expression in C++; `called` names it in code whose sizes are fields of a struct."""
        return expr.cpp(self.dims, called)

    def number(self, attribute: Attribute, element: Attribute) -> str:
        """The number of a property in C++: a literal, or an f32 read from bits that are an argument of the run."""
        known = known_number(attribute)
        if known is not None:
            return literal(known, element)
        assert isinstance(attribute, ShapeAttr), "a number or its bits"
        return f"ait::bit_cast<float>(static_cast<uint32_t>({self.cpp(*attribute.data)}))"

    def header(self, stem: str) -> str:
        """`ait/kernels/gpu/map.cuh` or `ait/kernels/cpu/map.h` for `map`."""
        return f"ait/kernels/{self.place}/{stem}.{'cuh' if self.target.is_gpu else 'h'}"

    def call(self, header: str, call: str, definitions: str = "") -> Emission:
        """The code that calls one function of `header` (a stem, as in `map`) in the namespace of the target."""
        return Emission((self.header(header),), definitions, f"return ait::{self.place}::{call};\n")


@dataclass(frozen=True)
class Emission:
    """The code of one launch.

    `includes` are header paths as in `#include "ait/kernels/cpu/map.h"`; `definitions` stand at namespace scope, with
    `@ID@` for a digest of them; `body` are the statements of the kernel function, which return a status. `file` is
    text of an author outside of the package, which may include headers; it stands at file scope, after our headers.
    """

    includes: tuple[str, ...]
    definitions: str
    body: str
    file: str = ""


class Kernel(ABC, Generic[OpT]):
    """Runs ops of the classes `ops`, each as one launch or as several launches."""

    ops: ClassVar[tuple[type[Operation], ...]]
    """The op classes that the kernel may run, including subclasses."""
    provider: ClassVar[str] = "native"
    """The kernel's origin: `native`, `openblas`, `cublaslt`. It has at most one kernel for an op and a target."""
    name: ClassVar[str]
    """Its name in C++ functions and dumps: `map`."""
    optional_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of a configuration in addition to those of `configs`."""
    only_timed: ClassVar[bool] = False
    """Never chosen by estimate, because a library that it needs may be missing."""
    gpu_only: ClassVar[bool] = False
    """The kernel runs only on GPUs."""
    row_major: ClassVar[bool] = False
    """All its operands and results are row-major; otherwise they may have any strides."""
    any_order: ClassVar[bool] = False
    """It writes results as fast if a dim other than the last has neighbours side by side."""
    alone: ClassVar[bool] = False
    """Its launch cannot overlap its neighbours."""

    fitted_as: ClassVar[tuple[str, str] | None] = None
    """Provider and name of the kernel whose fitted estimates it uses, if it differs only in the epilogue."""
    one_instance: ClassVar[bool] = False
    """Its C++ template is long and does not become faster with sizes known at compile time: calls of one instance are
    compiled together.
    """

    def matches(self, op: OpT, target: Target) -> bool:
        """Whether the kernel can run this op, of a class in `ops`, by its types, regions and dims."""
        return target.is_gpu or not self.gpu_only

    def suits(self, op: OpT) -> bool:
        """Whether it is worth timing for an op with the views around it, which selection shows to no other method."""
        return True

    def configs(self, op: OpT, target: Target) -> list[dict[str, int]]:
        """The configurations to try, best guess first; `[{}]` if the kernel has no parameters."""
        return [{}]

    def every_config(self, op: OpT, target: Target) -> list[dict[str, int]]:
        """All configurations that could be the fastest at some sizes; `configs` has the best for the sizes of `op`."""
        return self.configs(op, target)

    def seconds(self, op: OpT, target: Target) -> float:
        """Estimated seconds at the dims' hints or maximum; by default all operands and results pass through memory."""
        return target.launch_seconds + self.slowdown(op, target) * bytes_moved(op, scope_of(op)) / target.bandwidth

    def slowdown(self, op: OpT, target: Target) -> float:
        """The time of the kernel as a multiple of the time of a copy of the same bytes."""
        return 1.0

    def terms(self, op: OpT, config: Config, target: Target) -> Terms | None:
        """The parts of the time with a configuration, for estimates fitted to a card; None if there is no fit."""
        return None

    def terms_of(self, op: OpT, target: Target) -> Callable[[Config], Terms | None]:
        """`terms` for any configuration. Kernels with many configurations find the sizes of `op` once for all."""
        return lambda config: self.terms(op, config, target)

    def estimate(self, op: OpT, config: Config, target: Target) -> float:
        """Estimated seconds with a configuration: fitted to the card if there is a table, else by `seconds` and the
        order of `configs`, each 1 % slower than the one before."""
        return self._estimate(op, config, target, self._fitted(op, target)(config))

    def _estimate(self, op: OpT, config: Config, target: Target, fitted: float | None) -> float:
        if fitted is not None:
            return fitted
        configs = self.configs(op, target)
        place = configs.index(dict(config)) if config in configs else len(configs)
        return self.seconds(op, target) * (1 + 0.01 * place)

    def is_fitted(self, op: OpT, config: Config, target: Target) -> bool:
        """Whether the estimate is fitted to the card."""
        return self._fitted(op, target)(config) is not None

    def ranked(self, op: OpT, target: Target) -> list[tuple[dict[str, int], float]]:
        """The configurations with their estimates, the best first."""
        configs = self.configs(op, target)
        fitted = self._fitted(op, target)
        if not configs or fitted(configs[0]) is None:
            seconds = self.seconds(op, target) if configs else 0.0
            return [(config, seconds * (1 + 0.01 * i)) for i, config in enumerate(configs)]
        every = self.every_config(op, target)
        found = [(config, self._estimate(op, config, target, fitted(config))) for config in every]
        return sorted(found, key=lambda pair: pair[1])

    def _fitted(self, op: OpT, target: Target) -> Callable[[Config], float | None]:
        """The estimate of a configuration that is fitted to the card; None without a fit."""
        table = table_for(target.arch)
        if table is None:
            return lambda _: None
        terms_of, alone = self.terms_of(op, target), self.alone and target.kind == "cuda"

        def seconds(config: Config) -> float | None:
            if (terms := terms_of(config)) is None:
                return None
            fit = table.fit(*(self.fitted_as or (self.provider, self.name)), terms.kind)
            return None if fit is None else in_a_model(fit.seconds(terms), alone)

        return seconds

    def accepts(self, op: OpT, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether operand `position` (results follow the operands) may have these strides."""
        if not self.row_major:
            return True
        return is_contiguous(tensor_type((*op.operands, *op.results)[position]).dims, strides, scope)

    def masks(self, op: OpT, target: Target) -> bool:
        """Whether the kernel can read the value of a bound dim from device memory (`Launch.masked`).

        The dim is the leading one of results and operands, and no stride depends on it.
        """
        return False

    def workspace(self, op: OpT, config: Config) -> Expr:
        """Bytes of scratch memory with a configuration."""
        return const(0)

    def between(self, op: OpT, config: Config, target: Target) -> tuple[TensorType, ...]:
        """The tensors that pass between its launches; `emit` gets their buffers in `Launch.between`."""
        return ()

    def check(self, op: OpT, config: Config, target: Target) -> None:
        """Raise `ValueError` for a configuration that its template would refuse; keys are known and values positive."""

    def config_problem(self, op: OpT, config: Config, target: Target) -> str | None:
        """The error if this is not a valid configuration for `op`: an unknown key or a refused value."""
        if not config:
            return None
        known = {key for c in self.configs(op, target) for key in c} | self.optional_keys
        if unknown := sorted(set(config) - known):
            keys = f"its keys are {', '.join(sorted(known))}" if known else "it has none"
            return f"unknown configuration {unknown[0]!r}; {keys}"
        for key, value in config.items():
            if value < 0:
                return f"configuration {key!r} is {value}, expected at least 0"
        try:
            self.check(op, config, target)
        except ValueError as error:
            return str(error)
        return None

    @abstractmethod
    def emit(self, launch: Launch[OpT]) -> Emission | tuple[Emission, ...]:
        """The code of the launch, or of several launches in order.

        Each launch becomes a C++ function. All have the same parameters: operands, results, `between`, `workspace`.
        """


# ** further interfaces of some kernels **


class PacksWeights(ABC):
    """A kernel that reads a constant operand in panels, a layout that other kernels cannot read."""

    @abstractmethod
    def panels(self, op: Operation, position: int) -> str | None:
        """The panels (`nk`, `kn`) in which the constant at operand `position` must lie; None: row-major."""


def panels_for(kernel: Kernel[Any], op: Operation, position: int) -> str | None:
    """The panels in which a kernel wants the constant at operand `position`; None: row-major."""
    return kernel.panels(op, position) if isinstance(kernel, PacksWeights) else None


class NamesAlgorithms:
    """A kernel of a library with algorithms. The library lists them only at run time.

    So `configs` names no algorithm; then the library takes the first of its list.
    """

    algorithm_keys: ClassVar[tuple[str, ...]]
    """Keys of a configuration that name an algorithm, in the order in which the library lists its parts."""
