"""What a recorder is told: which keys, where to, and what to reply."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal

from zenlake.errors import KeyExprError, LocalError
from zenlake.keys import KeyExpr, includes, is_wild

__all__ = ["Around", "Options", "RetainRule", "checked_name", "distinct"]


@dataclass(frozen=True, slots=True)
class Around:
    """Which samples are events, and how much is kept before and after one, in seconds.

    `key_expr` may have a filter: `robot/*/fault?_filter=level>2`.
    """

    key_expr: str
    before: float
    after: float
    #: How many bytes of rows wait in memory for an event.
    most_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class RetainRule:
    """How long, in seconds, values of the keys that an expression includes are kept."""

    keys: str
    age: float

    def __post_init__(self) -> None:
        if not (self.age > 0 and math.isfinite(self.age)):
            raise LocalError(
                f"keeping '{self.keys}' for {self.age} s is keeping nothing, or all; give a number "
                "above zero, or leave the rule away"
            )


@dataclass(frozen=True, slots=True)
class Options:
    """What to record, where to, and what to reply."""

    key_exprs: tuple[str, ...]
    path: str
    name: str | None = None
    partitions: int | None = None
    fsync: str = "50ms"
    segment_bytes: int = 128 << 20
    segment_age: float = 3600.0
    retain_bytes: int | None = None
    retain_age: float | None = None
    #: How much more is kept for readers that have not read it; None: nothing.
    hold_bytes: int | None = None
    #: Keys that are kept for a shorter time; the first rule that includes a key decides.
    retain: tuple[RetainRule, ...] = ()
    on_full: Literal["block", "drop"] = "block"
    #: Whether to reply for the keys that are recorded.
    answer: bool = True
    #: Whether to reply to queries about the past of these keys.
    answer_time: bool = True
    #: Whether to tell others that no one need be asked beside.
    complete: bool = False
    #: Whether to ask publishers for what did not come, and for what they said before.
    heal: bool = True
    #: Write only what lies around events.
    around: Around | None = None


def checked_name(options: Options) -> str:
    """What a new journal is called; others ask for it by that name, so it has to be a key."""
    name = options.name or os.path.basename(os.path.abspath(options.path))
    try:
        if is_wild(str(KeyExpr(f"@journal/{name}"))):
            raise KeyExprError("it has wildcards")
    except KeyExprError as error:
        raise LocalError(
            f"a journal cannot be called '{name}', because others ask for it by that name "
            f"({error}); give it another"
        ) from error
    return name


def distinct(exprs: tuple[str, ...]) -> list[str]:
    """Key expressions without those that another one includes: each key is recorded once."""
    if not exprs:
        raise LocalError("nothing to record: name at least one key expression, such as 'robot/**'")
    distinct_exprs: list[str] = []
    for expr in dict.fromkeys(str(KeyExpr.of(expr)) for expr in exprs):
        if not any(includes(other, expr) for other in distinct_exprs):
            distinct_exprs = [other for other in distinct_exprs if not includes(expr, other)] + [
                expr
            ]
    return distinct_exprs
