"""`zenlake mcp`: the bus and the lake as tools for programs that reason."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.connection import Connection, networked
from zenlake.cli.pages import examples


@examples(
    "zenlake mcp -e tcp/localhost:7447",
    "zenlake mcp -e tcp/localhost:7447 --allow-writes",
)
@networked
def mcp(
    connection: Connection,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Offer tools that publish and delete, too.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="The timeout for replies."),
    ] = 30.0,
) -> None:
    """Serve the bus and the lake to assistants, as tools over MCP.

    It speaks the Model Context Protocol on the standard streams: an assistant starts this command
    itself. The tools list keys and tables, get values, ask SQL, look back in time and explain
    gaps; every answer carries its proof. Nothing can be changed unless --allow-writes is said.
    """
    import asyncio

    from zenlake.agents.asking import Agent
    from zenlake.agents.server import server

    with connection.session() as session:
        made = server(Agent(session, timeout=timeout), may_write=allow_writes)
        asyncio.run(made.run_stdio_async())
