"""Several links of one session: what each is for, and the proof that they belong together."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError, HandshakeError, RemoteError
from zenlake.transport.multilink import LinkProof, Purpose
from zenlake.transport.rsa import PrivateKey
from zenlake.wire.cursor import Writer

CHANCE = random.Random(7)
ONE, OTHER = (PrivateKey.make(CHANCE.randbytes) for _ in range(2))


def test_what_a_link_is_for_is_written_as_real_nodes_do() -> None:
    assert Purpose(6, 7, 0).number() == 14390
    assert Purpose(-1, -1, 1).number() == 524292
    assert Purpose().number() == 0


@given(
    first=st.integers(0, 7),
    width=st.integers(0, 7),
    said=st.booleans(),
    reliable=st.integers(-1, 1),
)
def test_what_is_written_is_read_again(first: int, width: int, said: bool, reliable: int) -> None:
    last = min(7, first + width)
    one = Purpose(first, last, reliable) if said else Purpose(reliable=reliable)
    again = Purpose.read(one.number())
    assert (again.first, again.last, again.reliable) == (one.first, one.last, one.reliable)


@given(st.integers(0, 2**64 - 1))
def test_any_number_is_a_purpose_or_refused(value: int) -> None:
    try:
        purpose = Purpose.read(value)
    except DecodeError:
        return
    assert purpose.first <= purpose.last <= 7
    assert purpose.reliable in (-1, 0, 1)


def test_the_narrowest_range_wins_then_no_range_then_anything() -> None:
    links = {
        "narrow": Purpose(1, 2, 1),
        "wide": Purpose(0, 4, 1),
        "all": Purpose(reliable=1),
        "lossy": Purpose(reliable=0),
    }

    def best(priority: int, reliable: bool) -> str:
        return max(links, key=lambda name: links[name].fitness(priority, reliable))

    assert best(1, True) == "narrow"
    assert best(4, True) == "wide"
    assert best(7, True) == "all"
    assert best(1, False) == "lossy"


def test_both_sides_learn_whose_link_it_is() -> None:
    near, far = LinkProof(ONE, CHANCE.randbytes), LinkProof(OTHER, CHANCE.randbytes)
    ack = far.init_ack(near.init_syn())
    assert far.open_ack(near.open_syn(ack))
    assert (near.theirs, far.theirs) == (OTHER.public, ONE.public)


def sized(data: bytes) -> bytes:
    """Bytes behind their length, as extensions have them."""
    w = Writer()
    w.sized(data, 0xFFFF)
    return w.getvalue()


@pytest.mark.parametrize(
    "guess",
    [
        OTHER.public.encrypt(bytes(8), CHANCE.randbytes),
        OTHER.public.encrypt(b"", CHANCE.randbytes),
        ONE.public.encrypt(bytes(8), CHANCE.randbytes),
        bytes(64),
        b"\xff" * 64,
    ],
    ids=["another nonce", "no nonce", "for another key", "zeros", "beyond the modulus"],
)
def test_who_shows_a_key_that_is_not_its_own_is_refused(guess: bytes) -> None:
    """Without the key the nonce cannot be read: a thief can only guess."""
    thief, far = LinkProof(ONE, CHANCE.randbytes), LinkProof(OTHER, CHANCE.randbytes)
    far.init_ack(thief.init_syn())
    with pytest.raises(HandshakeError, match="did not prove whose link") as caught:
        far.open_ack(sized(guess))
    assert caught.value.reason == 2, "invalid"


def test_who_cannot_read_the_nonce_does_not_answer() -> None:
    thief, far = LinkProof(ONE, CHANCE.randbytes), LinkProof(OTHER, CHANCE.randbytes)
    ack = far.init_ack(thief.init_syn())
    thief.key = PrivateKey(ONE.public, PrivateKey.make(CHANCE.randbytes).d)
    with pytest.raises(RemoteError, match="not encrypted with our key"):
        thief.open_syn(ack)


def test_who_proves_nothing_is_refused() -> None:
    near, far = LinkProof(ONE, CHANCE.randbytes), LinkProof(OTHER, CHANCE.randbytes)
    far.init_ack(near.init_syn())
    with pytest.raises(HandshakeError, match="did not prove") as caught:
        far.open_ack(None)
    assert caught.value.reason == 2, "invalid"


def test_where_one_side_has_no_key_there_is_one_link() -> None:
    near, far = LinkProof(ONE, CHANCE.randbytes), LinkProof(None, CHANCE.randbytes)
    assert far.init_ack(near.init_syn()) is None
    assert near.open_syn(None) is None
    assert not far.open_ack(None)


@given(st.binary(max_size=200))
def test_hostile_proofs_are_refused(data: bytes) -> None:
    far = LinkProof(OTHER, CHANCE.randbytes)
    with pytest.raises(RemoteError):
        far.init_ack(data)
    near = LinkProof(ONE, CHANCE.randbytes)
    with pytest.raises(RemoteError):
        near.open_syn(data)
