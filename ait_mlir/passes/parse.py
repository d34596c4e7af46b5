"""Parses pass pipelines from text: `simplify,apply-patterns{file="a.mlir"}`."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ait_mlir.ir.pipeline import first_line
from ait_mlir.ir.source import SourceText, error_at
from ait_mlir.passes.pipelines import PASSES
from ait_mlir.rewrites.engine.errors import unknown


def known_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Loaders of all passes by name: our passes and xDSL's."""
    from xdsl.transforms import get_all_passes

    return {**get_all_passes(), **{name: row.load for name, row in PASSES.items()}}


def parse_passes(text: str, source_name: str = "<passes>") -> list[ModulePass]:
    """The passes of a pipeline; raises `SourceError` at the place of the first wrong pass."""
    if not text.strip():
        return []
    source = SourceText(source_name, text)
    try:
        specs = list(parse_pipeline(text))
    except (ArgSpecParseError, ValueError, KeyError, IndexError) as e:
        token = getattr(e, "token", None)
        at = token.span.start if token is not None else 0
        raise error_at(source, at, "expected passes as in 'simplify,apply-patterns{file=\"a.mlir\"}'") from None
    passes: list[ModulePass] = []
    at = 0
    for spec in specs:
        at = text.find(spec.name, at)
        factory = PASSES[spec.name].load if spec.name in PASSES else known_passes().get(spec.name)
        if factory is None:
            names = "" if get_close_matches(spec.name, PASSES) else f"; known: {', '.join(sorted(PASSES))}"
            raise error_at(source, at, unknown("pass", spec.name, PASSES) + names)
        try:
            passes.append(factory().from_pass_spec(spec))
        except Exception as e:  # xDSL raises many kinds for wrong options
            raise error_at(source, at, f"wrong options for pass {spec.name!r}: {first_line(e)}") from None
        at += len(spec.name)
    return passes
