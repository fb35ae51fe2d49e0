"""A multicast group as a link: between its sockets and the node's multicast session."""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from zenlake.errors import LinkError, LocatorError
from zenlake.links.multicast import MulticastSockets
from zenlake.links.options import IFACE, RETRY, LinkOption, check_options
from zenlake.node.sessions.multicast import MulticastSession
from zenlake.transport.multicast_terms import MulticastTerms
from zenlake.values.locator import EndPoint, split_host_port

if TYPE_CHECKING:
    from zenlake.engine.running_node import RunningNode

log = logging.getLogger("zenlake.engine")

BATCH: Final = 8192
"""The largest batch to a group, in bytes: all members must use the same, and cannot negotiate."""

TTL: Final = LinkOption("ttl", "integer", "How many routers of the network a datagram may cross.")
OPTIONS: Final = (IFACE, TTL, *RETRY)


def is_group(endpoint: EndPoint) -> bool:
    """Whether an endpoint names a multicast group: all of its members at once."""
    if endpoint.protocol != "udp":
        return False
    try:
        return ipaddress.ip_address(split_host_port(endpoint.address)[0]).is_multicast
    except (ValueError, LocatorError):
        return False


class MulticastPump:
    """Moves the datagrams of one group; lives on the loop thread."""

    def __init__(self, runtime: RunningNode, endpoint: EndPoint) -> None:
        """Nothing moves before `start`."""
        check_options(endpoint, OPTIONS, "listen")
        self.runtime = runtime
        self.endpoint = endpoint
        self.closed = False
        #: Datagrams that the system did not take.
        self.unsent = 0
        self._sockets = MulticastSockets(
            runtime.loop.loop,
            endpoint.address,
            endpoint.get("iface") or "auto",
            int(endpoint.get("ttl") or 1),
        )
        settings = runtime.node.settings
        self.outbox = runtime.outboxes.make(False, settings.queue_depth)
        multicast = runtime.settings.transport.multicast
        self._terms = MulticastTerms(
            zid=runtime.zid,
            whatami=runtime.node.mode,
            resolution=settings.resolution,
            batch_size=min(settings.batch_size, BATCH),
            lease=settings.lease,
            qos=multicast.qos.enabled,
            join_interval=max(0.01, multicast.join_interval / 1000),
            max_members=multicast.max_sessions,
            max_message=settings.max_message,
            initial_sn=int.from_bytes(os.urandom(4)) >> 4,
        )
        self._session: MulticastSession | None = None

    def start(self) -> None:
        """Join the group."""
        self._sockets.open(self._heard, self._received_unicast)
        self.outbox.attach(self._send)
        with self.runtime.lock:
            place = f"udp/{self.endpoint.address}"
            self._session = self.runtime.node.join(
                place, self._terms, self.outbox, time.monotonic()
            )
        self.flush()

    def _send(self, batch: bytes) -> int:
        # A group has no back-pressure: what the system does not take is lost, as on the air.
        if not self._sockets.send_to_group(batch):
            self.unsent += 1
        return len(batch)

    def _heard(self, data: bytes, address: tuple[str, int], _: str) -> None:
        runtime, session = self.runtime, self._session
        if session is None or self.closed:
            return
        with runtime.lock:
            session.receive(data, f"{address[0]}:{address[1]}", time.monotonic())
            marked = runtime.take_marked()
        for sink in marked:
            sink.commit()
        runtime.arm_soon()

    def _received_unicast(self, data: bytes, address: tuple[str, int], _: str) -> None:
        """Nothing is answered in a group."""

    def flush(self) -> None:
        """Send what waits."""
        self.outbox.flush()

    def shut(self) -> None:
        """Leave the group; Close has been put into the outbox."""
        if self.closed:
            return
        try:
            self.outbox.flush()
        except LinkError as error:
            log.debug("leaving %s: %s", self.endpoint.address, error)
        self.closed = True
        self.outbox.shut()
        self.outbox.detach()
        self._sockets.close()
