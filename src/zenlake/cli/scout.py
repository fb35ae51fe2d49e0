"""`zenlake scout`: the nodes of the network."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked, note
from zenlake.cli.options import Count
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.values import Hello


@examples(
    "zenlake scout",
    "zenlake scout --what router -n 1 --json",
)
@networked
def scout(
    connection: Connection,
    what: Annotated[
        str,
        typer.Option(
            "--what", metavar="KINDS", help="Kinds of nodes: router, peer, client, joined by |."
        ),
    ] = "router|peer",
    timeout: Annotated[
        float,
        typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="How long to look."),
    ] = 3.0,
    count: Count = None,
) -> None:
    """Find the nodes of the network, by multicast.

    Does not join the network. Ends with 3 if no node is found.
    """
    import zenlake
    from zenlake.cli.patience import WaitNotice

    zenlake.init_log_from_env_or("error")
    try:
        whom = zenlake.WhatAmIMatcher(what)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--what") from None
    config = connection.config()
    zids: set[zenlake.ZenohId] = set()
    with zenlake.scout(what=whom, config=config) as looking, WaitNotice("looking") as waiting:
        end = threading.Timer(timeout, looking.stop)
        end.daemon = True
        end.start()
        for hello in looking:
            if hello.zid in zids:
                continue
            zids.add(hello.zid)
            waiting.clear()
            _tell(hello, connection.as_json)
            if len(zids) == count:
                break
        end.cancel()
    if not zids:
        multicast = config.resolved.scouting.multicast
        note(
            f"no node was found: asked for {what} at {multicast.address} on interface "
            f"{multicast.interface} for {timeout:g} s"
        )
        raise typer.Exit(NOBODY)


def _tell(hello: Hello, as_json: bool) -> None:
    from zenlake.cli.show import paint, print_json
    from zenlake.printable import printable

    if as_json:
        print_json(
            {
                "zid": str(hello.zid),
                "whatami": str(hello.whatami),
                "locators": hello.locators,
            }
        )
        return
    where = ", ".join([printable(locator) for locator in hello.locators]) or "nowhere to connect to"
    typer.echo(
        f"{paint(f'{hello.whatami!s:<6}', 'green')} {paint(str(hello.zid), 'cyan')}  {where}"
    )
