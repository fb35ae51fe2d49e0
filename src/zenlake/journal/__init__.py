"""A durable, columnar log of what was heard."""

from __future__ import annotations

from zenlake.journal.schema import SCHEMA, UNNUMBERED

__all__ = ["SCHEMA", "UNNUMBERED"]
