"""A broker of the 2018 protocol beside a router, as its configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zenlake.xrce.broker import BROKER, DURABILITY_BIT
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.options import Habits
from zenlake.xrce.outside import DurableValues, Values
from zenlake.xrce_io.bridge import Bridge
from zenlake.xrce_io.brokering import RunningBroker
from zenlake.xrce_io.volume import TieredValues, VolumeValues

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config.model_services import XrceService

__all__ = ["options_of", "serving"]


def options_of(service: XrceService, pid: bytes) -> BrokerOptions:
    """What a broker is told of its part of the configuration."""
    return BrokerOptions(
        pid,
        lease=round(service.session_lease * 10),
        mtu=service.mtu,
        secret=bytes.fromhex(service.authentication),
        sessions=service.max_sessions,
        declarations=service.max_declarations,
        queue=service.queue_bytes,
        store_depth=service.store_depth,
        store_bytes=service.store_bytes,
        mask=BROKER | DURABILITY_BIT if service.persistent else BROKER,
        habits=Habits(
            complete="whole" in service.habits,
            ocaml="ocaml" in service.habits,
            endless="endless" in service.habits,
            eager="eager" in service.habits,
            frame=100 if "zhe" in service.habits else 0,
        ),
    )


@contextmanager
def serving(session: Session, service: XrceService) -> Iterator[RunningBroker]:
    """Run the broker and its bridge to the session, until the end of the block."""
    bridge = Bridge(session, service.prefix, service.deletes, service.username)
    values: Values = DurableValues()
    volume: VolumeValues | None = None
    if service.persistent:
        volume = VolumeValues.in_file(service.persistent)
        values = TieredValues(DurableValues(), volume)
    running = RunningBroker(options_of(service, bytes(session.zid())[:8]), bridge, values)
    bridge.running = running
    try:
        bridge.remember()
        running.start(service.listen, service.scouting, service.interface)
        yield running
    finally:
        running.close()
        bridge.close()
        if volume is not None:
            volume.close()
