"""Finds what the writer of a wrong word most likely meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["distance", "nearest"]

MOST_LETTERS = 80


def distance(one: str, other: str) -> int:
    """How many letters must be added, dropped, changed or swapped with the next."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, against in enumerate(other, 1):
            cost = min(
                last[column] + 1,
                current[-1] + 1,
                last[column - 1] + (0 if letter == against else 1),
            )
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        before_last, last = last, current
    return last[-1]


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a typing mistake could have turned into `word`, if one is near enough.

    A third of the letters may be wrong, and one always may. Words of absurd length get no answer,
    because the search grows with their length.
    """
    if len(word) > MOST_LETTERS:
        return None
    best: str | None = None
    least = max(1, len(word) // 3) + 1
    for candidate in candidates:
        if abs(len(candidate) - len(word)) < least:
            apart = distance(word, candidate)
            if apart < least:
                best, least = candidate, apart
    return best
