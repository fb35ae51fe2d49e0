"""The answer to a scout: here I am."""

from __future__ import annotations

from typing import final

from zenlake.clock import ZenohId
from zenlake.values.whatami import WhatAmI

__all__ = ["Hello"]


@final
class Hello:
    """A node that was found: its id, what it is, and where it can be reached."""

    __slots__ = ("_locators", "_whatami", "_zid")

    def __init__(self, zid: ZenohId, whatami: WhatAmI, locators: tuple[str, ...] = ()) -> None:
        self._zid: ZenohId = zid
        self._whatami: WhatAmI = whatami
        self._locators: tuple[str, ...] = tuple(locators)

    @property
    def zid(self) -> ZenohId:
        """Who it is."""
        return self._zid

    @property
    def whatami(self) -> WhatAmI:
        """Router, peer or client."""
        return self._whatami

    @property
    def locators(self) -> list[str]:
        """Where it can be reached."""
        return list(self._locators)

    def __str__(self) -> str:
        where = ", ".join(self._locators) or "nowhere"
        return f"{self._whatami} {self._zid} at {where}"

    def __repr__(self) -> str:
        return f"Hello(ZenohId.parse('{self._zid}'), {self._whatami!r}, {self._locators!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Hello)
            and self._zid == other._zid
            and self._whatami is other._whatami
            and self._locators == other._locators
        )

    def __hash__(self) -> int:
        return hash((self._zid, self._whatami, self._locators))

    def __reduce__(self) -> tuple[type[Hello], tuple[ZenohId, WhatAmI, tuple[str, ...]]]:
        return Hello, (self._zid, self._whatami, self._locators)
