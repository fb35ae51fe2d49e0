"""A chart of an answer, drawn in characters: a line over numbers and times, else bars."""

from __future__ import annotations

import shutil
from datetime import datetime
from typing import TYPE_CHECKING, Any

from zenlake.errors import LocalError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bars", "drawn", "line"]

HEIGHT = 12
MOST_BARS = 40
#: Dots of a character of braille, by row and column.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
BLOCKS = " ▏▎▍▌▋▊▉█"


def drawn(answer: pa.Table, width: int | None = None) -> str:
    """The last column over the first; over its own place, if there is only one."""
    names = answer.column_names
    if not names or not answer.num_rows:
        return "nothing to draw: the answer has no rows"
    values = [_number(value) for value in answer.column(len(names) - 1).to_pylist()]
    if all(value is None for value in values):
        raise LocalError(f"'{names[-1]}' has no numbers to draw; select them as the last column")
    across = answer.column(0).to_pylist() if len(names) > 1 else list(range(len(values)))
    room = (width or shutil.get_terminal_size().columns) - 1
    places = [_number(value) for value in across]
    pairs = [(x, y) for x, y in zip(places, values, strict=True) if x is not None and y is not None]
    if len(names) > 1 and (not pairs or all(isinstance(value, str) for value in across)):
        return bars([str(word) for word in across], values, room)
    ends = [_word(value) for value in (across[0], across[-1])]
    return line(pairs, ends, room)


def line(pairs: list[tuple[float, float]], ends: list[str], width: int) -> str:
    """A line in dots of braille, with the least and the greatest value beside it."""
    low, high = min(y for _, y in pairs), max(y for _, y in pairs)
    left, right = min(x for x, _ in pairs), max(x for x, _ in pairs)
    label = max(len(f"{low:g}"), len(f"{high:g}"))
    columns = max(10, width - label - 2)
    grid = [[0] * columns for _ in range(HEIGHT)]
    before: tuple[int, int] | None = None
    for x, y in sorted(pairs, key=lambda pair: pair[0]):
        across = round((x - left) / ((right - left) or 1) * (columns * 2 - 1))
        up = round((y - low) / ((high - low) or 1) * (HEIGHT * 4 - 1))
        point = across, HEIGHT * 4 - 1 - up
        for column, down in _between(before or point, point):
            grid[down // 4][column // 2] |= DOTS[down % 4][column % 2]
        before = point
    labels = {0: f"{high:g}", HEIGHT - 1: f"{low:g}"}
    lines = [
        f"{labels.get(n, ''):>{label}} ┤" + "".join(chr(0x2800 + dots) for dots in row)
        for n, row in enumerate(grid)
    ]
    room = columns - len(ends[0]) - len(ends[1])
    lines.append(" " * (label + 2) + ends[0] + " " * max(1, room) + ends[1])
    return "\n".join(lines)


def _between(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots of a straight line, both ends included."""
    wide, high = end[0] - start[0], end[1] - start[1]
    steps = max(abs(wide), abs(high), 1)
    return [
        (start[0] + round(wide * n / steps), start[1] + round(high * n / steps))
        for n in range(steps + 1)
    ]


def bars(words: list[str], values: list[float | None], width: int) -> str:
    """A bar for each row."""
    shown = list(zip(words, values, strict=True))[:MOST_BARS]
    label = min(30, max(len(word) for word, _ in shown))
    most = max((abs(value) for _, value in shown if value is not None), default=0) or 1
    room = max(10, width - label - 12)
    lines = []
    for word, value in shown:
        eighths = 0 if value is None else round(abs(value) / most * room * 8)
        bar = "█" * (eighths // 8) + BLOCKS[eighths % 8].strip()
        lines.append(f"{word[:label]:<{label}} {bar} {'-' if value is None else f'{value:g}'}")
    if len(words) > MOST_BARS:
        lines.append(f"… and {len(words) - MOST_BARS} more")
    return "\n".join(lines)


def _number(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, str | bytes) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _word(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
