"""One bad value costs one value: it is refused by name, and all others are written."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.storage_manager.test_replication import QUICK
from tests.storage_manager.test_storages import manager, memory, settled, sqlite, values
from tests.waiting import until
from zenlake.config.declare import section_of
from zenlake.config.json5 import Plain
from zenlake.config.model_storages import StorageSettings
from zenlake.engine.services import service_metrics, service_troubles
from zenlake.errors import LocalError
from zenlake.newest import Batch
from zenlake.node.inspection import metrics
from zenlake.storage_manager import Storage, Storages
from zenlake.supervise.reporting import _report
from zenlake.volumes import RecordsRefused
from zenlake.volumes.memory import Memory
from zenlake.volumes.refusals import MOST_TRIES


class Limited(Memory):
    """A volume whose values have at most 100 bytes, and whose disk may be full."""

    def __init__(self) -> None:
        super().__init__("s", {})
        self.full = threading.Event()

    def write(self, batch: Batch) -> None:
        if self.full.is_set():
            raise OSError(28, "No space left on device")
        for entry in (*batch.entries, *batch.samples):
            if entry.value is not None and len(entry.value.payload or b"") > 100:
                raise RecordsRefused("a value has at most 100 bytes")
        super().write(batch)


def opened(router: zenlake.Session, volume: Memory, **more: Plain) -> Storage:
    plain: Plain = {"key_expr": "s/**", "volume": "memory", **more}
    settings = section_of(StorageSettings).build(plain, "router")
    assert isinstance(settings, StorageSettings)
    return Storage(router, "s", settings, volume)


def held(storage: Storage) -> dict[str, bytes | None]:
    return {
        entry.key: None if entry.value is None else entry.value.payload
        for entries in storage.values("**")
        for entry in entries
    }


def test_a_refused_value_is_named_and_counted_and_all_others_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    volume = Limited()
    with listening(mode='"router"') as router:
        storage = opened(router, volume)
        for number in range(300):
            router.put(f"s/{number}", bytes(200 if number % 100 == 7 else 1))
        router.put("s/old", "1")
        storage.flush()
        until(lambda: storage.status()["values_refused"] == 3)
        router.put("s/old", bytes(200))
        until(lambda: storage.status()["values_refused"] == 4)
        until(lambda: not storage.status()["waiting"], "the value of before is removed")
        bad = {"s/7", "s/107", "s/207", "s/old"}
        assert held(storage).keys() == {f"s/{n}" for n in range(300)} - bad
        assert {entry.key for entry in volume.entries()} == held(storage).keys()
        status = storage.status()
        shown = status["last_refused"]
        assert isinstance(shown, list)
        assert {one["key"] for one in shown} == bad
        assert {one["why"] for one in shown} == {"a value has at most 100 bytes"}
        assert (status["failure"], status["failures"], status["waiting"]) == (None, 0, 0)
        assert storage.trouble == "", "strangers make nobody unwell"
        assert "'s/107': a value has at most 100 bytes" in caplog.text
        with pytest.raises(LocalError, match=r"'s/9'.*cannot keep.*at most 100 bytes"):
            router.put_acknowledged("s/9", bytes(200))
        router.put_acknowledged("s/9", bytes(100))
        storage.close()


def test_a_disk_that_is_full_refuses_nothing_and_is_told_of() -> None:
    volume = Limited()
    with listening(mode='"router"') as router:
        storage = opened(router, volume)
        volume.full.set()
        router.put("s/a", "kept")
        router.put("s/b", bytes(200))
        until(lambda: storage.trouble)
        assert "storage 's' cannot be written, 2 changes wait" in storage.trouble
        assert "No space left on device" in storage.trouble
        assert storage.status()["values_refused"] == 0
        stamp = router.new_timestamp()
        router.put("s/c", "3", timestamp=stamp)
        # The asker waits for 10 seconds, and is told before.
        with pytest.raises(LocalError, match="No space left on device"):
            router.put_acknowledged("s/d", "4")
        with pytest.raises(zenlake.errors.Timeout, match="No space left on device"):
            storage.await_put("s/c", stamp, timeout=0.5)
        volume.full.clear()
        storage.flush()
        until(lambda: not storage.trouble)
        assert held(storage) == {"s/a": b"kept", "s/c": b"3", "s/d": b"4"}
        storage.close()


class Defect(Memory):
    """A volume of another package: a value that it does not expect raises what nobody names."""

    def __init__(self) -> None:
        super().__init__("s", {})
        self.tried: Counter[str] = Counter()
        #: Whether it fails with every value.
        self.broken = threading.Event()

    def write(self, batch: Batch) -> None:
        for entry in (*batch.entries, *batch.samples):
            if entry.value is None:
                continue
            if self.broken.is_set() or (entry.value.payload or b"").startswith(b"bad"):
                self.tried[entry.key] += 1
                raise AttributeError("no such member")
        super().write(batch)


@pytest.mark.parametrize("history", ["latest", "all"])
def test_a_defect_of_a_volume_costs_the_values_that_it_fails_with(
    history: str, caplog: pytest.LogCaptureFixture
) -> None:
    volume = Defect()
    with listening(mode='"router"') as router:
        storage = opened(router, volume, history=history)
        for number in range(300):
            router.put(f"s/{number}", "bad" if number % 100 == 7 else "good")
        storage.flush()
        until(lambda: not storage.status()["waiting"])
        bad = {"s/7", "s/107", "s/207"}
        assert held(storage).keys() == {f"s/{n}" for n in range(300)} - bad
        why = "the volume has a defect: AttributeError: no such member"
        status = storage.status()
        shown = status["last_refused"]
        assert isinstance(shown, list)
        assert {(one["key"], one["why"]) for one in shown} == {(key, why) for key in bad}
        assert (status["values_refused"], status["defect"], status["failure"]) == (3, why, None)
        assert storage.trouble == "", "strangers make nobody unwell"
        assert f"'s/107': {why}" in caplog.text
        traces = [
            logging.Formatter().formatException(one.exc_info)
            for one in caplog.records
            if one.exc_info
        ]
        assert sum("in write" in trace for trace in traces) == 1, "where the defect is"
        # It is alone in its batch: what was written before shows that the volume works.
        with pytest.raises(LocalError, match=r"'s/9'.*cannot keep.*no such member"):
            router.put_acknowledged("s/9", "bad too")
        assert storage.trouble == ""
        storage.close()


def test_a_volume_that_fails_with_every_value_refuses_none_and_is_told_of() -> None:
    volume = Defect()
    volume.broken.set()
    with listening(mode='"router"') as router:
        storage = opened(router, volume)
        for number in range(1000):
            router.put(f"s/{number}", "good")
        why = "its volume has a defect: AttributeError: no such member"
        until(lambda: storage.counts.failures > 1)
        assert f"cannot be written, 1000 changes wait: {why}" in storage.trouble
        assert storage.status()["values_refused"] == 0
        tried = volume.tried.total()
        assert tried <= (storage.counts.failures + 1) * MOST_TRIES, "it is not asked for each"
        volume.broken.clear()
        storage.flush()
        until(lambda: not storage.trouble)
        assert len(held(storage)) == 1000
        volume.broken.set()
        router.put("s/a", "good")
        until(lambda: storage.trouble, "it does not keep either what it has kept before")
        assert storage.status()["values_refused"] == 0
        volume.broken.clear()
        until(lambda: not storage.trouble)
        assert held(storage)["s/a"] == b"good"
        storage.close()


def test_what_nobody_has_written_yet_is_refused_when_another_value_is_written() -> None:
    volume = Defect()
    with listening(mode='"router"') as router:
        storage = opened(router, volume)
        router.put("s/bad", "bad")
        until(
            lambda: "no such member" in storage.trouble, "the value or the volume may be at fault"
        )
        assert storage.status()["values_refused"] == 0
        router.put("s/a", "good")
        until(lambda: not storage.trouble)
        assert held(storage) == {"s/a": b"good"}
        assert storage.status()["values_refused"] == 1
        storage.close()


def test_a_defect_that_passes_refuses_nothing() -> None:
    class Passing(Defect):
        def write(self, batch: Batch) -> None:
            if self.tried["s/1"] > 1:
                Memory.write(self, batch)
            else:
                super().write(batch)

    with listening(mode='"router"') as router:
        storage = opened(router, volume := Passing())
        volume.broken.set()
        router.put("s/0", "good")
        router.put("s/1", "bad")
        until(lambda: storage.counts.failures > 0)
        volume.broken.clear()
        until(lambda: held(storage) == {"s/0": b"good", "s/1": b"bad"})
        until(lambda: not storage.trouble)
        assert storage.status()["values_refused"] == 0
        storage.close()


def small_values(
    monkeypatch: pytest.MonkeyPatch, most: int = 5_000
) -> Callable[..., sqlite3.Connection]:
    """SQLite, built to take rows of few bytes only."""
    connect = sqlite3.connect

    def limited(*args: object, **settings: object) -> sqlite3.Connection:
        connection = connect(*args, **settings)  # type: ignore[call-overload]
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
        assert isinstance(connection, sqlite3.Connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    return limited


@pytest.mark.parametrize("history", ["latest", "all"])
def test_after_a_restart_all_are_there_but_the_refused(
    history: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_values(monkeypatch)
    settings = manager(s=sqlite(tmp_path, history=history))
    with listening(mode='"router"', plugins=settings) as router:
        for number in range(20):
            router.put(f"s/{number}", bytes(9_000 if number == 7 else 10))
        settled(router)
        assert service_troubles(router.runtime) == []
        counted = {row[0]: row[2] for row in service_metrics(router.runtime)}
        assert counted[metrics.STORAGE_REFUSED] == 1
    with listening(mode='"router"', plugins=settings) as router:
        assert values(router, "s/*").keys() == {f"s/{n}" for n in range(20)} - {"s/7"}
        if history == "all":
            assert values(router, "s/*?_time=[..]").keys() == values(router, "s/*").keys()


def test_a_storage_that_is_not_open_makes_its_node_unwell(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    settings = manager(
        s={"key_expr": "s/**", "volume": {"id": "fs", "dir": str(tmp_path / "file")}}
    )
    with listening(mode='"router"', plugins=settings) as router:
        (trouble,) = service_troubles(router.runtime)
        assert trouble.startswith("storage 's' is not open: ")
        assert _report(router.runtime, None)["troubles"] == [trouble], "`zenlake up` is told"


def test_a_disk_without_free_inodes_loses_nothing_and_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, free = Path.mkdir, threading.Event()

    def mkdir(folder: Path, *args: object, **how: object) -> None:
        if (tmp_path / "s") in folder.parents and not free.is_set() and not folder.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        make(folder, *args, **how)  # type: ignore[arg-type]

    free.set()
    settings = manager(s={"key_expr": "**", "volume": {"id": "fs", "dir": str(tmp_path / "s")}})
    with listening(mode='"router"', plugins=settings) as router:
        router.put("one/a", "1")
        settled(router)
        monkeypatch.setattr(Path, "mkdir", mkdir)
        free.clear()
        router.put("two/b", "2")
        until(lambda: service_troubles(router.runtime))
        (trouble,) = service_troubles(router.runtime)
        assert "No space left on device" in trouble
        assert values(router, "*/*") == {"one/a": "1", "two/b": "2"}
    with listening(mode='"router"', plugins=settings) as router:
        # What its records say is to be finished first, and cannot be.
        (trouble,) = service_troubles(router.runtime)
        assert trouble.startswith("storage 's' is not open: ")
        free.set()
        until(lambda: not service_troubles(router.runtime))
        assert values(router, "*/*") == {"one/a": "1", "two/b": "2"}


def test_a_value_that_one_replica_cannot_keep_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_values(monkeypatch)
    whole = manager(s=memory(replication=QUICK))
    limited = manager(s=sqlite(tmp_path, replication=QUICK))
    with (
        listening(mode='"router"', plugins=whole) as one,
        connected(one, mode='"router"', plugins=limited, scouting__delay="100") as other,
    ):
        (service,) = other.runtime.services.values()
        assert isinstance(service, Storages)
        storage = service.running["s"]

        def replication() -> dict[str, int]:
            status = storage.status()["replication"]
            assert isinstance(status, dict)
            return status

        until(lambda: replication()["digests_heard"] > 0)
        # Heard by one of the two alone, as from before a cut: the other learns it by digests.
        publish = {"allowed_destination": zenlake.Locality.SESSION_LOCAL}
        one.put("s/big", bytes(9_000), **publish)  # type: ignore[arg-type]
        one.put("s/small", "1", **publish)  # type: ignore[arg-type]
        until(lambda: storage.status()["values_refused"] == 1 and len(storage) == 1)
        digests, asked = replication()["digests_heard"], replication()["queries_sent"]
        until(lambda: replication()["digests_heard"] > digests + 4)
        assert replication()["queries_sent"] - asked <= 3, "but for a digest that was under way"
        assert storage.status()["values_refused"] == 1
        assert json.dumps(storage.status()), "an operator can see it"
