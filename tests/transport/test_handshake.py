from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transport.pair import CLIENT, COOKIE, PEER, ROUTER, ear, exchange, side, taken
from zenlake.errors import ClosedError, DecodeError, HandshakeError
from zenlake.transport import handshake
from zenlake.transport.handshake import (
    CONNECTION_TO_SELF,
    INVALID,
    MAX_LINKS,
    Acceptor,
    Initiator,
    Offer,
    Terms,
)
from zenlake.transport.unicast import CLOSED, OPEN, OPENING
from zenlake.wire import (
    Close,
    InitAck,
    InitSyn,
    KeepAlive,
    Message,
    OpenAck,
    OpenSyn,
    read_batch,
    write,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "vectors-1x.json"
CLIENT_ZID = bytes.fromhex("035f0e01d717c5ebc8c813226f66cb47")
ROUTER_ZID = bytes.fromhex("cfb1188dd746e685b735418d3f4af928")


def golden(start: str) -> bytes:
    """The recorded batch that begins like this."""
    return next(
        bytes.fromhex(vector["hex"])
        for vector in json.loads(GOLDEN.read_text())
        if vector["hex"].startswith(start)
    )


INIT_SYN = golden("c109f2035f0e01d717c5ebc8c813226f66cb470ac8ff")
INIT_ACK = golden("e109f0cfb1188dd746e685b735418d3f4af9280a00c0")
OPEN_SYN = golden("420aace2a015")
OPEN_ACK = golden("620a9de7a512")


def framed(batch: bytes) -> bytes:
    return len(batch).to_bytes(2, "little") + batch


def test_a_client_says_the_recorded_bytes() -> None:
    client = side(Offer(CLIENT_ZID, CLIENT, batch_size=65480))
    client.connect(0.0)
    assert taken(client) == [framed(INIT_SYN)]
    client.receive(framed(INIT_ACK), 0.0)
    assert taken(client) == [framed(OPEN_SYN)]
    client.receive(framed(OPEN_ACK), 0.0)
    assert taken(client) == []
    terms = ear(client).terms
    assert client.state == OPEN
    assert terms is not None
    assert (terms.zid, terms.whatami, terms.batch_size) == (ROUTER_ZID, ROUTER, 49152)
    assert (terms.qos, terms.patch, terms.mask) == (True, 1, 0x0FFF_FFFF)
    assert (terms.tx_initial_sn, terms.rx_initial_sn) == (44577068, 38368157)
    assert (terms.tx_lease, terms.rx_lease) == (10_000, 10_000)


def test_a_router_says_the_recorded_bytes() -> None:
    cookie = read_batch(INIT_ACK)[0]
    assert isinstance(cookie, InitAck)
    router = side(Offer(ROUTER_ZID, ROUTER, batch_size=49152))
    router.listen(0.0, cookie.cookie)
    router.receive(framed(INIT_SYN), 0.0)
    assert taken(router) == [framed(INIT_ACK)]
    assert router.state == OPENING
    router.receive(framed(OPEN_SYN), 0.0)
    assert taken(router) == [framed(OPEN_ACK)]
    assert router.state == OPEN


def test_reasons_have_the_numbers_of_the_protocol() -> None:
    """Those of `transport::close::reason` in zenoh-protocol."""
    assert (handshake.GENERIC, handshake.UNSUPPORTED, INVALID) == (0, 1, 2)
    assert (handshake.MAX_SESSIONS, MAX_LINKS, handshake.EXPIRED) == (3, 4, 5)
    assert (handshake.UNRESPONSIVE, CONNECTION_TO_SELF) == (6, 7)
    assert sorted(handshake.REASONS) == list(range(8))


def close_reason(batches: list[bytes]) -> int:
    """The reason in the last word that was said."""
    message = read_batch(batches[-1][2:])[0]
    assert isinstance(message, Close)
    return message.reason


def refused_by_acceptor(*messages: Message) -> tuple[int, Exception]:
    """How an acceptor refuses the last of these messages: the reason on the wire, the error."""
    router = side(Offer(ROUTER_ZID, ROUTER))
    router.listen(0.0, COOKIE)
    for message in messages[:-1]:
        router.receive(framed(write(message)), 0.0)
    with pytest.raises(HandshakeError) as caught:
        router.receive(framed(write(messages[-1])), 0.0)
    router.fail(caught.value, 0.0)
    assert router.state == CLOSED
    assert ear(router).endings == [caught.value]
    return close_reason(taken(router)), caught.value


SYN = InitSyn(version=9, whatami=CLIENT, zid=CLIENT_ZID, qos=True, patch=1)


def test_another_version_is_invalid() -> None:
    for version in (8, 10):
        syn = InitSyn(version=version, whatami=CLIENT, zid=CLIENT_ZID)
        reason, error = refused_by_acceptor(syn)
        assert reason == INVALID
        assert f"version {version} offered, 9 spoken" in str(error)


def test_a_wrong_cookie_is_invalid() -> None:
    opening = OpenSyn(lease=10_000, initial_sn=5, cookie=b"stolen")
    assert refused_by_acceptor(SYN, opening)[0] == INVALID


def test_the_first_word_must_be_an_init_syn() -> None:
    assert refused_by_acceptor(OpenSyn(lease=1, initial_sn=0, cookie=COOKIE))[0] == INVALID


def test_the_second_word_must_be_an_open_syn() -> None:
    assert refused_by_acceptor(SYN, SYN)[0] == INVALID


def test_a_first_number_beyond_the_resolution_is_invalid() -> None:
    opening = OpenSyn(lease=10_000, initial_sn=0x1000_0000, cookie=COOKIE)
    assert refused_by_acceptor(SYN, opening)[0] == INVALID


def test_a_batch_that_carries_nothing_is_invalid() -> None:
    syn = InitSyn(version=9, whatami=CLIENT, zid=CLIENT_ZID, batch_size=10)
    assert refused_by_acceptor(syn)[0] == INVALID


@pytest.mark.parametrize("reason", [MAX_LINKS, CONNECTION_TO_SELF, INVALID])
def test_the_node_may_refuse_a_neighbour_at_its_open_syn(reason: int) -> None:
    router = side(Offer(ROUTER_ZID, ROUTER))
    ear(router).refusal = reason
    router.listen(0.0, COOKIE)
    router.receive(framed(INIT_SYN), 0.0)
    assert isinstance(read_batch(taken(router)[0][2:])[0], InitAck)
    with pytest.raises(HandshakeError, match="refused") as caught:
        router.receive(framed(write(OpenSyn(lease=10_000, initial_sn=1, cookie=COOKIE))), 0.0)
    router.fail(caught.value, 0.0)
    assert close_reason(taken(router)) == reason
    assert ear(router).terms is None


def test_a_close_while_opening_says_why() -> None:
    client = side(Offer(CLIENT_ZID, CLIENT))
    client.connect(0.0)
    taken(client)
    with pytest.raises(ClosedError, match="too many links") as caught:
        client.receive(framed(write(Close(reason=MAX_LINKS))), 0.0)
    client.fail(caught.value, 0.0)
    assert caught.value.reason == MAX_LINKS
    assert taken(client) == []  # nobody answers a goodbye


def test_bytes_that_are_not_zenoh_are_invalid() -> None:
    router = side(Offer(ROUTER_ZID, ROUTER))
    router.listen(0.0, COOKIE)
    with pytest.raises(DecodeError) as caught:
        router.receive(framed(b"GET / HTTP/1.1"), 0.0)
    router.fail(caught.value, 0.0)
    assert close_reason(taken(router)) == INVALID


def answered(ack: InitAck, expected: bytes = b"", resolution: int = 0x0A) -> Initiator:
    initiator = Initiator(Offer(CLIENT_ZID, CLIENT, resolution), expected)
    initiator.receive(ack)
    return initiator


ACK = InitAck(version=9, whatami=ROUTER, zid=ROUTER_ZID, cookie=COOKIE, qos=True, patch=1)


def test_an_initiator_refuses_another_id_than_expected() -> None:
    with pytest.raises(HandshakeError, match="was expected there") as caught:
        answered(ACK, expected=b"\x07")
    assert caught.value.reason == INVALID
    assert answered(ACK, expected=ROUTER_ZID).terms is not None


@pytest.mark.parametrize(("mine", "theirs"), [(0x08, 0x0A), (0x02, 0x0A), (0x0A, 0x0B)])
def test_an_initiator_refuses_a_greater_resolution_than_it_offered(mine: int, theirs: int) -> None:
    ack = InitAck(version=9, whatami=ROUTER, zid=ROUTER_ZID, cookie=COOKIE, resolution=theirs)
    with pytest.raises(HandshakeError, match="longer"):
        answered(ack, resolution=mine)


def test_an_initiator_refuses_a_greater_patch_than_it_offered() -> None:
    ack = InitAck(version=9, whatami=ROUTER, zid=ROUTER_ZID, cookie=COOKIE, patch=2)
    with pytest.raises(HandshakeError, match="patch 2"):
        answered(ack)


def test_an_initiator_does_not_mind_the_version_of_an_answer() -> None:
    ack = InitAck(version=12, whatami=ROUTER, zid=ROUTER_ZID, cookie=COOKIE)
    assert answered(ack).terms is not None


@pytest.mark.parametrize("message", [KeepAlive(), SYN, OpenAck(lease=1, initial_sn=0)])
def test_an_initiator_waits_for_an_init_ack(message: Message) -> None:
    with pytest.raises(HandshakeError, match="an InitAck was due"):
        Initiator(Offer(CLIENT_ZID, CLIENT)).receive(message)


def test_an_initiator_waits_for_an_open_ack() -> None:
    with pytest.raises(HandshakeError, match="an OpenAck was due"):
        answered(ACK).receive(ACK)


def test_unknown_optional_extensions_are_passed_over() -> None:
    """A neighbour with shared memory, multilink and a region offers them: nobody answers."""
    start = bytes.fromhex("c109f2") + CLIENT_ZID + bytes.fromhex("0ac8ff")
    shm = start + bytes.fromhex("81c205d9a0e18a0f2701")
    region = start + bytes.fromhex("81a7014803636c69")
    multilink = start + bytes.fromhex("81c404010203042701")
    for syn in (shm, region, multilink):
        router = side(Offer(ROUTER_ZID, ROUTER))
        router.listen(0.0, COOKIE)
        router.receive(framed(syn), 0.0)
        ack = read_batch(taken(router)[0][2:])[0]
        assert isinstance(ack, InitAck)
        assert write(ack).endswith(b"\x81\x27\x01")
        assert (ack.shm, ack.auth, ack.multilink, ack.low_latency) == (None, None, None, False)


def test_an_unknown_mandatory_extension_ends_the_opening() -> None:
    router = side(Offer(ROUTER_ZID, ROUTER))
    router.listen(0.0, COOKIE)
    syn = bytearray(write(InitSyn(version=9, whatami=CLIENT, zid=b"\x01")))
    syn[0] |= 0x80
    with pytest.raises(DecodeError):
        router.receive(framed(bytes(syn) + b"\x1e"), 0.0)


@given(
    st.sampled_from([0x00, 0x05, 0x0A, 0x08, 0x02]),
    st.sampled_from([0x00, 0x05, 0x0A, 0x08, 0x02]),
    st.integers(64, 65535),
    st.integers(64, 65535),
    st.booleans(),
    st.booleans(),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(1, 100_000),
    st.integers(1, 100_000),
)
def test_both_sides_agree_on_the_lesser_of_everything(
    res_a: int, res_b: int, size_a: int, size_b: int, qos_a: bool, qos_b: bool,
    patch_a: int, patch_b: int, lease_a: int, lease_b: int,
) -> None:  # fmt: skip
    one = side(Offer(CLIENT_ZID, PEER, res_a, size_a, lease_a, qos_a, patch_a))
    other = side(Offer(ROUTER_ZID, PEER, res_b, size_b, lease_b, qos_b, patch_b))
    other.listen(0.0, COOKIE)
    one.connect(0.0)
    exchange(one, other)
    mine, theirs = ear(one).terms, ear(other).terms
    assert mine is not None
    assert theirs is not None
    resolution = min(res_a & 3, res_b & 3) | min(res_a & 12, res_b & 12)
    for terms in (mine, theirs):
        assert terms.resolution == resolution
        assert terms.batch_size == min(size_a, size_b)
        assert terms.qos == (qos_a and qos_b)
        assert terms.patch == min(patch_a, patch_b)
    assert (mine.tx_initial_sn, mine.rx_initial_sn) == (theirs.rx_initial_sn, theirs.tx_initial_sn)
    assert (mine.tx_lease, mine.rx_lease) == (lease_a, lease_b)
    assert (theirs.tx_lease, theirs.rx_lease) == (lease_b, lease_a)


def test_an_acceptor_that_was_closed_says_nothing_more() -> None:
    acceptor = Acceptor(Offer(ROUTER_ZID, ROUTER), COOKIE)
    with pytest.raises(ClosedError):
        acceptor.receive(Close(reason=0))


def test_each_side_hears_the_others_region_and_where_it_was_put() -> None:
    seen: list[tuple[bytes, bytes]] = []

    def south(terms: Terms) -> int:
        seen.append((terms.zid, terms.region_name))
        return 1

    one = side(Offer(CLIENT_ZID, PEER, region_name=b"hall"))
    other = side(Offer(ROUTER_ZID, PEER, region_name=b"main", bound=south))
    other.listen(0.0, COOKIE)
    one.connect(0.0)
    exchange(one, other)
    mine, theirs = one.terms, other.terms
    assert mine is not None
    assert theirs is not None
    assert (mine.region_name, mine.assigned) == (b"main", 1)
    assert (theirs.region_name, theirs.assigned) == (b"hall", -1)
    assert seen == [(CLIENT_ZID, b"hall")]


def test_who_connects_says_where_it_puts_the_other_before_it_opens() -> None:
    initiator = Initiator(Offer(CLIENT_ZID, PEER, bound=lambda terms: 0))
    initiator.start()
    said = initiator.receive(InitAck(version=9, whatami=ROUTER, zid=ROUTER_ZID, cookie=COOKIE))
    assert isinstance(said, OpenSyn)
    assert said.remote_bound == 0
    assert initiator.terms is not None
    assert initiator.terms.assigned == -2
    initiator.receive(OpenAck(lease=10_000, initial_sn=1))
    assert initiator.terms.assigned == -1
