"""A volume whose server is slow, hangs, or is gone: nobody waits, nothing is lost silently."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import zenlake
from tests.api.sessions import connected, listening
from tests.storage_manager.test_storages import manager, settled, values
from tests.volumes import servers
from tests.volumes.opened import OPTIONS, PATIENT, REMOTE
from tests.waiting import until
from zenlake.config.declare import section_of
from zenlake.config.json5 import Plain
from zenlake.config.model_storages import StorageSettings
from zenlake.newest import Batch
from zenlake.node.inspection import view
from zenlake.storage_manager import Storage
from zenlake.volumes.memory import Memory

pytestmark = PATIENT

SERVERS = {"postgres": servers.postgres, "redis": servers.redis, "s3": servers.s3}
SECRETS = {"postgres": "password", "redis": "password", "s3": "secret_key"}


@pytest.fixture(params=REMOTE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plugins(kind: str, folder: Path) -> str:
    volume = {"id": kind, **OPTIONS[kind](folder), "timeout": 1.0}
    return manager(s={"key_expr": "s/**", "volume": volume})


def status(session: zenlake.Session) -> Mapping[str, object]:
    root = view.root(session.runtime.node)
    found = values(session, f"{root}/status/plugins/storage_manager/storages/s")
    answer: dict[str, object] = json.loads(next(iter(found.values())))
    return answer


def open_router(plugins: str) -> zenlake.Session:
    return listening(mode='"router"', adminspace__enabled="true", plugins=plugins)


def test_puts_go_on_while_a_server_does_not_answer_and_are_written_afterwards(
    kind: str, tmp_path: Path
) -> None:
    server, _ = SERVERS[kind]()
    with open_router(plugins(kind, tmp_path)) as session:
        session.put("s/before", "1")
        settled(session)
        server.hang()
        try:
            begin = time.monotonic()
            for n in range(1000):
                session.put(f"s/{n % 10}", str(n))
            session.delete("s/before")
            took = time.monotonic() - begin
            until(lambda: status(session)["failures"] != 0)
            shown = status(session)
            assert shown["waiting"] == 11
            assert shown["dropped"] == 0
            assert isinstance(shown["lag"], float)
            assert shown["lag"] > 0.5
            assert isinstance(shown["failure"], str)
        finally:
            server.go_on()
        assert took < 30, "publishers waited"  # for each of a thousand
        settled(session)
        assert status(session)["failure"] is None
    with open_router(plugins(kind, tmp_path)) as session:
        assert values(session, "s/**") == {f"s/{n}": str(990 + n) for n in range(10)}


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_a_storage_opens_when_its_server_comes_back(kind: str, tmp_path: Path) -> None:
    server, _ = SERVERS[kind]()
    with open_router(plugins(kind, tmp_path)) as session:
        session.put("s/a", "kept")
        settled(session)
        # A server that was away and is back is found again by those that knew it.
        server.stop()
        session.put("s/b", "too")
        until(lambda: status(session)["failure"] is not None)
        server.start()
        settled(session)
        assert values(session, "s/**") == {"s/a": "kept", "s/b": "too"}
    server.stop()
    try:
        with open_router(plugins(kind, tmp_path)) as session:
            shown = status(session)
            assert shown["key_expr"] == "s/**"
            assert isinstance(shown["failure"], str)
            assert "keys" not in shown, "it is not open"
            server.start()
            until(lambda: values(session, "s/**") == {"s/a": "kept", "s/b": "too"})
            assert status(session)["failure"] is None
    finally:
        server.stop()
        server.start()


def test_passwords_are_never_shown(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    volume = {"id": kind, **OPTIONS[kind](tmp_path), "private": {SECRETS[kind]: "Sesame!"}}
    settings = manager(
        s={"key_expr": "s/**", "volume": volume},
        wrong={"key_expr": "w/**", "volume": {**volume, "private": {SECRETS[kind]: 7}}},
        url={
            "key_expr": "u/**",
            "volume": {"id": "redis", "url": "redis://me:Sesame!@127.0.0.1:1"},
        },
    )
    with open_router(settings) as session:
        root = view.root(session.runtime.node)
        shown = values(session, f"{root}/status/**")
        shown |= values(session, f"{root}/config/**")
        shown |= values(session, f"{root}/config/plugins/storage_manager")
    assert "127.0.0.1:1" in "".join(shown.values())
    assert "Sesame" not in "".join(shown.values())
    assert "Sesame" not in caplog.text
    assert "private" in caplog.text


class Slow(Memory):
    """A volume that takes its time for a batch, and begins to fail when told so."""

    def __init__(self, pause: float) -> None:
        super().__init__("slow", {})
        self.pause = pause
        self.broken = threading.Event()
        self.batches = 0

    def write(self, batch: Batch) -> None:
        time.sleep(self.pause)
        if self.broken.is_set():
            raise OSError("the disk is gone")
        self.batches += 1
        super().write(batch)


@pytest.fixture
def slow() -> Iterator[tuple[zenlake.Session, Storage, Slow]]:
    plain: Plain = {"key_expr": "s/**", "volume": "memory", "history": "all"}
    settings = section_of(StorageSettings).build(plain, "router")
    assert isinstance(settings, StorageSettings)
    volume = Slow(0.05)
    with listening(mode='"router"') as router:
        storage = Storage(router, "slow", settings, volume)
        yield router, storage, volume
        storage.close()


def test_a_slow_volume_slows_nobody_and_loses_nothing(
    slow: tuple[zenlake.Session, Storage, Slow],
) -> None:
    router, storage, volume = slow
    with connected(router, mode='"client"') as client, client.declare_subscriber("s/**") as others:
        for n in range(2000):
            client.put(f"s/{n % 7}", str(n))
        for n in range(2000):  # others hear it meanwhile
            assert others.recv().payload.to_string() == str(n)
        assert volume.batches < 2000
        # The client hears itself; the storage is beyond a link.
        until(lambda: storage.counts.puts == 2000, "the storage has heard all")
        storage.flush()
        assert sum(map(len, storage.samples("s/**", 0, (1 << 64) - 1))) == 2000
        values = [entry.value for entries in storage.values("s/**") for entry in entries]
        assert {value.payload for value in values if value is not None} == {
            str(n).encode() for n in range(1993, 2000)
        }
        assert storage.status()["dropped"] == 0


def test_what_does_not_fit_while_a_volume_fails_is_counted(
    slow: tuple[zenlake.Session, Storage, Slow],
) -> None:
    router, storage, volume = slow
    volume.pause = 0
    volume.broken.set()
    storage._contents._most_waiting = 100_000
    for n in range(1000):
        router.put(f"s/{n}", bytes(500))
    until(lambda: storage.counts.puts == 1000)
    shown = storage.status()
    stored, dropped = shown["keys"], shown["dropped"]
    assert isinstance(stored, int)
    assert isinstance(dropped, int)
    assert dropped > 0
    assert stored + dropped == 1000, "every sample is stored or counted"
    volume.broken.clear()
    storage.flush()
    assert sum(map(len, storage.values("s/**"))) == stored
