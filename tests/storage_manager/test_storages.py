"""Storages over real links, by the API and the admin space."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import config, connected, connecting_to, listening, where
from tests.waiting import SECONDS, until
from zenlake.clock import NTP64, Timestamp
from zenlake.errors import ConfigError, LocalError
from zenlake.node.inspection import view
from zenlake.storage_manager import Storages
from zenlake.storage_manager.service import checked_options
from zenlake.volumes import Capability, Option, VolumeError, volume_class
from zenlake.volumes.memory import Memory


def manager(**storages: object) -> str:
    return json.dumps({"storage_manager": {"storages": storages}})


def memory(expr: str = "s/**", **more: object) -> dict[str, object]:
    return {"key_expr": expr, "volume": "memory", **more}


def sqlite(folder: Path, expr: str = "s/**", **more: object) -> dict[str, object]:
    return {"key_expr": expr, "volume": {"id": "sqlite", "dir": str(folder)}, **more}


def values(session: zenlake.Session, selector: str) -> dict[str, str]:
    found = {}
    for reply in session.get(selector, timeout=SECONDS):
        assert reply.ok is not None, reply.err
        found[str(reply.ok.key_expr)] = reply.ok.payload.to_string()
    return found


def settled(session: zenlake.Session) -> None:
    """Wait until all that was put is in the volumes."""
    (service,) = session.runtime.services.values()
    assert isinstance(service, Storages)
    for storage in service.running.values():
        storage.flush()


@pytest.fixture
def router() -> Iterator[zenlake.Session]:
    with listening(
        mode='"router"',
        adminspace__enabled="true",
        adminspace__permissions__write="true",
        plugins=manager(demo=memory()),
    ) as session:
        yield session


def test_what_was_put_is_there_when_asked_and_gone_when_deleted(router: zenlake.Session) -> None:
    with connected(router, mode='"client"') as client:
        client.put("s/a", "1", encoding="text/plain", attachment="who")
        client.put("s/b", "2")
        client.put("other", "3")
        until(lambda: len(values(client, "s/**")) == 2)
        (reply,) = client.get("s/a")
        assert reply.ok is not None
        assert str(reply.ok.encoding) == "text/plain"
        assert reply.ok.attachment is not None
        assert reply.ok.attachment.to_string() == "who"
        assert reply.ok.timestamp is not None
        client.delete("s/a")
        until(lambda: values(client, "**") == {"s/b": "2"})


@pytest.mark.parametrize("volume", ["memory", "sqlite"])
def test_a_client_finds_what_it_has_just_put(volume: str, tmp_path: Path) -> None:
    storage = memory() if volume == "memory" else sqlite(tmp_path)
    with (
        listening(mode='"router"', plugins=manager(demo=storage)) as router,
        connected(router, mode='"client"') as client,
    ):
        until(lambda: client.declare_publisher("s/a").matching_status.matching)
        for number in range(10):
            for other in range(1000):  # a storage that is busy with them has not come to the last
                client.put(f"s/b/{other}", str(number))
            client.put("s/a", str(number))
            selector = "s/a" if number % 2 else "s/*"
            assert values(client, selector) == {"s/a": str(number)}


def test_a_late_older_value_changes_nothing(router: zenlake.Session) -> None:
    early, late = router.new_timestamp(), router.new_timestamp()
    router.put("s/a", "new", timestamp=late)
    router.put("s/a", "old", timestamp=early)
    router.delete("s/b", timestamp=late)
    router.put("s/b", "old", timestamp=early)
    router.put("s/end", "1")
    until(lambda: "s/end" in values(router, "s/*"))
    assert values(router, "s/*") == {"s/a": "new", "s/end": "1"}


def test_a_storage_is_made_shown_and_removed_while_the_router_runs(
    router: zenlake.Session, tmp_path: Path
) -> None:
    root = view.root(router.runtime.node)
    path = f"{root}/config/plugins/storage_manager/storages/more"
    shown = f"{root}/status/plugins/storage_manager/storages/more"
    with connected(router, mode='"client"') as client:
        client.put(path, json.dumps(sqlite(tmp_path, "more/**")))
        until(lambda: shown in values(client, f"{root}/status/**"))
        client.put("more/x", "kept")
        until(lambda: values(client, "more/**") == {"more/x": "kept"})
        status = json.loads(values(client, shown)[shown])
        assert (status["keys"], status["puts"], status["failure"]) == (1, 1, None)
        # As Eclipse's storages show themselves, which is their configuration.
        assert status["key_expr"] == "more/**"
        assert status["volume"] == {"id": "sqlite", "dir": str(tmp_path)}
        assert "strip_prefix" not in status, "it has none"
        assert status["complete"] is False
        demo = f"{root}/status/plugins/storage_manager/storages/demo"
        assert json.loads(values(client, demo)[demo])["volume"] == "memory"
        below = f"{root}/status/plugins/storage_manager/volumes"
        volumes = values(client, f"{below}/*")
        assert {key.rpartition("/")[2] for key in volumes} == {"memory", "sqlite"}
        assert json.loads(volumes[f"{below}/memory"])["__required__"] is False
        path_key = f"{below}/memory/__path__"
        assert values(client, path_key) == {path_key: '"__static_lib__"'}
        client.delete(path)
        until(lambda: shown not in values(client, f"{root}/status/**"))
        assert values(client, "more/**") == {}
        client.put(path, json.dumps(sqlite(tmp_path, "more/**")))
        until(lambda: values(client, "more/**") == {"more/x": "kept"})


def test_what_is_wrong_with_a_storage_is_refused_by_name(
    router: zenlake.Session, caplog: pytest.LogCaptureFixture
) -> None:
    root = view.root(router.runtime.node)
    with caplog.at_level(logging.WARNING):
        router.put(
            f"{root}/config/plugins/storage_manager/storages/bad",
            '{"key_exp": "a/**", "volume": "memory"}',
        )
        until(lambda: "did you mean" in caplog.text)
    assert "plugins/storage_manager/storages/bad/key_expr" in caplog.text
    assert values(router, f"{root}/status/**/storages/*").keys() == {
        f"{root}/status/plugins/storage_manager/storages/demo"
    }


def test_a_storage_that_cannot_be_opened_is_shown_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    broken = sqlite(tmp_path / "file" / "below", "b/**")
    with listening(
        mode='"router"', adminspace__enabled="true", plugins=manager(broken=broken, good=memory())
    ) as session:
        root = f"{view.root(session.runtime.node)}/status/plugins/storage_manager/storages"
        session.put("s/a", "1")
        until(lambda: values(session, "s/a") == {"s/a": "1"})
        status = json.loads(values(session, f"{root}/broken")[f"{root}/broken"])
        assert "file" in status["failure"]


def test_a_restart_finds_everything_deletions_and_wildcards_included(tmp_path: Path) -> None:
    plugins = manager(s=sqlite(tmp_path))
    with listening(mode='"router"', plugins=plugins) as session:
        old = session.new_timestamp()
        session.put("s/a/1", "x", encoding="application/json")
        session.put("s/a/2", "y")
        session.put("s/b", "z")
        session.delete("s/a/2")
        session.put("s/a/*", "all")
        session.delete("s/c/**")
        settled(session)
    with listening(mode='"router"', plugins=plugins) as session:
        for late in ("s/a/2", "s/c/late"):
            session.put(late, "risen", timestamp=old)
        session.put("s/a/3", "behind the wildcard", timestamp=old)
        session.put("s/end", "1")
        until(lambda: "s/end" in values(session, "s/**"))
        assert values(session, "s/**") == {
            "s/a/1": "all",
            "s/a/3": "all",
            "s/b": "z",
            "s/end": "1",
        }


def test_a_prefix_is_taken_away_for_the_volume_only(tmp_path: Path) -> None:
    storage = {
        "key_expr": "fleet/robots/**",
        "strip_prefix": "fleet/robots",
        "volume": {"id": "fs", "dir": str(tmp_path)},
    }
    with listening(mode='"router"', plugins=manager(files=storage)) as session:
        session.put("fleet/robots/7/pose", "1 2")
        session.put("fleet/robots", "all of them")
        until(lambda: len(values(session, "fleet/**")) == 2)
        settled(session)
        assert (tmp_path / "7/pose").read_text() == "1 2"
        assert values(session, "fleet/robots") == {"fleet/robots": "all of them"}


def test_history_answers_with_every_sample_in_a_range_of_time(tmp_path: Path) -> None:
    plugins = manager(s=sqlite(tmp_path, history="all", history_count=5))
    with listening(mode='"router"', plugins=plugins) as session:
        for n in range(4):
            session.put("s/a", str(n))
        session.delete("s/a")
        session.put("s/b", "other")
        settled(session)
        found = [
            (str(reply.ok.key_expr), reply.ok.payload.to_string(), reply.ok.kind.name)
            for reply in session.get("s/**?_time=[now(-1h)..]")
            if reply.ok is not None
        ]
        assert found == [
            *(("s/a", str(n), "PUT") for n in range(4)),
            ("s/a", "", "DELETE"),
            ("s/b", "other", "PUT"),
        ]
        assert len(list(session.get("s/**?_time=[now(-1h)..];_limit=2"))) == 2
        assert list(session.get("s/**?_time=[..now(-1h)]")) == []
        stamp = Timestamp(NTP64(1_700_000_000, 123_456_789), b"\x01")
        session.put("s/c", "then", timestamp=stamp)
        settled(session)
        then = "2023-11-14T22:13:20.123456789Z"
        assert len(list(session.get(f"s/c?_time=[{then}..{then}]"))) == 1
        assert list(session.get(f"s/c?_time=]{then}..]")) == []
        assert list(session.get(f"s/c?_time=[..{then}[")) == []
        session.delete("s/c")
        assert values(session, "s/**") == {"s/b": "other"}


def test_history_is_bounded_by_count_age_and_bytes(tmp_path: Path) -> None:
    often = {"period": 0.05}
    bounds: dict[str, dict[str, object]] = {
        "count": {"history_count": 3},
        "age": {"history_age": 0.5},
        "bytes": {"history_bytes": 3000},
    }
    storages = {
        name: sqlite(tmp_path, f"{name}/**", history="all", garbage_collection=often, **bound)
        for name, bound in bounds.items()
    }
    with listening(mode='"router"', plugins=manager(**storages)) as session:
        for name in bounds:
            for n in range(10):
                session.put(f"{name}/a", f"{n}".ljust(500))

        def kept(name: str) -> list[str]:
            replies = session.get(f"{name}/a?_time=[now(-1h)..]")
            return [reply.ok.payload.to_string().strip() for reply in replies if reply.ok]

        until(lambda: kept("count") == ["7", "8", "9"])
        until(lambda: kept("bytes") == ["6", "7", "8", "9"])
        until(lambda: kept("age") == ["9"])  # the newest of a key stays
        assert values(session, "age/a") == {"age/a": "9".ljust(500)}


class Elsewhere(Memory):
    """A volume of another package."""

    CAPABILITY = Capability("durable", "latest")
    OPTIONS = {"shelf": Option(str, "Which shelf it lies on.")}  # noqa: RUF012


def test_a_volume_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip writes beside an installed package is all that it takes."""
    info = tmp_path / "shelves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 1.0\n")
    points = f"[zenlake.volumes]\nshelves = {__name__}:Elsewhere\nwrong = json:dumps\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    volume = {"id": "shelves", "shelf": "low"}
    with listening(
        mode='"router"',
        adminspace__enabled="true",
        plugins=manager(s={"key_expr": "s/**", "volume": volume}),
    ) as session:
        session.put("s/a", "1")
        settled(session)
        assert values(session, "s/**") == {"s/a": "1"}
        root = f"{view.root(session.runtime.node)}/status/plugins/storage_manager/volumes/shelves"
        shown = json.loads(values(session, root)[root])
        assert (shown["persistence"], shown["history"]) == ("durable", "latest")
    with pytest.raises(VolumeError, match="no subclass of Volume"):
        volume_class("wrong")
    with pytest.raises(VolumeError, match="did you mean 'shelves'"):
        volume_class("shelve")


def test_values_older_than_their_time_to_live_are_not_answered() -> None:
    with listening(mode='"router"', plugins=manager(s=memory(ttl=0.2))) as session:

        def is_answered() -> bool:
            session.put("s/a", "1")
            return values(session, "s/a") == {"s/a": "1"}

        until(is_answered)
        until(lambda: values(session, "s/a") == {})


@pytest.mark.parametrize("volume", ["memory", "sqlite"])
def test_an_acknowledged_put_is_stored_and_heard_when_it_is_answered(
    volume: str, tmp_path: Path
) -> None:
    storage = memory() if volume == "memory" else sqlite(tmp_path)
    with (
        listening(mode='"router"', plugins=manager(s=storage)) as session,
        connected(session, mode='"client"') as client,
        session.declare_subscriber("s/**") as subscriber,
    ):
        (reply,) = client.get("s/a?_ack_put=true", payload="sure", encoding="text/plain")
        assert reply.ok is not None
        assert values(client, "s/a") == {"s/a": "sure"}
        sample = subscriber.recv()
        assert (sample.payload.to_string(), str(sample.encoding)) == ("sure", "text/plain")
        assert sample.timestamp == reply.ok.timestamp
        assert client.put_acknowledged("s/b", "too") > reply.ok.timestamp
        with pytest.raises(LocalError, match="no storage answered for 'elsewhere'"):
            client.put_acknowledged("elsewhere", "x", timeout=1.0)
        (refusal,) = client.get("s/*?_ack_put=true", payload="many")
        assert refusal.err is not None
        assert "wildcards" in refusal.err.payload.to_string()


def test_a_volume_says_what_it_does_not_know() -> None:
    files = volume_class("fs")
    with pytest.raises(ConfigError, match="no option 'dri'; did you mean 'dir'"):
        checked_options("fs", files, {"dri": "x"})
    with pytest.raises(ConfigError, match="needs the option 'dir'"):
        checked_options("fs", files, {})
    with pytest.raises(ConfigError, match="leaves its root"):
        checked_options("fs", files, {"dir": "../../etc"})
    with pytest.raises(VolumeError, match="did you mean 'sqlite'"):
        volume_class("sqlit")


def test_a_session_on_the_programs_own_loop_refuses_storages() -> None:
    async def main() -> None:
        async with zenlake.aio.open(config(plugins=manager(s=memory()))):
            pass

    with pytest.raises(LocalError, match="storage_manager"):
        asyncio.run(main())


def test_an_acknowledged_put_can_be_awaited(router: zenlake.Session) -> None:
    async def main() -> zenlake.Timestamp:
        place = json.dumps([where(router)])
        settings = config(mode='"client"', connect__endpoints=place)
        async with zenlake.aio.open(settings) as session:
            return await session.put_acknowledged("s/a", "sure")

    stamp = asyncio.run(main())
    (reply,) = router.get("s/a")
    assert reply.ok is not None
    assert reply.ok.timestamp == stamp


@pytest.mark.parametrize("history", ["latest", "all"])
def test_a_storage_and_a_recorder_of_one_node_never_reply_both(
    history: str, tmp_path: Path
) -> None:
    from zenlake.journal.options import Options
    from zenlake.journal.recorder import Recorder

    storage = memory("s/a/**", history=history)
    with listening(mode='"router"', plugins=manager(s=storage)) as session:
        options = Options(("s/**",), str(tmp_path), name="j", fsync="5ms")
        with Recorder(session, options):
            for key in ("s/a/x", "s/b"):
                session.put(key, "1")
                session.put(key, "2")
            settled(session)
            none = zenlake.ConsolidationMode.NONE

            def keys(selector: str) -> list[str]:
                replies = session.get(selector, consolidation=none, timeout=SECONDS)
                return sorted(str(reply.ok.key_expr) for reply in replies if reply.ok)

            until(lambda: keys("s/**") == ["s/a/x", "s/b"])
            until(lambda: keys("s/**?_time=[now(-1h)..]") == ["s/a/x", "s/a/x", "s/b", "s/b"])
        assert keys("s/**") == ["s/a/x"], "the recorder is gone"


@pytest.mark.parametrize("history", ["latest", "all"])
@pytest.mark.parametrize("range_of_time", ["", "_time=[now(-1h)..];"])
def test_a_limit_counts_only_what_no_other_service_answers(
    history: str, range_of_time: str
) -> None:
    plugins = manager(first=memory("s/a/**"), second=memory(history=history))
    with listening(mode='"router"', plugins=plugins) as session:
        for key in ("s/a/y", "s/a/x", "s/d", "s/c", "s/b"):
            session.put(key, "1")
        settled(session)
        for limit in range(4):
            replies = session.get(
                f"s/**?{range_of_time}_limit={limit}", consolidation=zenlake.ConsolidationMode.NONE
            )
            # Where both could answer the one that keeps history does, else the earlier one.
            own = ["s/a/y", "s/a/x"] if not range_of_time or history == "latest" else []
            rest = ["s/d", "s/c", "s/b"] if own else ["s/a/y", "s/a/x", "s/d", "s/c", "s/b"]
            assert sorted(str(reply.ok.key_expr) for reply in replies if reply.ok) == sorted(
                own[:limit] + rest[:limit]
            )


def test_an_acknowledged_put_is_in_the_journal_where_one_records_its_key(tmp_path: Path) -> None:
    from zenlake.journal.options import Options
    from zenlake.journal.recorder import Recorder

    with listening(mode='"router"', plugins=manager(s=memory())) as session:
        options = Options(("s/**",), str(tmp_path), name="j", fsync="5ms", partitions=2)
        with Recorder(session, options) as recorder, connected(session, mode='"client"') as client:
            for n in range(3):
                (reply,) = client.get("s/a?_ack_put=true", payload=str(n))
                assert reply.ok is not None
                told = json.loads(reply.ok.payload.to_bytes())
                assert (told["journal"], told["offset"]) == ("j", n)
                row = next(recorder.journal.scan(partition=told["partition"], start=n))
                assert row.column("value")[0].as_py() == str(n).encode()
                assert told["timestamp"] == str(reply.ok.timestamp)
            (refusal,) = client.get("s/*?_ack_put=true", payload="many")
            assert refusal.err is not None
        # The storage hears from another thread that the recorder is gone.
        while not (replies := list(session.get("s/b?_ack_put=true", payload="2"))):
            pass
        (reply,) = replies
        assert reply.ok is not None
        assert json.loads(reply.ok.payload.to_bytes())["storage"] == "s"


def test_an_acknowledged_put_is_published_once_where_two_routers_store_its_key(
    tmp_path: Path,
) -> None:
    with (
        listening(mode='"router"', plugins=manager(s=memory())) as one,
        listening(
            mode='"router"',
            plugins=manager(s=sqlite(tmp_path)),
            **connecting_to(where(one)),
        ) as two,
        connected(one, mode='"client"') as client,
        connected(two, mode='"client"') as other,
        other.declare_subscriber("s/**") as subscriber,
    ):
        # Each publishes until it has heard of the other.
        both = zenlake.ConsolidationMode.NONE
        tokens = client.liveliness()
        until(lambda: len(list(tokens.get("@ack/**"))) == 2)
        early = "s/early?_ack_put=true"
        until(lambda: len(list(client.get(early, payload="", consolidation=both))) == 1)
        for n in range(5):
            (reply,) = client.get(f"s/{n}?_ack_put=true", payload=str(n), consolidation=both)
            assert reply.ok is not None
            assert json.loads(reply.ok.payload.to_bytes())["storage"] == "s"
        client.put("s/end", "")
        heard: list[str] = []
        while not heard or heard[-1] != "s/end":
            heard.append(str(subscriber.recv().key_expr))
        assert [key for key in heard if key != "s/early"] == [
            *(f"s/{n}" for n in range(5)),
            "s/end",
        ]
        until(lambda: len(values(client, "s/**")) == 7)


@pytest.mark.parametrize(
    ("parameters", "words"), [("_tim=[now(-1h)..]", "'_time'"), ("_filter=a<1", "a lake")]
)
def test_a_storage_refuses_a_parameter_that_it_does_not_obey(
    router: zenlake.Session, parameters: str, words: str
) -> None:
    router.put("s/a", "1")
    (reply,) = router.get(f"s/a?{parameters}", timeout=SECONDS)
    assert reply.err is not None
    assert words in reply.err.payload.to_string()
    assert values(router, "s/a?tim=1;_anyke;_max=1") == {"s/a": "1"}
