"""Advanced publishers and subscribers of both implementations, in both roles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.ext.cable import Cable
from tests.interop.advanced import Advanced, AdvancedProcess
from tests.interop.processes import OURS, THEIRS, listen

pytestmark = pytest.mark.interop

numbers = count(1)
GOLDEN = Path(__file__).parent.parent / "golden"
SERIAL = [
    (case["type"], case["value"])
    for case in json.loads((GOLDEN / "values_serial.json").read_text())["cases"]
]
NUMBERED: dict[str, object] = {"numbered": {}}
LATE = {"detect_late_publishers": True}


@dataclass
class Roles:
    """A node that publishes and one that subscribes, of different implementations."""

    publisher: Advanced
    subscriber: Advanced
    key: str
    ours_publishes: bool

    def publisher_opens(self, **keys: object) -> str:
        """Open the one who publishes; where."""
        return listen(self.publisher, "peer", "tcp", **keys)

    def subscriber_opens(self, place: str, **keys: object) -> None:
        """Open the one who subscribes; it keeps trying to connect."""
        self.subscriber.open(
            "peer",
            connect__endpoints=[place],
            connect__timeout_ms=-1,
            connect__exit_on_failure=False,
            connect__retry={"period_init_ms": 50, "period_max_ms": 50},
            **keys,
        )

    def until_heard(self) -> None:
        """Wait until the one who publishes knows the one who subscribes."""
        self.publisher.publisher("probe", self.key)
        self.publisher.until("probe")
        self.publisher.undeclare("probe")

    def payloads(self, count: int) -> list[str]:
        """What the subscriber heard."""
        return [one["payload"] for one in self.subscriber.take("sub", count)]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[AdvancedProcess]:
    """A process of theirs that lives as long as these tests."""
    with AdvancedProcess(THEIRS) as process:
        yield process


@pytest.fixture(params=["ours publishes", "theirs publishes"])
def roles(request: pytest.FixtureRequest, elsewhere: AdvancedProcess) -> Iterator[Roles]:
    """Both roles, and a key of their own."""
    number = next(numbers)
    ours, theirs = Advanced(OURS), elsewhere.advanced(f"node {number}")
    key = f"adv/{number}"
    if request.param == "ours publishes":
        yield Roles(ours, theirs, key, True)
    else:
        yield Roles(theirs, ours, key, False)
    for node in (ours, theirs):
        if node.is_open():
            node.close()


def test_a_late_subscriber_gets_the_past_as_it_was_then_the_present(roles: Roles) -> None:
    place = roles.publisher_opens()
    source = roles.publisher.advanced_publisher("pub", roles.key, cache=4, **NUMBERED)
    roles.publisher.say("pub", "0", "1")
    roles.publisher.publish("pub", "2", encoding="text/json;x", attachment="beside")
    roles.publisher.publish_delete("pub", attachment="gone")
    roles.publisher.say("pub", "4")
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", "adv/**", history={})
    samples = roles.subscriber.take("sub", 4)
    assert [one["payload"] for one in samples] == ["1", "2", "", "4"]
    # A publisher of theirs remembers a deletion as a value without bytes.
    removal = "DELETE" if roles.ours_publishes else "PUT"
    assert [one["kind"] for one in samples] == ["PUT", "PUT", removal, "PUT"]
    assert [one["encoding"] for one in samples][:2] == ["zenoh/bytes", "text/json;x"]
    assert [one["attachment"] for one in samples] == [None, "beside", "gone", None]
    assert [one["source"] for one in samples] == [[*source, sn] for sn in (1, 2, 3, 4)]
    assert {one["key"] for one in samples} == {roles.key}
    roles.until_heard()
    roles.publisher.say("pub", "5")
    assert roles.payloads(1) == ["5"]
    assert roles.subscriber.heard_by("sub misses") == 0


@pytest.mark.parametrize(
    ("history", "expected"),
    [({"max_samples": 2}, ["3", "4"]), ({"max_age": 600.0}, ["0", "1", "2", "3", "4"])],
)
def test_of_the_past_comes_what_is_asked_for(
    roles: Roles, history: dict[str, object], expected: list[str]
) -> None:
    place = roles.publisher_opens(timestamping__enabled=True)
    roles.publisher.advanced_publisher("pub", roles.key, cache=9, **NUMBERED)
    roles.publisher.say("pub", "0", "1", "2", "3", "4")
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", roles.key, history=history)
    assert roles.payloads(len(expected)) == expected


def test_times_order_the_past_where_there_are_no_numbers(roles: Roles) -> None:
    place = roles.publisher_opens(timestamping__enabled=True)
    roles.publisher.advanced_publisher("pub", roles.key, cache=9)
    roles.publisher.say("pub", "0", "1", "2")
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", roles.key, history={})
    assert roles.payloads(3) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("detection", "recovery"),
    [
        ({"heartbeat": 0.05}, {"recovery": True}),
        ({"sporadic_heartbeat": 0.05}, {"recovery": True}),
        ({}, {"period": 0.1}),
    ],
    ids=["heartbeat", "sporadic heartbeat", "periodic queries"],
)
def test_what_was_lost_with_the_link_is_recovered(
    roles: Roles, detection: dict[str, float], recovery: dict[str, object]
) -> None:
    with Cable(roles.publisher_opens()) as cable:
        roles.subscriber_opens(cable.place)
        roles.subscriber.advanced_subscriber("sub", roles.key, **recovery)
        roles.publisher.advanced_publisher("pub", roles.key, cache=9, numbered=detection)
        roles.until_heard()
        roles.publisher.say("pub", "0")
        assert roles.payloads(1) == ["0"]
        roles.publisher.watch_neighbours("neighbours")
        cable.cut()
        while roles.publisher.take("neighbours")[0]["kind"] != "DELETE":
            pass
        roles.publisher.say("pub", "1", "2", "3")
        cable.join()
        roles.until_heard()
        if "sporadic_heartbeat" in detection:
            roles.publisher.say("pub", "4")
            assert roles.payloads(4) == ["1", "2", "3", "4"]
        else:
            assert roles.payloads(3) == ["1", "2", "3"]
        assert roles.subscriber.heard_by("sub misses") == 0


def test_a_gap_is_filled_when_a_later_sample_comes(roles: Roles) -> None:
    place = roles.publisher_opens()
    roles.publisher.advanced_publisher("pub", roles.key, cache=9, **NUMBERED)
    roles.publisher.say("pub", "0", "1", "2", "3")
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", roles.key, recovery=True)
    roles.until_heard()
    roles.publisher.pretend(roles.key, "pub", 0, "0")
    roles.publisher.pretend(roles.key, "pub", 3, "3")
    assert roles.payloads(4) == ["0", "1", "2", "3"]
    roles.publisher.pretend(roles.key, "pub", 2, "twice")
    roles.publisher.say("pub", "4")
    assert roles.payloads(1) == ["4"]


def test_what_nobody_remembers_is_missed(roles: Roles) -> None:
    place = roles.publisher_opens()
    source = roles.publisher.advanced_publisher("pub", roles.key, cache=2, **NUMBERED)
    roles.publisher.say("pub", "0", "1", "2", "3", "4")
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", roles.key, recovery=True)
    roles.until_heard()
    roles.publisher.pretend(roles.key, "pub", 0, "0")
    roles.publisher.pretend(roles.key, "pub", 4, "4")
    assert roles.payloads(3) == ["0", "3", "4"]
    assert roles.subscriber.take("sub misses") == [[*source, 2]]


def test_without_recovery_a_gap_is_missed_at_once(roles: Roles) -> None:
    place = roles.publisher_opens()
    source = roles.publisher.advanced_publisher("pub", roles.key, **NUMBERED)
    roles.subscriber_opens(place)
    roles.subscriber.advanced_subscriber("sub", roles.key)
    roles.until_heard()
    roles.publisher.say("pub", "0")
    roles.publisher.pretend(roles.key, "pub", 5, "5")
    assert roles.payloads(2) == ["0", "5"]
    assert roles.subscriber.take("sub misses") == [[*source, 4]]


def test_a_late_publisher_is_asked_for_its_past(roles: Roles) -> None:
    with Cable(roles.publisher_opens(), joined=False) as cable:
        # It opens though nobody is there yet.
        roles.subscriber_opens(cable.place, scouting__delay=200)
        roles.subscriber.advanced_subscriber("sub", "adv/*", history=LATE)
        roles.publisher.advanced_publisher("pub", roles.key, cache=9, detection=True, **NUMBERED)
        roles.publisher.say("pub", "0", "1", "2")
        cable.join()
        assert roles.payloads(3) == ["0", "1", "2"]


def test_they_detect_each_other(roles: Roles) -> None:
    roles.subscriber_opens(roles.publisher_opens())
    zid, eid = roles.publisher.advanced_publisher("pub", roles.key, detection=True, **NUMBERED)
    sub_zid, sub_eid = roles.subscriber.advanced_subscriber("sub", roles.key, detection=True)
    roles.subscriber.detect("seen", "sub")
    name = f"{roles.key}/@adv/pub/{zid}/{eid}/_"
    assert roles.subscriber.take("seen") == [["PUT", name]]
    alive = f"{roles.key}/@adv/sub/{sub_zid}/{sub_eid}/_"
    roles.publisher.until_alive(f"{roles.key}/@adv/sub/**", [alive])
    roles.publisher.undeclare("pub")
    assert roles.subscriber.take("seen") == [["DELETE", name]]


def test_every_type_that_one_serialises_the_other_reads(roles: Roles) -> None:
    roles.subscriber_opens(roles.publisher_opens())
    expected = {f"{roles.key}/{n}": list(case) for n, case in enumerate(SERIAL)}
    roles.subscriber.hear_values("values", f"{roles.key}/*", expected)
    roles.publisher.publisher("probe", f"{roles.key}/x")
    roles.publisher.until("probe")
    for n, (_, text) in enumerate(SERIAL):
        roles.publisher.put_value(f"{roles.key}/{n}", text)
    heard = roles.subscriber.take("values", len(SERIAL))
    assert heard == [[key, True] for key in expected]


@pytest.mark.parametrize("points", ["send", "route", "receive", "send route receive"])
def test_times_are_taken_where_they_are_wanted(roles: Roles, points: str) -> None:
    here, there = roles.publisher, roles.subscriber
    roles.subscriber_opens(roles.publisher_opens())
    names = {here.zid(): "here", there.zid(): "there"}
    there.hear_stacks("stacks", roles.key, names)
    here.hear_stacks("own", roles.key, names)
    there.answer_stacks("asked", f"{roles.key}/q", f"{roles.key}/q", names)
    roles.until_heard()
    here.querier("probe", f"{roles.key}/q")
    here.until("probe")

    def wanted(way: list[list[str]]) -> list[list[str]]:
        return [one for one in way if one[0].lower() in points]

    here.put_stack(roles.key, points)
    out = [["SEND", "here"], ["ROUTE", "here"], ["ROUTE", "there"], ["RECEIVE", "there"]]
    back = [["SEND", "there"], ["ROUTE", "there"], ["ROUTE", "here"], ["RECEIVE", "here"]]
    assert there.take("stacks") == [wanted(out)]
    assert here.take("own") == [wanted([["SEND", "here"], ["RECEIVE", "here"]])]
    answers = here.get_stacks(f"{roles.key}/q", points, names)
    assert there.take("asked") == [wanted(out)]
    assert answers == [wanted(out + back)] * 2


def test_a_clock_of_its_own_is_told_in_its_own_words(roles: Roles) -> None:
    place = roles.publisher_opens()
    roles.subscriber.open_custom("noon", connect__endpoints=[place])
    names = {roles.publisher.zid(): "here"}
    roles.subscriber.hear_stacks("stacks", roles.key, names)
    roles.until_heard()
    roles.publisher.put_stack(roles.key, "send receive")
    assert roles.subscriber.take("stacks") == [[["SEND", "here"], ["RECEIVE", "noon"]]]


def test_a_router_between_takes_the_time_of_what_passes(
    elsewhere: AdvancedProcess, roles: Roles
) -> None:
    router = elsewhere.advanced(f"router {next(numbers)}")
    place = listen(router, "router")
    for node in (roles.publisher, roles.subscriber):
        node.open("client", connect__endpoints=[place])
    names = {
        roles.publisher.zid(): "here",
        roles.subscriber.zid(): "there",
        router.zid(): "router",
    }
    roles.subscriber.hear_stacks("stacks", roles.key, names)
    roles.until_heard()
    roles.publisher.put_stack(roles.key, "route")
    way = [["ROUTE", "here"], ["ROUTE", "router"], ["ROUTE", "there"]]
    assert roles.subscriber.take("stacks") == [way]
    router.close()
