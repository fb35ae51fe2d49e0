"""What a node is in its network, and the kinds of nodes that are looked for.

role      code (2 bits, where one is meant)    flag (3 bits, where several may be)
router    0                                    1
peer      1                                    2
client    2                                    4
"""

from __future__ import annotations

from enum import Enum
from typing import final

from zenlake.errors import ConfigError

__all__ = ["WhatAmI", "WhatAmIMatcher"]


class WhatAmI(Enum):
    """Router, peer or client; the value is its flag."""

    ROUTER = 1
    PEER = 2
    CLIENT = 4

    @classmethod
    def _missing_(cls, value: object) -> WhatAmI | None:
        """`WhatAmI("router")` is the role of that name."""
        return cls.parse(value) if isinstance(value, str) else None

    @classmethod
    def parse(cls, text: str) -> WhatAmI:
        """The role that `text` names."""
        for role in WhatAmI:
            if str(role) == text:
                return role
        raise ConfigError(f"'{text}' is no role of a node; write router, peer or client")

    @property
    def code(self) -> int:
        """The two bits where exactly one role is meant."""
        return self.value >> 1

    def __str__(self) -> str:
        return self.name.lower()

    def __repr__(self) -> str:
        return f"WhatAmI.{self.name}"


@final
class WhatAmIMatcher:
    """A set of roles, written `router|peer`."""

    __slots__ = ("_flags",)

    def __init__(self, matcher: str | WhatAmIMatcher | None = None) -> None:
        """Read a set of roles; nothing given matches nothing."""
        self._flags: int = 0
        if isinstance(matcher, WhatAmIMatcher):
            self._flags = matcher._flags
        elif matcher is not None:
            for name in matcher.split("|"):
                if name.strip():
                    self._flags |= WhatAmI.parse(name.strip()).value

    @classmethod
    def empty(cls) -> WhatAmIMatcher:
        """The set that matches nothing."""
        return cls()

    @classmethod
    def from_flags(cls, flags: int) -> WhatAmIMatcher:
        """The set with these flags of the wire; other bits are ignored.

        Args:
            flags: The bits of the modes.
        """
        matcher = cls()
        matcher._flags = flags & 0b111
        return matcher

    @property
    def flags(self) -> int:
        """The three bits on the wire."""
        return self._flags

    def router(self, /) -> WhatAmIMatcher:
        """This set and routers."""
        return WhatAmIMatcher.from_flags(self._flags | WhatAmI.ROUTER.value)

    def peer(self, /) -> WhatAmIMatcher:
        """This set and peers."""
        return WhatAmIMatcher.from_flags(self._flags | WhatAmI.PEER.value)

    def client(self, /) -> WhatAmIMatcher:
        """This set and clients."""
        return WhatAmIMatcher.from_flags(self._flags | WhatAmI.CLIENT.value)

    def is_empty(self, /) -> bool:
        """Whether it matches nothing."""
        return self._flags == 0

    def matches(self, /, whatami: WhatAmI) -> bool:
        """Whether the role is in the set.

        Args:
            whatami: The mode of a node.
        """
        return self._flags & whatami.value != 0

    def __contains__(self, whatami: WhatAmI | str) -> bool:
        return self.matches(WhatAmI.parse(whatami) if isinstance(whatami, str) else whatami)

    def __str__(self) -> str:
        return "|".join([str(role) for role in WhatAmI if self.matches(role)])

    def __repr__(self) -> str:
        return f"WhatAmIMatcher('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WhatAmIMatcher) and self._flags == other._flags

    def __hash__(self) -> int:
        return hash(self._flags)

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return WhatAmIMatcher.from_flags, (self._flags,)
