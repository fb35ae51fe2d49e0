"""The graph of ROS 2 as liveliness tokens: nodes, publishers, subscriptions, services.

    @ros2_lv/<domain>/<zid>/<nid>/<nid>/NN/<enclave>/<namespace>/<node>
    @ros2_lv/<domain>/<zid>/<nid>/<id>/<kind>/<enclave>/<namespace>/<node>/<name>/<type>/<hash>/<qos>

Names are mangled: `/` is written `%`. The gid of an endpoint, which comes with each of its
samples, is a hash of its token, so a token that was seen names the sender of stored samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zenlake.ros2.names import NO_HASH, ros_type, wire_type

__all__ = ["PREFIX", "EntityKind", "RosEntity", "RosQoS", "endpoint_token", "gid_of", "parse_token"]

PREFIX: Final = "@ros2_lv"

_RELIABILITY: Final = ("system_default", "reliable", "best_effort", "unknown", "best_available")
_DURABILITY: Final = ("system_default", "transient_local", "volatile", "unknown", "best_available")
_HISTORY: Final = ("system_default", "keep_last", "keep_all", "unknown")
DEFAULT_DEPTH: Final = 42


class EntityKind(StrEnum):
    """What a token is about."""

    NODE = "NN"
    PUBLISHER = "MP"
    SUBSCRIPTION = "MS"
    SERVICE = "SS"
    CLIENT = "SC"


@dataclass(frozen=True, slots=True)
class RosQoS:
    """What of a quality of service concerns a reader of the data."""

    reliability: str = "reliable"
    durability: str = "volatile"
    history: str = "keep_last"
    depth: int = DEFAULT_DEPTH

    def __str__(self) -> str:
        """In one line, as people say it."""
        kept = "keep_all" if self.history == "keep_all" else f"{self.history}({self.depth})"
        return f"{self.reliability} {self.durability} {kept}"


@dataclass(frozen=True, slots=True)
class RosEntity:
    """What a token says; a node has no topic and no type."""

    token: str
    kind: EntityKind
    domain: int
    zid: str
    node: str
    """The fully qualified name: `/robot1/talker`."""
    topic: str = ""
    type: str = ""
    hash: str | None = None
    qos: RosQoS = RosQoS()
    backends: str = ""
    """Where the data may lie, for types with large arrays in new distributions."""

    @property
    def data_key(self) -> str:
        """The key that its data is on."""
        return (
            f"{self.domain}/{self.topic.strip('/')}/{wire_type(self.type)}/{self.hash or NO_HASH}"
        )


def parse_token(token: str) -> RosEntity | None:
    """What a token of rmw_zenoh says, or None if it is not one of those."""
    chunks = token.split("/")
    if len(chunks) < 9 or chunks[0] != PREFIX or not chunks[1].isascii():
        return None
    if not chunks[1].isdigit() or len(chunks[1]) > 10 or "" in chunks:
        return None
    try:
        kind = EntityKind(chunks[5])
    except ValueError:
        return None
    namespace, name = _unmangled(chunks[7]), _unmangled(chunks[8])
    node = f"{namespace.rstrip('/')}/{name.strip('/')}"
    domain, zid = int(chunks[1]), chunks[2]
    if kind is EntityKind.NODE:
        return RosEntity(token, kind, domain, zid, node) if len(chunks) == 9 else None
    if len(chunks) < 13:
        return None
    type = ros_type(_unmangled(chunks[10]))
    if type is None:
        return None
    return RosEntity(
        token=token,
        kind=kind,
        domain=domain,
        zid=zid,
        node=node,
        topic=_unmangled(chunks[9]),
        type=type,
        hash=None if chunks[11] == NO_HASH else chunks[11],
        qos=_qos(chunks[12]),
        backends=chunks[13] if len(chunks) > 13 else "",
    )


def endpoint_token(
    kind: EntityKind,
    domain: int,
    zid: str,
    ids: tuple[int, int],
    node: str,
    topic: str,
    type: str,
    hash: str | None,
    *,
    backends: str = "",
) -> str:
    """The token of an endpoint with the default quality of service; `ids`: of node and endpoint."""
    namespace, _, name = node.rpartition("/")
    chunks = [
        *(PREFIX, str(domain), zid, str(ids[0]), str(ids[1]), str(kind), "%"),
        *(_mangled(namespace or "/"), name, _mangled(topic), wire_type(type), hash or NO_HASH),
        "::,:,:,:,,",
    ]
    return "/".join([*chunks, backends] if backends else chunks)


def gid_of(token: str) -> bytes:
    """The gid of the endpoint with this token."""
    import xxhash

    return xxhash.xxh3_128(token.encode()).intdigest().to_bytes(16, "little")


def _mangled(name: str) -> str:
    return name.replace("/", "%")


def _unmangled(chunk: str) -> str:
    return chunk.replace("%", "/")


def _qos(text: str) -> RosQoS:
    """Lenient: what is not understood is the default."""
    parts = [*text.split(":"), "", "", ""]
    history, _, depth = parts[2].partition(",")
    return RosQoS(
        reliability=_word(parts[0], _RELIABILITY, "reliable"),
        durability=_word(parts[1], _DURABILITY, "volatile"),
        history=_word(history, _HISTORY, "keep_last"),
        depth=int(depth) if _is_number(depth) else DEFAULT_DEPTH,
    )


def _word(number: str, words: tuple[str, ...], default: str) -> str:
    return words[int(number)] if _is_number(number) and int(number) < len(words) else default


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
