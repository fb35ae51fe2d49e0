"""The report of one step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Step"]


@dataclass(slots=True)
class Step:
    """What one step did."""

    planned: int = 0
    """Rows that the step was to read."""
    rows: int = 0
    behind: int = 0
    """Durable rows that some table has not yet."""
    lost: int = 0
    """Rows that the journal had dropped before they were read."""
    quarantined: int = 0
    seconds: float = 0.0
    told: list[str] = field(default_factory=list)
    """What went wrong and was dealt with, in sentences."""
    commits: dict[str, int] = field(default_factory=dict)
    """The version of each table that this step made."""
