"""Whom to connect to, of those that scouting or gossip found.

A node wants some roles and not others. When both of two nodes find each other and both connect,
one of the two sessions is refused; the strategy `greater-zid` lets only the greater id begin.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, final

from zenlake.config.model_scouting import GossipScouting, MulticastScouting, StrategyByTarget
from zenlake.errors import ConfigError
from zenlake.values.whatami import WhatAmI

__all__ = ["MAX_GOSSIP_DELAY", "Autoconnect", "gossip_delay", "greater"]

MAX_GOSSIP_DELAY: Final = 0.1
_STRATEGIES: Final = ("always", "greater-zid")


@final
class Autoconnect:
    """Decides whether to open a session with a node that was found.

    Args:
        zid: this node.
        roles: the roles it connects to, as flags.
        strategy: `always`, or `greater-zid`: only to nodes with a smaller id.
        by_role: another strategy for some roles, by their flag.
    """

    __slots__ = ("_strategy", "roles", "zid")

    def __init__(
        self,
        zid: bytes,
        roles: int,
        strategy: str = "always",
        by_role: dict[int, str] | None = None,
    ) -> None:
        self.zid = zid
        self.roles = roles
        self._strategy: dict[int, str] = {role.value: strategy for role in WhatAmI}
        self._strategy.update(by_role or {})
        for name in self._strategy.values():
            if name not in _STRATEGIES:
                raise ConfigError(
                    f"'{name}' is no autoconnect strategy; write 'always' or 'greater-zid'"
                )

    @classmethod
    def configured(cls, zid: bytes, settings: MulticastScouting | GossipScouting) -> Autoconnect:
        """What a section of the configuration says, its values already chosen by mode."""
        roles = 0
        for name in settings.autoconnect:
            roles |= WhatAmI.parse(name).value
        chosen = settings.autoconnect_strategy
        if not isinstance(chosen, StrategyByTarget):
            return cls(zid, roles, chosen)
        return cls(
            zid,
            roles,
            by_role={
                WhatAmI.ROUTER.value: chosen.to_router or "always",
                WhatAmI.PEER.value: chosen.to_peer or "always",
                WhatAmI.CLIENT.value: chosen.to_client or "always",
            },
        )

    def wants(
        self, zid: bytes, role: int, locators: Sequence[str], connected: Container[bytes]
    ) -> bool:
        """Whether to connect to this node, given the ids of those already connected."""
        if not self.roles & role or not locators or zid == self.zid or zid in connected:
            return False
        return self._strategy.get(role, "always") == "always" or greater(self.zid, zid)


def greater(one: bytes, other: bytes) -> bool:
    """Whether the id `one` is the greater: byte by byte, least significant first."""
    return one.ljust(16, b"\0") > other.ljust(16, b"\0")


def gossip_delay(chance: float) -> float:
    """How many seconds to wait before connecting to a node that gossip told of.

    All who hear of a newcomer hear of it at once; `chance`, a random number from 0 to 1,
    spreads their connections over a tenth of a second.
    """
    return chance * MAX_GOSSIP_DELAY
