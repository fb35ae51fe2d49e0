"""Who published a sample, and which of theirs it is."""

from __future__ import annotations

from typing import Final, final

from zenlake.clock import ZenohId
from zenlake.errors import LocalError

__all__ = ["EntityGlobalId", "SourceInfo"]

_MAX_U32: Final = (1 << 32) - 1


@final
class EntityGlobalId:
    """A publisher, a subscriber or another entity: its node, and its number there."""

    __slots__ = ("_eid", "_zid")

    def __init__(self, zid: ZenohId, eid: int) -> None:
        if not 0 <= eid <= _MAX_U32:
            raise LocalError(f"entity number {eid} does not fit 32 bits; give 0 to {_MAX_U32}")
        self._zid: ZenohId = zid
        self._eid: int = eid

    @property
    def zid(self) -> ZenohId:
        """The node the entity lives on."""
        return self._zid

    @property
    def eid(self) -> int:
        """Its number on that node."""
        return self._eid

    def __repr__(self) -> str:
        return f"EntityGlobalId(ZenohId.parse('{self._zid}'), {self._eid})"

    def __str__(self) -> str:
        return f"{self._zid}/{self._eid}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, EntityGlobalId)
            and self._eid == other._eid
            and self._zid == other._zid
        )

    def __hash__(self) -> int:
        return hash((self._zid, self._eid))

    def __reduce__(self) -> tuple[type[EntityGlobalId], tuple[ZenohId, int]]:
        return EntityGlobalId, (self._zid, self._eid)


@final
class SourceInfo:
    """Who published a sample, and which of theirs it is."""

    __slots__ = ("_source_id", "_source_sn")

    def __init__(self, source_id: EntityGlobalId, source_sn: int) -> None:
        if not 0 <= source_sn <= _MAX_U32:
            raise LocalError(
                f"sequence number {source_sn} does not fit 32 bits; give 0 to {_MAX_U32}"
            )
        self._source_id: EntityGlobalId = source_id
        self._source_sn: int = source_sn

    @property
    def source_id(self) -> EntityGlobalId:
        """The entity that published it."""
        return self._source_id

    @property
    def source_sn(self) -> int:
        """Its place among what that entity published."""
        return self._source_sn

    def __repr__(self) -> str:
        return f"SourceInfo({self._source_id!r}, {self._source_sn})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SourceInfo)
            and self._source_sn == other._source_sn
            and self._source_id == other._source_id
        )

    def __hash__(self) -> int:
        return hash((self._source_id, self._source_sn))

    def __reduce__(self) -> tuple[type[SourceInfo], tuple[EntityGlobalId, int]]:
        return SourceInfo, (self._source_id, self._source_sn)
