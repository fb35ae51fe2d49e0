"""How a question is asked; the values are those of the wire."""

from __future__ import annotations

from enum import Enum

__all__ = ["ConsolidationMode", "QueryTarget", "ReplyKeyExpr"]


class QueryTarget(Enum):
    """Who is asked."""

    BEST_MATCHING = 0
    ALL = 1
    ALL_COMPLETE = 2
    DEFAULT = 0  # BEST_MATCHING

    def __repr__(self) -> str:
        return str(self)


class ConsolidationMode(Enum):
    """What becomes of several answers for one key.

    NONE passes all on, MONOTONIC drops those older than one passed on before, LATEST waits for
    the end and passes the newest on, AUTO chooses by the question.
    """

    AUTO = 0
    NONE = 1
    MONOTONIC = 2
    LATEST = 3
    DEFAULT = 0  # AUTO

    def __call__(self) -> ConsolidationMode:
        """Itself: Eclipse documents `QueryConsolidation.mode` as a property and has a method."""
        return self

    def __repr__(self) -> str:
        return str(self)


class ReplyKeyExpr(Enum):
    """Whether an answer may be about a key that was not asked for."""

    ANY = 0
    MATCHING_QUERY = 1
    DEFAULT = 1  # MATCHING_QUERY

    def __repr__(self) -> str:
        return str(self)
