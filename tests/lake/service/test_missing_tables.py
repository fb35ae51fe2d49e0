"""The keys without a table, asked by Eclipse's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.api.sessions import connected, listening, where
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.lake import LakeConfig
from zenlake.lake.decode.table_store import UNREAD, FoundTables, StoredTable
from zenlake.lake.model.key_families import MOST_EXAMPLES
from zenlake.lake.service.missing_tables import MissingTables
from zenlake.lake.table.location import LakeLocation

VARIES = "keys of which every chunk varies"


def found_tables(folder: Path) -> FoundTables:
    """Return the tables of a lake that has met keys which get none, and two that wait."""
    found = FoundTables(LakeLocation(folder), LakeConfig())
    found.observe({f"secret/{n}": False for n in range(MOST_EXAMPLES + 2)}, {}, {}, 0.0)
    found.observe({"open/raw": False, "1/2": True}, {}, {}, 0.0)
    found.find((), 10.0, all=True)
    found.observe({"open/b/new": True, "secret/b/new": True}, {}, {}, 10.0)
    return found


@pytest.mark.interop
def test_keys_without_a_table_are_named_to_those_who_may_read_them(tmp_path: Path) -> None:
    config = zenoh.Config()
    with listening(mode='"router"') as node, connected(node, mode='"client"') as bus:
        missing = MissingTables(bus, found_tables(tmp_path))
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", json.dumps([where(node)]))
        with zenoh.open(config) as client:

            def asked(parameters: str = "") -> Any:
                for reply in client.get(f"@lake/without_table?{parameters}"):
                    assert reply.ok is not None
                    return json.loads(reply.ok.payload.to_bytes())
                return None

            every = asked()
            some = asked(f"_readable={ReadableKeys(((ReadableChoice(('open/**',)),),)).text()}")
            missing.close()
            assert asked() is None
    assert every["waiting"] == 2
    varies, unread = every["without_table"]
    assert varies == {"reason": VARIES, "count": 1, "examples": ["1/2"]}
    assert (unread["reason"], unread["count"]) == (UNREAD, MOST_EXAMPLES + 3)
    assert len(unread["examples"]) == MOST_EXAMPLES
    assert some == {
        "waiting": 1,
        "without_table": [{"reason": UNREAD, "count": 1, "examples": ["open/raw"]}],
    }


def test_keys_that_a_command_gives_a_table_are_not_named_any_more(tmp_path: Path) -> None:
    found = found_tables(tmp_path)
    found.put(StoredTable("secrets", {"format": "secret/${n}"}, found=False))
    assert found.refused == {VARIES: ("1/2",), UNREAD: ("open/raw",)}
