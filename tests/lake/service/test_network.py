"""What the network was like, as rows: seen by a lake that watches, said by an Eclipse client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zenoh

from tests.api.sessions import listening, where
from tests.lake.journals import Here, rows_of, table_of
from tests.waiting import until
from zenlake.lake import LakeConfig
from zenlake.lake.maintain.upkeep import compact
from zenlake.lake.service.network import NetworkService
from zenlake.lake.service.network_view import MOST_FACTS, Fact, NetworkView, facts_of, metrics_of
from zenlake.lake.table.location import LakeLocation

ROUTER = b"""{"version": "v1", "sessions": [{"peer": "b2", "region": "north",
    "links": [{"src": "tcp/1", "dst": "tcp/2"}]}]}"""


def declared(what: str, key: str, *clients: str) -> tuple[str, bytes]:
    return f"@/a1/router/{what}/{key}", json.dumps({"clients": clients, "peers": []}).encode()


def test_facts_are_read_off_records_and_only_changes_are_told() -> None:
    view = NetworkView()
    first = [("@/a1/router", ROUTER), declared("subscriber", "a/**", "c3"), ("other", b"{")]
    began = view.seen(facts_of(first))
    assert {(one.fact.what, one.fact.key, one.fact.peer, one.state) for one in began} == {
        ("node", None, None, "there"),
        ("session", None, "b2", "there"),
        ("link", None, "b2", "there"),
        ("subscriber", "a/**", "c3", "there"),
    }
    second = [*first[:2], declared("publisher", "a/b", "c4"), declared("publisher", "z", "c4")]
    changes = view.seen(facts_of(second))
    assert [(one.fact.what, one.fact.key, one.state) for one in changes] == [
        ("publisher", "a/b", "came"),
        ("publisher", "z", "came"),
        ("matching", "a/b", "came"),
    ]
    gone = view.seen(facts_of([("@/a1/router", b"not JSON"), *second[2:]]))
    assert {(one.fact.what, one.state) for one in gone} >= {("session", "went"), ("link", "went")}
    view.seen(Fact("n", "", "token", str(n), None, None) for n in range(MOST_FACTS + 7))
    assert view.left_out == 7


def test_metrics_are_read_off_their_text() -> None:
    text = '# TYPE x counter\nx_total{a="1",b="say \\"hi\\""} 3\nup 1.5\nbroken{\nx nope\n# EOF\n'
    assert list(metrics_of(text)) == [
        ("x_total", [("a", "1"), ("b", 'say "hi"')], 3.0),
        ("up", [], 1.5),
    ]


@pytest.mark.interop
def test_what_an_eclipse_client_declares_comes_and_goes_in_the_table(tmp_path: Path) -> None:
    with listening(mode='"router"', adminspace__enabled="true") as session:
        watching = NetworkService(session, LakeLocation(tmp_path), 0.05, 86400.0)
        try:
            # What the first look finds was there before, and does not come.
            until(lambda: bool(rows_of(tmp_path, "network")), "it looked once")
            settings = zenoh.Config()
            settings.insert_json5("mode", '"client"')
            settings.insert_json5("connect/endpoints", f'["{where(session)}"]')
            settings.insert_json5("scouting/multicast/enabled", "false")
            with zenoh.open(settings) as robot:
                held = [
                    robot.declare_subscriber("fleet/*/pose"),
                    robot.declare_publisher("fleet/7/pose"),
                    robot.liveliness().declare_token("fleet/7"),
                ]
                me = str(robot.zid())

                def states(what: str) -> list[tuple[str, str]]:
                    rows = rows_of(tmp_path, "network")
                    return [(row["key"], row["state"]) for row in rows if row["what"] == what]

                for what, key in (
                    ("subscriber", "fleet/*/pose"),
                    ("token", "fleet/7"),
                    ("liveliness", "fleet/7"),
                ):
                    until(lambda w=what, k=key: (k, "came") in states(w), f"{what} is there")  # type: ignore[misc]
                assert held
            until(lambda: ("fleet/*/pose", "went") in states("subscriber"), "it went")
            until(lambda: ("fleet/7", "went") in states("liveliness"), "its token went")
        finally:
            watching.close()
    sessions = [row for row in rows_of(tmp_path, "network") if row["what"] == "session"]
    assert {(row["peer"], row["state"]) for row in sessions} >= {(me, "came"), (me, "went")}
    names = {row["name"] for row in rows_of(tmp_path, "metrics")}
    assert "zenoh_uptime_seconds" in names
    # Files are merged like those of other tables.
    before = sorted(rows_of(tmp_path, "network"), key=str)
    assert compact(table_of(tmp_path, "network"), Here(), LakeConfig(), full=True)
    assert sorted(rows_of(tmp_path, "network"), key=str) == before
