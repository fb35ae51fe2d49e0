"""Topics that the ros2dds bridge brings: a key without a type, and a token that says it.

    data     <topic without its first />
    token    @ros2_lv/<zid>/MP/<key, / as §>/<type, / as §>/<qos>
    qos      [K]:<reliability>:<durability>:<history>,<depth>      with DDS' numbers

Tokens of rmw_zenoh have a domain, a small number, where these have a zid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zenlake.ros2.tokens import PREFIX, RosQoS

__all__ = ["BridgedTopic", "bridged_keys", "parse_bridge_token"]

_SLASH: Final = "§"
_ZID: Final = re.compile(r"[0-9a-f]{1,32}", re.ASCII)
_TYPE: Final = re.compile(r"\w+/msg/\w+", re.ASCII)
_RELIABILITY: Final = {"0": "best_effort", "1": "reliable"}
_DURABILITY: Final = {"0": "volatile", "1": "transient_local", "2": "transient", "3": "persistent"}
_HISTORY: Final = {"0": "keep_last", "1": "keep_all"}
_CHUNKS: Final = 6


@dataclass(frozen=True, slots=True)
class BridgedTopic:
    """A topic that a node behind a bridge publishes."""

    key: str
    """Where its data is."""
    type: str
    """As ROS writes it: `std_msgs/msg/String`."""
    qos: RosQoS

    @property
    def topic(self) -> str:
        """The fully qualified name: `/robot1/chatter`."""
        return f"/{self.key}"


def parse_bridge_token(token: str) -> BridgedTopic | None:
    """What the token of a bridged publisher says, or None if it is no such token."""
    chunks = token.split("/")
    if len(chunks) != _CHUNKS or chunks[0] != PREFIX or chunks[2] != "MP":
        return None
    key, type = chunks[3].replace(_SLASH, "/"), chunks[4].replace(_SLASH, "/")
    if not _ZID.fullmatch(chunks[1]) or not _TYPE.fullmatch(type) or "" in key.split("/"):
        return None
    return BridgedTopic(key, type, _qos(chunks[5]))


def bridged_keys(type: object) -> Mapping[str, Sequence[str]]:
    """Type and QoS of the keys that a bridge of ROS 2 brings, as the `type` of a table has them."""
    bridged: object = type.get("bridged", {}) if isinstance(type, Mapping) else {}
    return bridged if isinstance(bridged, Mapping) else {}


def _qos(text: str) -> RosQoS:
    """Lenient: what is not understood is the default, of DDS."""
    parts = [*text.split(":"), "", "", ""]
    history, _, depth = parts[3].partition(",")
    return RosQoS(
        reliability=_RELIABILITY.get(parts[1], "best_effort"),
        durability=_DURABILITY.get(parts[2], "volatile"),
        history=_HISTORY.get(history, "keep_last"),
        depth=int(depth) if depth.isascii() and depth.isdigit() and len(depth) < 10 else 1,
    )
