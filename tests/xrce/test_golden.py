"""Bytes that programs of 2018 said, and what they meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zenlake import xrce
from zenlake.errors import DecodeError
from zenlake.wire.cursor import Reader, Writer

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "vectors-2018.json").read_text()
)["vectors"]

#: Our words for theirs, where the two differ by more than capital letters.
MESSAGES = {
    "StreamData": "stream", "BatchedData": "batch", "WriteData": "write",
    "ForgetResource": "fresource", "ForgetPublisher": "fpublisher",
    "ForgetSubscriber": "fsubscriber", "ForgetSelection": "fselection",
}  # fmt: skip
FIELDS = {
    "synch": "S", "reliable": "R", "committed": "C", "final": "F", "pong": "O",
    "attributed": "A", "open_pid": "openPid", "accept_pid": "acceptPid", "sn_base": "snBase",
    "rch_last_sn": "rchLastSN", "bech_last_sn": "bechLastSN", "max_samples": "maxSamples",
    "commit_id": "commitId", "old_id": "oldId", "new_id": "newId", "is_global": "global",
    "uri": "resource", "payloads": "payload",
}  # fmt: skip


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(entry, id=entry["name"]) for entry in GOLDEN if entry["kind"] in kinds]


def in_their_words(fields: dict[str, Any], what: str = "msg") -> dict[str, Any]:
    found = {what: MESSAGES.get(fields["message"], fields["message"].lower())}
    for name, value in fields.items():
        match name:
            case "message" | "markers":
                continue
            case "declarations":
                value = [in_their_words(item, "decl") for item in value]
            case "properties":
                value = [{"id": item["id"], "value": item["value"]} for item in value]
        found[FIELDS.get(name, name)] = value
    return found


def flattened(messages: list[xrce.XrceMessage]) -> Iterator[dict[str, Any]]:
    """Markers as they stand on the wire: before their message."""
    for message in messages:
        yield from (in_their_words(marker.to_dict()) for marker in message.markers)
        yield in_their_words(message.to_dict())


def recorded(entry: dict[str, Any]) -> list[dict[str, Any]]:
    fields = entry["fields"]
    return fields if isinstance(fields, list) else [fields]


def test_every_golden_kind_is_tested() -> None:
    kinds = [entry["kind"] for entry in GOLDEN]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "msg": 88, "seq": 13, "frame": 5, "frame_unbounded": 1, "decode_only": 2, "legacy": 1,
        "error": 9, "vle": 14, "vle_decode_only": 1, "vle_error": 1,
    }  # fmt: skip


@pytest.mark.parametrize("entry", of_kind("msg", "seq"))
def test_a_packet_means_what_was_recorded(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    found = xrce.read_packet(data)
    assert list(flattened(found)) == recorded(entry)
    assert b"".join(map(xrce.write, found)) == data
    assert json.loads(json.dumps([message.to_dict() for message in found]))


@pytest.mark.parametrize("entry", of_kind("frame"))
def test_a_frame_carries_the_recorded_packet(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    (packet,) = xrce.Deframer().feed(data)
    assert list(flattened(xrce.read_packet(packet))) == recorded(entry)
    assert xrce.frame(packet) == data


@pytest.mark.parametrize("entry", of_kind("frame_unbounded"))
def test_bare_messages_follow_the_length_zero(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    packets = list(xrce.Deframer().feed(data))
    found = [message for packet in packets for message in xrce.read_packet(packet)]
    assert list(flattened(found)) == recorded(entry)
    assert b"\0" + b"".join(map(xrce.write, found)) == data


@pytest.mark.parametrize("entry", of_kind("decode_only"))
def test_undefined_flags_are_ignored_and_never_sent(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    found = xrce.read_packet(data)
    assert list(flattened(found)) == recorded(entry)
    assert xrce.write(found[0]) == bytes((data[0] & 0x1F,)) + data[1:]


@pytest.mark.parametrize("entry", of_kind("legacy"))
def test_the_pong_of_an_older_draft_is_a_pong(entry: dict[str, Any]) -> None:
    (found,) = xrce.read_packet(bytes.fromhex(entry["hex"]))
    assert found == xrce.PingPong(pong=True, hash=entry["fields"]["hash"])
    assert xrce.write(found).hex() == "2cac02"


@pytest.mark.parametrize("entry", of_kind("error"))
def test_what_must_be_rejected_is_rejected(entry: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        xrce.read_packet(bytes.fromhex(entry["hex"]))


@pytest.mark.parametrize("entry", of_kind("vle", "vle_decode_only"))
def test_a_number_is_what_was_recorded(entry: dict[str, Any]) -> None:
    data = bytes.fromhex(entry["hex"])
    r = Reader(data)
    assert r.nat() == entry["fields"]["value"]
    assert r.pos == r.end
    w = Writer()
    w.nat(entry["fields"]["value"])
    assert w.getvalue() == (data if entry["kind"] == "vle" else b"\0")


@pytest.mark.parametrize("entry", of_kind("vle_error"))
def test_a_number_without_its_end_is_rejected(entry: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        Reader(bytes.fromhex(entry["hex"])).nat()
