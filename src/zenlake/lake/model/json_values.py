"""Values of tables as JSON has them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A value as JSON has it: bytes as text, or in hexadecimal if they are none."""
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
