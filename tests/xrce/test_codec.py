from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake import testing, xrce
from zenlake.errors import DecodeError, EncodeError
from zenlake.testing.strategies import messages
from zenlake.wire.declared.schema import MARKERS_MAX
from zenlake.wire.generator.generate import roots_of
from zenlake.wire.message import Message
from zenlake.xrce.declared import PAGE

EVERY = [pytest.param(spec.name, id=spec.name) for spec in PAGE.specs.values()]
UNDEFINED = [0, 10, 17, 21, 22, 23, *range(25, 32)]


def sent(text: str) -> xrce.XrceMessage:
    (found,) = xrce.read_packet(bytes.fromhex(text))
    return found


# ---------------------------------------------------------------------------------- properties


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_whatever_is_written_is_read_again(name: str, data: st.DataObject) -> None:
    spec = PAGE.specs[name]
    message = data.draw(messages(spec))
    assert testing.read(spec, xrce.write(message)) == message


@given(st.lists(messages(PAGE), max_size=4))
def test_a_packet_is_its_messages_one_behind_the_other(sent: list[Message]) -> None:
    packet = b"".join(map(xrce.write, sent))
    found = xrce.read_packet(packet)
    assert found == sent
    assert b"".join(map(xrce.write, found)) == packet


@given(messages(PAGE))
def test_truncation_at_every_byte_is_noticed(message: Message) -> None:
    data = xrce.write(message)
    for size in range(1, len(data)):
        with pytest.raises(DecodeError):
            xrce.read_packet(data[:size])


@given(st.binary(max_size=60))
def test_hostile_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = xrce.read_packet(data)
    except DecodeError:
        return
    # What was understood can be said again, in its canonical form.
    assert xrce.read_packet(b"".join(map(xrce.write, found))) == found


@given(message=messages(PAGE), data=st.data())
def test_a_damaged_message_is_read_or_refused(message: Message, data: st.DataObject) -> None:
    packet = bytearray(xrce.write(message))
    packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = xrce.read_packet(packet)
    except DecodeError:
        return
    assert xrce.read_packet(b"".join(map(xrce.write, found))) == found


@given(messages(PAGE))
def test_a_message_survives_json_pickle_and_copy(message: Message) -> None:
    assert json.loads(json.dumps(message.to_dict()))["message"] == message.NAME
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(copy.copy(message)) == hash(message)


# ------------------------------------------------------------------------------------ messages


def test_fifteen_messages_three_markers_and_eleven_declarations_are_declared() -> None:
    assert len(roots_of(PAGE)) == 15
    assert sorted(PAGE.specs[name].id for name in roots_of(PAGE)) == [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 20,
    ]  # fmt: skip
    assert sorted(spec.id for spec in PAGE.specs.values() if spec.marker) == [18, 19, 24]
    assert sorted(s.id for s in PAGE.specs.values() if s.inner) == list(range(1, 12))


@pytest.mark.parametrize("kind", UNDEFINED)
def test_a_message_without_definition_is_refused_with_every_flag(kind: int) -> None:
    for flags in range(0, 0x100, 0x20):
        with pytest.raises(DecodeError, match=f"the message {kind} at offset 0"):
            xrce.read_packet(bytes((flags | kind,)) + bytes(20))


@pytest.mark.parametrize("kind", [0, *range(12, 32)])
def test_a_declaration_without_definition_is_refused(kind: int) -> None:
    with pytest.raises(DecodeError):
        xrce.read_packet(bytes((6, 0, 1, kind)) + bytes(20))


def test_a_packet_of_nothing_has_no_message() -> None:
    assert xrce.read_packet(b"") == []


def test_a_packet_may_come_as_any_bytes() -> None:
    assert xrce.read_packet(bytearray(b"\x0f\x01")) == xrce.read_packet(memoryview(b"\x0f\x01"))


def test_the_overhead_of_stream_data_is_four_bytes() -> None:
    assert len(xrce.write(xrce.StreamData(sn=5, id=10, payload=b"A"))) == 4 + 1


def test_end_of_pull_is_a_prid_of_zero_and_not_its_absence() -> None:
    assert sent("c708030000") == xrce.StreamData(reliable=True, sn=8, id=3, prid=0, payload=b"")
    assert sent("4708030100") == xrce.StreamData(reliable=True, sn=8, id=3, payload=b"\0")


def test_an_attributed_batch_has_the_resource_of_each_sample() -> None:
    message = xrce.BatchedData(
        attributed=True,
        sn=1,
        id=3,
        samples=(
            xrce.BatchedSample(prid=2, payload=b"a"),
            xrce.BatchedSample(prid=4, payload=b""),
        ),
    )
    assert xrce.write(message).hex() == "8801030202016104" + "00"
    assert sent("880103020201610400") == message


def test_a_batch_never_drops_samples_in_the_wrong_place() -> None:
    stray = xrce.BatchedData(attributed=True, sn=1, id=3, payloads=(b"lost",))
    with pytest.raises(EncodeError, match="payloads has no place if attributed is True"):
        xrce.write(stray)


def test_synch_with_nothing_to_send_again_has_no_count() -> None:
    assert xrce.write(xrce.Synch(reliable=True, sn=7, count=0)).hex() == "4e07"


def test_a_nack_with_an_empty_mask_is_no_ack() -> None:
    assert xrce.write(xrce.AckNack(sn=10, mask=0)).hex() == "2f0a00"
    assert xrce.write(xrce.AckNack(sn=10)).hex() == "0f0a"


def test_a_pull_of_zero_samples_is_no_pull_of_all() -> None:
    assert xrce.write(xrce.Pull(sn=1, id=3, max_samples=0)).hex() == "4b010300"
    assert xrce.write(xrce.Pull(sn=1, id=3)).hex() == "0b0103"


def test_an_empty_list_of_properties_is_left_out() -> None:
    assert xrce.write(sent("210100")).hex() == "0101"


@pytest.mark.parametrize(("mode", "timed"), [(1, False), (2, False), (3, True), (4, True)])
def test_only_periodic_subscribers_have_windows(mode: int, timed: bool) -> None:
    declared = xrce.Subscriber(id=2, mode=mode)
    if timed:
        declared = xrce.Subscriber(id=2, mode=mode, origin=5, period=300, duration=10)
    message = xrce.Declare(sn=0, declarations=(declared,))
    tail = "05ac020a" if timed else ""
    assert xrce.write(message).hex() == f"0600010302{mode:02x}{tail}"
    assert sent(xrce.write(message).hex()) == message
    if not timed:
        with pytest.raises(EncodeError, match=f"period has no place if mode is {mode}"):
            xrce.write(xrce.Subscriber(id=2, mode=mode, period=1))


@pytest.mark.parametrize("mode", [0, 5, 255])
def test_an_unknown_mode_is_refused_because_its_length_is_unknown(mode: int) -> None:
    with pytest.raises(DecodeError, match=f"mode is {mode}"):
        xrce.read_packet(bytes((6, 0, 1, 3, 2, mode, 0, 0, 0)))
    with pytest.raises(EncodeError):
        xrce.write(xrce.Subscriber(id=2, mode=mode))


@pytest.mark.parametrize(("status", "failed"), [(0, False), (1, True), (254, True), (255, False)])
def test_a_result_names_what_failed_if_something_did(status: int, failed: bool) -> None:
    message = xrce.Result(commit_id=9, status=status, id=5 if failed else 0)
    assert xrce.write(message) == bytes((7, 9, status)) + (b"\x05" if failed else b"")


def test_padded_numbers_are_read_up_to_ten_bytes() -> None:
    assert sent("0c" + "80" * 9 + "00") == xrce.PingPong(hash=0)
    with pytest.raises(DecodeError, match="longer than ten bytes"):
        xrce.read_packet(bytes.fromhex("0c" + "80" * 10 + "00"))


def test_names_are_utf8() -> None:
    assert sent("0900" + "02c3a9" + "00") == xrce.WriteData(sn=0, resource="é", payload=b"")
    with pytest.raises(DecodeError, match="UTF-8"):
        xrce.read_packet(bytes.fromhex("0900" + "02c328" + "00"))
    with pytest.raises(EncodeError, match="UTF-8"):
        xrce.write(xrce.WriteData(sn=0, resource="\ud800", payload=b""))


def test_numbers_that_do_not_fit_are_refused() -> None:
    for message in (
        xrce.PingPong(hash=1 << 64),
        xrce.PingPong(hash=-1),
        xrce.Close(pid=b"a", reason=256),
    ):
        with pytest.raises(EncodeError):
            xrce.write(message)


@pytest.mark.parametrize("count", ["ffffff7f", "ffffffffffffffffff01"])
@pytest.mark.parametrize("head", ["0600", "080002", "880002", "0201", "2101", "0301016100"])
def test_a_count_beyond_the_bytes_is_refused_before_anything_is_made(head: str, count: str) -> None:
    with pytest.raises(DecodeError, match="announced"):
        xrce.read_packet(bytes.fromhex(head + count))


def test_an_illegal_pid_is_left_to_the_session_to_refuse() -> None:
    assert sent("030100" + "0000") == xrce.Open(version=1, pid=b"", lease=0, locators=())


# ------------------------------------------------------------------------------------- markers


def test_a_marker_decorates_the_next_message_only() -> None:
    first, second = xrce.read_packet(bytes.fromhex("930f010f02"))
    assert first.markers == (xrce.Conduit(id=1),)
    assert second.markers == ()


def test_markers_in_any_order_are_kept_in_their_order() -> None:
    message = sent("180293520305" + "4704020143")
    assert message.markers == (
        xrce.RSpace(id=2),
        xrce.Conduit(id=1),
        xrce.Frag(sn_base=3, count=5),
    )
    assert xrce.write(message).hex() == "1802935203054704020143"


@pytest.mark.parametrize(
    "marker", ["93", "1301", "1300", "f3", "9898", "1807", "d31303", "93b31301", "1205", "520503"]
)
def test_compact_plain_and_repeated_markers_are_written_as_they_came(marker: str) -> None:
    assert xrce.write(sent(marker + "0f01")).hex() == marker + "0f01"


@pytest.mark.parametrize("marker", ["93", "1301", "1203", "520302", "98", "1801", "0f0193"])
def test_a_marker_with_no_message_behind_it_is_refused(marker: str) -> None:
    with pytest.raises(DecodeError, match="decorates nothing"):
        xrce.read_packet(bytes.fromhex(marker))


def test_markers_without_end_are_refused() -> None:
    assert len(sent("93" * MARKERS_MAX + "0f01").markers) == MARKERS_MAX
    with pytest.raises(DecodeError, match=f"more than {MARKERS_MAX} markers"):
        xrce.read_packet(b"\x93" * (MARKERS_MAX + 1) + b"\x0f\x01")
    with pytest.raises(EncodeError, match=f"at most {MARKERS_MAX} markers"):
        xrce.write(xrce.AckNack(sn=1, markers=(xrce.Conduit(id=1),) * (MARKERS_MAX + 1)))


def test_a_compact_id_is_one_to_four() -> None:
    compact = [xrce.write(xrce.Conduit(id=id)).hex() for id in (1, 2, 3, 4)]
    assert compact == ["93", "b3", "d3", "f3"]
    for id in (0, 5):
        with pytest.raises(EncodeError, match="compact=False"):
            xrce.write(xrce.Conduit(id=id))
    assert xrce.write(xrce.Conduit(id=0, compact=False)).hex() == "1300"


def test_a_space_is_written_as_a_plain_number_unless_asked() -> None:
    assert xrce.write(xrce.RSpace(id=1)).hex() == "1801"
    assert xrce.write(xrce.RSpace(id=1, compact=True)).hex() == "98"


def test_markers_are_shown_with_their_message() -> None:
    assert sent("930f01").to_dict() == {
        "message": "AckNack",
        "markers": [{"message": "Conduit", "id": 1, "compact": True}],
        "sn": 1,
    }
