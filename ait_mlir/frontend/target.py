"""The device that a model is compiled for."""

from __future__ import annotations

import ctypes
import os
from contextvars import ContextVar
from dataclasses import dataclass

from ait_mlir.frontend.errors import BuildError
from ait_mlir.lowering.target import KINDS, TargetKind
from ait_mlir.lowering.toolchain import detect_cuda_arch, supported_rocm_arch


@dataclass(frozen=True)
class Target:
    """A kind of device and its architecture: "sm_90a", "gfx90a", "native"; "" is this machine's architecture."""

    kind: TargetKind
    arch: str = ""
    options: tuple[tuple[str, object], ...] = ()
    """The options passed to `detect_target`."""

    def name(self) -> str:
        return self.kind

    @property
    def _arch(self) -> str:
        """The architecture in AITemplate's form: "90" for "sm_90a", and "90" for the CPU, because it runs
        all dtypes.
        """
        if self.kind == "cpu":
            return "90"
        return self.arch.removeprefix("sm_").rstrip("af") if self.kind == "cuda" else self.arch

    @property
    def _kwargs(self) -> dict[str, object]:
        return dict(self.options)

    def in_ci_env(self) -> bool:
        """Whether tests run one kind of case only: never."""
        return False

    def force_profile(self) -> bool:
        """Whether `FORCE_PROFILE` is 1. Kernels are timed all the same if it is not."""
        return os.environ.get("FORCE_PROFILE") == "1"

    def use_dummy_profiling_results(self) -> bool:
        """Whether kernels are chosen without times, as AITemplate does in its own tests: never."""
        return self.in_ci_env() and not self.force_profile()

    def __str__(self) -> str:
        return self.kind

    def __enter__(self) -> Target:
        """Make this the current target of the context, until the `with` ends."""
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])

    @staticmethod
    def current() -> Target:
        """The target of the innermost `with target:`; `BuildError` outside of one."""
        if not (entered := _entered.get()):
            raise BuildError("there is no current target; code is generated inside of `with target:`")
        return entered[-1]

    @staticmethod
    def current_or_detected() -> Target:
        """The current target; outside of a `with target:` the best device of this machine."""
        return entered[-1] if (entered := _entered.get()) else detect_target()


_entered: ContextVar[tuple[Target, ...]] = ContextVar("ait_mlir_targets", default=())


def as_target(target: Target | str) -> Target:
    """A target, or its name, as a target; `BuildError` for an unknown name."""
    if isinstance(target, Target):
        return target
    if target not in KINDS:
        raise BuildError(f'unknown target "{target}"; expected one of {", ".join(KINDS)}')
    return Target(target)


def detect_target(**options: object) -> Target:
    """The best device of this machine: the first CUDA device, else the first ROCm device that the kernels support,
    else the CPU.

    `options` are AITemplate's, for speed, accuracy, kernel libraries, directories and cache. They are kept in `_kwargs`
    and change nothing: f16 and bf16 are summed in f32, and the compiler chooses the kernels.
    """
    if (arch := detect_cuda_arch()) is not None:
        return Target("cuda", arch, tuple(options.items()))
    arch = supported_rocm_arch() if _hip_devices() else None
    return Target("cpu" if arch is None else "rocm", arch or "", tuple(options.items()))


def _hip_devices() -> int:
    try:
        runtime = ctypes.CDLL("libamdhip64.so")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return 0 if runtime.hipGetDeviceCount(ctypes.byref(count)) else count.value
