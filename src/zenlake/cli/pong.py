"""`zenlake pong`: send back what `zenlake ping` sends."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.pages import examples
from zenlake.cli.ping import PING, PONG


@examples(
    "zenlake pong",
    "zenlake pong -l tcp/127.0.0.1:7447",
)
@networked
def pong(
    connection: Connection,
    express: Annotated[
        bool, typer.Option("--express/--no-express", help="Send at once: no batching.")
    ] = True,
) -> None:
    """Send every test/ping back as test/pong, for `zenlake ping`."""
    from zenlake.cli.patience import looking_out
    from zenlake.cli.show import print_json
    from zenlake.engine.handlers import Callback
    from zenlake.node.sample import Sample
    from zenlake.values import CongestionControl

    echoed = 0
    with connection.session() as session, looking_out(session, connection):
        # It is sent from the thread that hears, which must not wait: what is lost is lost.
        publisher = session.declare_publisher(
            PONG, congestion_control=CongestionControl.DROP, express=express
        )

        def send_back(sample: Sample) -> None:
            nonlocal echoed
            echoed += 1
            publisher.put(sample.payload)

        session.declare_subscriber(PING, Callback(send_back, indirect=False))
        with until_interrupted():
            note(f"sending {PING} back as {PONG}; Ctrl-C ends it")
            threading.Event().wait()
    if connection.as_json:
        print_json({"echoed": echoed})
    else:
        typer.echo(f"{echoed} sent back")
