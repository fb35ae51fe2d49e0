"""The admin space over real links, by the API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

import zenlake
from tests.api.sessions import config, connected, listening, where
from tests.waiting import SECONDS, until
from zenlake.admin import space
from zenlake.config import Config
from zenlake.node.inspection import view
from zenlake.node.inspection.metrics import Row


def shown(session: zenlake.Session, selector: str) -> dict[str, zenlake.Sample]:
    found = {}
    for reply in session.get(selector, timeout=SECONDS):
        assert reply.ok is not None
        found[str(reply.ok.key_expr)] = reply.ok
    return found


def root(session: zenlake.Session) -> str:
    return view.root(session.runtime.node)


def refusal(session: zenlake.Session, selector: str) -> str:
    (reply,) = session.get(selector, timeout=SECONDS)
    assert reply.err is not None
    return str(json.loads(reply.err.payload.to_bytes())["error"])


def admin_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("zenlake admin")]


def test_a_library_node_shows_nothing_unless_told() -> None:
    with listening() as peer:
        assert shown(peer, f"{root(peer)}/**") == {}
        assert not admin_threads()


def test_a_client_sees_the_router_and_itself_in_it() -> None:
    with (
        listening(mode='"router"', adminspace__enabled="true", metadata='{name: "x"}') as router,
        connected(router, mode='"client"') as client,
    ):
        sample = shown(client, root(router))[root(router)]
        told = json.loads(sample.payload.to_string())
        assert str(sample.encoding) == "application/json"
        assert told["metadata"] == {"name": "x"}
        assert told["locators"] == [where(router)]
        assert [session["peer"] for session in told["sessions"]] == [str(client.zid())]
        with client.declare_subscriber("demo/**"):
            key = f"{root(router)}/subscriber/demo/**"
            until(lambda: key in shown(client, f"{root(router)}/**"))
        until(lambda: key not in shown(client, f"{root(router)}/**"))


def test_the_node_itself_may_look() -> None:
    with listening(adminspace__enabled="true") as peer:
        assert root(peer) in shown(peer, "@/**")


def test_nobody_reads_where_reading_is_forbidden() -> None:
    with (
        listening(adminspace="{enabled: true, permissions: {read: false}}") as peer,
        connected(peer) as other,
    ):
        assert shown(other, f"{root(peer)}/**") == {}


def test_a_question_over_a_link_that_leaves_the_machine_has_no_answer() -> None:
    for links, many in (("loopback", 0), ("any", 1)):
        keys = f'{{enabled: true, permissions: {{links: "{links}"}}}}'
        with listening(mode='"router"', adminspace=keys) as router, connected(router) as other:
            for neighbour in router.runtime.neighbours():
                neighbour.dst = "tcp/192.0.2.1:40000"
            assert len(shown(other, root(router))) == many
            with router.runtime.lock:
                events = router.runtime.node.incidents.newest()
            assert [event.kind for event in events] == ([] if many else ["denied"])


def test_a_running_node_takes_new_endpoints() -> None:
    admin = "{enabled: true, permissions: {write: true}}"
    with (
        listening(mode='"router"', adminspace=admin) as router,
        listening(mode='"router"') as far,
    ):
        key = f"{root(router)}/config/connect/endpoints"
        router.put(key, json.dumps([where(far)]))
        until(lambda: [str(t.zid) for t in router.info.transports()] == [str(far.zid())])
        assert json.loads(shown(router, key)[key].payload.to_string()) == [where(far)]
        router.delete(key)
        until(lambda: not list(router.info.transports()))


def test_a_running_node_listens_elsewhere() -> None:
    admin = "{enabled: true, permissions: {write: true}}"
    with listening(mode='"router"', adminspace=admin) as router, connected(router) as old:
        before = where(router)
        router.put(f"{root(router)}/config/listen/endpoints", '["tcp/127.0.0.1:0#iface=lo"]')
        until(lambda: where(router) != before)
        with connected(router, mode='"client"') as client:
            assert root(router) in shown(client, root(router))
        assert [str(t.zid) for t in old.info.transports()] == [str(router.zid())]
        told = json.loads(shown(old, root(router))[root(router)].payload.to_string())
        assert told["locators"] == [where(router)]


def test_a_running_node_takes_another_policy() -> None:
    admin = "{enabled: true, permissions: {write: true}}"
    heard: list[str] = []
    with (
        listening(mode='"router"', adminspace=admin) as router,
        connected(router, mode='"client"') as client,
        router.declare_subscriber("demo/**", lambda sample: heard.append(str(sample.key_expr))),
    ):
        client.put("demo/before", "1")
        until(lambda: heard == ["demo/before"])
        rules = {
            "enabled": True,
            "default_permission": "allow",
            "rules": [
                {
                    "id": "no",
                    "messages": ["put"],
                    "flows": ["ingress"],
                    "permission": "deny",
                    "key_exprs": ["demo/secret"],
                }
            ],
            "subjects": [{"id": "all"}],
            "policies": [{"rules": ["no"], "subjects": ["all"]}],
        }
        router.put(f"{root(router)}/config/access_control", json.dumps(rules))
        until(lambda: router.runtime.settings.access_control.enabled)
        client.put("demo/secret", "1")
        client.put("demo/after", "1")
        until(lambda: heard == ["demo/before", "demo/after"])
        told = json.loads(
            shown(client, f"{root(router)}?_stats=true")[root(router)].payload.to_string()
        )
        assert told["stats"]["dropped"]["rx"] == {"access-control": 1}


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("mode", '"client"', "fixed"),
        ("adminspace/permissions/write", "false", "fixed"),
        ("connect/endpoints", '"tcp"', "invalid"),
        ("connect/endpoints", "[", "invalid"),
        ("access_control/enabled", '"yes"', "invalid"),
        ("no/such/key", "1", "fixed"),
    ],
)
def test_what_cannot_be_changed_is_refused_and_counted(path: str, value: str, why: str) -> None:
    admin = "{enabled: true, permissions: {write: true}}"
    with listening(mode='"router"', adminspace=admin) as router:
        before = str(router.runtime.config)
        router.put(f"{root(router)}/config/{path}", value)
        metrics = f"{root(router)}/metrics"
        line = f'reason="{why}"}} 1'
        until(
            lambda: (
                line in shown(router, f"{metrics}?compression=false")[metrics].payload.to_string()
            )
        )
        assert str(router.runtime.config) == before


def test_nobody_writes_unless_it_is_permitted() -> None:
    with listening(mode='"router"', adminspace__enabled="true") as router:
        assert [s.key for s in router.runtime.node.local.subscribers.values()] == []


def test_its_threads_end_with_the_node() -> None:
    with listening(adminspace="{enabled: true, permissions: {write: true}}") as peer:
        peer.put(f"{root(peer)}/config/metadata", "1")
        assert shown(peer, root(peer))
        assert {thread.name for thread in admin_threads()} == {
            "zenlake admin 0",
            "zenlake admin changes 0",
        }
    until(lambda: not admin_threads())


def test_a_query_is_answered_after_the_changes_before_it() -> None:
    """Though other threads make them, and opening a listener takes its time."""
    admin = "{enabled: true, permissions: {write: true}}"
    with listening(mode='"router"', adminspace=admin) as router:
        metadata = f"{root(router)}/config/metadata"
        for number in range(20):
            router.put(f"{root(router)}/config/listen/endpoints", '["tcp/127.0.0.1:0#iface=lo"]')
            router.put(metadata, str(number))
            assert shown(router, metadata)[metadata].payload.to_string() == str(number)


def test_an_asyncio_node_has_one_too() -> None:
    import asyncio

    async def main() -> list[str]:
        async with zenlake.aio.open(config(adminspace__enabled="true")) as session:
            replies = await session.get("@/**")
            return [str(reply.ok.key_expr) async for reply in replies if reply.ok is not None]

    assert any(key.endswith("/metrics") for key in asyncio.run(main()))


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "RECORDS", 2)
    with listening(mode='"router"', adminspace__enabled="true") as router:
        for number in range(5):
            router.declare_subscriber(f"demo/{number}", lambda _: None)
        assert len(shown(router, f"{root(router)}/subscriber/**")) == 2
        metrics = f"{root(router)}/metrics"
        text = shown(router, f"{metrics}?compression=false")[metrics].payload.to_string()
        assert 'reason="records"} 1' in text


def test_who_asks_too_much_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "WAITING", 0)
    with listening(mode='"router"', adminspace__enabled="true") as router:
        assert refusal(router, root(router)) == "too many queries wait already; ask again"


class Slow:
    """A service whose records take a while, as those of a disk may."""

    serves = True

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.ready = threading.Event()

    def change(self, config: Config) -> None:
        """It has nothing to obey."""

    def documents(self, root: str, selector: str) -> Iterator[tuple[str, object]]:
        if selector == f"{root}/slow":
            self.asked.release()
            self.ready.wait(SECONDS)
            yield selector, "here"

    def metrics(self) -> Iterator[Row]:
        return iter(())

    def troubles(self) -> list[str]:
        return []

    def close(self) -> None:
        self.ready.set()


def test_one_who_asks_much_keeps_nobody_else_waiting() -> None:
    with (
        listening(mode='"router"', adminspace__enabled="true") as router,
        connected(router, mode='"client"') as many,
        connected(router, mode='"client"') as one,
    ):
        slow = router.runtime.services["slow"] = Slow()
        asked = [many.get(f"{root(router)}/slow", timeout=SECONDS) for _ in range(20)]
        assert all(slow.asked.acquire(timeout=SECONDS) for _ in range(space.THREADS - 1))
        assert shown(one, root(router))
        assert not slow.ready.is_set()
        slow.ready.set()
        assert [len(list(replies)) for replies in asked] == [1] * 20


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("_stat=true", "'_stat' is no parameter: did you mean '_stats'?"),
        ("_filter=zid<1", "'_filter' means nothing here"),
        ("_ack_put", "'_ack_put' is for puts on keys"),
    ],
)
def test_what_begins_with_an_underscore_and_is_not_understood_is_refused(
    parameters: str, why: str
) -> None:
    with listening(mode='"router"', adminspace__enabled="true") as router:
        assert why in refusal(router, f"{root(router)}?{parameters}")
        metrics = f"{root(router)}/metrics"
        text = shown(router, f"{metrics}?compression=false")[metrics].payload.to_string()
        assert 'reason="invalid"} 1' in text


def test_parameters_of_applications_and_of_zenoh_change_no_answer() -> None:
    with listening(mode='"router"', adminspace__enabled="true") as router:
        asked = f"{root(router)}?own=1;_time=[now(-1h)..];_anyke"
        assert list(shown(router, asked)) == [root(router)]
