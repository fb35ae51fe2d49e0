"""A link is up: the neighbour at its other end, and what is offered to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.node.neighbour import Neighbour
from zenlake.node.sessions import bound_of
from zenlake.transport.handshake import Offer, no_bound
from zenlake.transport.multilink import Purpose
from zenlake.transport.unicast import Unicast
from zenlake.values.locator import EndPoint

if TYPE_CHECKING:
    from zenlake.node.node import Node


def meet(
    node: Node,
    src: str,
    dst: str,
    stream: bool,
    mtu: int,
    attempt: int,
    timeout: float,
    purpose: int = 0,
) -> Neighbour:
    """A neighbour that is new, with a conversation that is to begin within `timeout` seconds."""
    settings = node.settings
    neighbour = Neighbour(node, src, dst, stream, mtu, attempt)
    offer = Offer(
        zid=node.zid,
        whatami=node.mode,
        resolution=settings.resolution,
        batch_size=min(settings.batch_size, mtu),
        lease=settings.lease,
        qos=settings.qos,
        low_latency=settings.low_latency,
        compression=settings.compression,
        credentials=settings.credentials,
        region_name=settings.region_name.encode(),
        bound=no_bound if settings.south is None else bound_of(neighbour),
        link_key=node.link_key,
        purpose=purpose,
        random=node.chance,
    )
    neighbour.unicast = Unicast(
        offer,
        neighbour,
        stream,
        node.make_outbox(stream, settings.queue_depth),
        settings.keep_alive,
        settings.max_message,
        timeout,
    )
    node.neighbours.append(neighbour)
    return neighbour


def purpose_of(endpoint: str) -> int:
    """What an endpoint says that its link is for, as the number on the wire."""
    metadata = dict(EndPoint.parse(endpoint).metadata)
    first = last = -1
    if "prio" in metadata:
        low, _, high = metadata["prio"].partition("-")
        first, last = int(low), int(high or low)
    return Purpose(first, last, int(metadata.get("rel", "-1"))).number()
