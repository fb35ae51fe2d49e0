"""Who a view or an alert belongs to, and who asks the lake for something.

A program that reaches the lake's socket says which of the two it acts for: for the operator, whose
socket it is, or for a user of the router, with the rights that the router's rules give this user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zenlake.errors import LocalError
from zenlake.keys.rights import Rights
from zenlake.lake.model.row_access import EVERYTHING, RowAccess

__all__ = [
    "OPERATOR",
    "OwningUser",
    "access_of",
    "asker_of",
    "owner_in",
    "router_of",
    "words_of",
]

OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class OwningUser:
    """A user of the router; the operator is None instead."""

    user: str | None
    """None: anybody who asks over HTTP, where no credentials are asked for."""
    rights: Rights
    """Those that the user had when the view or alert was made: it was planned with them."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON can write it."""
        return {"user": self.user, **self.rights.plain()}

    @classmethod
    def of(cls, plain: object) -> OwningUser:
        """Return what `plain` wrote; raises `LocalError` for anything else."""
        if isinstance(plain, Mapping) and "user" in plain:
            user = plain["user"]
            if user is None or isinstance(user, str):
                return cls(user, Rights.of(plain))
        raise LocalError(f"this is no user with rights: {str(plain)[:80]}")


def owner_in(definition: Mapping[str, Any]) -> OwningUser | None:
    """Return whose a stored definition is; None: the operator's.

    A definition that was made before views had owners has none: it is the operator's.
    """
    plain = definition.get("owner", OPERATOR)
    return None if plain == OPERATOR else OwningUser.of(plain)


def asker_of(request: Mapping[str, Any]) -> OwningUser | None:
    """Return who a request is made for; None: for the operator. It must say so."""
    plain = request.get("as")
    if plain == OPERATOR:
        return None
    if not isinstance(plain, Mapping):
        raise LocalError(
            f'a request says who it is made for: "as": "{OPERATOR}" for whoever runs the lake, or '
            '"as": {"user": NAME, "readable": …, "writable": …} as a router writes it'
        )
    return OwningUser.of(plain)


def router_of(request: Mapping[str, Any]) -> str:
    """Return the router that says what users may do; raises `LocalError` where none is named."""
    router = request.get("router")
    if not isinstance(router, str) or not router:
        raise LocalError('a request with rights of users names the router of them: "router": ZID')
    return router


def access_of(owner: OwningUser | None) -> RowAccess:
    """Return the rows that what belongs to somebody may see."""
    return EVERYTHING if owner is None else EVERYTHING.asked_by(owner.rights.readable)


def words_of(owner: OwningUser | None) -> str:
    """Return how an owner is called in sentences."""
    if owner is None:
        return "the operator"
    return "whoever asks over HTTP" if owner.user is None else f"user '{owner.user}'"
