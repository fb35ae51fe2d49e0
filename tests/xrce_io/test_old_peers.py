"""Real programs of 2018, unchanged: through our broker, and into the world of Zenoh 1.x."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zenlake.lake
from tests.cli.programs import Program, endpoint
from tests.cli.test_up import Up
from tests.lake.journals import Here
from tests.ports import free_port
from tests.waiting import SECONDS, until
from tests.xrce_io.conftest import Bridged
from tests.xrce_io.old_peers import ROOT, VERSIONS, script
from zenlake import xrce
from zenlake.journal import Journal
from zenlake.lake import Pipeline
from zenlake.lake.service.service import Service
from zenlake.xrce_io.brokering import RunningBroker
from zenlake.xrce_io.client import Subscriber

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

PUBLISH = """
import time, zenoh
z = zenoh.connect({place!r})
p = z.declare_publisher({name!r})
while not p.matching: time.sleep(0.01)
for i in range({count}): p.write(b"%d" % i)
print("written", flush=True)
while p.matching: time.sleep(0.01)
print("nobody listens", flush=True)
z.close()
"""
SUBSCRIBE = """
import time, zenoh
z = zenoh.connect({place!r})
def heard(rid, payload): print("heard", payload.tobytes().decode(), flush=True)
z.declare_subscriber({name!r}, heard)
print("subscribed", flush=True)
time.sleep(60)
"""
#: On Eclipse's package, which has the same name: in a process of its own, too.
LISTEN = """
import json, sys, zenoh
config = zenoh.Config()
config.insert_json5("mode", '"client"')
config.insert_json5("connect/endpoints", json.dumps([sys.argv[1]]))
config.insert_json5("scouting/multicast/enabled", "false")
with zenoh.open(config) as session:
    subscriber = session.declare_subscriber(sys.argv[2])
    print("listening", flush=True)
    print("heard", subscriber.recv().payload.to_string(), flush=True)
    publisher = session.declare_publisher(sys.argv[3])
    while not publisher.matching_status.matching: pass
    publisher.put("hello from Eclipse")
    print("put", flush=True)
"""


def place_of(locator: str) -> str:
    return locator.removeprefix("tcp/")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_2018_publishes_and_subscribes(broker: RunningBroker, version: str) -> None:
    _, tcp = broker.locators()
    place = place_of(tcp)
    with xrce.open(tcp) as session:
        samples = session.subscriber("/from/*")
        code = PUBLISH.format(place=place, name="//from/2018", count=60)
        with script(version, code) as publisher:
            publisher.says("written")
            assert [samples.recv(SECONDS) for _ in range(60)] == [
                ("from/2018", b"%d" % i) for i in range(60)
            ]
            samples.undeclare()
            publisher.says("nobody listens")
        code = SUBSCRIBE.format(place=place, name="//to/2018")
        with script(version, code) as subscriber:
            subscriber.says("subscribed")
            writer = session.publisher("/to/2018")
            writer.wait()
            writer.put(b"hello")
            subscriber.says("heard hello")


def test_clients_of_2018_speak_with_each_other(broker: RunningBroker) -> None:
    place = place_of(broker.locators()[1])
    with script("0.1.2", SUBSCRIBE.format(place=place, name="//x"), pid=1) as subscriber:
        subscriber.says("subscribed")
        code = PUBLISH.format(place=place, name="//x", count=3)
        with script("0.1.0", code, pid=2) as publisher:
            publisher.says("written")
            for i in range(3):
                subscriber.says(f"heard {i}")


def pulled(kept: Subscriber) -> list[tuple[str, bytes]]:
    """What was kept, as soon as there is something: a put may be on its way to the broker."""
    samples: list[tuple[str, bytes]] = []

    def come() -> bool:
        samples.extend(kept.pull())
        return bool(samples)

    until(come, "nothing was kept")
    return samples


def test_2018_and_eclipse_share_one_world(bridge: Bridged) -> None:
    with (
        xrce.open(bridge.udp) as sleepy,
        Program("-c", LISTEN, bridge.place, "house/**", "to/sleepy") as eclipse,
    ):
        kept = sleepy.subscriber("/to/sleepy", "pull")
        eclipse.says("listening")
        (code,) = re.findall(
            r"```py\n(.*?)```",
            (ROOT / "docs/how-to/constrained-devices.md").read_text(),
            re.DOTALL,
        )
        code = code.replace("127.0.0.1:7448", place_of(bridge.tcp))
        with script("0.1.0", code):
            eclipse.says("heard hello from 2018")
        eclipse.says("put")
        assert eclipse.ends() == 0
        assert pulled(kept) == [("to/sleepy", b"hello from Eclipse")]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_what_2018_says_to_zenlake_up_is_found_with_sql(
    tmp_path: Path, spark: SparkSession
) -> None:
    devices = f"127.0.0.1:{free_port()}"
    where = endpoint()
    data, lake = tmp_path / "data", tmp_path / "lake"
    up = Up(data, where, "--no-lake", "--cfg", f'xrce/listen:["tcp/{devices}"]')
    with up.program as program:
        up.ready()
        with (
            xrce.open(f"tcp/{devices}") as sleepy,
            Program("-c", LISTEN, where, "house/**", "to/sleepy") as eclipse,
            script("0.1.0", PUBLISH.format(place=devices, name="//house/2018", count=5)) as old,
        ):
            kept = sleepy.subscriber("/to/sleepy", "pull")
            old.says("written")
            eclipse.says("heard 0")
            eclipse.says("put")
            assert eclipse.ends() == 0
            assert pulled(kept) == [("to/sleepy", b"hello from Eclipse")]
        assert program.interrupt(signal.SIGTERM) == 0
    # The lake that `up` runs has a Spark of its own, which is shown where `up` is tested: here the
    # Spark of all tests stands in for it, and is asked as that one is.
    Pipeline(str(lake), str(data / "journal"), Here()).step()
    service = Service(zenlake.lake.open(lake, spark), [Journal.open(data / "journal")])
    query = "SELECT cast(value AS string) AS v FROM samples WHERE key = 'house/2018' ORDER BY v"
    words = ("-m", "zenlake", "sql", query, "--lake", str(lake), "--format", "json")
    try:
        with Program(*words) as sql:
            assert sql.ends(120) == 0, sql.lines
            rows = [json.loads(line)["v"] for line in sql.lines if line.startswith("{")]
        assert "a Spark is started" not in "\n".join(sql.lines)
    finally:
        service.close()
    assert rows == ["0", "1", "2", "3", "4"]
