"""`zenlake put`: publish one value."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked
from zenlake.cli.options import (
    Attachment,
    CongestionChoice,
    EncodingName,
    Express,
    Key,
    Payload,
    PriorityChoice,
    Urgency,
    WhenFull,
    bytes_of,
    payload_of,
)
from zenlake.cli.pages import examples


@examples(
    "zenlake put -k demo/hello -p 'hello world'",
    "zenlake put -k robot/7/battery -p '{\"percent\": 87}'",
    "zenlake put -k robot/7/mode -p auto --encoding text/plain",
    "zenlake put -k robot/7/name -p Ada --ack",
)
@networked
def put(
    connection: Connection,
    key: Key,
    payload: Payload,
    encoding: EncodingName = None,
    attach: Attachment = None,
    priority: Urgency = PriorityChoice.DATA,
    congestion: WhenFull = CongestionChoice.BLOCK,
    express: Express = False,
    ack: Annotated[
        bool,
        typer.Option("--ack", help="Wait until a storage has it; its timestamp is printed."),
    ] = False,
) -> None:
    """Publish one value under a key.

    A JSON object or array is published as application/json where --encoding names nothing else.
    Waits until there is a subscriber, at most as long as --wait says, and then publishes. Ends
    with 3 if there was none. With --ack it ends well only when a storage has the value.
    """
    from zenlake.cli.patience import matched
    from zenlake.cli.show import print_json
    from zenlake.expr.record import json_value

    value = payload_of(payload)
    if encoding is None and isinstance(json_value(value), dict | list):
        encoding = "application/json"
    if ack:
        with connection.session() as session:
            querier = session.declare_querier(key)
            if not matched(querier, session, connection):
                raise typer.Exit(NOBODY)
            stamp = session.put_acknowledged(key, value, encoding=encoding, attachment=attach)
        if connection.as_json:
            print_json({"key": key, "kind": "put", "size": len(value), "timestamp": str(stamp)})
        else:
            typer.echo(str(stamp))
        return
    with connection.session() as session:
        publisher = session.declare_publisher(
            key,
            encoding=encoding,
            priority=priority.lane(),
            congestion_control=congestion.control(),
            express=express,
        )
        heard = matched(publisher, session, connection)
        publisher.put(value, attachment=None if attach is None else bytes_of(attach))
    if connection.as_json:
        print_json({"key": key, "kind": "put", "size": len(value), "heard": heard})
    if not heard:
        raise typer.Exit(NOBODY)
