"""What a user may read and write, as whoever acts for them later has to know it.

Access control (`routing/policy/access`) decides it. What acts for a user when they are not there,
such as a view of a lake, carries it: on a socket and in files it is JSON with two texts.

    Rights.of({"readable": "W10", "writable": "W10"}).readable.lets("robot/7")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from zenlake.errors import LocalError, SelectorError
from zenlake.keys.readable import ALL_KEYS, ReadableChoice, ReadableKeys
from zenlake.records import record

__all__ = ["ALL_RIGHTS", "Rights", "in_order"]


@record(frozen=True, slots=True)
class Rights:
    """The keys that a user may read, and those that they may put."""

    #: By queries and their replies.
    readable: ReadableKeys = ALL_KEYS
    writable: ReadableKeys = ALL_KEYS

    @property
    def unrestricted(self) -> bool:
        """Whether no key is kept from the user."""
        return self.readable.unrestricted and self.writable.unrestricted

    def both(self, other: Rights) -> Rights:
        """Return what both allow."""
        return Rights(
            ReadableKeys(self.readable.demands + other.readable.demands),
            ReadableKeys(self.writable.demands + other.writable.demands),
        )

    def plain(self) -> dict[str, str]:
        """Return it as JSON can write it."""
        return {"readable": self.readable.text(), "writable": self.writable.text()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Rights:
        """Return what `plain` wrote; raises `LocalError` for anything else."""
        try:
            return cls(ReadableKeys.of(plain["readable"]), ReadableKeys.of(plain["writable"]))
        except (SelectorError, KeyError, TypeError, AttributeError) as error:
            raise LocalError(f"these are no rights of a user: {str(plain)[:80]}") from error


ALL_RIGHTS: Final = Rights()


def in_order(keys: ReadableKeys) -> ReadableKeys:
    """Return the same keys, whatever the order of the rules that allow and deny them."""
    demands = {
        tuple(sorted({_choice(one) for one in choices}, key=repr)) for choices in keys.demands
    }
    return ReadableKeys(tuple(sorted(demands, key=repr)))


def _choice(one: ReadableChoice) -> ReadableChoice:
    allowed = None if one.allowed is None else tuple(sorted(set(one.allowed)))
    return ReadableChoice(allowed, tuple(sorted(set(one.denied))))
