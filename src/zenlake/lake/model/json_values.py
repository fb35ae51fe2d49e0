"""Values of tables as JSON has them."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Return a value as JSON has it.

    Bytes are text, or hexadecimal if they are none. What JSON has no number for is written as Spark
    writes it: "NaN", "Infinity", "-Infinity".
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value).hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
