"""Who may not write some keys cannot write them by a put or a deletion of many keys either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import zenoh

import zenlake
from tests.api.sessions import listening, where
from tests.storage_manager.test_storages import manager, memory, values
from tests.waiting import until

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
    "subjects": [{"id": "all"}],
    "policies": [{"rules": ["safe"], "subjects": ["all"]}],
}


@pytest.fixture
def router() -> Iterator[zenlake.Session]:
    with listening(
        mode='"router"',
        access_control=json.dumps(RULES),
        plugins=manager(s=memory("**")),
    ) as session:
        session.put("secret/a", "1")
        session.put("free/a", "2")
        session.put("free/b", "3")
        until(lambda: len(values(session, "**")) == 3)
        yield session


@pytest.fixture
def client(router: zenlake.Session) -> Iterator[Any]:
    """A real Eclipse client."""
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([where(router)]))
    config.insert_json5("scouting/multicast/enabled", "false")
    session: Any = zenoh.open(config)
    yield session
    session.close()


def test_an_eclipse_client_changes_only_keys_that_it_may_write(
    router: zenlake.Session, client: Any
) -> None:
    client.delete("**")
    client.put("**", "mine")
    client.put("*/a", "mine")
    client.put("free/*", "4")  # behind those, on the same link
    until(lambda: values(router, "free/a") == {"free/a": "4"})
    assert values(router, "**") == {"secret/a": "1", "free/a": "4", "free/b": "4"}
    client.delete("free/**")
    until(lambda: values(router, "**") == {"secret/a": "1"})


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
