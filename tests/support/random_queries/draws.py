"""Choices that can be repeated, and made smaller: a query is what its numbers say."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """Draws by numbers, of which 0 is always the simplest choice.

    Args:
        source: where numbers come from that are not in `numbers`; None goes on with zeros.
        numbers: the first ones.
    """

    def __init__(self, source: random.Random | None, numbers: Sequence[int] = ()) -> None:
        self._source = source
        self._given = numbers
        self.numbers: list[int] = []

    def below(self, bound: int) -> int:
        """A number from 0."""
        place = len(self.numbers)
        if place < len(self._given):
            number = self._given[place] % bound
        else:
            number = self._source.randrange(bound) if self._source else 0
        self.numbers.append(number)
        return number

    def of(self, choices: Sequence[T]) -> T:
        """One of several, the simplest first."""
        return choices[self.below(len(choices))]

    def maybe(self, percent: int) -> bool:
        """True in so many of a hundred draws."""
        return self.below(100) >= 100 - percent

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Several different ones, in a random order; fewer where there are not enough."""
        left, count = list(choices), least + self.below(most - least + 1)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


def smaller(numbers: Sequence[int], holds: Callable[[Sequence[int]], bool], trials: int) -> Sequence[int]:
    """The least numbers that were found of which something still holds.

    Args:
        numbers: of which it holds.
        holds: whether it holds of others.
        trials: how often to ask.
    """
    best, width = list(numbers), max(len(numbers) // 2, 1)
    while trials > 0 and width:
        start = 0
        while trials > 0 and start < len(best):
            cut = [*best[:start], *best[start + width :]]
            zeros = [*best[:start], *([0] * len(best[start : start + width])), *best[start + width :]]
            for candidate in (cut, zeros):
                if candidate != best and trials > 0:
                    trials -= 1
                    if holds(candidate):
                        best = candidate
                        break
            else:
                start += width
                continue
            if candidate is zeros:
                start += width
        width //= 2
    return best
