"""What holds for every message: it comes back as it was, and nothing else comes out of it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake import testing, wire
from zenlake.errors import DecodeError, EncodeError
from zenlake.testing.strategies import messages, unknown_extensions
from zenlake.wire.cursor import Writer
from zenlake.wire.declared.schema import Messages, MessageSpec, Rest

SPECS = list(testing.specs("1.x"))
#: These properties are searched once for each message, so each search is shorter.
few = settings(max_examples=settings().max_examples // 8)
every_message = pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])

EXTENSIBLE = [spec for spec in SPECS if spec.extensible]
every_extensible = pytest.mark.parametrize("spec", EXTENSIBLE, ids=[s.name for s in EXTENSIBLE])

NETWORK, TRANSPORT, SCOUTING = (
    page
    for name in ("network", "transport", "scouting")
    for page in testing.pages("1.x")
    if page.name == name
)
#: The one field that has no end of its own, where a message has such a field.
OPEN_ENDED = {
    spec.name: field.name
    for spec in SPECS
    for field in spec.plain
    if isinstance(field.kind, Rest | Messages)
}
KEEPING = ("Put", "Del", "Query", "Reply", "Err")
DISCARDING = [spec for spec in EXTENSIBLE if spec.name not in KEEPING]


# ----------------------------------------------------------------------------- there and back


@every_message
@few
@given(data=st.data())
def test_a_message_comes_back_as_it_was(spec: MessageSpec, data: st.DataObject) -> None:
    message = data.draw(messages(spec))
    again = testing.read(spec, wire.write(message))
    assert again == message
    assert type(again) is type(message)
    assert hash(again) == hash(message)
    assert repr(again) == repr(message)


@every_message
@few
@given(data=st.data())
def test_passing_over_ends_where_reading_ends(spec: MessageSpec, data: st.DataObject) -> None:
    encoded = wire.write(data.draw(messages(spec)))
    behind = b"" if spec.name in OPEN_ENDED else data.draw(st.binary(max_size=3))
    assert testing.skip(spec, encoded + behind) == len(encoded)


@every_message
@few
@given(data=st.data())
def test_the_fields_are_plain_values(spec: MessageSpec, data: st.DataObject) -> None:
    message = data.draw(messages(spec))
    shown = message.to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["message"] == spec.name
    assert set(shown) <= {"message", *message.FIELDS}


@every_message
@few
@given(data=st.data())
def test_a_message_can_be_pickled_and_copied(spec: MessageSpec, data: st.DataObject) -> None:
    message = data.draw(messages(spec))
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.copy(message) == message
    assert copy.deepcopy(message) == message


@given(messages(NETWORK))
def test_the_repr_of_a_message_makes_it_again(message: wire.Message) -> None:
    assert eval(repr(message), {name: getattr(wire, name) for name in wire.__all__}) == message


def test_messages_of_two_kinds_are_never_equal() -> None:
    assert wire.DeclareSubscriber(id=1, scope=2) != wire.DeclareToken(id=1, scope=2)
    assert wire.KeepAlive() != "KeepAlive()"


@given(st.lists(messages(TRANSPORT), max_size=4))
def test_a_batch_is_its_messages_one_after_another(batch: list[wire.Message]) -> None:
    # A fragment reaches to the end of its batch, so nothing can stand behind one.
    closed = [message for message in batch if not isinstance(message, wire.Fragment)]
    assert wire.read_batch(b"".join(map(wire.write, closed))) == closed


@given(messages(NETWORK))
def test_any_buffer_may_hold_a_message(message: wire.Message) -> None:
    data = wire.write(message)
    assert wire.read_network(bytearray(data)) == message
    assert wire.read_network(memoryview(b"\0" + data)[1:]) == message


# ------------------------------------------------------------------------------------- the end


@every_message
@few
@given(data=st.data())
def test_a_message_cut_anywhere_is_refused(spec: MessageSpec, data: st.DataObject) -> None:
    message = data.draw(messages(spec))
    encoded = wire.write(message)
    whole = OPEN_ENDED.get(spec.name)
    for size in range(len(encoded)):
        shorter = read_or_refuse(spec, encoded[:size])
        if shorter is None:
            continue
        # Only what has no end of its own may be shorter, and all before it is as it was.
        assert whole is not None, f"{encoded[:size].hex()} read as {shorter}"
        for name in message.FIELDS:
            was, is_now = getattr(message, name), getattr(shorter, name)
            assert is_now == (was[: len(is_now)] if name == whole else was)


def read_or_refuse(spec: MessageSpec, data: bytes) -> wire.Message | None:
    try:
        return testing.read(spec, data)
    except DecodeError as error:
        if not 0 <= error.offset <= len(data):
            raise AssertionError(f"the offset {error.offset} is not in {data.hex()}") from error
        return None


def test_only_these_messages_are_open_ended() -> None:
    assert OPEN_ENDED == {
        "QueryBody": "payload",
        "KeyExt": "suffix",
        "Frame": "messages",
        "Fragment": "payload",
    }


@given(messages(NETWORK), st.binary(min_size=1, max_size=3))
def test_bytes_behind_a_network_message_are_refused(message: wire.Message, more: bytes) -> None:
    with pytest.raises(DecodeError, match="left over"):
        wire.read_network(wire.write(message) + more)


@given(messages(SCOUTING), st.binary(min_size=1, max_size=3))
def test_bytes_behind_a_scouting_message_are_refused(message: wire.Message, more: bytes) -> None:
    with pytest.raises(DecodeError, match="left over"):
        wire.read_scouting(wire.write(message) + more)


def test_bytes_behind_link_states_are_refused() -> None:
    assert wire.read_link_states(b"\0") == ()
    with pytest.raises(DecodeError, match="left over"):
        wire.read_link_states(b"\0\0")


def test_a_frame_ends_at_a_byte_that_begins_no_network_message() -> None:
    frame = wire.Frame(sn=1, reliable=True, messages=(wire.ResponseFinal(id=4),))
    batch = [frame, wire.KeepAlive(), wire.Frame(sn=2, reliable=False), frame]
    assert wire.read_batch(b"".join(map(wire.write, batch))) == batch


def test_a_known_structure_must_fill_its_extension() -> None:
    # Source info says 5 bytes and needs 4.
    with pytest.raises(DecodeError, match=r"1 bytes left over in Put\.source_info"):
        testing.read(testing.spec("Put"), bytes.fromhex("81" + "41050001010100" + "00"))


def test_a_known_structure_may_not_pass_the_end_of_its_extension() -> None:
    with pytest.raises(DecodeError, match="left at offset"):
        testing.read(testing.spec("Put"), bytes.fromhex("81" + "410300010101" + "00"))


# --------------------------------------------------------------------------------- extensions


def with_extensions(spec: MessageSpec, message: wire.Message, *more: bytes) -> bytes:
    """The message with raw extensions before its own; each ends without the "more" bit."""
    encoded = wire.write(message)
    start = extensions_at(spec, encoded)
    first = b"".join(bytes((extension[0] | 0x80,)) + extension[1:] for extension in more[:-1])
    last = more[-1]
    if encoded[0] & 0x80:
        last = bytes((last[0] | 0x80,)) + last[1:]
    return bytes((encoded[0] | 0x80,)) + encoded[1:start] + first + last + encoded[start:]


def extensions_at(spec: MessageSpec, encoded: bytes) -> int:
    """Where the extensions of an encoded message stand, or would stand.

    Found from outside: the first place where a mandatory extension is refused as one.
    """
    for start in range(1, len(encoded) + 1):
        probe = bytes((encoded[0] | 0x80,)) + encoded[1:start] + b"\x1e"
        try:
            testing.read(spec, probe)
        except DecodeError as error:
            if "mandatory extension 0x1e" in str(error) and error.offset == start:
                return start
    raise AssertionError(f"{spec.name} has no place for extensions")


@pytest.mark.parametrize("spec", DISCARDING, ids=[spec.name for spec in DISCARDING])
@few
@given(data=st.data())
def test_an_unknown_optional_extension_is_passed_over(
    spec: MessageSpec, data: st.DataObject
) -> None:
    message = data.draw(messages(spec))
    unknown = data.draw(st.lists(unknown_extensions(spec).map(wire.write), min_size=1, max_size=3))
    encoded = with_extensions(spec, message, *unknown)
    assert testing.read(spec, encoded) == message
    assert testing.skip(spec, encoded) == len(encoded)


@pytest.mark.parametrize("name", KEEPING)
@few
@given(data=st.data())
def test_a_body_keeps_unknown_extensions_in_order(name: str, data: st.DataObject) -> None:
    spec = testing.spec(name)
    message: Any = data.draw(messages(spec))
    message.extensions = ()
    unknown = data.draw(st.lists(unknown_extensions(spec), min_size=1, max_size=3))
    encoded = with_extensions(spec, message, *map(wire.write, unknown))
    found: Any = testing.read(spec, encoded)
    assert found.extensions == tuple(unknown)
    # They are sent on behind the known ones, in the order in which they came.
    sent: Any = testing.read(spec, wire.write(found))
    assert sent == found
    found.extensions = ()
    assert found == message


@every_extensible
@few
@given(data=st.data(), header=st.sampled_from([0x1E, 0x3E, 0x5E]))
def test_an_unknown_mandatory_extension_refuses_the_message(
    spec: MessageSpec, data: st.DataObject, header: int
) -> None:
    encoded = with_extensions(spec, data.draw(messages(spec)), bytes((header, 0)))
    with pytest.raises(DecodeError, match=f"unknown mandatory extension 0x{header:02x}"):
        testing.read(spec, encoded)
    with pytest.raises(DecodeError, match=f"unknown mandatory extension 0x{header:02x}"):
        testing.skip(spec, encoded)


@every_extensible
@few
@given(data=st.data())
def test_the_reserved_encoding_refuses_the_message(spec: MessageSpec, data: st.DataObject) -> None:
    encoded = with_extensions(spec, data.draw(messages(spec)), b"\x6e")
    with pytest.raises(DecodeError, match="reserved encoding 3"):
        testing.read(spec, encoded)
    with pytest.raises(DecodeError, match="reserved encoding 3"):
        testing.skip(spec, encoded)


def test_a_known_id_in_another_shape_is_unknown() -> None:
    # 0x21 is the QoS of a push; the same id as a unit is something else, and skipped.
    push = wire.read_network(bytes.fromhex("dd01" + "01" + "0100"))
    assert push == wire.Push(scope=1, body=wire.Put())
    # 0x33 is the node id, mandatory; without the mandatory bit it is unknown and optional.
    push = wire.read_network(bytes.fromhex("dd01" + "2307" + "0100"))
    assert push == wire.Push(scope=1, body=wire.Put())
    # 0x43 is the attachment of a put; a mandatory 0x53 is unknown and refuses it.
    with pytest.raises(DecodeError, match="unknown mandatory extension 0x53"):
        wire.read_network(bytes.fromhex("5d01" + "81" + "530141" + "00"))


def test_of_two_equal_extensions_the_last_counts() -> None:
    push = wire.read_network(bytes.fromhex("dd01" + "a107" + "2109" + "0100"))
    assert push == wire.Push(scope=1, qos=9, body=wire.Put())
    put = testing.read(testing.spec("Put"), bytes.fromhex("81" + "c30141" + "430142" + "00"))
    assert put == wire.Put(attachment=b"B")


@given(st.permutations([b"\x21\x0d", b"\x34\x01", b"\x25\x07", b"\x26\x90\x4e", b"\x33\x02"]))
def test_extensions_come_in_any_order(order: list[bytes]) -> None:
    plain = wire.Request(id=1, scope=2, body=wire.Query())
    found = wire.read_network(with_extensions(testing.spec("Request"), plain, *order))
    assert found == wire.Request(
        id=1, scope=2, qos=13, target=1, budget=7, timeout=10000, node_id=2, body=wire.Query()
    )


def test_defaults_are_left_out_on_writing() -> None:
    spelled_out = bytes.fromhex("dd01" + "a105" + "3300" + "41" + "00" + "0168")
    push = wire.read_network(spelled_out)
    assert push == wire.Push(scope=1, body=wire.Put(payload=b"h"))
    assert wire.write(push).hex() == "5d01" + "01" + "0168"


def test_an_empty_attachment_is_not_an_absent_one() -> None:
    assert wire.write(wire.Put(attachment=b"")).hex() == "81" + "4300" + "00"
    assert testing.read(testing.spec("Put"), b"\x01\x00") == wire.Put(attachment=None)


def test_a_message_may_not_bring_more_unknown_extensions_than_there_can_be() -> None:
    spec = testing.spec("Del")
    most: Any = testing.read(spec, b"\x82" + b"\x8e" * 47 + b"\x0e")
    assert len(most.extensions) == 48
    with pytest.raises(DecodeError, match="more than 48 unknown extensions"):
        testing.read(spec, b"\x82" + b"\x8e" * 48 + b"\x0e")


def test_an_integer_may_be_longer_than_it_needs() -> None:
    assert wire.write(wire.ResponseFinal(id=5)) == b"\x1a\x05"
    for longer in (b"\x85\x00", b"\x85\x80\x00", b"\x85" + b"\x80" * 7 + b"\x00"):
        assert wire.read_network(b"\x1a" + longer) == wire.ResponseFinal(id=5)


# --------------------------------------------------------------------------- what does not fit

STAMP = wire.Timestamp(seconds=1, fraction=1, id=b"\x01")
UNWRITABLE = [
    wire.Push(scope=-1, body=wire.Put()),
    wire.Push(scope=0x1_0000, body=wire.Put()),
    wire.Push(scope=1, suffix="x" * 0x1_0000, body=wire.Put()),
    wire.Push(scope=1, suffix="\ud800", body=wire.Put()),
    wire.Push(scope=1, qos=256, body=wire.Put()),
    wire.Push(scope=1, qos=-1, body=wire.Put()),
    wire.Push(scope=1, node_id=0x1_0000, body=wire.Put()),
    wire.Request(id=1 << 32, scope=0, body=wire.Query()),
    wire.Request(id=1, scope=0, target=3, body=wire.Query()),
    wire.Request(id=1, scope=0, timeout=1 << 64, body=wire.Query()),
    wire.Interest(mode=4, id=1),
    wire.Interest(mode=-1, id=1),
    wire.Oam(id=1, body=-1),
    wire.Oam(id=1, body=1 << 64),
    wire.Put(encoding=0x1_0000),
    wire.Put(encoding=-1),
    wire.Put(schema=bytes(256)),
    wire.Put(timestamp=wire.Timestamp(seconds=1 << 32, fraction=0, id=b"\x01")),
    wire.Put(timestamp=wire.Timestamp(seconds=0, fraction=-1, id=b"\x01")),
    wire.Put(timestamp=wire.Timestamp(seconds=0, fraction=0, id=b"")),
    wire.Put(timestamp=wire.Timestamp(seconds=0, fraction=0, id=bytes(16) + b"\x01")),
    wire.Put(timestamp=wire.Timestamp(seconds=0, fraction=0, id=b"\x01\x00")),
    wire.Put(source_info=wire.SourceInfo(zid=b"", eid=0, sn=0)),
    wire.Put(source_info=wire.SourceInfo(zid=b"\x01" * 17, eid=0, sn=0)),
    wire.Put(shm=True, slices=(wire.Slice(kind=256, data=b""),)),
    wire.Put(extensions=(wire.UnknownExtension(header=0x8E, body=b""),)),
    wire.Put(extensions=(wire.UnknownExtension(header=-1, body=b""),)),
    wire.Put(extensions=(wire.UnknownExtension(header=0x6E, body=b""),)),
    wire.Put(extensions=(wire.UnknownExtension(header=0x0E, body=b"\x00"),)),
    wire.Put(extensions=(wire.UnknownExtension(header=0x2E, body=b"\x80"),)),
    wire.Put(extensions=(wire.UnknownExtension(header=0x4E, body=b"\x02\x00"),)),
    wire.Query(parameters="\udfff"),
    wire.Declare(interest_id=1 << 32, body=wire.DeclareFinal()),
    wire.DeclareQueryable(id=1, scope=1, info=1 << 24),
    wire.UndeclareToken(id=1, key=wire.KeyExt(scope=1, suffix="\ud800")),
    wire.InitSyn(version=256, whatami=0, zid=b"\x01"),
    wire.InitSyn(version=9, whatami=3, zid=b"\x01"),
    wire.InitSyn(version=9, whatami=0, zid=b""),
    wire.InitSyn(version=9, whatami=0, zid=b"\x01\x00"),
    wire.InitSyn(version=9, whatami=0, zid=b"\x01", resolution=0x40),
    wire.InitSyn(version=9, whatami=0, zid=b"\x01", batch_size=0x1_0000),
    wire.InitAck(version=9, whatami=0, zid=b"\x01", cookie=bytes(0x1_0000)),
    wire.OpenSyn(lease=-1000, initial_sn=0, cookie=b""),
    wire.OpenSyn(lease=1, initial_sn=1 << 32, cookie=b""),
    wire.OpenAck(lease=1, initial_sn=0, remote_bound=2),
    wire.Close(reason=256),
    wire.Frame(sn=-1),
    wire.Frame(sn=0, priority=8),
    wire.Join(
        version=9, whatami=1, zid=b"\x01", lease=1,
        next_sn_reliable=0, next_sn_best_effort=0, lane_sns=(1, 2, 3),
    ),
    wire.Scout(version=9, what=8),
    wire.Scout(version=9, what=1, zid=bytes(17)),
    wire.Hello(version=9, whatami=0, zid=b"\x01", locators=("x" * 256,)),
    wire.LinkState(psid=0, sn=0, links=(1,), weights=(1, 2)),
    wire.LinkState(psid=0, sn=0, links=(), whatami=3),
    wire.TimestampStack(points=1, records=(wire.TimestampRecord(point=1, stamp=b""),) * 256),
]  # fmt: skip


@pytest.mark.parametrize("message", UNWRITABLE, ids=lambda message: repr(message)[:60])
def test_what_does_not_fit_is_never_written(message: wire.Message) -> None:
    with pytest.raises(EncodeError):
        wire.write(message)


# ------------------------------------------------------------------------------- small lessons


def test_an_interest_that_is_final_has_nothing_but_its_id() -> None:
    interest = wire.Interest(mode=0, id=3, restricted=True, subscribers=True, suffix="a")
    assert wire.write(interest).hex() == "1903"


def test_the_mapping_of_an_interest_means_nothing_without_a_key() -> None:
    assert wire.write(wire.Interest(mode=1, id=3, suffix="a")).hex() == "390300"


@pytest.mark.parametrize(
    ("lease", "encoded"), [(10_000, "620a"), (1_500, "22dc0b"), (0, "6200"), (999, "22e707")]
)
def test_a_lease_is_in_seconds_if_they_are_whole(lease: int, encoded: str) -> None:
    message = wire.OpenAck(lease=lease, initial_sn=0)
    assert wire.write(message).hex() == encoded + "00"
    assert wire.read_batch(bytes.fromhex(encoded + "00")) == [message]


@given(st.integers(1 << 32, (1 << 64) - 1))
def test_a_long_sequence_number_is_cut_as_the_reference_cuts_it(sn: int) -> None:
    w = Writer()
    w.vle(sn, (1 << 64) - 1)
    (frame,) = wire.read_batch(b"\x05" + w.getvalue())
    assert frame == wire.Frame(sn=sn & 0xFFFF_FFFF)


def test_a_node_id_loses_its_high_zero_bytes() -> None:
    (init,) = wire.read_batch(bytes.fromhex("010930aa110000"))
    assert init == wire.InitSyn(version=9, whatami=0, zid=b"\xaa\x11")
    assert init.to_dict()["zid"] == "11aa"


def test_a_node_id_of_zero_is_refused() -> None:
    with pytest.raises(DecodeError, match="is zero"):
        wire.read_batch(bytes.fromhex("0109100000"))


@pytest.mark.parametrize("whatami", [0, 3, 5, 8])
def test_a_link_state_with_no_such_role_is_refused(whatami: int) -> None:
    with pytest.raises(DecodeError, match=f"whatami is {whatami}"):
        wire.read_link_states(bytes((1, 2, 0, 0, whatami, 0)))


def test_an_unknown_message_says_what_was_expected() -> None:
    with pytest.raises(DecodeError, match=r"0x18 at offset 0 is none of: .*Push 0x1d"):
        wire.read_network(b"\x18")
    with pytest.raises(DecodeError, match=r"0x08 at offset 1 is none of: .*Frame 0x05"):
        wire.read_batch(b"\x04\x08")


def test_reading_nothing_is_refused_except_as_a_batch() -> None:
    assert wire.read_batch(b"") == []
    for read in (wire.read_network, wire.read_scouting, wire.read_link_states):
        with pytest.raises(DecodeError):
            read(b"")


def test_every_generated_message_is_public() -> None:
    assert {spec.name for spec in SPECS} <= set(wire.__all__)
