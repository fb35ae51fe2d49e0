"""Who is there: brokers and peers of the 2018 protocol, found by multicast or asked directly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from zenlake.engine.loop import shared_loop
from zenlake.errors import DecodeError
from zenlake.links.multicast import MulticastSockets
from zenlake.links.registry import connect
from zenlake.values.locator import EndPoint
from zenlake.xrce.broker import BROKER, PEER
from zenlake.xrce.codec import Hello, Scout
from zenlake.xrce.framing import Deframer, frame
from zenlake.xrce.packets import read_packet, write
from zenlake.xrce_io.brokering import SCOUTING


@dataclass(frozen=True, slots=True)
class ScoutedBroker:
    """A broker or peer that answered a Scout with a Hello."""

    address: str
    mask: int
    locators: tuple[str, ...]


def scout(
    endpoint: str = "", *, timeout: float = 2.0, group: str = SCOUTING, interface: str = "auto"
) -> list[ScoutedBroker]:
    """Everybody who answers within `timeout` seconds; `endpoint`: ask only there."""
    loop = shared_loop()
    return loop.run(_scout(endpoint, timeout, group, interface))


async def _scout(endpoint: str, timeout: float, group: str, interface: str) -> list[ScoutedBroker]:
    brokers: dict[tuple[str, tuple[str, ...]], ScoutedBroker] = {}
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()

    def packet(data: bytes, address: str) -> None:
        try:
            messages = read_packet(data)
        except DecodeError:
            return
        for message in messages:
            if isinstance(message, Hello):
                one = ScoutedBroker(address, message.mask, message.locators)
                brokers[address, message.locators] = one
                heard.set()

    message = write(Scout(mask=BROKER | PEER))
    if endpoint:
        link = await connect(EndPoint.parse(endpoint), loop, timeout)
        deframer = Deframer()

        def arrived(data: bytes) -> None:
            for one in deframer.feed(data) if link.stream else (data,):
                packet(one, link.dst)

        link.start(arrived, lambda _: None)
        try:
            link.send(frame(message) if link.stream else message)
            async with asyncio.timeout(timeout):
                await heard.wait()
        except TimeoutError:
            pass
        finally:
            link.close()
        return list(brokers.values())
    sockets = MulticastSockets(loop, group, interface, listen=False)
    sockets.open(
        lambda *_: None,
        lambda data, address, _: packet(data, f"udp/{address[0]}:{address[1]}"),
    )
    try:
        for _ in range(3):
            sockets.send_to_group(message)
            await asyncio.sleep(timeout / 3)
    finally:
        sockets.close()
    return list(brokers.values())
