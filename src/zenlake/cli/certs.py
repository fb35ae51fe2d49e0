"""`zenlake certs`: an authority of your own, and certificates that it signs."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from zenlake.cli.ending import ended_well
from zenlake.cli.pages import add, examples, group

certs = group("Make an authority and certificates for TLS.")

DATA = Path("zenlake-data")
Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder of `zenlake up`.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="HOST", help="A name or address that it is reached by."),
]


@examples("zenlake certs init", "zenlake certs init --host robots.example --host 10.0.0.7")
def init(data: Data = DATA, hosts: Hosts = None) -> None:
    """Make an authority, and a certificate for a router.

    They are put into the folder `certs` of the data folder, where `zenlake up --open` finds them.
    """
    from zenlake.links.authority import init as make

    with ended_well():
        own = ("localhost", "127.0.0.1", "::1", socket.gethostname())
        for path in make(data / "certs", (*own, *(hosts or ()))):
            typer.echo(str(path))
        typer.echo("now `zenlake certs issue NAME` for each who may connect", err=True)


@examples("zenlake certs issue robot-7")
def issue(
    name: Annotated[str, typer.Argument(help="Who shows it, as access control knows it.")],
    data: Data = DATA,
    hosts: Hosts = None,
) -> None:
    """Sign a certificate for a robot, a person or another router."""
    from zenlake.links.authority import issue as sign

    with ended_well():
        for path in sign(data / "certs", name, tuple(hosts or ())):
            typer.echo(str(path))


add(certs, "init", init)
add(certs, "issue", issue)
