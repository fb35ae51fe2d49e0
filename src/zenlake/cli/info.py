"""`zenlake info`: which build this is, or what it finds in the network."""

from __future__ import annotations

import json
import platform
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import typer

import zenlake
from zenlake.cli.connection import NOBODY, Connection, networked
from zenlake.cli.pages import examples


@examples(
    "zenlake info",
    "zenlake info -e tcp/localhost:7447",
)
@networked
def info(connection: Connection) -> None:
    """Show the build, or with -e the neighbours in the network.

    Without network options: version, compiled or interpreted, Python, platform. With them: the
    id of this session, routers, peers and links; ends with 3 if there are none.
    """
    if connection.asked():
        _tell_network(connection)
    else:
        _tell_build(connection.as_json)


def _tell_network(connection: Connection) -> None:
    from zenlake.cli.patience import neighboured
    from zenlake.cli.show import print_json

    with connection.session() as session:
        there = neighboured(session, connection)
        session_info = session.info
        routers = [str(zid) for zid in session_info.routers_zid()]
        peers = [str(zid) for zid in session_info.peers_zid()]
        links = session_info.links()
        zid = str(session_info.zid())
    if connection.as_json:
        listed = [{"zid": str(link.zid), "src": link.src, "dst": link.dst} for link in links]
        print_json({"zid": zid, "routers": routers, "peers": peers, "links": listed})
    else:
        typer.echo(f"zid       {zid}")
        typer.echo(f"routers   {', '.join(routers) or 'none'}")
        typer.echo(f"peers     {', '.join(peers) or 'none'}")
        for line, link in enumerate(links):
            typer.echo(f"{'' if line else 'links':<10}{link.src} -> {link.dst}  {link.zid}")
    if not there:
        raise typer.Exit(NOBODY)


def _tell_build(as_json: bool) -> None:
    modules = extensions()
    if as_json:
        facts = {
            "version": zenlake.__version__,
            "compiled": zenlake.compiled,
            "modules": modules,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": platform.platform(),
            "path": str(_home()),
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(f"zenlake   {zenlake.__version__} ({'compiled' if modules else 'interpreted'})")
    typer.echo(f"python    {platform.python_implementation()} {platform.python_version()}")
    typer.echo(f"platform  {platform.platform()}")
    typer.echo(f"path      {_home()}")
    for line, module in enumerate(modules):
        typer.echo(f"{'' if line else 'compiled':<10}{module}")


def extensions() -> list[str]:
    """The modules of this package that run as extensions, by name; empty when interpreted."""
    home = _home()
    return sorted(
        ".".join(path.relative_to(home.parent).parts)[: -len(suffix)]
        for suffix in EXTENSION_SUFFIXES
        for path in home.rglob(f"*{suffix}")
        # `.so` ends every other suffix too: a name with a dot left in it belongs to those.
        if "." not in path.name.removesuffix(suffix)
    )


def _home() -> Path:
    return Path(zenlake.__file__).parent
