"""Datetimes with a zone, and whole microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["EPOCH", "datetime_at", "micros_of"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def micros_of(when: datetime) -> int:
    """Return the microseconds since 1970 of a moment with a time zone."""
    return (when - EPOCH) // _MICROSECOND


def datetime_at(micros: int) -> datetime:
    """Return the moment in UTC; raises `OverflowError` outside of the years 1 to 9999."""
    return EPOCH + timedelta(microseconds=micros)
