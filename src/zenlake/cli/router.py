"""`zenlake router`: a node in the middle, for clients, peers and other routers."""

from __future__ import annotations

import json
import threading
import warnings
from typing import Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted


@networked
def router(
    connection: Connection,
    id: Annotated[
        str | None,
        typer.Option(
            "-i", "--id", metavar="HEX", help="The router's id; a new one each time if not said."
        ),
    ] = None,
) -> None:
    """Run a router until it is interrupted; by default it listens on tcp/[::]:7447.

    Programs on this machine find it by themselves; others connect to one of the endpoints that
    it prints. The file and the options are those of zenohd.
    """
    import zenlake
    from zenlake.config import ConfigWarning

    zenlake.init_log_from_env_or("info")
    config = connection.config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        config.insert_json5("mode", '"router"')
        if connection.listen:
            config.insert_json5("listen/endpoints", json.dumps(connection.listen))
        if id is not None:
            config.insert_json5("id", json.dumps(id))
    with zenlake.open(config) as session, until_interrupted():
        places = list(session._runtime.node.settings.locators)
        if connection.as_json:
            typer.echo(json.dumps({"zid": str(session.zid()), "locators": places}))
        else:
            typer.echo(f"router {session.zid()}")
            for place in places:
                typer.echo(f"  listens on {place}")
            if not places:
                note("it listens nowhere: give -l tcp/0.0.0.0:7447")
        threading.Event().wait()
