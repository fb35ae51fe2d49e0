"""What a real zenohd with its storage manager said, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zenlake.replication import Action, DigestDiff, Eras, ReplicationLog
from zenlake.replication.messages import (
    DiscoveryReply,
    Retrieval,
    decode_digest,
    decode_query,
    decode_reply,
    encode_digest,
    encode_query,
    encode_reply,
)

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "replication-1x.json").read_text(encoding="utf-8")
)
ERAS = Eras(*GOLDEN["settings"].values())
MESSAGES = [(kind, raw) for kind, found in GOLDEN["messages"].items() for raw in found]


def test_storages_with_these_settings_meet_on_the_same_keys() -> None:
    assert str(ERAS.fingerprint) == GOLDEN["fingerprint"]


@pytest.mark.parametrize(("kind", "raw"), MESSAGES)
def test_each_message_is_read_and_written_alike(kind: str, raw: str) -> None:
    side, _, name = kind.partition(":")
    message = bytes.fromhex(raw)
    again: object
    if side == "digest":
        digest = decode_digest(message, ERAS)
        found: object = digest
        written = encode_digest(digest)
        again = decode_digest(written, ERAS)
        assert digest.configuration == ERAS.fingerprint
    elif side == "query":
        query = decode_query(message)
        found, written = query, encode_query(query)
        again = decode_query(written)
    else:
        reply = decode_reply(message)
        found, written = reply, encode_reply(reply)
        again = decode_reply(written)
    assert type(found).__name__ == name
    assert again == found
    # The same bytes; only the order of maps and sets is no one's business.
    assert sorted(written) == sorted(message)


def test_every_kind_of_message_was_recorded() -> None:
    assert set(GOLDEN["messages"]) == {
        "digest:Digest",
        "query:Discovery",
        "query:All",
        "query:DigestDiff",
        "query:Intervals",
        "query:SubIntervals",
        "query:Events",
        "reply:IntervalFingerprints",
        "reply:SubIntervalFingerprints",
        "reply:EventsMetadata",
        "reply:Retrieval",
    }
    assert decode_reply(bytes.fromhex(GOLDEN["found"])) == DiscoveryReply("b2")
    diffs = [decode_query(bytes.fromhex(raw)) for raw in GOLDEN["messages"]["query:DigestDiff"]]
    assert all(isinstance(diff, DigestDiff) for diff in diffs)
    # Updates in all three eras were missing.
    assert all(any(era) for era in zip(*diffs, strict=True))


def test_a_log_of_its_events_has_the_digest_that_it_published() -> None:
    log = ReplicationLog(ERAS)
    for attachment, _payload, _encoding in GOLDEN["events"]:
        reply = decode_reply(bytes.fromhex(attachment))
        assert isinstance(reply, Retrieval)
        log.record(reply.event)
    published = decode_digest(bytes.fromhex(GOLDEN["digest"]), ERAS)
    assert log.digest(GOLDEN["now"]) == published
    assert encode_digest(log.digest(GOLDEN["now"])).hex() == GOLDEN["digest"]
    actions = {e.action for at in log.intervals() for e in log.events(at)}
    assert actions == set(Action)
    # Earlier digests of the same log: what was hot became warm, then cold.
    for raw in GOLDEN["messages"]["digest:Digest"]:
        digest = decode_digest(bytes.fromhex(raw), ERAS)
        whole = digest.cold
        for found in digest.warm.values():
            whole ^= found
        for parts in digest.hot.values():
            for found in parts.values():
                whole ^= found
        assert whole
