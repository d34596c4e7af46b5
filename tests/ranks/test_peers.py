"""The order of writes and reads of all-reduces through memory of the cards (`peers.cuh`), as a model with random schedules.

Cards launch one kernel after the other, of different sizes and with as many blocks. A block writes its part into the slots
of the others, tells them the number of the launch, waits for theirs and reads. A step of any block of any card is next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

LAUNCHES = ((4, 8), (1, 2), (2, 8), (4, 4), (1, 8), (3, 6), (1, 1), (4, 8))
"""The blocks of each launch, and its elements."""


@dataclass
class Card:
    """What a card has: slots [parity][member][element], the numbers of the others' blocks, and its own launches."""

    members: int
    slots: list[list[list[tuple[int, int]]]] = field(init=False)
    arrived: list[list[int]] = field(init=False)
    launches: int = 0
    ended: int = 0

    def __post_init__(self) -> None:
        self.slots = [[[(0, 0)] * 8 for _ in range(self.members)] for _ in range(2)]
        self.arrived = [[0] * 4 for _ in range(self.members)]


def block(cards: list[Card], place: int, index: int, blocks: int, size: int, slots: int, waits: bool) -> Iterator[None]:
    """The steps of a block; raises `AssertionError` if it reads what is not of its launch."""
    own, others = cards[place], [m for m in range(len(cards)) if m != place]
    number = own.launches + 1
    for element in range(index, size, blocks):
        for to in others:
            cards[to].slots[number % slots][place][element] = (number, element)
            yield
    for to in others:
        cards[to].arrived[place][index] = number
        yield
    for member in others:
        while waits and own.arrived[member][index] < number:
            yield
    for element in range(index, size, blocks):
        for member in others:
            found = own.slots[number % slots][member][element]
            assert found == (number, element), f"card {place} reads {found} in launch {number}"
            yield
    own.ended += 1
    if own.ended == blocks:
        own.ended, own.launches = 0, number


def run(seed: int, members: int, slots: int = 2, waits: bool = True) -> None:
    """All launches on all cards, in a random order of steps; some blocks and cards are slow."""
    rng = random.Random(seed)
    cards = [Card(members) for _ in range(members)]
    running: list[list[Iterator[None]]] = [[] for _ in cards]
    begun = [0] * members
    weights = [rng.choice((1, 1, 20)) for _ in cards]
    for _ in range(100_000):
        left = [m for m in range(members) if running[m] or begun[m] < len(LAUNCHES)]
        if not left:
            return
        (m,) = rng.choices(left, [weights[m] for m in left])
        if not running[m]:
            blocks, size = LAUNCHES[begun[m]]
            running[m] = [block(cards, m, i, blocks, size, slots, waits) for i in range(blocks)]
            begun[m] += 1
        steps = rng.choice(running[m])
        for _ in range(rng.choice((1, 3, 30))):
            if next(steps, steps) is steps:
                running[m].remove(steps)
                break
    raise AssertionError("the cards do not end")


@pytest.mark.parametrize("members", [2, 3])
def test_no_card_reads_what_is_not_of_its_launch(members: int) -> None:
    for seed in range(40):
        run(seed, members)


@pytest.mark.parametrize("without", [{"slots": 1}, {"waits": False}])
def test_the_model_sees_what_would_go_wrong(without: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="reads"):
        for seed in range(40):
            run(seed, 2, **without)  # pyright: ignore[reportArgumentType]
