"""The 1.x wire language: messages read out of a full frame, written into a running batch.

The sample is what a default publisher sends ten thousand times a second: Push with a declared
key, Put with 64 bytes of payload. All costs are per message, in frames of `MANY`.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake import wire
from zenlake.wire.codec_transport import skip_frame
from zenlake.wire.cursor import Reader, Writer

Run = Callable[[int], None]

MANY = 256
PAYLOAD = bytes(range(64))
STAMP = wire.Timestamp(seconds=1_794_765_176, fraction=0x4D8A_3C50, id=bytes(range(1, 17)))

PLAIN = wire.Push(scope=7, body=wire.Put(payload=PAYLOAD))
STAMPED = wire.Push(scope=7, body=wire.Put(timestamp=STAMP, payload=PAYLOAD))
DECLARED = wire.Declare(qos=8, body=wire.DeclareSubscriber(id=12, scope=3, suffix="/imu/**"))


class Frames:
    """A frame of many times one message, and shorter ones."""

    def __init__(self, message: wire.Push | wire.Declare) -> None:
        """Write the message `MANY` times behind one header."""
        self._head = wire.write(wire.Frame(reliable=True, sn=44_577_103))
        self._one = wire.write(message)
        self.full = self.of(MANY)

    def of(self, count: int) -> bytes:
        """A frame with `count` messages."""
        return self._head + self._one * count


def decode(message: wire.Push | wire.Declare) -> Callable[[], Run]:
    """Read frames into message objects, and let them go."""

    def build() -> Run:
        frames = Frames(message)

        def run(n: int) -> None:
            whole, left = divmod(n, MANY)
            full = frames.full
            for _ in range(whole):
                wire.read_batch(full)
            wire.read_batch(frames.of(left))

        return run

    return build


def walk(message: wire.Push) -> Callable[[], Run]:
    """Find where each message ends, and make nothing."""

    def build() -> Run:
        frames = Frames(message)

        def run(n: int) -> None:
            whole, left = divmod(n, MANY)
            for data in (*[frames.full] * whole, frames.of(left)):
                skip_frame(Reader(data, 1), data[0])

        return run

    return build


def encode_existing(message: wire.Push) -> Callable[[], Run]:
    """Write messages that exist already, as a router does that forwards what it decoded."""

    def build() -> Run:
        full = wire.Frame(reliable=True, sn=44_577_103, messages=(message,) * MANY)

        def run(n: int) -> None:
            whole, left = divmod(n, MANY)
            for _ in range(whole):
                w = Writer()
                full.write(w)
                w.getvalue()
            w = Writer()
            for _ in range(left):
                message.write(w)
            w.getvalue()

        return run

    return build


def forward() -> Run:
    """Read a frame and write its messages again: fresh objects, made by the codec itself."""
    frames = Frames(PLAIN)

    def run(n: int) -> None:
        whole, left = divmod(n, MANY)
        for data in (*[frames.full] * whole, frames.of(left)):
            w = Writer()
            wire.read_batch(data)[0].write(w)
            w.getvalue()

    return run


def encode_from_python() -> Run:
    """Make the objects in interpreted code and write them.

    Here the compiled build gains little: most of the time goes into handing eighteen keyword
    arguments to two compiled constructors. Compiled callers do not pay that.
    """

    def run(n: int) -> None:
        push, put, payload = wire.Push, wire.Put, PAYLOAD
        w = Writer()
        for i in range(n):
            push(scope=7, body=put(payload=payload)).write(w)
            if i % MANY == MANY - 1:
                w.getvalue()
                w = Writer()

    return run


CASES: dict[str, Callable[[], Run]] = {
    "decode push": decode(PLAIN),
    "decode push with timestamp": decode(STAMPED),
    "decode declare": decode(DECLARED),
    "skip push": walk(PLAIN),
    "skip push with timestamp": walk(STAMPED),
    "encode push, existing": encode_existing(PLAIN),
    "encode push with timestamp, existing": encode_existing(STAMPED),
    "decode and encode push": forward,
    "encode push, made in Python": encode_from_python,
}
