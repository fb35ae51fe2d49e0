"""The 2018 world and the 1.x world are one: every row of the bridge's table."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path

import zenlake
from tests.cli.programs import Program
from tests.journal.recording import until_rows
from tests.waiting import SECONDS, until
from tests.xrce_io.conftest import Bridged, bridged, router_config
from tests.xrce_io.old_peers import ROOT
from zenlake import xrce
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder

GUIDE = ROOT / "docs/how-to/constrained-devices.md"


def wanted(bridge: Bridged, program: zenlake.Session, key: str) -> None:
    """Wait until the 1.x world knows that somebody of 2018 wants a key."""
    publisher = program.declare_publisher(key)
    until(lambda: bool(publisher.matching_status.matching))
    publisher.undeclare()


def test_samples_of_2018_reach_1x_and_publishers_know_who_listens(
    bridge: Bridged, program: zenlake.Session
) -> None:
    with xrce.open(bridge.udp) as device:
        publisher = device.publisher("zenoh://house/light", conduit=1)
        assert not publisher.put(b"nobody hears")
        lights = program.declare_subscriber("house/**")
        publisher.wait()
        assert publisher.put(b"on")
        sample = lights.recv()
        assert (str(sample.key_expr), sample.payload.to_bytes()) == ("house/light", b"on")
        assert sample.priority is zenlake.Priority.REAL_TIME
        assert sample.congestion_control is zenlake.CongestionControl.BLOCK
        assert sample.source_info is not None
        publisher.put(b"off")
        after = lights.recv().source_info
        assert after is not None
        assert after.source_sn == sample.source_info.source_sn + 1
        device.write("//house/door", b"open", reliable=False)
        sample = lights.recv()
        assert sample.congestion_control is zenlake.CongestionControl.DROP
        lights.undeclare()
        until(lambda: not publisher.matched)


def test_puts_of_1x_reach_every_mode(bridge: Bridged, program: zenlake.Session) -> None:
    with xrce.open(bridge.udp) as device, xrce.open(bridge.tcp) as other:
        push = device.subscriber("/robot/*/pose")
        kept = other.subscriber("//robot/**", "pull")
        later = other.subscriber("/robot/1/pose", "periodic-push", period=100, duration=50)
        single = device.subscriber("/robot/?/pose", "pull")
        for key in ("robot/1/pose", "robot/12/pose"):
            wanted(bridge, program, key)
            program.put(key, key.encode(), congestion_control=zenlake.CongestionControl.BLOCK)
        assert {push.recv(SECONDS) for _ in range(2)} == {
            ("robot/1/pose", b"robot/1/pose"), ("robot/12/pose", b"robot/12/pose"),
        }  # fmt: skip
        assert push.try_recv() is None  # once, though several subscriptions of ours heard it
        assert later.recv(SECONDS) == ("robot/1/pose", b"robot/1/pose")
        assert len(kept.pull()) == 2
        assert single.pull() == [("robot/1/pose", b"robot/1/pose")]


def test_selections_are_queries_and_durable_resources_answer_them(
    bridge: Bridged, program: zenlake.Session
) -> None:
    asked: list[str] = []

    def answer(query: zenlake.Query) -> None:
        asked.append(str(query.selector))
        for n in range(5):
            query.reply(f"store/{n}", json.dumps({"v": n}).encode())

    queryable = program.declare_queryable("store/*", answer)
    with xrce.open(bridge.udp) as device:
        chosen = device.selection("/store/*?{v >= 3}", "pull")
        until(lambda: len(chosen.pull()) == 2)
        assert "pred=" in asked[0]
        device.write("/last/value#persistent", b"1")
        device.write("/last/value#persistent", b"2")
        device.flushed()
        found: list[bytes] = []

        def known() -> bool:
            found[:] = [r.ok.payload.to_bytes() for r in program.get("last/*") if r.ok is not None]
            return found == [b"2"]

        until(known)
    queryable.undeclare()


def test_liveliness_counters_and_properties_are_shown(
    bridge: Bridged, program: zenlake.Session
) -> None:
    with xrce.open(bridge.udp, pid=b"\x0a\x0b") as device:
        device.resource("/typed", type="struct Light { long luminosity; };")
        tokens = [r.ok for r in program.liveliness().get("z18/session/*")]
        assert [str(token.key_expr) for token in tokens if token] == ["z18/session/0a0b"]
        above = f"@/{bridge.router.zid()}/z18"
        found = {
            str(r.ok.key_expr).removeprefix(above): json.loads(r.ok.payload.to_bytes())
            for r in program.get(f"{above}/**")
            if r.ok is not None
        }
        assert found["/broker"]["sessions"] == 1
        assert found["/session/0a0b"]["declared"]["resources"] == 1
        # Every counter that the guide names beside a bound is there.
        named = re.findall(r"\| `(broker|session)`: (.*) \|", GUIDE.read_text("utf-8"))
        assert len(named) == 14
        shown = {"broker": found["/broker"], "session": found["/session/0a0b"]}
        for where, names in named:
            assert set(re.findall(r"`(\w+)`", names)) <= set(shown[where]), names
        assert found["/property/typed"] == {"25": b"struct Light { long luminosity; };".hex()}
    until(lambda: not list(program.liveliness().get("z18/session/*")))


def test_a_broker_with_a_file_says_that_it_is_durable(tmp_path: Path) -> None:
    for made in bridged(router_config(persistent=str(tmp_path / "values.sqlite"))):
        (found,) = xrce.scout(made.udp)
        assert found.mask == 3


def test_what_is_no_key_is_refused(bridge: Bridged) -> None:
    import pytest

    from zenlake.xrce.client import DeclarationRefused

    with xrce.open(bridge.udp) as device, pytest.raises(DeclarationRefused, match="invalid"):
        device.subscriber("/@/secret")


def test_spaces_are_prefixes_and_that_of_brokers_stays_within(
    bridge: Bridged, program: zenlake.Session
) -> None:
    heard = program.declare_subscriber("**")
    with xrce.open(bridge.udp, space=7) as device, xrce.open(bridge.udp, space=1) as inner:
        inner.write("/secret", b"1")
        inner.flushed()
        device.write("/x", b"2")
        assert str(heard.recv().key_expr) == "z18/space/7/x"


def test_deletions_are_dropped_and_counted(bridge: Bridged, program: zenlake.Session) -> None:
    with xrce.open(bridge.udp) as device:
        samples = device.subscriber("/x")
        wanted(bridge, program, "x")
        program.delete("x")
        program.put("x", b"after")
        assert samples.recv(SECONDS) == ("x", b"after")
        above = f"@/{bridge.router.zid()}/z18/broker"
        (reply,) = program.get(above)
        assert reply.ok is not None
        assert json.loads(reply.ok.payload.to_bytes())["dropped_deletes"] == 1


def test_the_journal_has_what_devices_say_and_its_ledger_proves_it(
    bridge: Bridged, tmp_path: Path
) -> None:
    options = Options(("house/**",), str(tmp_path), name="j", fsync="5ms")
    with (
        Recorder(bridge.router, options) as recorder,
        xrce.open(bridge.udp) as device,
        xrce.open(bridge.tcp) as other,
    ):
        for one, name in ((device, "/house/1"), (other, "/house/2")):
            publisher = one.publisher(name)
            publisher.wait()
            for i in range(50):
                publisher.put(b"%d" % i)
            one.flushed()
        until_rows(recorder, 100)
    with Program("-m", "zenlake", "ledger", str(tmp_path), "--json") as ledger:
        assert ledger.ends() == 0
    told = json.loads(ledger.lines[-1])
    assert {one["key"]: (one["expected"], one["received"]) for one in told["sources"]} == {
        "house/1": (50, 50), "house/2": (50, 50),
    }  # fmt: skip
    assert told["totals"]["unprovable_rows"] == 0


def test_two_bridges_make_no_loop(bridge: Bridged) -> None:
    for far in bridged(router_config(bridge.place)):
        with xrce.open(bridge.udp) as one, xrce.open(far.udp) as other:
            near, there = one.subscriber("/x"), other.subscriber("/**")
            publisher = one.publisher("/x")
            publisher.wait()
            for i in range(20):
                assert publisher.put(b"%d" % i)
            assert [there.recv(SECONDS)[1] for _ in range(20)] == [b"%d" % i for i in range(20)]
            back = other.publisher("/x")
            back.wait()
            back.put(b"back")
            assert near.recv(SECONDS) == ("x", b"back")
            other.ping()
            assert (near.try_recv(), there.try_recv()) == (None, None)


RULES = {
    "enabled": True,
    "default_permission": "deny",
    "rules": [
        {
            "id": "light",
            "permission": "allow",
            "messages": ["put", "declare_subscriber", "query", "reply", "declare_queryable"],
            "key_exprs": ["house/light", "house/light/**"],
        },
        {
            "id": "all",
            "permission": "allow",
            "messages": ["put", "declare_subscriber", "query", "reply", "declare_queryable"],
            "key_exprs": ["**"],
        },
    ],
    "subjects": [
        {"id": "devices", "usernames": ["devices"]},
        {"id": "programs", "link_protocols": ["tcp"]},
    ],
    "policies": [
        {"rules": ["light"], "subjects": ["devices"]},
        {"rules": ["all"], "subjects": ["programs"]},
    ],
}


def test_devices_may_do_what_the_rules_say_of_their_user() -> None:
    config = router_config(username="devices")
    config.insert_json5("access_control", json.dumps(RULES))
    asked: list[str] = []

    def answer(query: zenlake.Query) -> None:
        asked.append(str(query.key_expr))
        query.reply(query.key_expr, b"7")

    with (
        contextmanager(bridged)(config) as bridge,
        zenlake.open(bridge.config()) as program,
        xrce.open(bridge.tcp) as device,
    ):
        heard = program.declare_subscriber("house/**")
        program.declare_queryable("house/**", answer)
        forbidden = device.subscriber("/house/door")
        mine = device.subscriber("/house/light")
        wanted(bridge, program, "house/light")
        # Samples of what may not be wanted stay outside.
        program.put("house/door", b"open")
        program.put("house/light", b"on")
        assert mine.recv(SECONDS) == ("house/light", b"on")
        assert forbidden.try_recv() is None
        assert [str(heard.recv().key_expr) for _ in range(2)] == ["house/door", "house/light"]
        # Of two samples of a device the one that may not be put is stopped.
        device.write("/house/door", b"open")
        device.write("/house/light", b"off")
        assert str(heard.recv().key_expr) == "house/light"
        # And of two questions the one that may not be asked.
        assert device.selection("/house/door", "pull").pull() == []
        level = device.selection("/house/light/level", "pull")
        until(lambda: level.pull() == [("house/light/level", b"7")])
        assert set(asked) == {"house/light/level"}
        told = [
            incident
            for incident in bridge.router.runtime.node.incidents.newest()
            if incident.peer == "z18"
        ]
        assert {incident.key for incident in told} >= {"house/door"}
        assert "no rule allows it" in told[0].reason
