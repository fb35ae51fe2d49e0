from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.transport.sequence import MASKS, follows, initial_sn, mask_of

GOLDEN = Path(__file__).parent.parent / "golden" / "vectors-1x.json"
MASK = 0x0FFF_FFFF


@pytest.mark.parametrize(
    ("resolution", "mask"), [(0x08, 0x7F), (0x09, 0x3FFF), (0x0A, MASK), (0x02, MASK)]
)
def test_a_resolution_counts_as_far_as_its_bytes(resolution: int, mask: int) -> None:
    assert mask_of(resolution) == mask


@pytest.mark.parametrize(
    ("gap", "accepted"),
    [
        (0, False),  # the same again
        (1, True),
        (5, True),  # a gap is accepted
        (0x07FF_FFFF, True),  # half the circle
        (0x0800_0000, False),  # more than half is the past
        (MASK, False),
    ],
)
@pytest.mark.parametrize("last", [0, 1, 100, MASK - 1, MASK])
def test_a_number_is_news_up_to_half_a_circle_ahead(gap: int, accepted: bool, last: int) -> None:
    assert follows(last, (last + gap) & MASK, MASK) is accepted


def test_numbers_go_on_after_the_last_one() -> None:
    assert follows(MASK, 0, MASK)
    assert follows(127, 0, 0x7F)
    assert not follows(0, MASK, MASK)


@given(st.sampled_from(MASKS), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_of_two_numbers_at_most_one_is_news_after_the_other(mask: int, a: int, b: int) -> None:
    a, b = a & mask, b & mask
    assert not (follows(a, b, mask) and follows(b, a, mask))
    assert follows(a, b, mask) or follows(b, a, mask) or (a - b) & mask in (0, (mask + 1) // 2)


def test_both_sides_derive_their_first_numbers_as_real_nodes_do() -> None:
    client = bytes.fromhex("035f0e01d717c5ebc8c813226f66cb47")
    router = bytes.fromhex("cfb1188dd746e685b735418d3f4af928")
    assert initial_sn(client, router, MASK) == 44577068
    assert initial_sn(router, client, MASK) == 38368157


def recorded_handshakes() -> list[tuple[str, bytes, bytes, int, int]]:
    """Every recorded handshake: name, both ids, the mask, the number announced."""
    conversations: dict[str, dict[str, dict[str, object]]] = {}
    for vector in json.loads(GOLDEN.read_text()):
        meaning = vector["meaning"]
        if (
            vector["origin"].startswith("eclipse")
            and isinstance(meaning, list)
            and len(meaning) == 1
        ):
            name = vector["name"].rsplit("/", 1)[0]
            if meaning[0].get("msg") in {"INIT_SYN", "INIT_ACK", "OPEN_SYN", "OPEN_ACK"}:
                conversations.setdefault(name, {})[meaning[0]["msg"]] = meaning[0]
    found = []
    for name, said in conversations.items():
        if {"INIT_SYN", "INIT_ACK"} <= said.keys():
            mine = bytes.fromhex(str(said["INIT_SYN"]["zid"]).rjust(32, "0"))[::-1].rstrip(b"\0")
            theirs = bytes.fromhex(str(said["INIT_ACK"]["zid"]).rjust(32, "0"))[::-1].rstrip(b"\0")
            mask = mask_of(int(str(said["INIT_ACK"]["resolution"])))
            for opening, ids in (("OPEN_SYN", (mine, theirs)), ("OPEN_ACK", (theirs, mine))):
                if opening in said:
                    sn = int(str(said[opening]["initial_sn"]))
                    found.append((f"{name} {opening}", *ids, mask, sn))
    return found


@pytest.mark.parametrize("recorded", recorded_handshakes(), ids=lambda recorded: recorded[0])
def test_every_recorded_first_number_is_derived(
    recorded: tuple[str, bytes, bytes, int, int],
) -> None:
    _, mine, theirs, mask, sn = recorded
    assert initial_sn(mine, theirs, mask) == sn
