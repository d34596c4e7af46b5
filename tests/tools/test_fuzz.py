"""Mutated examples: each is refused with a place, or accepted and printed as text that reads back the same."""

from __future__ import annotations

import random
import re
from pathlib import Path

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError
from tests import tiers
from tests.effort import at_most
from tests.lit.round_trip import text_of

ROOT = Path(__file__).parents[2]
COUNT = 2_000 if tiers.FULL else 1_000

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


def check(text: str) -> bool:
    """Read a text; return whether it was accepted, after checking that it prints and reads back.

    Refused or not, it is read with few calls for each of its characters; three times as many are allowed as any of these takes.
    """
    try:
        with at_most(1000 + 100 * len(text)):
            module = parse_text(context(), text, "fuzz.mlir")
    except SourceError as e:
        assert e.diagnostics
        for d in e.diagnostics:
            assert d.line >= 1 and d.column >= 1 and d.message.strip(), str(d)
            assert "\n" not in d.message and "cannot be read" not in d.message, str(d)
        return False
    for generic in (False, True):
        printed = text_of(module, generic)
        assert text_of(parse_text(context(), printed, "printed.mlir"), generic) == printed
    return True


def test_mutated_inputs() -> None:
    rng = random.Random(20_240_817)
    texts = sources()
    accepted = 0
    for number in range(COUNT):
        text = mutate(rng, rng.choice(texts), texts)
        try:
            accepted += check(text)
        except BaseException as e:
            raise AssertionError(f"mutation {number}: {type(e).__name__}: {e}\n{text}") from e
    print(f"{COUNT} mutated inputs, {accepted} accepted")
    assert 0.02 * COUNT < accepted < 0.9 * COUNT
