"""`zenlake xrce`: speak the 2018 protocol of constrained devices, as a client or as a broker."""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import NOBODY, ended_well, note, until_interrupted
from zenlake.cli.pages import group, page
from zenlake.printable import printable

if TYPE_CHECKING:
    from zenlake.xrce_io.client import Session

xrce = group("Speak the 2018 protocol of constrained devices.")

Endpoint = Annotated[
    str,
    typer.Option("-e", "--connect", metavar="ENDPOINT", help="The broker, e.g. udp/host:7447."),
]
Name = Annotated[
    str, typer.Option("-k", "--key", metavar="NAME", help="The resource, e.g. /house/light.")
]
Partition = Annotated[
    str | None,
    typer.Option("--partition", metavar="PARTITION", show_default=False,
                 help="Take NAME as a DDS topic in this partition, e.g. 'house.*'."),
]  # fmt: skip
Payload = Annotated[str, typer.Option("-p", "--payload", metavar="TEXT", help="What to send.")]
Mtu = Annotated[
    int, typer.Option("--mtu", metavar="BYTES", min=20, help="The largest packet over datagrams.")
]
Count = Annotated[
    int | None,
    typer.Option("-n", "--count", metavar="N", min=1, help="End after so many.",
                 show_default=False),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
BestEffort = Annotated[
    bool, typer.Option("--best-effort", help="Do not repeat what is lost on the way.")
]
BROKER = "udp/127.0.0.1:7447"


class XrceMode(StrEnum):
    """How samples come."""

    PUSH = "push"
    PERIODIC_PUSH = "periodic-push"


def _open(endpoint: str, mtu: int = 1400) -> Session:
    import zenlake
    from zenlake.cli.patience import WaitNotice
    from zenlake.xrce_io import client

    zenlake.init_log_from_env_or("error")
    with WaitNotice("opening a session"):
        return client.open(endpoint, mtu=mtu)


def _resource(key: str, partition: str | None) -> str:
    """Return the resource that a command is about."""
    from zenlake.xrce.dds import Topic, resource_of

    return key if partition is None else resource_of(Topic(partition, key))


def _tell(name: str, payload: bytes, as_json: bool) -> None:
    from zenlake.cli.show import print_json
    from zenlake.printable import printable

    text = payload.decode("utf-8", "backslashreplace")
    if as_json:
        print_json({"name": name, "payload": text, "bytes": len(payload)})
    else:
        typer.echo(f"{printable(name) or '(no name)'}: {printable(text)}")


@page(xrce, "pub", "zenlake xrce pub -k /house/light -p on -n 10",
      "zenlake xrce pub --partition house.attic -k Light -p on")  # fmt: skip
def pub(
    key: Name,
    payload: Payload,
    connect: Endpoint = BROKER,
    partition: Partition = None,
    count: Count = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0, help="Time between samples.")
    ] = 1.0,
    best_effort: BestEffort = False,
    mtu: Mtu = 1400,
) -> None:
    """Publish a resource, again and again, while it has subscribers."""
    with ended_well(), _open(connect, mtu) as session, until_interrupted():
        key = _resource(key, partition)
        publisher = session.publisher(key, reliable=not best_effort)
        if not publisher.matched:
            note("nobody listens yet: waiting")
        pause = threading.Event()
        sent = 0
        while count is None or sent < count:
            if publisher.put(payload.encode()):
                sent += 1
                if sent == count:
                    break
            pause.wait(interval if publisher.matched else 0.1)
        session.flushed()


@page(
    xrce, "sub", "zenlake xrce sub -k '/house/**'",
    "zenlake xrce sub -k /x --mode periodic-push --period 500 --duration 50",
)  # fmt: skip
def sub(
    key: Name,
    connect: Endpoint = BROKER,
    partition: Partition = None,
    mode: Annotated[XrceMode, typer.Option("--mode", help="How samples come.")] = XrceMode.PUSH,
    period: Annotated[
        int, typer.Option("--period", metavar="MS", help="From window to window.")
    ] = 1000,
    duration: Annotated[
        int, typer.Option("--duration", metavar="MS", help="How long a window is open.")
    ] = 100,
    count: Count = None,
    as_json: AsJson = False,
    mtu: Mtu = 1400,
) -> None:
    """Subscribe to a resource or to a selection.

    A selection has a predicate on the content: '/house/*?{lux > 3}'.
    """
    with ended_well(), _open(connect, mtu) as session, until_interrupted():
        key = _resource(key, partition)
        if "?{" in key:
            subscriber = session.selection(key)
        elif mode is XrceMode.PUSH:
            subscriber = session.subscriber(key)
        else:
            subscriber = session.subscriber(key, "periodic-push", period=period, duration=duration)
        for number, (name, payload) in enumerate(subscriber, 1):
            _tell(name, payload, as_json)
            if number == count:
                break


@page(xrce, "pull", "zenlake xrce pull -k '/house/*?{lux=3}'",
      "zenlake xrce pull -k /house/light --wait 10")  # fmt: skip
def pull(
    key: Name,
    connect: Endpoint = BROKER,
    partition: Partition = None,
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="Sleep so long before pulling."),
    ] = 0.0,
    count: Annotated[
        int | None,
        typer.Option(
            "-n", "--count", metavar="N", min=1, help="At most so many.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    mtu: Mtu = 1400,
) -> None:
    """Fetch what is kept of a selection, or of a resource meanwhile.

    Ends with 3 if there is nothing.
    """  # fmt: skip
    with ended_well(), _open(connect, mtu) as session:
        key = _resource(key, partition)
        subscriber = session.subscriber(key, "pull") if wait else session.selection(key, "pull")
        if wait:
            threading.Event().wait(wait)
        values = subscriber.pull(count)
        for name, payload in values:
            _tell(name, payload, as_json)
        if not values:
            note(f"nothing is kept of '{key}'")
            raise typer.Exit(NOBODY)


@page(xrce, "write", "zenlake xrce write -k /house/light -p off")
def write(
    key: Name,
    payload: Payload,
    connect: Endpoint = BROKER,
    partition: Partition = None,
    best_effort: BestEffort = False,
    mtu: Mtu = 1400,
) -> None:
    """Write one sample by name, without declaring anything."""
    with ended_well(), _open(connect, mtu) as session:
        key = _resource(key, partition)
        session.write(key, payload.encode(), reliable=not best_effort)
        session.flushed()


@page(xrce, "scout", "zenlake xrce scout", "zenlake xrce scout -e tcp/127.0.0.1:7447")
def scout(
    connect: Annotated[
        str,
        typer.Option(
            "-e", "--connect", metavar="ENDPOINT", help="Ask only there.", show_default=False
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="How long to look.")
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Find brokers and peers. Ends with 3 if there are none."""  # fmt: skip
    from zenlake.cli.show import print_json
    from zenlake.xrce_io.brokering import SCOUTING
    from zenlake.xrce_io.scouting import scout as look

    with ended_well():
        nodes = look(connect, timeout=timeout)
        for one in nodes:
            kinds = [word for bit, word in ((1, "broker"), (4, "peer")) if one.mask & bit]
            if as_json:
                print_json({"address": one.address, "is": kinds, "locators": list(one.locators)})
            else:
                typer.echo(
                    printable(f"{' '.join(kinds)} at {one.address}  {'  '.join(one.locators)}")
                )
        if not nodes:
            note(f"nobody answered: asked {connect or SCOUTING} for {timeout:g} s")
            raise typer.Exit(NOBODY)


@page(xrce, "ping", "zenlake xrce ping -n 3")
def ping(connect: Endpoint = BROKER, count: Count = None, mtu: Mtu = 1400) -> None:
    """Measure the round trip to a broker."""
    with ended_well(), _open(connect, mtu) as session, until_interrupted():
        pause = threading.Event()
        number = 0
        while count is None or number < count:
            number += 1
            typer.echo(f"{session.ping() * 1000:.3f} ms")
            if number != count:
                pause.wait(1.0)


@page(
    xrce,
    "broker",
    "zenlake xrce broker",
    "zenlake xrce broker -l udp/0.0.0.0:7447 --persistent values.sqlite",
)
def broker(
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "-l",
            "--listen",
            metavar="ENDPOINT",
            show_default=False,
            help="Where to listen; udp/ and tcp/127.0.0.1:7447 if not said. Repeatable.",
        ),
    ] = None,
    persistent: Annotated[
        str,
        typer.Option(
            "--persistent",
            metavar="FILE",
            show_default=False,
            help="Keep the values of persistent resources there.",
        ),
    ] = "",
    scouting: Annotated[
        bool, typer.Option("--scouting", help="Be found by multicast, at 239.255.0.1:7447.")
    ] = False,
    mtu: Mtu = 1400,
    as_json: AsJson = False,
) -> None:
    """Run a broker by itself, without Zenoh 1.x.

    To share its data with Zenoh 1.x, give a router the key xrce/listen instead:
    zenlake router --cfg 'xrce/listen:["udp/127.0.0.1:7447"]'.
    """  # fmt: skip
    import secrets

    import zenlake
    from zenlake.cli.show import print_json
    from zenlake.xrce.broker_options import BrokerOptions
    from zenlake.xrce.outside import DurableValues
    from zenlake.xrce_io.brokering import SCOUTING, RunningBroker
    from zenlake.xrce_io.volume import TieredValues, VolumeValues

    zenlake.init_log_from_env_or("info")
    with ended_well():
        volume = VolumeValues.in_file(persistent) if persistent else None
        values = DurableValues() if volume is None else TieredValues(DurableValues(), volume)
        running = RunningBroker(BrokerOptions(secrets.token_bytes(8), mtu=mtu), values=values)
        running.start(
            listen or [BROKER, BROKER.replace("udp", "tcp")], SCOUTING if scouting else ""
        )
        try:
            with until_interrupted():
                if as_json:
                    print_json({"locators": running.locators()})
                else:
                    for place in running.locators():
                        typer.echo(f"  listens on {place}")
                threading.Event().wait()
        finally:
            running.close()
            if volume is not None:
                volume.close()
