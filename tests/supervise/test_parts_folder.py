"""How the parts of one `zenlake up` know each other, at a router with users, rules and roles."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import zenlake
from tests.cli.programs import endpoint
from tests.waiting import until
from zenlake.engine.parts import listening_for_parts
from zenlake.lake.service.bus_link import BusLink
from zenlake.supervise.parts_folder import LAKE_USER, PartsFolder, read_parts

CLOSED = {
    "enabled": True,
    "default_permission": "deny",
    "rules": [
        {
            "id": "nobody puts",
            "permission": "deny",
            "messages": ["put"],
            "flows": ["ingress"],
            "key_exprs": ["**"],
        }
    ],
    "subjects": [{"id": "all"}],
    "policies": [{"rules": ["nobody puts"], "subjects": ["all"]}],
}


@contextlib.contextmanager
def router(folder: Path, where: str, **more: object) -> Iterator[zenlake.Session]:
    """A router that lets only `ann` in, and only those in who play no other role than client."""
    users = folder / "users"
    users.write_text("ann:long enough\n")
    users.chmod(0o600)
    config = {
        "mode": "router",
        "listen": {"endpoints": [where]},
        "scouting": {"multicast": {"enabled": False}},
        "transport": {
            "auth": {
                "usrpwd": {"dictionary_file": str(users)},
                "roles": {"router": ["router-2"], "peer": []},
            },
            "unicast": {"max_sessions": 0},
        },
        **more,
    }
    with zenlake.open(zenlake.Config.from_json5(json.dumps(config))) as session:
        yield session


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[PartsFolder]:
    made = PartsFolder(tmp_path / "data")
    try:
        yield made
    finally:
        made.close()


def test_a_part_gets_in_beside_users_roles_and_a_full_house_and_may_do_all(
    tmp_path: Path, parts: PartsFolder
) -> None:
    with (
        router(tmp_path, where := endpoint(), access_control=CLOSED) as node,
        listening_for_parts(node.runtime, *read_parts(parts.parts)),
        BusLink(zenlake.Config.from_file(str(parts.lake))) as link,
    ):
        until(lambda: link.state().connected)
        heard = node.declare_subscriber("fleet/**")
        with link.session.declare_queryable("@lake/sql") as queryable:
            until(lambda: link.session.declare_publisher("fleet/a").matching_status.matching)
            link.session.put("fleet/a", "1")
            assert heard.recv().payload.to_string() == "1"
            replies = node.get("@lake/sql", target=zenlake.QueryTarget.ALL)
            with queryable.recv() as query:
                query.reply("@lake/sql", "rows")
            assert [one.ok.payload.to_string() for one in replies if one.ok is not None] == ["rows"]
        with node.runtime.locked() as inside:
            assert inside.settings.locators == (where,), "the place is told to nobody"


def test_rules_that_name_a_part_narrow_it(tmp_path: Path, parts: PartsFolder) -> None:
    rules = CLOSED | {
        "default_permission": "allow",
        "subjects": [{"id": "all", "usernames": [LAKE_USER]}],
    }
    with (
        router(tmp_path, endpoint(), access_control=rules) as node,
        listening_for_parts(node.runtime, *read_parts(parts.parts)),
        BusLink(zenlake.Config.from_file(str(parts.lake))) as link,
        BusLink(zenlake.Config.from_file(str(parts.operator))) as other,
    ):
        until(lambda: link.state().connected and other.state().connected)
        heard = node.declare_subscriber("fleet/**")
        until(lambda: other.session.declare_publisher("fleet/a").matching_status.matching)
        until(lambda: link.session.declare_publisher("fleet/a").matching_status.matching)
        link.session.put("fleet/a", "from the lake")
        until(lambda: node.runtime.node.sessions.stops()["ingress"]["denied"] == 1)
        other.session.put("fleet/a", "from the operator")
        assert heard.recv().payload.to_string() == "from the operator"


def test_a_secret_opens_the_socket_of_its_own_start_and_no_other_door(
    tmp_path: Path, parts: PartsFolder
) -> None:
    own = zenlake.Config.from_file(str(parts.lake))
    outside = zenlake.Config.from_file(str(parts.lake))
    where = endpoint()
    outside.insert_json5("connect/endpoints", json.dumps([where]))
    with (
        router(tmp_path, where) as node,
        listening_for_parts(node.runtime, *read_parts(parts.parts)),
    ):
        own.insert_json5("transport/auth/usrpwd/password", '"of another start"')
        assert is_refused(own)
        assert is_refused(outside)
        # Who guesses at the socket keeps no part waiting.
        with BusLink(zenlake.Config.from_file(str(parts.lake))) as link:
            until(lambda: link.state().connected)
        # No file of users can say such a name, whatever the password.
        (tmp_path / "users").write_text(f"{LAKE_USER}:long enough\n")
        outside.insert_json5("transport/auth/usrpwd/password", '"long enough"')
    with router(tmp_path, where) as node:
        (tmp_path / "users").write_text(f"{LAKE_USER}:long enough\n")
        assert is_refused(outside)


def is_refused(config: zenlake.Config) -> bool:
    with BusLink(config) as link:
        until(lambda: bool(link.state().reason))
        return not link.state().connected


def test_a_link_that_finds_nobody_opens_at_once_and_says_why_it_is_not_connected() -> None:
    config = zenlake.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("connect/endpoints", json.dumps([where := endpoint()]))
    with BusLink(config) as link:
        until(lambda: "refused" in link.state().reason)
        before = link.state()
        assert not before.connected
        late = zenlake.Config()
        late.insert_json5("mode", '"router"')
        late.insert_json5("scouting/multicast/enabled", "false")
        late.insert_json5("listen/endpoints", json.dumps([where]))
        with zenlake.open(late):
            until(lambda: link.state().connected)
            assert link.state().reason == ""
            assert link.state().since > before.since
        until(lambda: not link.state().connected)


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_the_folder_is_for_its_owner_alone_and_each_start_has_other_secrets(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "run").mkdir()
        first = PartsFolder(tmp_path)
        secret = read_parts(first.parts)[1]
        (tmp_path / "run" / "left behind").write_text("")
        second = PartsFolder(tmp_path)
        assert not set(read_parts(second.parts)[1].values()) & set(secret.values())
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
        files = list((tmp_path / "run").iterdir())
        assert sorted(file.name for file in files) == ["lake.json5", "operator.json5", "parts.json"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        second.close()
        assert list((tmp_path / "run").iterdir()) == []
    finally:
        os.umask(before)


def test_a_path_that_is_too_long_for_a_socket_has_one_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    made = PartsFolder(deep)
    place = Path(read_parts(made.parts)[0])
    assert deep not in place.parents
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    again = PartsFolder(deep)  # after one that was killed
    assert not place.parent.exists()
    place = Path(read_parts(again.parts)[0])
    again.close()
    assert not place.parent.exists()
