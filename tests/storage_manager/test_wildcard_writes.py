"""Who may not write some keys cannot write them by a put or a deletion of many keys either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zenoh

import zenlake
from tests.api.sessions import listening, where
from tests.storage_manager.test_storages import manager, memory, values
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.reading.reader import Journal
from zenlake.journal.recorder import Recorder
from zenlake.journal.schema import DELETE, PUT
from zenlake.node import narrowed_write

RULES = {
    "enabled": True,
    "default_permission": "allow",
    "rules": [
        {
            "id": "safe",
            "permission": "deny",
            "flows": ["ingress"],
            "messages": ["put", "delete"],
            "key_exprs": ["secret/**"],
        }
    ],
    "subjects": [{"id": "anna", "usernames": ["anna"]}],
    "policies": [{"rules": ["safe"], "subjects": ["anna"]}],
}


@pytest.fixture
def router(tmp_path: Path) -> Iterator[zenlake.Session]:
    users = tmp_path / "users"
    users.write_text("anna:her word\n")
    users.chmod(0o600)
    with listening(
        mode='"router"',
        access_control=json.dumps(RULES),
        transport__auth__usrpwd__dictionary_file=json.dumps(str(users)),
        plugins=manager(s=memory("**")),
    ) as session:
        session.put("secret/a", "1")
        session.put("free/a", "2")
        session.put("free/b", "3")
        until(lambda: len(values(session, "**")) == 3)
        yield session


@pytest.fixture
def client(router: zenlake.Session) -> Iterator[Any]:
    """A real Eclipse client, which logs in."""
    config = zenoh.Config()
    config.insert_json5("transport/auth/usrpwd/user", '"anna"')
    config.insert_json5("transport/auth/usrpwd/password", '"her word"')
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([where(router)]))
    config.insert_json5("scouting/multicast/enabled", "false")
    session: Any = zenoh.open(config)
    yield session
    session.close()


def test_an_eclipse_client_changes_only_keys_that_it_may_write(
    router: zenlake.Session, client: Any
) -> None:
    client.put("**", "mine")
    until(lambda: values(router, "free/*") == {"free/a": "mine", "free/b": "mine"})
    client.put("free/*", "4")  # behind that, on the same link, and newer
    until(lambda: values(router, "free/a") == {"free/a": "4"})
    assert values(router, "**") == {"secret/a": "1", "free/a": "4", "free/b": "4"}
    client.delete("*/a")
    until(lambda: values(router, "**") == {"secret/a": "1", "free/b": "4"})
    client.delete("**")
    until(lambda: values(router, "**") == {"secret/a": "1"})


def test_a_narrowed_write_is_as_old_as_it_was_when_it_came(
    router: zenlake.Session, client: Any
) -> None:
    for number in range(50):
        client.put("**", "old")
        client.put("free/a", f"{number}")
    # A write of all of them, which is the last that is applied.
    client.put("*/b", "last")
    until(lambda: values(router, "free/b") == {"free/b": "last"})
    assert values(router, "**") == {"secret/a": "1", "free/a": "49", "free/b": "last"}


def test_a_deletion_of_the_future_keeps_no_later_value_out(
    router: zenlake.Session, client: Any
) -> None:
    future = datetime.now(UTC) + timedelta(hours=1)
    for key in ("free/a", "free/**", "**"):
        client.delete(key, timestamp=zenoh.Timestamp(future, b"\x07"))
    client.put("free/a", "5")
    client.put("*/b", "6")
    until(lambda: values(router, "free/a") == {"free/a": "5"})


def test_a_narrowed_write_that_would_change_too_many_keys_changes_none(
    router: zenlake.Session, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowing = router.runtime.narrowed_writes
    monkeypatch.setattr(narrowed_write, "MOST_KEYS", 1)
    client.delete("**")
    until(lambda: narrowing.refused == 1)
    assert len(values(router, "**")) == 3
    client.delete("*/a")  # means one key that the client may write
    until(lambda: values(router, "**") == {"secret/a": "1", "free/b": "3"})


def test_a_recorder_records_a_row_for_each_key_that_the_sender_may_write(
    router: zenlake.Session, client: Any, tmp_path: Path
) -> None:
    options = Options(("**",), str(tmp_path / "journal"), name="j", partitions=2, fsync="5ms")
    with Recorder(router, options) as recorder:
        for key in ("secret/a", "free/a", "free/b"):
            router.put(key, "before")
        until(lambda: recorder.rows == 3)
        client.put("**", "after", attachment="why", encoding="text/plain")
        until(lambda: recorder.rows == 5)
        client.delete("*/b")
        until(lambda: recorder.rows == 6)
    with Journal.open(str(tmp_path / "journal")) as journal:
        rows = [row for batch in journal.scan() for row in batch.to_pylist()]
    rows.sort(key=lambda row: (row["hlc"], row["key"]))
    assert [(row["key"], row["kind"], row["value"], row["attachment"]) for row in rows[3:]] == [
        ("free/a", PUT, b"after", b"why"),
        ("free/b", PUT, b"after", b"why"),
        ("free/b", DELETE, b"", None),
    ]
    assert {row["stamp_id"] for row in rows[3:5]} == {bytes(router.zid())}


def test_a_question_that_puts_something_needs_the_right_to_put(
    router: zenlake.Session, client: Any
) -> None:
    (kept,) = client.get("free/a?_ack_put=true", payload="5")
    assert kept.ok is not None
    replies = list(client.get("secret/a?_ack_put=true", payload="mine"))
    assert [reply.ok for reply in replies if reply.ok is not None] == []
    assert values(router, "secret/a") == {"secret/a": "1"}
    (asked,) = client.get("secret/a?_ack_put=false")
    assert asked.ok is not None, "who may ask is answered"
