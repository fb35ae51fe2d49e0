"""The dissector finds what the codec finds, byte for byte, and says it in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import testing, wire, xrce
from zenlake.errors import DecodeError
from zenlake.testing.strategies import messages
from zenlake.wire.dissector.dissect import (
    Dissection,
    FieldNode,
    dissect,
    dissect_as,
    dissect_packet,
)
from zenlake.wire.dissector.text import text
from zenlake.wire.message import Message
from zenlake.xrce.declared import PAGE as PAGE_2018

GOLDEN = Path(__file__).parents[2] / "golden"
FORM = {
    "batch (transport messages; u16 LE length prefix NOT included)": "batch",
    "network message (inside FRAME)": "network",
    "scouting-datagram": "scouting",
}
VECTORS: list[tuple[str, bytes]] = [
    (FORM[entry["layer"]], bytes.fromhex(entry["hex"]))
    for entry in json.loads((GOLDEN / "vectors-1x.json").read_text())
    if entry["layer"] in FORM
]
PACKETS: list[bytes] = [
    bytes.fromhex(entry["hex"])
    for entry in json.loads((GOLDEN / "vectors-2018.json").read_text())["vectors"]
    if not entry["kind"].startswith(("vle", "frame"))
]
READERS: dict[str, Callable[[bytes], Sequence[Message]]] = {
    "batch": wire.read_batch,
    "network": lambda data: [wire.read_network(data)],
    "scouting": lambda data: [wire.read_scouting(data)],
    "packet": xrce.read_packet,
}
PAGES = {page.name: page for page in testing.pages()}
SMALL = [(form, data) for form, data in VECTORS if len(data) < 200]
SMALL += [("packet", data) for data in PACKETS if len(data) < 100]

INIT_SYN = bytes.fromhex("c109f2035f0e01d717c5ebc8c813226f66cb470ac8ff812701")


def dissected(data: bytes, form: str) -> Dissection:
    return dissect_as(data, form, page=PAGE_2018 if form == "packet" else None)


def plain(value: object) -> object:
    """A decoded value in the dissector's form: dictionaries instead of classes."""
    if isinstance(value, Message):
        fields = {name: plain(getattr(value, name)) for name in value.FIELDS}
        return {"message": value.NAME, **fields}
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def agree(data: bytes, form: str) -> Dissection:
    """Hold the dissector against the generated codec."""
    found = dissected(data, form)
    try:
        decoded = READERS[form](data)
    except DecodeError:
        assert found.broken is not None
        assert 0 <= found.broken.offset <= len(data)
    else:
        assert found.broken is None
        assert found.messages == [plain(message) for message in decoded]
    return found


def walk(nodes: list[FieldNode]) -> Iterator[FieldNode]:
    for node in nodes:
        yield node
        yield from walk(node.children)


def places(found: Dissection) -> Iterator[tuple[int, str]]:
    """Where something was read, in order."""
    return ((node.offset, node.bits) for node in walk(found.nodes) if node.data or node.bits)


def named(found: Dissection, name: str) -> FieldNode:
    return next(node for node in walk(found.nodes) if node.name == name)


# ----------------------------------------------------------------------- it finds what is there


def test_every_golden_message_is_found_as_the_codec_finds_it() -> None:
    for form, data in VECTORS:
        assert agree(data, form).broken is None


def test_every_golden_packet_of_2018_is_found_as_the_codec_finds_it() -> None:
    assert sum(agree(data, "packet").broken is None for data in PACKETS) > 100


@pytest.mark.parametrize("form", ["batch", "network", "scouting", "packet"])
def test_the_codec_and_the_dissector_refuse_the_same_golden_bytes(form: str) -> None:
    for _, data in SMALL:
        agree(data, form)


@given(st.data())
def test_any_message_is_found_as_the_codec_finds_it(data: st.DataObject) -> None:
    form, page = data.draw(
        st.sampled_from(
            [("batch", "transport"), ("network",) * 2, ("scouting",) * 2, ("packet", "xrce")]
        )
    )
    encoded = wire.write(data.draw(messages(PAGES[page])))
    assert agree(encoded, form).broken is None


@given(
    st.sampled_from(SMALL),
    st.lists(st.tuples(st.integers(0, 199), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(-3, 3),
)
def test_damaged_bytes_are_accepted_or_refused_as_the_codec_does(
    vector: tuple[str, bytes], changes: list[tuple[int, int]], cut: int
) -> None:
    form, data = vector
    damaged = bytearray(data)
    for place, value in changes:
        damaged[place % len(data)] = value
    agree(bytes(damaged[:cut] if cut < 0 else damaged + bytes(cut)), form)


@given(st.sampled_from(["batch", "network", "scouting", "packet"]), st.binary(max_size=40))
def test_any_bytes_are_accepted_or_refused_as_the_codec_does(form: str, data: bytes) -> None:
    agree(data, form)


@given(st.sampled_from(SMALL))
def test_no_byte_is_left_without_a_node(vector: tuple[str, bytes]) -> None:
    form, data = vector
    found = dissected(data, form)
    if found.broken is None:
        assert b"".join(node.data for node in found.nodes) == data
    for node in walk(found.nodes):
        assert data[node.offset : node.offset + len(node.data)] == node.data
        parts = [child for child in node.children if not child.bits]
        assert all(node.offset <= child.offset for child in parts)
        assert sum(len(child.data) for child in parts) <= len(node.data)


@given(st.sampled_from(SMALL), st.integers(0, 199))
def test_cut_bytes_give_the_tree_so_far_and_where_it_broke(
    vector: tuple[str, bytes], size: int
) -> None:
    form, data = vector
    found = dissected(data[: size % len(data)], form)
    if found.broken is None:
        return
    whole = list(places(dissected(data, form)))
    kept = list(places(found))
    assert kept == whole[: len(kept)]
    assert text(found).splitlines()[-1].startswith("✗ broken at offset")


# -------------------------------------------------------------------------- it says what it is


def test_a_newcomer_reads_an_init_syn() -> None:
    shown = text(dissect(INIT_SYN))
    for words in (
        "25 bytes, read as a batch of transport messages.",
        " 0  25 bytes                 InitSyn  ",
        ".1.. ....                │  ├─ S        1             resolution and batch_size are there",
        ".... ..10                │  └─ whatami  2             client",
        "47cb666f2213c8c8ebc517d7010e5f03",
        "sequence numbers of 32 bits, request ids of 32 bits",
        "├─ ext qos                   priority lanes wanted",
        "└─ header   0x27          extension 7, a number, optional, the last",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("digits", "name", "meaning"),
    [
        ("9a01210d", "ext qos", "priority data, block when congested, not express"),
        ("9a012115", "ext qos", "priority data, drop when congested, express"),
        ("9a012125", "ext qos", "priority data, block for the first when congested, not express"),
        ("620a9de7a512", "lease", "10 seconds: silence for so long, and the session is over"),
        ("2210009de7a512", "lease", "16 ms: silence for so long, and the session is over"),
        ("2302", "reason", "invalid"),
        ("23ff", "reason", "unknown"),
        ("9e210884020021810a", "ext info", "complete, 5 hops away"),
        ("7d0001614108066170702f70620178", "encoding", "text/plain"),
        ("1d014108010178", "encoding", "text/plain"),
        ("1d0141feff07010178", "encoding", "custom: the schema is its name"),
        ("1d014190ce0070010178", "encoding", "not a well-known encoding"),
        ("1d0321a0b992beccaffcfc6a10cfb1188dd746e685b735418d3f4af9280132", "time",
         "2026-11-15T17:53:00.780343809Z"),
        ("9c0c03a10d26904e2303", "consolidation", "latest"),
        ("9c0c03a10d26904e2303", "ext timeout", "10 seconds"),
        ("5d010102fffe", "payload", "2 bytes"),
        ("5d010102410a", "payload", '2 bytes, as text "A\\n"'),
    ],
)  # fmt: skip
def test_values_are_told_in_words(digits: str, name: str, meaning: str) -> None:
    assert named(dissect(bytes.fromhex(digits)), name).meaning == meaning


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("21b670", "lanes wanted; this link is for priorities data low to background, best effort"),
        ("21848020", "lanes wanted; this link is for reliable"),
        ("2101", "lanes wanted; this link is for everything"),
    ],
)
def test_what_a_link_is_for_is_told_in_words(value: str, meaning: str) -> None:
    found = dissect(bytes.fromhex("8109" + "0001" + value))
    assert named(found, "ext qos_link").meaning == meaning


def test_link_states_are_found_inside_their_message() -> None:
    found = dissect(bytes.fromhex("df012108180103020210eb331dfa034fca26f1f6b265d76b3b78010101"))
    assert named(found, "psid").value == 2
    assert named(found, "zid").value == "783b6bd765b2f6f126ca4f03fa1d33eb"
    assert named(found, "links").value == [1]


def test_bytes_that_are_no_link_states_break_no_message() -> None:
    found = dissect(bytes.fromhex("df01210801ff"))
    assert found.broken is None
    body = named(found, "body")
    assert body.meaning == "not link states: the number has no last byte (at 5)"
    assert not body.children


def test_an_unknown_extension_is_kept_where_it_must_be_and_passed_over_elsewhere() -> None:
    assert named(dissect(bytes.fromhex("5d01812a070178")), "ext 0x2a").meaning == "unknown, kept"
    assert named(dissect(bytes.fromhex("840a")), "ext 0x0a").meaning == "unknown, passed over"


def test_an_unknown_mandatory_extension_breaks_the_message() -> None:
    found = dissect(bytes.fromhex("841a"))
    assert found.broken is not None
    assert found.broken.offset == 1
    assert str(found.broken) == "KeepAlive has the extension 0x1a, which is unknown and mandatory"


def test_text_from_strangers_moves_no_cursor() -> None:
    shown = text(dissect(bytes.fromhex("7d00051b5b324a0a0200")))
    assert "\x1b" not in shown
    assert '"\\x1b[2J\\n"' in shown


# --------------------------------------------------------------------------- what are they, then


def test_bytes_that_fit_a_batch_are_one() -> None:
    assert dissect(INIT_SYN).form == "batch"


def test_bytes_that_fit_no_batch_may_be_a_network_message() -> None:
    assert dissect(bytes.fromhex("9a01210d")).form == "network"


def test_bytes_that_fit_neither_may_be_a_scouting_datagram() -> None:
    hello = "2209f0a6629724b97f9424f4992edd7cfeadbc01137463702f3132372e302e302e313a3330303030"
    assert dissect(bytes.fromhex(hello)).form == "scouting"


def test_what_is_asked_for_is_not_guessed() -> None:
    assert dissect(bytes.fromhex("04"), "network").broken is not None
    assert dissect(bytes.fromhex("04"), "network").form == "network"


def test_bytes_that_fit_nothing_are_told_as_what_they_begin_like() -> None:
    assert dissect(bytes.fromhex("7d00ff")).form == "network"
    found = dissect(bytes.fromhex("c109"))
    assert found.form == "batch"
    assert found.notes == ["it is not one network message or a scouting datagram either"]


def test_the_length_before_a_batch_is_recognised() -> None:
    found = dissect(len(INIT_SYN).to_bytes(2, "little") + INIT_SYN)
    assert [node.name for node in found.nodes] == ["length", "InitSyn"]
    assert found.nodes[1].offset == 2
    assert found.notes == ["the first 2 bytes are the length of the rest"]


def test_the_length_before_a_low_latency_message_is_recognised() -> None:
    found = dissect(bytes.fromhex("0a0000007d00046c6c2f61010178"))
    assert [node.name for node in found.nodes] == ["length", "Push"]


def test_a_length_that_counts_anything_else_is_none() -> None:
    found = dissect(b"\x30\x00" + INIT_SYN)
    assert found.broken is not None
    assert not found.nodes


def test_the_length_before_a_packet_of_2018_is_recognised() -> None:
    found = dissect_packet(bytes.fromhex("06670102020130"), PAGE_2018)
    assert [node.name for node in found.nodes] == ["length", "StreamData"]


def test_a_packet_of_2018_that_could_begin_with_a_length_need_not() -> None:
    found = dissect_packet(bytes.fromhex("020100"), PAGE_2018)
    assert [node.name for node in found.nodes] == ["Hello"]


def test_markers_of_2018_belong_to_their_message() -> None:
    found = dissect_packet(bytes.fromhex("b3ee0202"), PAGE_2018)
    assert [node.name for node in found.nodes] == ["Synch"]
    assert [node.name for node in found.nodes[0].children[:2]] == ["Conduit", "header"]
    assert named(found, "conduit").value == 2


def test_the_tree_is_what_json_can_hold() -> None:
    for form, data in SMALL:
        told = dissected(data, form).to_dict()
        assert json.loads(json.dumps(told)) == told
