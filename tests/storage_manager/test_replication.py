"""Storages on different nodes that become equal, over real links."""

from __future__ import annotations

import json
from pathlib import Path

import zenlake
from tests.api.sessions import config, connected, listening, where
from tests.cli.programs import Program, command, endpoint
from tests.storage_manager.test_storages import manager, memory, sqlite, values
from tests.waiting import SECONDS, until
from zenlake.replication.messages import Discovery, encode_query
from zenlake.storage_manager import Storages

#: Digests in quick succession.
QUICK = {"interval": 0.3, "propagation_delay": 20}
#: None at all while a test runs.
RARELY = {"interval": 3600}


def replicas(session: zenlake.Session) -> dict[str, object]:
    """The replicas that a storage has heard of lately, by their ids."""
    found = storage(session)["replicas"]
    assert isinstance(found, dict)
    return found


def storage(session: zenlake.Session, name: str = "s") -> dict[str, object]:
    """The status of a storage."""
    (service,) = session.runtime.services.values()
    assert isinstance(service, Storages)
    status = service.running[name].status()["replication"]
    assert isinstance(status, dict)
    return status


def held(session: zenlake.Session, name: str = "s") -> dict[str, str]:
    """What the storage of this very node has."""
    (service,) = session.runtime.services.values()
    assert isinstance(service, Storages)
    return {
        entry.key: (entry.value.payload or b"").decode()
        for entries in service.running[name].values("**")
        for entry in entries
        if entry.value is not None
    }


def test_an_empty_storage_takes_everything_from_the_first_replica_it_finds() -> None:
    settings = manager(s=memory(replication=RARELY, strip_prefix="s"))
    with listening(mode='"router"', plugins=settings) as old:
        for number in range(1200):
            old.put(f"s/{number}", f"v{number}", encoding="text/plain", attachment="who")
        old.put("s", "the prefix itself")
        old.delete("s/7")
        old.put("s/1$*/**", "of many")
        old.put("s/*/later", "no such key yet")
        until(lambda: len(held(old)) == 1200 and held(old)["s/11"] == "of many")
        with connected(old, mode='"router"', plugins=settings, scouting__delay="100") as new:
            until(lambda: held(new) == held(old))
            (reply,) = list(new.get("s/3", allowed_destination=zenlake.Locality.SESSION_LOCAL))
            assert reply.ok is not None
            assert str(reply.ok.encoding) == "text/plain"
            assert reply.ok.attachment is not None
            assert reply.ok.attachment.to_string() == "who"
            # By asking for everything, not by a digest.
            until(lambda: storage(new)["events"] == storage(old)["events"])
            assert storage(new)["digests_heard"] == 0
            # A deletion came along: what is older than it is refused.
            assert storage(new)["deletions"] == 1


def test_storages_apart_become_equal_when_they_meet_and_after_a_restart(tmp_path: Path) -> None:
    one_settings = manager(s=sqlite(tmp_path / "1", replication=QUICK))
    other_settings = manager(s=sqlite(tmp_path / "2", replication=QUICK))
    with listening(mode='"router"', plugins=other_settings) as other:
        other.put("s/both", "older")
        other.put("s/theirs", "2")
        other.put("s/gone", "will be deleted")
        stamp = other.new_timestamp()
        until(lambda: len(held(other)) == 3)
    with listening(mode='"router"', plugins=one_settings) as one:
        one.put("s/ours", "1")
        one.delete("s/gone")
        one.put("s/both", "newer")
        until(lambda: len(held(one)) == 2)
        expected = {"s/both": "newer", "s/ours": "1", "s/theirs": "2"}
        with connected(one, mode='"router"', plugins=other_settings) as other:
            until(lambda: held(one) == held(other) == expected)
            # Deleted there while it was away, late here: it stays away.
            other.put("s/gone", "late", timestamp=stamp)
            one.put("s/*", "all")
            everything = dict.fromkeys(expected, "all")
            until(lambda: held(one) == held(other) == everything)
            # Nobody asks any more.
            until(lambda: '"differs": true' not in json.dumps(storage(one)["replicas"]))
        one.put("s/while/away", "3")
        one.delete("s/ours")
        after = {"s/both": "all", "s/theirs": "all", "s/while/away": "3"}
        until(lambda: held(one) == after)
        with connected(one, mode='"router"', plugins=other_settings) as other:
            until(lambda: held(other) == after)
            assert held(one) == after


def test_three_in_a_row_become_equal_though_the_ends_never_speak_directly() -> None:
    settings = manager(s=memory(replication=QUICK))
    with (
        listening(mode='"router"', plugins=settings) as left,
        listening(mode='"router"', plugins=settings) as right,
    ):
        left.put("s/left", "1")
        right.put("s/right", "2")
        both = {"s/left": "1", "s/right": "2"}
        until(lambda: held(left) and held(right))
        ends = json.dumps([where(left), where(right)])
        middle_config = config(mode='"router"', plugins=settings, connect__endpoints=ends)
        with zenlake.open(middle_config) as middle:
            until(lambda: held(left) == held(middle) == held(right) == both)


def test_a_router_that_is_killed_under_load_has_everything_when_it_is_back(tmp_path: Path) -> None:
    (tmp_path / "killed.json5").write_text(
        json.dumps({"plugins": json.loads(manager(s=sqlite(tmp_path / "v", replication=QUICK)))})
    )
    with listening(mode='"router"', plugins=manager(s=memory(replication=QUICK))) as left:

        def router() -> Program:
            config = str(tmp_path / "killed.json5")
            return command("router", "-c", config, "-l", endpoint(), "-e", where(left))

        with router() as first:
            first.says("listens on")
            until(lambda: storage(left)["digests_heard"])
            for number in range(500):
                left.put(f"s/{number}", str(number))
                if number == 250:
                    first.process.kill()
            left.delete("s/1$*")
        expected = {f"s/{n}": str(n) for n in range(500) if not str(n).startswith("1")}
        until(lambda: held(left) == expected)
        with router() as second:
            second.says("listens on")
            shown = "@/*/router/status/plugins/storage_manager/storages/s"

            def others() -> list[int]:
                return [
                    json.loads(reply.ok.payload.to_string())["keys"]
                    for reply in left.get(shown, timeout=SECONDS)
                    if reply.ok is not None
                ]

            until(lambda: others() == [len(expected)])
            # And it holds nothing that was deleted while it was dead.
            until(lambda: '"differs": true' not in json.dumps(storage(left)["replicas"]))
        assert held(left) == expected


def test_a_replica_that_has_been_silent_for_ten_intervals_is_listed_no_more() -> None:
    settings = manager(s=memory(replication=QUICK))
    with listening(mode='"router"', plugins=settings) as left:
        with connected(left, mode='"router"', plugins=settings) as other:
            until(lambda: list(replicas(left)) == [str(other.zid())])
        until(lambda: replicas(left) == {})


def test_storages_that_differ_in_their_settings_never_hear_of_each_other() -> None:
    other = {**QUICK, "hot": 7}
    with (
        listening(mode='"router"', plugins=manager(s=memory(replication=QUICK))) as one,
        connected(
            one,
            mode='"router"',
            plugins=manager(s=memory(replication=other), t=memory(replication=QUICK)),
        ) as two,
    ):
        one.put("s/x", "1")
        until(lambda: storage(one)["digests_heard"], "the digests of the equal one are heard")
        assert storage(two, "s")["digests_heard"] == 0
        assert storage(two, "s")["queries_heard"] == 0
        assert storage(one)["fingerprint"] == storage(two, "t")["fingerprint"]


def test_strangers_are_counted_and_harm_nobody() -> None:
    settings = manager(s=memory(replication=QUICK))
    with (
        listening(mode='"router"', plugins=settings) as router,
        connected(router, mode='"client"') as stranger,
    ):
        router.put("s/x", "1")
        mark = storage(router)["fingerprint"]
        aligner = f"@zid/{router.zid()}/{mark}/aligner"
        for attachment in (None, b"", b"\xff" * 40, b"\5\0\0\0" + b"\xff" * 8):
            (told,) = stranger.get(aligner, attachment=attachment, timeout=SECONDS)
            assert told.err is not None
            assert "error" in json.loads(told.err.payload.to_bytes())
        stranger.put(f"@-digest/abc/{mark}", b"no digest")
        stranger.put(f"@-digest/abc/{mark}", b"\0" * 16 + b"\xff" * 8)
        # Of two digests of one replica in a row the newer is looked at.
        until(lambda: storage(router)["digests_heard"] == 2)
        until(lambda: int(str(storage(router)["malformed"])) >= 5)
        (reply,) = list(stranger.get(aligner, attachment=encode_query(Discovery())))
        assert reply.ok is not None
        assert reply.ok.attachment is not None
        assert str(router.zid()).encode() in reply.ok.attachment.to_bytes()
        assert values(stranger, "s/**") == {"s/x": "1"}
