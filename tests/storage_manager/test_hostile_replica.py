"""A replica that lies: about what it has, when that was, and which keys there are."""

from __future__ import annotations

from functools import partial

import zenlake
from tests.api.sessions import connected, listening
from tests.storage_manager.test_replication import QUICK, held, storage
from tests.storage_manager.test_storages import manager, memory
from tests.waiting import until
from zenlake.clock import Timestamp
from zenlake.replication.events import Action, Event
from zenlake.replication.messages import (
    AlignmentReply,
    Digest,
    Events,
    EventsMetadata,
    IntervalFingerprints,
    Retrieval,
    decode_query,
    encode_digest,
    encode_reply,
)
from zenlake.storage_manager.replicating import _Known, _next_of

ID = b"\x07"
FAR = Timestamp.parse_rfc3339("2100-01-01T00:00:00Z/1234").seconds << 32


def put(name: str, time: int) -> Event:
    return Event(name, Action.PUT, time, ID, time, ID)


def has_grown(router: zenlake.Session, before: int) -> bool:
    return int(str(storage(router)["differences"])) > before


def test_a_replica_that_lies_changes_nothing_but_keys_that_it_has_put() -> None:
    settings = manager(s=memory(replication=QUICK))
    with (
        listening(mode='"router"', plugins=settings) as router,
        connected(router, mode='"client"') as liar,
    ):
        router.put("s/x", "1")
        until(lambda: held(router) == {"s/x": "1"})
        now = router.new_timestamp().seconds << 32
        lies = [
            put("s/x", now - (3600 << 32)),
            put("s/future", FAR),
            Event("s/x", Action.DELETE, FAR, ID, FAR, ID),
            Event("s/**", Action.DELETE_MANY, FAR, ID),
            put("other/x", now),
            put("s/**", now),
            put("s//x", now),
            put("s/fine", now),
        ]
        mark = storage(router)["fingerprint"]
        key = f"@zid/abc/{mark}/aligner"

        def answer(query: zenlake.Query) -> None:
            assert query.attachment is not None
            asked = decode_query(query.attachment.to_bytes())
            # It replies with everything, whatever it was asked.
            replies: list[AlignmentReply] = [
                EventsMetadata(tuple(lies)),
                IntervalFingerprints({1: 2}),
            ]
            for reply in replies:
                query.reply(key, b"", attachment=encode_reply(reply))
            for event in lies if isinstance(asked, Events) else lies[:1]:
                query.reply(key, "lie", attachment=encode_reply(Retrieval(event)))
            query.reply(key, "lie", attachment=b"\xff")

        with liar.declare_queryable(key, answer):
            digest = encode_digest(Digest(int(str(mark)), 4711, {1: 2}, {}))
            for _ in range(3):
                before = int(str(storage(router)["differences"]))
                liar.put(f"@-digest/abc/{mark}", digest)
                until(partial(has_grown, router, before))
            until(lambda: held(router) == {"s/x": "1", "s/fine": "lie"})
            until(lambda: int(str(storage(router)["future"])) >= 3)
            shown = storage(router)
            assert int(str(shown["unexpected"])) >= 3
            assert int(str(shown["malformed"])) >= 3
            assert int(str(shown["outside"])) >= 1
            assert shown["deletes"] == 0
            # An honest replica is heard beside it.
            joining = {"mode": '"router"', "plugins": settings, "scouting__delay": "100"}
            with connected(router, **joining) as honest:
                honest.put("s/y", "2", allowed_destination=zenlake.Locality.SESSION_LOCAL)
                until(lambda: held(router).get("s/y") == "2")
                until(lambda: held(honest) == held(router))


def test_replicas_that_answer_are_asked_before_those_that_do_not() -> None:
    replicas = {
        "dead": _Known(0.0, b"", unanswered=2),
        "new": _Known(0.0, b""),
        "known": _Known(0.0, b""),
        "dying": _Known(0.0, b"", unanswered=1),
    }
    turns = []
    while replicas:
        turns.append(_next_of(list(replicas), replicas))
        del replicas[turns[-1]]
    assert turns == ["new", "known", "dying", "dead"]
