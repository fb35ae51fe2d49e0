"""What a view or an alert is: a question with a name.

`lake/maintain/definition_store` keeps it in the lake's folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from zenlake.errors import LocalError
from zenlake.lake.model.config import FIXED
from zenlake.lake.model.owner import OPERATOR, OwningUser, access_of, owner_in, words_of
from zenlake.lake.model.row_access import RowAccess

__all__ = [
    "MOST",
    "MOST_OF_USER",
    "ContinuousQuery",
    "Kind",
    "demand_name",
    "demand_share",
]

MOST: Final = 16
"""Views and alerts that a lake has at most: each is a query of Spark that always runs."""

MOST_OF_USER: Final = 4
"""Those of them that one user may have from whom access control keeps some keys."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

Kind = Literal["view", "alert"]


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """One view or alert."""

    name: str
    kind: Kind
    sql: str
    late: float = 10.0
    """Seconds that data of a window may come late."""
    hold: float = 0.0
    """Seconds that the condition of an alert must hold."""
    history: bool = False
    """Whether it begins with all that the tables have, and not with what comes from now on."""
    id: str = field(kw_only=True)
    """Another one for each that is made, also under a name that there was before."""
    created: float = field(kw_only=True)
    """When it was made; seconds since 1970."""
    owner: OwningUser | None = None
    """Whose rights it has; None: the operator's, who sees everything."""

    @property
    def access(self) -> RowAccess:
        """The rows that it may see."""
        return access_of(self.owner)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ContinuousQuery:
        """What `plain` wrote; facts of another release that are not known here are left out."""
        known = {f.name: plain[f.name] for f in fields(cls) if f.name in plain}
        return cls(**{**known, "owner": owner_in(plain)})

    def plain(self) -> dict[str, Any]:
        """As JSON can write it."""
        facts = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**facts, "owner": OPERATOR if self.owner is None else self.owner.plain()}

    def shown(self) -> dict[str, Any]:
        """As it is shown to the operator: its owner in words."""
        return {**self.plain(), "owner": words_of(self.owner)}


def demand_name(name: str, taken: set[str]) -> None:
    """Refuse a name that no table of the lake can have, or that one has."""
    if not _NAME.fullmatch(name):
        raise LocalError(
            f"'{name}' cannot be a name: it has lower-case letters, digits and _, and begins with "
            "a letter"
        )
    if name in FIXED or name in taken:
        raise LocalError(f"the lake has a table '{name}' already; choose another name")


def demand_share(one: ContinuousQuery, every: Collection[ContinuousQuery]) -> None:
    """Refuse one more than a lake may have, or one user from whom keys are kept."""
    if len(every) >= MOST:
        raise LocalError(
            f"the lake has {MOST} views and alerts already, and each needs a part of its Spark; "
            "drop one"
        )
    owner = one.owner
    if owner is None or owner.rights.unrestricted:
        return
    mine = [other for other in every if other.owner and other.owner.user == owner.user]
    if len(mine) >= MOST_OF_USER:
        raise LocalError(
            f"{words_of(owner)} has {MOST_OF_USER} views and alerts already; drop one, or have the "
            "operator of the lake make this one"
        )
