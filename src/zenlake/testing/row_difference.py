"""How the rows of a table differ from those that a test expects, in words; pure.

>>> print(row_difference([{"id": "7", "n": 2}], [{"id": "7", "n": 3}]))
1 rows, 1 expected:
  changed     id='7'  n: expected 3, is 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["row_difference"]

Row = Mapping[str, Any]

MOST_SHOWN: Final = 20
"""Rows of each kind that a difference shows."""
MOST_PAIRED: Final = 300
"""Rows that are compared with each other to find which of them have changed."""
MOST_TEXT: Final = 200
"""Characters of a value that are shown."""


def row_difference(actual: Sequence[Row], expected: Sequence[Row], by: Sequence[str] = ()) -> str:
    """Return how rows differ, and nothing if they are the same rows in any order.

    `by`: the columns that name a row; without them a row that is missing and one that is unexpected
    are the same row, changed, if at least half of their values are equal. Expected values may be
    such as `pytest.approx(0.3)`.
    """
    told = _columns_differ(actual, expected)
    if told:
        return told
    missing, unexpected = _unmatched(actual, expected)
    if not missing and not unexpected:
        return ""
    changed = _changed(missing, unexpected, by)
    lines = [
        *_bounded("changed", [_change(want, have, by) for want, have in changed]),
        *_bounded("missing", [_words(row) for row in missing]),
        *_bounded("unexpected", [_words(row) for row in unexpected]),
    ]
    return "\n".join([f"{len(actual)} rows, {len(expected)} expected:", *lines])


def _columns_differ(actual: Sequence[Row], expected: Sequence[Row]) -> str:
    """Return which columns only one side has."""
    if not actual or not expected:
        return ""
    wanted = dict.fromkeys(name for row in expected for name in row)
    has = dict.fromkeys(name for row in actual for name in row)
    lines = []
    if lacking := [name for name in wanted if name not in has]:
        lines.append(f"  missing     {', '.join(lacking)}")
    if more := [name for name in has if name not in wanted]:
        lines.append(f"  unexpected  {', '.join(more)}")
    if not lines:
        return ""
    return "\n".join(["the columns differ; columns=[…] compares only some of them:", *lines])


def _unmatched(actual: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of each side that no row of the other equals: missing, unexpected."""
    waiting: dict[str, list[Row]] = {}
    for row in actual:
        waiting.setdefault(_exact(row), []).append(row)
    missing: list[Row] = []
    for row in expected:
        same = waiting.get(_exact(row))
        if same:
            same.pop()
        else:
            missing.append(row)
    left = [row for rows in waiting.values() for row in rows]
    # Values such as `pytest.approx` equal values that are written differently.
    still: list[Row] = []
    for number, row in enumerate(missing):
        equal = _first_equal(row, left) if number < MOST_PAIRED else None
        if equal is None:
            still.append(row)
        else:
            del left[equal]
    return still, left


def _first_equal(row: Row, others: Sequence[Row]) -> int | None:
    for number, other in enumerate(others[:MOST_PAIRED]):
        if row.keys() == other.keys() and all(_equal(row[name], other[name]) for name in row):
            return number
    return None


def _changed(missing: list[Row], unexpected: list[Row], by: Sequence[str]) -> list[tuple[Row, Row]]:
    """Take pairs of one row, as expected and as it is, out of both lists."""
    pairs: list[tuple[Row, Row]] = []
    left: list[Row] = []
    for number, want in enumerate(missing):
        best = _most_alike(want, unexpected, by) if number < MOST_PAIRED else None
        if best is None:
            left.append(want)
        else:
            pairs.append((want, unexpected.pop(best)))
    missing[:] = left
    return pairs


def _most_alike(want: Row, others: Sequence[Row], by: Sequence[str]) -> int | None:
    best, most = None, 0
    for number, have in enumerate(others[:MOST_PAIRED]):
        if by:
            if all(_equal(want.get(name), have.get(name)) for name in by):
                return number
            continue
        equal = sum(_equal(value, have.get(name)) for name, value in want.items())
        if 2 * equal >= len(want) and equal > most:
            best, most = number, equal
    return best


def _change(want: Row, have: Row, by: Sequence[str]) -> str:
    names = list(dict.fromkeys([*want, *have]))
    same = [name for name in names if _equal(want.get(name), have.get(name))]
    named = "  ".join(f"{name}={_text(have.get(name))}" for name in (by or same))
    changes = "; ".join(
        f"{name}: expected {_text(want.get(name))}, is {_text(have.get(name))}"
        for name in names
        if name not in same
    )
    return f"{named}  {changes}"


def _bounded(kind: str, rows: Sequence[str]) -> list[str]:
    lines = [f"  {kind:10}  {row}" for row in rows[:MOST_SHOWN]]
    if len(rows) > MOST_SHOWN:
        lines.append(f"  {kind:10}  … and {len(rows) - MOST_SHOWN} more")
    return lines


def _words(row: Row) -> str:
    return "  ".join(f"{name}={_text(value)}" for name, value in row.items())


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _exact(row: Row) -> str:
    return repr(sorted(row.items(), key=lambda item: item[0]))


def _equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and one != one and other != other:
        return True  # two NaN
    # For Python True is 1; for a table they are of different columns.
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and isinstance(one, bool) is not isinstance(other, bool):
        return False
    return bool(one == other)
