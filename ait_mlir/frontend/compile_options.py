"""Interprets the arguments of `compile_model` that AITemplate documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ait_mlir.frontend.errors import BuildError

MOST_STREAMS = 16
NO_LIMIT = 99_999_999
"""The default of `AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS`."""


@dataclass(frozen=True)
class AITDebugSettings:
    """AITemplate's settings for debugging.

    With `check_all_nan_and_inf`, each run reports on stderr launches whose results have NaN or infinite values, with
    `check_all_outputs` the results of all launches; such runs wait after each launch. The other settings are refused,
    with advice.
    """

    check_all_nan_and_inf: bool = False
    check_all_outputs: bool = False
    gen_profiler_annotation: bool = False
    dump_ait_to_py: str | None = None
    gen_standalone: bool = False


_INSTEAD = {
    "gen_profiler_annotation": "use Model.profile(..., trace=...), which names the launches",
    "dump_ait_to_py": "the IR of a model is in its work directory, and in Model.ir_text",
    "gen_standalone": "the artifact is one file that runs anywhere",
}


def check_debug_settings(settings: object) -> None:
    """Raise `BuildError` for an unsupported setting."""
    if not isinstance(settings, AITDebugSettings | None):
        raise BuildError(f"debug_settings is an AITDebugSettings; found {settings!r}")
    for name, instead in _INSTEAD.items():
        if settings is not None and getattr(settings, name):
            raise BuildError(f"debug_settings: {name} is not there; {instead}")


def points_of(strategy: object) -> str:
    """The sizes of dynamic dims at which kernels are chosen, from AITemplate's strategy or its name: MIN, MAX, HINTS.

    None means HINTS.
    """
    name = "HINTS" if strategy is None else strategy.name if isinstance(strategy, Enum) else str(strategy)
    if name.upper() not in ("MIN", "MAX", "HINTS"):
        raise BuildError(f"dynamic_profiling_strategy is {strategy!r}, expected MIN, MAX or HINTS")
    return name.lower()


def cards_of(devices: Sequence[int] | None, argument: str = "profile_devs") -> tuple[int, ...]:
    """The cards on which kernels are timed: `devices`, or the machine's first card if None. `argument` is its name in
    errors."""
    if devices is None:
        return (0,)
    if isinstance(devices, str | bytes) or not all(isinstance(d, int) and d >= 0 for d in devices):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BuildError(f"{argument} is {devices!r}, expected a list of the numbers of cards")
    return tuple(devices) or (0,)


def force_profiler_cache() -> bool:
    """Whether `AIT_FORCE_PROFILER_CACHE` is 1: then kernels are chosen by known times alone, and an operator with
    several candidates and no known time is an error."""
    text = os.environ.get("AIT_FORCE_PROFILER_CACHE", "0")
    if text not in ("0", "1"):
        raise BuildError(f"AIT_FORCE_PROFILER_CACHE is {text!r}, expected 0 or 1")
    return text == "1"


def streams_of_environment() -> int | None:
    """The most streams of a run by `AIT_MULTISTREAM_MODE` and `AIT_MULTISTREAM_EXTRA_STREAMS`; None if the first is not
    set."""
    if not os.environ.get("AIT_MULTISTREAM_MODE"):
        return None
    extra = setting("AIT_MULTISTREAM_EXTRA_STREAMS", 4, 1 << 20)
    return min(1 + extra, MOST_STREAMS) if setting("AIT_MULTISTREAM_MODE", 0, 1) else 0


def waves_of_environment() -> int:
    """The most launches of a wave by `AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS` where `AIT_MULTISTREAM_MODE` is 1; else
    0."""
    limit = setting("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", NO_LIMIT, NO_LIMIT)
    if limit == 0:
        raise BuildError("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS is 0, expected at least 1")
    return limit if setting("AIT_MULTISTREAM_MODE", 0, 1) else 0


def setting(name: str, default: int, largest: int) -> int:
    """A whole number in an environment variable; `BuildError` for anything else."""
    text = os.environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and int(text) <= largest):
        raise BuildError(f"{name} is {text!r}, expected a whole number from 0 to {largest}")
    return int(text)
