"""How much one question may take: of time, rows, memory, and of those who read it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QueryLimits"]


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The bounds of one question."""

    seconds: float = 60.0
    """From the moment that it is asked, waiting included."""
    planning: float = 30.0
    """Seconds of it that planning may take, once Java has planned anything."""
    rows: int = 1_000_000
    bytes: int = 256 << 20
    text: int = 65_536
    """Characters of the question."""
    nodes: int = 3_000
    """Nodes of its plans, expressions counted."""
