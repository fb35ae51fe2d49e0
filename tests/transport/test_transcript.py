"""A conversation in words."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from zenlake.printable import printable
from zenlake.testing.network import Host, Network
from zenlake.testing.strategies import messages
from zenlake.transport.transcript import IN, OUT, Transcript
from zenlake.wire.cursor import Writer
from zenlake.wire.declared import network, transport
from zenlake.wire.message import Message


class Heard:
    """A transcript, and the lines it gave."""

    def __init__(self, stream: bool = True) -> None:
        self.lines: list[tuple[int, str]] = []
        self.transcript = Transcript(stream, lambda way, line: self.lines.append((way, line)))

    def words(self) -> list[str]:
        return [("<", ">")[way] + " " + line.partition("  [")[0] for way, line in self.lines]


def overheard(**settings: Any) -> tuple[Network, Host, Host, Heard]:
    """A router and a client, and what goes over their link, seen from the router."""
    network = Network()
    heard = Heard()
    router = network.node("r", mode="router", zid=b"\xaa", **settings)
    client = network.node("c", mode="client", connect=["r"], zid=b"\xcc", **settings)
    arrived = type(router).arrived

    def listen(host: Host, way: int) -> None:
        def both(end: object, data: bytes) -> None:
            heard.transcript.add(way, data)
            arrived(host, end, data)  # type: ignore[arg-type]

        host.arrived = both  # type: ignore[method-assign]

    listen(router, IN)
    listen(client, OUT)
    network.settle()
    return network, router, client, heard


def test_a_conversation_reads_from_the_first_word_to_the_last() -> None:
    network, router, client, heard = overheard()
    assert [line.partition(":")[0] for line in heard.words()] == [
        "< init",
        "> init accepted",
        "< open",
        "> open accepted",
    ]
    heard.lines.clear()
    subscription = client.subscribe("demo/**")
    client.node.local.publisher("demo/a", 5, True, 0, b"", 2)
    network.settle()
    client.queryable("q", b"x", complete=True)
    network.settle()
    router.put("demo/x/y", b"12345")
    router.get("q", "a=1")
    network.settle()
    client.node.close(network.now)
    network.settle()
    assert subscription.values() == [("demo/x/y", b"12345")]
    words = heard.words()
    assert "< declare key 1 = demo" in words
    assert "< declare subscriber 1 demo/**" in words
    assert any(
        word.startswith("< interest 1 in present and future keys, subscribers of demo/a")
        for word in words
    )
    assert "> all is declared (for interest 1)" in words
    assert "< declare queryable 2 q (complete)" in words
    assert "> put demo/x/y 5 B" in words
    assert "> query 1: q?a=1 of best matching" in words
    assert "< reply to query 1: put q 1 B" in words
    assert "< final response to query 1" in words
    assert words[-1] == "< close: no reason given"


def test_compressed_and_bare_sessions_are_read_too() -> None:
    both: tuple[dict[str, bool], ...] = ({"compression": True}, {"low_latency": True, "qos": False})
    for settings in both:
        network, router, client, heard = overheard(**settings)
        client.subscribe("demo/**")
        network.settle()
        router.put("demo/a", bytes(2000))
        network.settle()
        assert "> put demo/a 2000 B" in heard.words()
        assert not any("cannot be read" in word for word in heard.words())


def test_large_values_are_fragments() -> None:
    network, router, client, heard = overheard()
    client.subscribe("demo/**")
    network.settle()
    router.put("demo/a", bytes(100_000))
    network.settle()
    words = [word for word in heard.words() if word.startswith("> fragment")]
    assert len(words) == 2
    assert words[-1].endswith(", the last")


@given(st.lists(st.binary(max_size=80), max_size=6), st.booleans())
def test_strangers_cannot_hurt_it(chunks: list[bytes], stream: bool) -> None:
    heard = Heard(stream)
    for chunk in chunks:
        heard.transcript.add(IN, chunk)
    assert sum("cannot be read" in line for _, line in heard.lines) <= 1
    assert all(line.isprintable() for _, line in heard.lines)


@given(messages(network.PAGE) | messages(transport.PAGE))
def test_every_message_has_words(message: Message) -> None:
    w = Writer()
    message.write(w)
    heard = Heard(stream=False)
    heard.transcript.add(OUT, b"".join(w.parts))
    assert heard.lines
    assert all(line.isprintable() for _, line in heard.lines)


def test_what_moves_a_cursor_is_shown_as_what_it_is() -> None:
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
