"""What the Delta log says of a file: how many rows, and between which values each column lies.

It is what lets every reader pass over files. The numbers are those of the file's own footer, so
they are true of the bytes that were written.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

__all__ = ["LONGEST", "statistics"]

LONGEST: Final = 64
"""Characters of text that a bound keeps."""

_LAST: Final = "\U0010ffff"


def statistics(footer: Any) -> str:
    """The statistics of a Parquet file, from its footer (`FileMetaData`), as JSON."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for n in range(row_group.num_columns):
            column = row_group.column(n)
            name = column.path_in_schema
            if "." in name:  # the inside of a list has no bounds
                continue
            measured = column.statistics
            if measured is None:
                unknown.add(name)
                continue
            if measured.has_null_count:
                nulls[name] = nulls.get(name, 0) + measured.null_count
            if measured.has_min_max:
                try:
                    low, high = _bound(measured.min), _bound(measured.max)
                except (OverflowError, ValueError):  # a time that Python has not
                    low = high = None
                if low is None or high is None:
                    unknown.add(name)
                    continue
                least[name] = min(least.get(name, low), low)
                most[name] = max(most.get(name, high), high)
            elif measured.null_count != row_group.num_rows:
                unknown.add(name)
    for name in unknown:
        least.pop(name, None)
        most.pop(name, None)
    return json.dumps(
        {
            "numRecords": footer.num_rows,
            "minValues": {name: _written(value) for name, value in least.items()},
            "maxValues": {name: _written(value, up=True) for name, value in most.items()},
            "nullCount": nulls,
        },
        ensure_ascii=False,
    )


def _bound(value: object) -> Any:
    if isinstance(value, bool | bytes | Decimal):
        return None  # JSON has no decimals with all their digits
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _written(value: object, up: bool = False) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) > LONGEST:
        return value[:LONGEST] + _LAST if up else value[:LONGEST]
    return value
