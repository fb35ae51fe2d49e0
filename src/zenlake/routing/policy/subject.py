"""Who a neighbour is, as far as rules can tell."""

from __future__ import annotations

from zenlake.clock import ZenohId
from zenlake.records import record

__all__ = ["Subject"]


@record(frozen=True, slots=True)
class Subject:
    """The properties of a neighbour; what is not known is left out and matches only "any"."""

    #: The interfaces of this machine that its links use.
    interfaces: tuple[str, ...] = ()
    #: The names in the certificates that it showed.
    cert_common_names: tuple[str, ...] = ()
    username: str | None = None
    #: As a locator begins: `tcp`, `tls`, `unixsock-stream` …
    link_protocol: str | None = None
    zid: ZenohId | None = None
    #: Whether it is a group on a multicast address rather than one node.
    multicast: bool = False
    #: Whether it is a part of the service that this node is a part of. Rules are for strangers:
    #: they concern a part only if a subject names its user.
    part: bool = False

    def is_among(
        self,
        interfaces: tuple[str, ...] | None,
        link_protocols: tuple[str, ...] | None,
        zids: tuple[ZenohId, ...] | None = None,
    ) -> bool:
        """Whether it has one of the values of each list; no list means any."""
        if interfaces is not None and not any(name in interfaces for name in self.interfaces):
            return False
        if link_protocols is not None and self.link_protocol not in link_protocols:
            return False
        return zids is None or self.zid in zids
