"""`zenlake delete`: publish that a value is gone."""

from __future__ import annotations

import typer

from zenlake.cli.connection import NOBODY, Connection, networked
from zenlake.cli.options import (
    Attachment,
    CongestionChoice,
    Express,
    Key,
    PriorityChoice,
    Urgency,
    WhenFull,
    bytes_of,
)
from zenlake.cli.pages import examples


@examples(
    "zenlake delete -k demo/hello",
)
@networked
def delete(
    connection: Connection,
    key: Key,
    attach: Attachment = None,
    priority: Urgency = PriorityChoice.DATA,
    congestion: WhenFull = CongestionChoice.BLOCK,
    express: Express = False,
) -> None:
    """Publish that the value under a key is gone.

    Waits until there is a subscriber, at most as long as --wait says. Ends with 3 if there was
    none.
    """
    from zenlake.cli.patience import matched
    from zenlake.cli.show import print_json

    with connection.session() as session:
        publisher = session.declare_publisher(
            key,
            priority=priority.lane(),
            congestion_control=congestion.control(),
            express=express,
        )
        heard = matched(publisher, session, connection)
        publisher.delete(attachment=None if attach is None else bytes_of(attach))
    if connection.as_json:
        print_json({"key": key, "kind": "delete", "heard": heard})
    if not heard:
        raise typer.Exit(NOBODY)
