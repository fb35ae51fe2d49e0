"""What becomes of several replies for one key."""

from __future__ import annotations

from typing import ClassVar, final

from zenlake.values import ConsolidationMode

__all__ = ["IntoQueryConsolidation", "QueryConsolidation"]


@final
class QueryConsolidation:
    """What becomes of several replies for one key."""

    __slots__ = ("_mode",)

    AUTO: ClassVar[QueryConsolidation]
    DEFAULT: ClassVar[QueryConsolidation]

    def __init__(self, mode: ConsolidationMode) -> None:
        """Wrap a mode."""
        self._mode: ConsolidationMode = mode

    @property
    def mode(self) -> ConsolidationMode:
        """The mode."""
        return self._mode

    def __eq__(self, other: object) -> bool:
        """Equal by mode."""
        return isinstance(other, QueryConsolidation) and self._mode is other._mode

    def __hash__(self) -> int:
        """Equal ones have equal hashes."""
        return hash(self._mode)

    def __repr__(self) -> str:
        """How to write it."""
        return f"QueryConsolidation({self._mode})"


QueryConsolidation.AUTO = QueryConsolidation(ConsolidationMode.AUTO)
QueryConsolidation.DEFAULT = QueryConsolidation.AUTO

IntoQueryConsolidation = ConsolidationMode | QueryConsolidation
