"""Texts with numbers near the ends of what is allowed, through all phases up to C++: each is refused with a place, or gets a
plan, and its program has checked sizes where these may be too large."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ait_mlir.driver import emit, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check as verify
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.options import CompileOptions
from tests import tiers
from tests.runtime.test_sizes import OUTER

ROOT = Path(__file__).parents[2]
COUNT = 600 if tiers.FULL else 150
NUMBERS = (
    *(0, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**39, 2**40 - 1, 2**40, 2**40 + 1, 2**48, 2**61, 2**62, 2**62 + 1),
    *(2**63 - 1, 2**63, 2**64, 2**70, -1, -(2**40), -(2**63) + 1, -(2**63), -(2**63) - 1),
)
NUMBER = re.compile(r"(?<![\w.%@\"])\d+(?![\w.:\"])")
RANGE = re.compile(r"(?<=to )\d+")
TARGETS = (("cpu", "x86-64-v3"), ("cuda", "sm_90"), ("rocm", "gfx942"))


def sources() -> list[str]:
    """The graphs of the tests of the dialect, each in a text of its own."""
    texts: list[str] = []
    for path in sorted((ROOT / "lit_tests" / "dialects" / "ait").glob("*.mlir")):
        if "invalid" in path.name:
            continue
        text = re.sub(r"^\s*//.*\n", "", path.read_text(), flags=re.MULTILINE)
        texts += ["ait.graph" + part for part in f"\n{text}".split("\nait.graph")[1:]]
    return [text for text in texts if NUMBER.search(text)]


def mutate(rng: random.Random, text: str) -> str:
    """Put a number of `NUMBERS` where the text has another one: in one place or in all that have it, or as the largest
    value of dims; or multiply a dim."""
    number = rng.choice(NUMBERS)
    match rng.randrange(5):
        case 0 | 1:
            old = rng.choice(NUMBER.findall(text))
            return re.sub(rf"(?<![\w.%@\"]){old}(?![\w.:\"])", str(number), text)
        case 2:
            place = rng.choice(list(NUMBER.finditer(text)))
            return text[: place.start()] + str(number) + text[place.end() :]
        case 3 if RANGE.search(text):
            return RANGE.sub(str(rng.choice((2**31, 2**32 + 1, 2**40))), text)
        case _:
            names = re.findall(r"(\w+) = \d+ to", text)
            if not names:
                return text
            return re.sub(rf"\b{rng.choice(names)} x ", lambda m: f"({number}*{m[0][:-3]}) x ", text)


def outcome(text: str, target: str, arch: str) -> str:
    """How far a text gets; anything but a `SourceError` with places is an error of the test."""
    phase = "verified"
    source = SourceText("extreme.mlir", text)
    try:
        module = parse_source(context(), source)
        verify(module, source)
        phase = "planned"
        run_to_phase(module, "planned", CompileOptions(target, arch), source=source)
        emit(module, source)
    except SourceError as e:
        assert e.diagnostics
        for d in e.diagnostics:
            assert d.file == "extreme.mlir" and d.line >= 1 and d.column >= 1 and d.message.strip(), str(d)
            assert "cannot be read" not in d.message, str(d)
        return f"not {phase}: {e.diagnostics[0].message}"
    return "source"


@pytest.mark.parametrize(("target", "arch"), TARGETS)
def test_ranges_up_to_the_largest_dim(target: str, arch: str) -> None:
    """What is valid for small dims is compiled for all dims: no number that only a range allows is in the way."""
    for text in (OUTER, *sources()):
        wide = RANGE.sub(str(2**40), text)
        assert "beyond 64 bits" not in outcome(wide, target, arch), wide


def test_numbers_at_the_ends_of_their_ranges() -> None:
    rng = random.Random(0)
    texts = sources()
    reached = [outcome(mutate(rng, rng.choice(texts)), *TARGETS[i % len(TARGETS)]) for i in range(COUNT)]
    assert sum(r == "source" for r in reached) > COUNT // 10
    assert sum(r.startswith("not verified") for r in reached) > COUNT // 4
