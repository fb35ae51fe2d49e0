"""How advanced publishers and subscribers name themselves and each other.

    K/@adv/pub/<zid>/<eid>/<meta>     a publisher on K that numbers its samples
    K/@adv/pub/<zid>/uhlc/<meta>      a publisher on K that stamps its samples
    K/@adv/sub/<zid>/<eid>/<meta>     a subscriber to K

Under the first two a publisher beats, keeps its past and is alive. `@adv` is verbatim: no
wildcard of a subscriber to K meets them. `_` stands for no metadata.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from zenlake.clock.zid import ZenohId
from zenlake.errors import ZError

NO_META: Final = "_"
STAMPED: Final = "uhlc"
SERIALS: Final = 1 << 32


class SourceId(NamedTuple):
    """Who numbers samples: a node, and an entity on it."""

    zid: bytes
    eid: int


def publisher_key(key: str, zid: bytes, eid: int | None) -> str:
    """Where the publisher of a key is found; without `eid` it stamps instead of numbering."""
    return f"{key}/@adv/pub/{ZenohId(zid)}/{STAMPED if eid is None else eid}/{NO_META}"


def subscriber_key(key: str, zid: bytes, eid: int) -> str:
    """Where a subscriber to a key is found."""
    return f"{key}/@adv/sub/{ZenohId(zid)}/{eid}/{NO_META}"


def publishers_of(key: str) -> str:
    """Where all publishers of a key are found."""
    return f"{key}/@adv/pub/**"


def past_of(key: str) -> str:
    """The selector that asks every cache for samples of a key."""
    return f"{key}/@adv/**"


def past_of_source(key: str, source: SourceId) -> str:
    """The selector that asks every cache for samples of one publisher."""
    return f"{key}/@adv/*/{ZenohId(source.zid)}/{source.eid}/**"


def publisher_named(key: str) -> SourceId | bytes | None:
    """The source that a key names: one with numbers, the node of one with timestamps, or none."""
    _, _, named = key.rpartition("/@adv/pub/")
    parts = named.split("/")
    if len(parts) < 3:
        return None
    try:
        zid = bytes(ZenohId.parse(parts[0]))
    except ZError:
        return None
    if parts[1] == STAMPED:
        return zid
    if not parts[1].isascii() or not parts[1].isdigit() or len(parts[1]) > 10:
        return None
    eid = int(parts[1])
    return SourceId(zid, eid) if eid < SERIALS else None


def serials(first: int | None, last: int | None) -> str:
    """The parameter that asks for numbers from one to another, both included."""
    return f"_sn={'' if first is None else first}..{'' if last is None else last}"


def ahead(sn: int, of: int) -> int:
    """How far a number is ahead of another, going round; negative if it is behind."""
    distance = (sn - of) % SERIALS
    return distance if distance < SERIALS // 2 else distance - SERIALS
