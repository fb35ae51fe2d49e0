"""Clients of a simulated router, played by the test."""

from __future__ import annotations

from zenlake.testing.network import Host, Network, Stranger
from zenlake.wire import (
    Fragment,
    Frame,
    InitAck,
    InitSyn,
    Message,
    OpenSyn,
    Push,
    read_batch,
    write,
)


class Client:
    """A client of the router, played by the test."""

    def __init__(self, network: Network, router: Host, zid: bytes) -> None:
        self.network = network
        self.sn = 0
        self.link: Stranger = network.stranger(router)
        self.link.say(write(InitSyn(version=9, whatami=2, zid=zid, qos=True, patch=1)))
        network.run(0.01)
        [ack] = read_batch(self.link.heard()[0])
        assert isinstance(ack, InitAck)
        self.link.say(write(OpenSyn(lease=10_000, initial_sn=0, cookie=ack.cookie)))
        network.run(0.01)
        self.link.heard()

    def say(self, *said: Message, reliable: bool = True) -> None:
        """Say something in one frame."""
        self.link.say(write(Frame(sn=self.sn, reliable=reliable, messages=said)))
        self.sn += 1
        self.network.run(0.01)

    def heard(self) -> list[tuple[bytes, int, bool]]:
        """The samples that came, each with its lane."""
        found: list[tuple[bytes, int, bool]] = []
        for batch in self.link.heard():
            for frame in read_batch(batch):
                assert not isinstance(frame, Fragment)
                if isinstance(frame, Frame):
                    for message in frame.messages:
                        if isinstance(message, Push):
                            found.append((write(message), frame.priority, frame.reliable))
        return found
