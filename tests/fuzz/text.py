"""Malformed texts of the IR and of pipelines, guided by coverage: `python -m tests.fuzz.text --count 1000000`.

A text is an example in which tokens were deleted, doubled, swapped, replaced or inserted. Each is refused with a place, or
accepted: then it prints as text that reads back the same, and some of the accepted ones go through a pipeline, which
may refuse them, too. Reading takes few calls for each character, and less than a second. Texts whose calls of functions
no text of their range has made before are mutated again, so that a range of seeds gets further than its examples. What
has passed is remembered in build/fuzz_text; a text that failed is written there.
"""

from __future__ import annotations

import functools
import gc
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType

from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from ait_mlir.options import CompileOptions
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, passes_between
from tests.fuzz.ranges import Campaign, Tried
from tests.lit.round_trip import text_of

ROOT = Path(__file__).parents[2]
RANGE = 500
"""Seeds that are remembered together, and whose texts descend from each other."""
NAMES = 8_000
"""The calls in which an unknown name is compared with the names of all ops, and more."""
SECONDS = 1.0
"""The most time of the processor for one text."""
COMPILED = 8
"""Each of so many accepted texts goes through the pipeline of the CPU."""
PIPELINES = 10
"""Each of so many texts is a pipeline of passes, not IR."""

SPLICES = (
    *(
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ",",
        ":",
        "=",
        '"',
        "%",
        "@",
        "^",
        "#",
        "!",
        "->",
        " x ",
        "//",
        "\\",
        "\n",
    ),
    *("0", "1", "-1", "2.5", "1e400", "9" * 30, "0x7F", "inf", "nan", "true", "unit", "loc(unknown)", "\u00e9", "\t"),
    *("b", "seq", "x", "f16", "i1", "f8", "min(b, 2)", "b floordiv 2", "b mod 0", "dims {b = 1 to 2}", "#0", ":2"),
    *("ait.add", "ait.yield %0 : f32", '"ait.relu"', "^bb0:", "{a = 1}", "<{dim = 0 : i64}>", "!ait.tensor<f16>"),
    *("!ait_rt.buffer<4 x f16>", "#ait.dims<b = 1 to 2>", "tensor<4xf32>", "() -> ()", "({})", "builtin.module"),
)
TOKEN = re.compile(r"[A-Za-z_][\w.]*|\d+|\S|\s+")


def sources() -> list[str]:
    """Small valid texts of both dialects, pretty and generic."""
    texts: list[str] = []
    files = [*(ROOT / "examples").glob("*.mlir"), *(ROOT / "lit_tests" / "dialects").rglob("*.mlir")]
    for path in sorted(files):
        if "invalid" in path.name:
            continue
        text = re.sub(r"^\s*//.*\n", "", path.read_text(), flags=re.MULTILINE)
        texts.append(text)
        texts.append(text_of(parse_text(context(), text), generic=True))
    return texts


def mutate(rng: random.Random, text: str, others: list[str]) -> str:
    """Change a text in one to three places: delete, double, swap, replace or insert tokens, or cut it short."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(tokens))
        match rng.randrange(7):
            case 0:
                del tokens[at : at + rng.choice((1, 1, 2, 10))]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = rng.choice(SPLICES)
            case 4:
                tokens.insert(at, rng.choice(SPLICES))
            case 5:
                tokens[at] = rng.choice(TOKEN.findall(rng.choice(others)))
            case _:
                if rng.randrange(4) == 0:
                    del tokens[at:]
                else:
                    tokens[at : at + 1] = list(tokens[at])[::-1]
        tokens = tokens or [" "]
    return "".join(tokens)


Calls = frozenset[tuple[CodeType, CodeType | None, int]]
"""Which function called which one, from which line."""


@contextmanager
def calls_of(most: int) -> Iterator[Callable[[], Calls]]:
    """A block whose calls are collected; more than `most` are an `AssertionError`."""
    made = 0
    found: set[tuple[CodeType, CodeType | None, int]] = set()

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        if event == "call":
            back = frame.f_back
            found.add((frame.f_code, None, 0) if back is None else (frame.f_code, back.f_code, back.f_lineno))
        elif event != "c_call":
            return
        made += 1
        if made > most:
            sys.setprofile(None)
            raise AssertionError(f"more than {most} calls")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # a collection in the block would call what belongs to other texts
    sys.setprofile(count)
    try:
        yield lambda: frozenset(found)
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def check(text: str) -> tuple[bool, Calls]:
    """Read a text; return whether it was accepted, after checking that it prints and reads back, and the calls made.

    Refused or not, it is read with few calls for each of its characters; three times as many are allowed as any of
    these takes.
    """
    _read_once()
    with calls_of(NAMES + 100 * len(text)) as calls:
        try:
            module = parse_text(context(), text, "fuzz.mlir")
        except SourceError as e:
            check_places(e)
            return False, calls()
    for generic in (False, True):
        printed = text_of(module, generic)
        assert text_of(parse_text(context(), printed, "printed.mlir"), generic) == printed, "prints as another text"
    return True, calls()


@functools.cache
def _read_once() -> None:
    """Read texts with unknown ops, in pretty and generic form, so that no text of the campaign is the first one, for
    which modules are imported and installed packages searched for dialects.
    """
    for text in ("ait.unknown()", '"unknown.op"() : () -> ()'):
        with suppress(SourceError):
            parse_text(context(), text, "fuzz.mlir")


def check_places(error: SourceError) -> None:
    """An error has a place and a message of one line that a user understands."""
    assert error.diagnostics
    for d in error.diagnostics:
        assert d.line >= 1 and d.column >= 1 and d.message.strip(), str(d)
        assert "\n" not in d.message and "cannot be read" not in d.message, str(d)


def check_compiled(text: str) -> None:
    """A text that was accepted is planned, or refused with an error of ours."""
    try:
        run_to_phase(parse_text(context(), text, "fuzz.mlir"), "planned", CompileOptions("cpu", "x86-64-v3"))
    except AitError as error:
        assert str(error).strip()


def check_pipeline(text: str) -> tuple[bool, Calls]:
    """A pipeline is read, or refused with a place."""
    with calls_of(20_000 + 1000 * len(text)) as calls:
        try:
            parse_passes(text)
        except SourceError as error:
            check_places(error)
            return False, calls()
    return True, calls()


@functools.cache
def pipelines() -> list[str]:
    """Pipelines of whole phases, and each pass alone."""
    ends = [("imported", "planned", target) for target in ("cpu", "cuda", "rocm")]
    return [
        *(passes_between(*end) for end in ends),
        *PASSES,
        'apply-patterns{file="a.mlir"}',
        "assign-streams{streams=2}",
    ]


@functools.cache
def examples() -> list[str]:
    return sources()


class Population:
    """The texts of one range: the same for the same first seed."""

    def __init__(self, first: int) -> None:
        self._draw = random.Random(first)
        self._seen: set[object] = set()
        self._found: dict[bool, list[str]] = {False: [], True: []}
        self.counts: Counter[str] = Counter()

    def next(self, seed: int) -> tuple[bool, str]:
        """Whether the text of a seed is a pipeline, and the text. Half descend from texts that came further."""
        is_pipeline = seed % PIPELINES == 0
        known = pipelines() if is_pipeline else examples()
        found = self._found[is_pipeline]
        parent = self._draw.choice(found) if found and self._draw.randrange(2) else self._draw.choice(known)
        return is_pipeline, mutate(self._draw, parent, known)

    def try_next(self, seed: int) -> str:
        """What went wrong with the text of a seed, with the text; or nothing."""
        is_pipeline, text = self.next(seed)
        start = time.process_time()
        try:
            accepted, calls = check_pipeline(text) if is_pipeline else check(text)
            seconds = time.process_time() - start
            assert seconds < SECONDS, f"{seconds:.1f} s"
            self.counts["accepted" if accepted else "refused"] += 1
            if not is_pipeline and accepted and self.counts["accepted"] % COMPILED == 0:
                check_compiled(text)
        except (Exception, RecursionError) as error:
            return f"seed {seed}: {type(error).__name__}: {error}\n{text}"
        if not self._seen >= calls:
            self._seen |= calls
            self._found[is_pipeline].append(text)
        return ""

    @property
    def finds(self) -> int:
        """How many texts made calls that none before them had made."""
        return sum(map(len, self._found.values()))


def try_range(first: int) -> Tried:
    """Try a range of seeds."""
    population = Population(first)
    told = [(seed, population.try_next(seed)) for seed in range(first, first + RANGE)]
    return Tried(first, RANGE, [(seed, text) for seed, text in told if text])


def save(seed: int, folder: Path) -> None:
    """Write the text of a seed that failed."""
    first = seed // RANGE * RANGE
    population = Population(first)
    for earlier in range(first, seed):
        population.try_next(earlier)
    (folder / f"seed_{seed}.mlir").write_text(population.next(seed)[1])


CAMPAIGN = Campaign("texts", "texts accepted or refused", RANGE, try_range, save)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main("Malformed texts of the IR and of pipelines, guided by coverage.", "build/fuzz_text"))
