"""`zenlake router`: a node in the middle, for clients, peers and other routers."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config
    from zenlake.supervise.recording import Recording
    from zenlake.values.locator import EndPoint


class Permissions(StrEnum):
    """What others may do in the admin space."""

    READ = "r"
    WRITE = "w"
    BOTH = "rw"
    NONE = "none"


class Supervised(StrEnum):
    """How `zenlake up` runs a router: it reports, and a journal may fail at its first opening."""

    STRICT = "strict"
    PATIENT = "patient"


@examples(
    "zenlake router",
    "zenlake router -l tcp/127.0.0.1:7447",
    "zenlake router --rest-http-port 8000",
    "zenlake router -c router.json5 --cfg 'mode:\"router\"'",
)
@networked
def router(
    connection: Connection,
    id: Annotated[
        str | None,
        typer.Option("-i", "--id", metavar="HEX", help="The id of the router.  [default: random]"),
    ] = None,
    permissions: Annotated[
        Permissions | None,
        typer.Option(
            "--adminspace-permissions",
            metavar="MODE",
            help="What others may do in its admin space: r, w, rw or none.  [default: as "
            "configured, else r]",
            show_default=False,
        ),
    ] = None,
    rest_http_port: Annotated[
        str | None,
        typer.Option(
            "--rest-http-port",
            metavar="PORT",
            help="Serve HTTP and the web page: a port of 127.0.0.1, or ADDRESS:PORT; none: do not.",
            show_default=False,
        ),
    ] = None,
    no_timestamp: Annotated[
        bool, typer.Option("--no-timestamp", help="Do not stamp samples that have no timestamp.")
    ] = False,
    transcript: Annotated[
        bool,
        typer.Option("-v", "--transcript", help="Log every message that is sent or received."),
    ] = False,
    supervised: Annotated[
        Supervised | None,
        typer.Option("--supervised", hidden=True, help="Report to `zenlake up`, which started it."),
    ] = None,
    parts: Annotated[
        Path | None,
        typer.Option("--parts", hidden=True, help="Where the parts of `zenlake up` connect."),
    ] = None,
) -> None:
    """Run a router.

    It listens on tcp/[::]:7447 unless -l or the configuration says otherwise. Programs on this
    machine find it by themselves; others connect to one of the endpoints that it prints. Options
    and configuration files are those of zenohd. Its admin space is on: `zenlake ls`, `top` and
    `why` show what happens in it.
    """
    import zenlake
    from zenlake.api.session import prepare
    from zenlake.config import ConfigWarning, InvalidConfig
    from zenlake.config.openness import refuse_more_open
    from zenlake.config.plugins import required_plugins
    from zenlake.engine.survivors import set_survivors_aside
    from zenlake.links.descriptors import raise_limit

    raise_limit()
    zenlake.init_log_from_env_or("info,zenlake.transcript=debug" if transcript else "info")
    config = connection.config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        if json.loads(config.get_json("mode")) is None:
            config.insert_json5("mode", '"router"')
        if connection.listen:
            config.insert_json5("listen/endpoints", json.dumps(connection.listen))
        if id is not None:
            config.insert_json5("id", json.dumps(id))
        config.insert_json5("adminspace/enabled", "true")
        if permissions is not None:
            for name, letter in (("read", "r"), ("write", "w")):
                allowed = json.dumps(letter in permissions.value.replace("none", ""))
                config.insert_json5(f"adminspace/permissions/{name}", allowed)
        if rest_http_port == "none":
            if "rest" in json.loads(config.get_json("plugins")):
                config.remove("plugins/rest")
        elif rest_http_port is not None:
            plugin = json.loads(config.get_json("plugins")).get("rest", {})
            plugin |= {"http_port": rest_http_port, "__required__": True}
            config.insert_json5("plugins/rest", json.dumps(plugin))
        if no_timestamp:
            config.insert_json5("timestamping/enabled", "false")
    if connection.file is not None and supervised is None:  # `zenlake up` has compared its own
        said = Connection(file=connection.file).config(quiet=True)
        refuse_more_open(said, config, connection.file)
    demanded = required_plugins(config.resolved.plugins)
    if demanded:
        raise InvalidConfig(tuple(demanded))
    if config.mode != "router":
        note(f"mode is '{config.mode}', as configured: this is no router")
    with (
        prepare(config) as session,
        _services(session, config, supervised, parts) as recording,
        until_interrupted(),
    ):
        set_survivors_aside()
        places = list(session.runtime.node.settings.locators)
        if connection.as_json:
            url = getattr(session.runtime.services.get("zenlake.rest"), "url", "")
            fact = {"zid": str(session.zid()), "locators": places}
            typer.echo(json.dumps(fact | ({"http": url} if url else {})))
        else:
            typer.echo(f"{config.mode} {session.zid()}")
            for place in places:
                typer.echo(f"  listens on {place}")
            if any(map(_is_everywhere, session.runtime.settings.listen.endpoints)):
                note(
                    "it listens on every interface: whoever reaches this machine may connect, and "
                    "do what access_control does not forbid (-l tcp/127.0.0.1:7447 for nobody else)"
                )
            for room, what in (("rest", "HTTP and the page"), ("remote", "browsers (zenoh-ts)")):
                service = session.runtime.services.get(f"zenlake.{room}")
                url = getattr(service, "url", "")
                if url:
                    typer.echo(f"  {what} at {url}")
            if not places:
                note("it listens nowhere: give -l tcp/0.0.0.0:7447")
        over = threading.Event()
        if supervised is None:
            over.wait()
        else:
            from zenlake.supervise.reporting import report_until

            report_until(over, session, recording)


def _is_everywhere(endpoint: EndPoint) -> bool:
    """Whether an endpoint is on all interfaces of the machine."""
    return any(host in str(endpoint) for host in ("/[::]:", "/0.0.0.0:", "/*:"))


@contextmanager
def _services(
    session: Session, config: Config, supervised: Supervised | None, parts: Path | None
) -> Iterator[Recording | None]:
    """Run what the configuration asks for beside the router, until the end of the block.

    What records is there before the router lets anybody in.
    """
    settings = config.resolved
    with ExitStack() as stack:
        recording = None
        if settings.journals:
            from zenlake.journal.disk.memory import keep_memory
            from zenlake.supervise.recording import Recording

            keep_memory()  # rows come and go by the megabyte
            patient = supervised is Supervised.PATIENT
            recording = stack.enter_context(Recording(session, settings.journals, patient=patient))
            for recorder in recording.recorders:
                note(f"recording journal '{recorder.name}' into {recorder.journal.path}")
        session.runtime.begin()
        if settings.xrce.listen:
            from zenlake.xrce_io.service import serving

            running = stack.enter_context(serving(session, settings.xrce))
            for place in running.locators():
                note(f"devices of the 2018 protocol may come to {place}")
        if parts is not None:
            from zenlake.engine.parts import listening_for_parts
            from zenlake.supervise.parts_folder import read_parts

            stack.enter_context(listening_for_parts(session.runtime, *read_parts(parts)))
        yield recording
