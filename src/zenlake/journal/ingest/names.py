"""Keys and ids as neighbours name them, to be known again without making an object."""

from __future__ import annotations

from mypy_extensions import i64

from zenlake.node.routes.forward import HeadRoute, Inbound


class SeenId:
    """The id that was seen last somewhere, to be known again without making an object."""

    __slots__ = ("high", "low", "number", "size")

    def __init__(self) -> None:
        """None yet."""
        self.size: i64 = 0
        self.low: i64 = 0
        self.high: i64 = 0
        self.number: i64 = 0


class KeyName:
    """A key as one neighbour names it; it rarely has more than one publisher."""

    __slots__ = (
        "deletes",
        "forwarded",
        "inbound",
        "key",
        "route",
        "routes",
        "said",
        "short",
        "source",
        "stamp",
        "suffix",
    )  # fmt: skip

    def __init__(
        self, key: i64, short: i64, suffix: bytes, inbound: Inbound, deletes: bool
    ) -> None:
        """`key`: its number; `short`: header and scope of the messages that name it."""
        self.inbound: Inbound = inbound
        self.deletes: bool = deletes
        #: Whether other neighbours hear it; how its puts go on by what their heads say beside the
        #: key, and the last of these ways.
        self.forwarded: bool = bool(inbound.faces)
        self.routes: dict[int, HeadRoute] = {}
        self.said: i64 = -1
        self.route: HeadRoute | None = None
        self.key: i64 = key
        self.short: i64 = short
        self.suffix: bytes = suffix
        self.stamp: SeenId = SeenId()
        self.source: SeenId = SeenId()
