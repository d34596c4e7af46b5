"""`CompileOptions`: how a module is compiled, as one value."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from ait_mlir.dialects.ait_rt.program import MAX_STREAMS
from ait_mlir.dialects.sdy import parse_axes
from ait_mlir.errors import AitError
from ait_mlir.host.settings import measure_budget
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.module_target import make_target
from ait_mlir.lowering.points import STRATEGIES
from ait_mlir.lowering.target import Target, TargetKind
from ait_mlir.lowering.toolchain import default_arch, detect_cuda_arch
from ait_mlir.passes.pipelines import check_optional, phase_index
from ait_mlir.passes.shard_params import parse_plan

Measure = bool | Literal["auto", "known"]
Method = Literal["auto", "kernels", "reference"]


@dataclass(frozen=True)
class CompileOptions:
    """The options of a compilation. Every function below the public functions passes this value on unchanged.

    Raises `AitError` for a value that is not allowed, with the name of the option and the allowed values.
    """

    target: str = "cpu"
    """The kind of device: "cpu", "cuda" or "rocm"."""
    arch: str = ""
    """The architecture, such as "sm_90a", "gfx90a", "x86-64-v3" or "native"; "" is this machine's, or "sm_90a" or
    "gfx90a" if it has no card.
    """
    cpus: Collection[str] = ()
    """Values of -march. The artifact of a CPU model also has a library for each of them; a load takes the library that
    uses most of the CPU.
    """
    start: str | None = None
    """The phase that the module is in, of `PHASES`; None: as its operations look."""
    measure: Measure = False
    """Whether kernels are chosen by their times on the card. With True, all times that are not known are measured. With
    "auto", they are measured within `budget` if this machine has a card for the target; else estimates decide. With
    False, estimates and known times decide; with "known" known times alone, and an op with several candidates and
    none is an error. `compile_model`, `ait_mlir.compile` and `ait compile` say "auto"."""
    budget: float | None = None
    """The seconds for measuring, compiling of candidates included. None: `AIT_MEASURE_BUDGET`, else 20, for "auto"; no
    limit for True."""
    points: str = "hints"
    """The values of the dims at which kernels are chosen: "hints", "min", "max" or several with a plus between."""
    precision: str = "highest"
    """How products, convolutions and attention of f32 may be computed on a GPU, named as
    `torch.set_float32_matmul_precision` names it: "highest" (exactly), "high" (operands rounded to TF32) or "medium"
    (to bf16). A CPU computes all of them exactly. A CUDA card rounds ops that say `tf32` to TF32 in any case: an
    imported convolution says what PyTorch's own setting says."""
    deterministic: bool = True
    """Whether each run must give the same bits. With False, kernels of a GPU may add floats in any order, with atomics,
    where that is faster: sums by index, such as `index_add`."""
    peer_memory: bool = True
    """Whether all-reduces of CUDA cards may write into the memory of the other cards, in one launch, where estimates
    say that this is faster than NCCL. Cards that do not reach each other use NCCL all the same."""
    streams: int | None = None
    """The most streams of a GPU that a run may use, up to 16; 0 or 1 for one. None: several where estimates say that it
    pays."""
    waves: int = 0
    """The most launches of a GPU that run at once, in waves over `streams` streams, whether it pays or not; 0:
    estimates decide."""
    mesh: str = ""
    """The mesh of the ranks that run the model, such as "tp=2" or "dp=2,tp=4", in place of the mesh that the module
    declares; "" for that one. Each rank has the pieces of the tensors that the module's shardings name."""
    plan: str = ""
    """Which weights the ranks of `mesh` divide, by names of params or of the modules that own them, such as
    "layers.*.up=colwise,layers.*.down=rowwise" (docs/ranks.md)."""
    fold: bool | Literal["load"] = True
    """Whether values that depend only on params with known data are computed at compile time. With "load", the loaded
    model also computes values that depend on other params, when it gets their data.
    """
    fold_by: Method = "auto"
    """How they are computed: by "kernels", by the "reference", or "auto", by kernels where that is faster."""
    without: Collection[str] = ()
    """Passes of `pipelines.OPTIONAL` that do not run."""
    inspected: bool = False
    """Whether runs of the model can show the results of each launch."""
    store_kernel_libraries: bool = True
    """Whether the artifact stores the kernel libraries that the model calls; otherwise it refers to their files."""
    cluster: str = ""
    """The address of a Ray cluster whose machines compile the kernels: "auto", "HOST:PORT" or "ray://HOST:PORT"; ""
    for this machine. The artifact is the same."""
    report: bool = False
    """Whether the times of the fastest kernels, and the choices, are printed."""

    def __post_init__(self) -> None:
        try:
            make_target(self.target, self.arch, self.precision)
        except PassError as error:
            raise AitError(error.message) from None
        if self.start is not None:
            phase_index(self.start)
        check_optional(self.without)
        if self.mesh:
            parse_axes(self.mesh)
        if parse_plan(self.plan) and not self.mesh:
            raise AitError(f"plan {self.plan!r} needs a mesh, such as tp=2")
        for name, accepted, expected in _ALLOWED:
            if not accepted(value := getattr(self, name)):
                raise AitError(f"{name} is {value!r}, expected {expected}")

    @property
    def device(self) -> Target:
        """The target with its architecture, which is looked up if it is not named."""
        kind = cast(TargetKind, self.target)
        arch = self.arch or default_arch(kind)
        return make_target(kind, arch, self.precision, self.deterministic, self.peer_memory)

    def selection(self) -> str:
        """The options of the pass `select`, as text, without those of the target.

        Raises `InputError` for a wrong `AIT_MEASURE_BUDGET`.
        """
        measure, budget = self.measure, self.budget
        if measure == "known":
            measure, budget = False, None
        if measure == "auto":
            budget = measure_budget() if budget is None else budget
            measure = self.target == "cuda" and budget > 0 and detect_cuda_arch() is not None
        found = {
            "measure=true": measure,
            "known=true": self.measure == "known",
            f'points="{self.points}"': self.points != "hints",
            f"budget={None if budget is None else float(budget)}": measure and budget is not None,
            f'precision="{self.precision}"': self.precision != "highest",
            "deterministic=false": not self.deterministic,
            "peer-memory=false": not self.peer_memory,
            "report=true": self.report,
        }
        return " ".join(text for text, is_given in found.items() if is_given)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_budget(value: object) -> bool:
    return value is None or (_is_number(value) and 0 <= cast(float, value) < math.inf)


MOST_WAVES = 1 << 40


def _is_limit(value: object, most: int = MAX_STREAMS) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return value is None or (whole and 0 <= cast(int, value) <= most)


def _are_points(value: object) -> bool:
    return isinstance(value, str) and all(part in STRATEGIES for part in value.split("+"))


def _is_one_of(*values: object) -> Callable[[object], bool]:
    return lambda value: isinstance(value, bool | str) and value in values


_ALLOWED: tuple[tuple[str, Callable[[object], bool], str], ...] = (
    ("measure", _is_one_of(True, False, "auto", "known"), 'True, False, "auto" or "known"'),
    ("deterministic", _is_one_of(True, False), "True or False"),
    ("peer_memory", _is_one_of(True, False), "True or False"),
    ("budget", _is_budget, "a number of seconds, 0 or more"),
    ("points", _are_points, f"{', '.join(STRATEGIES)} or several with a plus between, as in hints+max"),
    ("streams", _is_limit, f"a whole number from 0 to {MAX_STREAMS}"),
    ("waves", lambda value: value is not None and _is_limit(value, MOST_WAVES), "a whole number, 0 or more"),
    ("cluster", lambda value: isinstance(value, str), "an address of Ray, such as auto, as text"),
    ("fold", _is_one_of(True, False, "load"), 'True, False or "load"'),
    ("fold_by", _is_one_of("auto", "kernels", "reference"), '"auto", "kernels" or "reference"'),
)
"""Options, the values that are accepted, and their description."""
