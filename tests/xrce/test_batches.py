"""Batches that are passed on as bytes are what the codec says they are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.xrce.world import World
from zenlake import xrce
from zenlake.errors import DecodeError
from zenlake.xrce.batches import BATCH_HEAD, UnreadBatch, body_of, room_for
from zenlake.xrce.client import PULL
from zenlake.xrce.markers import read_messages

samples = st.lists(st.binary(max_size=200), max_size=40)


@given(samples, st.booleans(), st.booleans(), st.integers(0, 1 << 20))
def test_a_batch_is_read_and_written_as_the_codec_does(
    payloads: list[bytes], reliable: bool, synch: bool, sn: int
) -> None:
    wanted = xrce.BatchedData(synch=synch, reliable=reliable, sn=sn, id=2, payloads=tuple(payloads))
    data = xrce.write(wanted)
    (batch,) = read_messages(data)
    assert isinstance(batch, UnreadBatch)
    assert batch.payloads() == payloads
    assert batch.body == body_of(payloads, 0, len(payloads))
    assert xrce.write(batch) == data
    assert batch.to_dict().items() <= wanted.to_dict().items()


def batched(payloads: list[bytes], sn: int, cut: int, more: bytes) -> bytes:
    """What stands behind the first byte of a batch that may have lost its end, or have more."""
    whole = xrce.write(xrce.BatchedData(reliable=True, sn=sn, id=2, payloads=tuple(payloads)))
    return whole[1 : len(whole) - cut] + more


@given(
    st.binary(max_size=40)
    | st.builds(
        batched,
        st.lists(st.binary(max_size=20), max_size=4),
        st.integers(0, 1 << 20),
        st.sampled_from([0, 0, 0, 1, 2]),
        st.sampled_from([b"", b"", b"\x00", b"\x0f\x01"]),
    )
)
@example(bytes.fromhex("05 02 02 01 61 02 6263"))
def test_what_the_codec_refuses_is_refused_and_the_rest_is_read_alike(rest: bytes) -> None:
    packet = b"\x48" + rest
    try:
        wanted = xrce.read_packet(packet)
    except DecodeError:
        with pytest.raises(DecodeError):
            read_messages(packet)
    else:
        found = read_messages(packet)
        assert b"".join(map(xrce.write, found)) == b"".join(map(xrce.write, wanted))


@given(samples, st.integers(60, 1500))
def test_a_batch_that_has_room_fits_its_packet(payloads: list[bytes], mtu: int) -> None:
    stop = room_for(payloads, 0, mtu)
    assert 0 <= stop <= len(payloads)
    assert len(body_of(payloads, 0, stop)) + BATCH_HEAD - 10 <= mtu or stop == 0
    if stop < len(payloads):
        assert len(body_of(payloads, 0, stop + 1)) > mtu - BATCH_HEAD - 4


@pytest.mark.parametrize("stream", [False, True])
def test_samples_that_are_published_together_travel_together(stream: bool) -> None:
    world = World()
    a, b, c = world.device("a", stream), world.device("b", stream), world.device("c")
    exact, wild, kept = b.subscriber("/x"), c.subscriber("/*"), c.subscriber("/x", PULL)
    publisher = a.publisher("/x")
    before = len(a.packets)
    sent = [b"%d" % i for i in range(100)]
    assert a.client.put_all(publisher, sent) == 100
    world.run()
    assert len(a.packets) - before <= 4  # the batch, an acknowledgement
    assert b.taken() == [("x", payload) for payload in sent]
    assert c.taken() == [("x", payload) for payload in sent]
    assert c.pull(kept) == sent[-16:]  # as many as are kept of one resource
    assert (exact.samples, wild.samples) == (100, 100)


def test_a_batch_for_a_smaller_packet_is_taken_apart() -> None:
    world = World()
    a, b = world.device("a"), world.device("b", mtu=100)
    b.subscriber("/x")
    publisher = a.publisher("/x")
    sent = [b"sample %d" % i for i in range(50)]
    assert a.client.put_all(publisher, sent) == 50
    world.run(1)
    assert b.taken() == [("x", payload) for payload in sent]
    assert b.largest <= 100


def test_a_peer_of_2018_is_never_sent_a_batch() -> None:
    world = World()
    device = world.device("a")
    publisher = device.publisher("/x")
    old = world.broker.connected("old", True)
    told = xrce.Open(version=1, pid=b"old", lease=0, locators=())
    world.stranger(xrce.write(told), True, old)
    declared = (
        xrce.Resource(rid=2, uri="//x"), xrce.Subscriber(id=2, mode=1), xrce.Commit(commit_id=0),
    )  # fmt: skip
    world.stranger(xrce.write(xrce.Declare(sn=0, declarations=declared)), True, old)
    assert device.client.put_all(publisher, [b"1", b"2", b"3"]) == 3
    world.run()
    kinds = {type(m) for data in old.out for m in xrce.read_packet(data[1:])}
    assert kinds == {xrce.StreamData}
