"""`zenlake pub`: publish again and again."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from typing import Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.options import (
    Attachment,
    CongestionChoice,
    Count,
    EncodingName,
    Express,
    Key,
    PriorityChoice,
    Urgency,
    WhenFull,
    bytes_of,
)
from zenlake.cli.pages import examples


@examples(
    "zenlake pub -k demo/tick -p tick -i 0.5",
    "tail -f app.log | zenlake pub -k logs/app -p -",
)
@networked
def pub(
    connection: Connection,
    key: Key = "demo/example/zenlake",
    payload: Annotated[
        str,
        typer.Option(
            "-p",
            "--payload",
            "-v",
            "--value",
            metavar="TEXT",
            help="The payload; - publishes each line of the standard input.",
        ),
    ] = "Pub from zenlake!",
    interval: Annotated[
        float | None,
        typer.Option(
            "-i",
            "--interval",
            metavar="SECONDS",
            min=0,
            help="The interval between two samples.  [default: 1; 0 with -p -]",
            show_default=False,
        ),
    ] = None,
    count: Count = None,
    encoding: EncodingName = None,
    attach: Attachment = None,
    priority: Urgency = PriorityChoice.DATA,
    congestion: WhenFull = CongestionChoice.BLOCK,
    express: Express = False,
) -> None:
    """Publish the same text at an interval, or lines as they come.

    Waits until there is a subscriber, at most as long as --wait says. Ends with 3 if there
    never was one.
    """
    from zenlake.cli.patience import matched
    from zenlake.cli.show import print_json, readable

    from_input = payload == "-"
    pause = interval if interval is not None else 0.0 if from_input else 1.0
    sent = 0
    with connection.session() as session:
        publisher = session.declare_publisher(
            key,
            encoding=encoding,
            priority=priority.lane(),
            congestion_control=congestion.control(),
            express=express,
        )
        with until_interrupted():
            heard = matched(publisher, session, connection)
            if count is None and not from_input:
                note(f"publishing on '{key}' every {pause:g} s; Ctrl-C ends it")
            for value in itertools.islice(_lines() if from_input else _same(payload), count):
                if sent:
                    threading.Event().wait(pause)
                publisher.put(value, attachment=None if attach is None else bytes_of(attach))
                sent += 1
                heard = heard or publisher.matching_status.matching
                if connection.as_json:
                    print_json({"key": key, "kind": "put", "number": sent, "size": len(value)})
                elif not from_input:
                    typer.echo(f"{sent:>6}  {key}: {readable(value)}")
    if not heard:
        raise typer.Exit(NOBODY)


def _same(text: str) -> Iterator[bytes]:
    return itertools.repeat(bytes_of(text))


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n")
