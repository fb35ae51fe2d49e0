"""`zenlake storage`: the storages of routers, made, removed, looked into, and moved."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, ended_well, networked, note
from zenlake.cli.pages import group, page
from zenlake.printable import printable

if TYPE_CHECKING:
    from zenlake.api.session import Session

storage = group("List, make, remove and check storages of routers.")

#: Seconds that a storage has for giving all of its values, so that a large one can be exported.
PATIENCE = 600.0
#: Values that are read from a volume at a time.
SOME = 500
STATUS = "@/*/*/status/plugins/storage_manager/storages"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the storage.")]
Router = Annotated[
    str | None,
    typer.Option(
        "--router", metavar="ZID", help="Of this router; needed where there are several.",
        show_default=False,
    ),
]  # fmt: skip
File = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A file of JSON lines; - or none is the terminal."),
]


@page(storage, "ls", "zenlake storage ls", "zenlake storage ls --json")
@networked
def ls(connection: Connection) -> None:
    """List storages with what they hold.

    Shows how many keys each has, what waits for its volume, and failures. Ends with 3 if there
    is none.
    """
    with connection.session() as session:
        storages = _storages(session, connection)
    if not storages:
        note("no storage shows itself; zenlake storage add NAME -k KEYEXPR makes one")
        raise typer.Exit(NOBODY)
    for router, name, status in storages:
        if connection.as_json:
            typer.echo(json.dumps({"router": router, "name": name, **status}))
        elif "keys" not in status:
            typer.echo(printable(f"{name}  not open: {status['failure']}"))
        else:
            waiting = f", {status['waiting']} waiting" if status["waiting"] else ""
            dropped = f", {status['dropped']} dropped" if status["dropped"] else ""
            failure = f", failing: {status['failure']}" if status["failure"] else ""
            keys = f"{status['key_expr']}  {status['keys']} keys"
            typer.echo(printable(f"{name}  {keys}{waiting}{dropped}{failure}"))


@page(
    storage,
    "add",
    "zenlake storage add demo -k 'demo/**'",
    "zenlake storage add robots -k 'robot/**' --volume sqlite --option dir=fleet",
    "zenlake storage add trail -k 'robot/*/pose' --volume sqlite --history all",
)
@networked
def add(
    connection: Connection,
    name: Name,
    key: Annotated[
        str, typer.Option("-k", "--key", metavar="KEYEXPR", help="What it stores, e.g. demo/**.")
    ],
    volume: Annotated[
        str, typer.Option("--volume", metavar="NAME", help="The volume: memory, sqlite, fs …")
    ] = "memory",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the volume; repeatable.",
            show_default=False,
        ),
    ] = None,
    strip_prefix: Annotated[
        str | None,
        typer.Option(
            "--strip-prefix",
            metavar="KEY",
            help="Taken away from keys for the volume.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        str, typer.Option("--history", metavar="WHICH", help="latest, or all for every sample.")
    ] = "latest",
    ttl: Annotated[
        float | None,
        typer.Option(
            "--ttl",
            metavar="SECONDS",
            help="Values older than this are forgotten.",
            show_default=False,
        ),
    ] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Tell queriers that nothing else need be asked.")
    ] = False,
    router: Router = None,
) -> None:
    """Make a storage on a running router.

    The router must allow it: zenlake router --adminspace-permissions rw.
    """  # fmt: skip
    settings: dict[str, Any] = {
        "key_expr": key,
        "volume": {"id": volume, **dict(map(_option, option or ()))},
        "complete": complete,
        "history": history,
    }
    if strip_prefix is not None:
        settings["strip_prefix"] = strip_prefix
    if ttl is not None:
        settings["ttl"] = ttl
    with connection.session() as session:
        root = _root(session, connection, router)
        session.put(f"{root}/config/plugins/storage_manager/storages/{name}", json.dumps(settings))
        status = _wait_for(session, f"{root}/status/plugins/storage_manager/storages/{name}", True)
    if status is None:
        note("the router did not make it: its log says why (may it be changed? permissions rw)")
        raise typer.Exit(FAILED)
    if status.get("failure"):
        note(f"it is not open: {status['failure']}")
        raise typer.Exit(FAILED)
    if connection.as_json:
        typer.echo(json.dumps({"name": name, **status}))


@page(storage, "rm", "zenlake storage rm demo")
@networked
def rm(connection: Connection, name: Name, router: Router = None) -> None:
    """Remove a storage from a running router.

    What its volume holds on disk stays there.
    """
    with connection.session() as session:
        root = _root(session, connection, router)
        status = f"{root}/status/plugins/storage_manager/storages/{name}"
        if _wait_for(session, status, True, 0.0) is None:
            note(f"there is no storage '{name}'")
            raise typer.Exit(NOBODY)
        session.delete(f"{root}/config/plugins/storage_manager/storages/{name}")
        if _wait_for(session, status, False) is not None:
            note("the router did not remove it: may it be changed? permissions rw")
            raise typer.Exit(FAILED)


@page(storage, "get", "zenlake storage get demo", "zenlake storage get demo --json")
@networked
def get(connection: Connection, name: Name) -> None:
    """Print what a storage answers: the newest value of every key.

    Ends with 3 if there is no such storage.
    """
    from zenlake.cli.show import print_json, reply_facts, reply_line

    with connection.session() as session:
        expr = _expr_of(session, connection, name)
        for reply in session.get(expr):
            if connection.as_json:
                print_json(reply_facts(reply))
            else:
                typer.echo(reply_line(reply))


@page(storage, "export", "zenlake storage export demo demo.jsonl")
@networked
def export(connection: Connection, name: Name, lines_file: File = None) -> None:
    """Write what a storage answers as JSON lines.

    A line has key, payload, encoding, timestamp and attachment of one value. A file is there when
    all of it is: after an error what it held before stays.
    """
    from zenlake.recorded.encoding import encoding_text

    with connection.session() as session:
        expr = _expr_of(session, connection, name)
        count = 0
        with _output(lines_file) as lines:
            for reply in session.get(expr, timeout=PATIENCE):
                sample = reply.ok
                if sample is None:
                    assert reply.err is not None
                    note(f"'{name}' was not read to its end: {reply.err.payload.to_string()}")
                    raise typer.Exit(FAILED)
                attachment = sample.attachment
                line = {
                    "key": str(sample.key_expr),
                    "encoding": encoding_text(sample.encoding),
                    "timestamp": None if sample.timestamp is None else str(sample.timestamp),
                    "payload": base64.b64encode(sample.payload.to_bytes()).decode(),
                }
                if attachment is not None:
                    line["attachment"] = base64.b64encode(attachment.to_bytes()).decode()
                lines.write(json.dumps(line) + "\n")
                count += 1
            # Who goes away in the middle of an answer says nothing more.
            if not any(found == name for _, found, _ in _storages(session, connection)):
                note(f"'{name}' went away while it was read: {count} values are not all")
                raise typer.Exit(FAILED)
    note(f"{count} values of '{name}'")


@page(storage, "import", "zenlake storage import demo.jsonl")
@networked
def import_(connection: Connection, lines_file: File = None) -> None:
    """Publish the values of an export again, with their timestamps.

    Storages take what is newer than what they hold, so importing twice changes nothing.
    """
    from zenlake.clock import Timestamp
    from zenlake.recorded.encoding import recorded_encoding

    with connection.session() as session:
        count = 0
        for number, line in enumerate(_input(lines_file), 1):
            try:
                one = json.loads(line)
                payload = base64.b64decode(one["payload"], validate=True)
                stamp = None if one["timestamp"] is None else Timestamp.parse(one["timestamp"])
                attachment = one.get("attachment")
                session.put(
                    one["key"],
                    payload,
                    encoding=recorded_encoding(one["encoding"]),
                    timestamp=stamp,
                    attachment=None if attachment is None else base64.b64decode(attachment),
                )
            except (ValueError, KeyError, TypeError) as error:
                note(f"line {number} is no line of an export: {error!r}")
                raise typer.Exit(FAILED) from None
            count += 1
    note(f"{count} values published")


@page(
    storage,
    "verify",
    "zenlake storage verify demo --volume sqlite --option dir=fleet",
)
def verify(
    name: Name,
    volume: Annotated[
        str, typer.Option("--volume", metavar="NAME", help="The volume: sqlite, fs …")
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the volume; repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check all that a storage on this machine holds.

    Reads every value. Ends with 1 if something is damaged or missing.
    """  # fmt: skip
    from zenlake.storage_manager.service import checked_options
    from zenlake.volumes import volume_class

    with ended_well():
        made = volume_class(volume)
        opened = made(name, checked_options(volume, made, dict(map(_option, option or ()))))
        try:
            problems = list(opened.check())
            keys = [entry.key for entry in opened.entries() if entry.value is not None]
            missing = [
                key
                for some in _batched(keys, SOME)
                for key, entry in zip(some, opened.read(some), strict=True)
                if entry is None or entry.value is None or entry.value.payload is None
            ]
        finally:
            opened.close()
        problems += [f"{key}: its value cannot be read" for key in missing]
        for problem in problems:
            typer.echo(printable(problem))
        typer.echo(f"{len(keys)} keys: {'NOT SOUND' if problems else 'sound'}")
        if problems:
            raise typer.Exit(FAILED)


# ------------------------------------------------------------------------------------- asking


def _storages(session: Session, connection: Connection) -> list[tuple[str, str, dict[str, Any]]]:
    from zenlake.cli.admin_space import asked
    from zenlake.cli.patience import neighboured

    if not neighboured(session, connection):
        raise typer.Exit(NOBODY)
    return [
        (key.split("/")[1], key.rpartition("/")[2], status)
        for key, status in sorted(asked(session, f"{STATUS}/*"))
    ]


def _expr_of(session: Session, connection: Connection, name: str) -> str:
    for _, storage, status in _storages(session, connection):
        if storage == name and "keys" in status:
            return str(status["key_expr"])
    note(f"there is no storage '{name}'; zenlake storage ls lists them")
    raise typer.Exit(NOBODY)


def _root(session: Session, connection: Connection, router: str | None) -> str:
    from zenlake.cli.admin_space import shown_nodes

    nodes = [node for node in shown_nodes(session, connection).values() if node.ours]
    chosen = [
        node
        for node in nodes
        if (node.zid == router if router is not None else node.whatami == "router")
    ]
    if len(chosen) == 1:
        return f"@/{chosen[0].zid}/{chosen[0].whatami}"
    there = ", ".join(node.zid for node in nodes) or "none"
    note(f"name one router with --router ZID; there are: {there}")
    raise typer.Exit(NOBODY)


def _wait_for(
    session: Session, key: str, there: bool, timeout: float = 5.0
) -> dict[str, Any] | None:
    """The status of a storage, when it is there, or is no longer there."""
    import time

    from zenlake.cli.admin_space import asked

    end = time.monotonic() + timeout
    while True:
        status: dict[str, Any] | None = dict(asked(session, key)).get(key)
        if (status is not None) == there or time.monotonic() >= end:
            return status
        time.sleep(0.05)


def _option(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"'{text}' has no '='; write NAME=VALUE")
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    return name, parsed if isinstance(parsed, bool | int | float) else value


def _batched(keys: list[str], size: int) -> Iterator[list[str]]:
    """Some keys at a time."""
    return (keys[first : first + size] for first in range(0, len(keys), size))


@contextmanager
def _output(file: Path | None) -> Iterator[TextIO]:
    """Where lines go: to a file that has its name when all of them are written, or to stdout."""
    if file is None or str(file) == "-":
        yield sys.stdout
        return
    unfinished = file.with_name(f"{file.name}.part")
    try:
        with unfinished.open("w") as lines:
            yield lines
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _input(file: Path | None) -> Iterator[str]:
    if file is None or str(file) == "-":
        yield from sys.stdin
        return
    with file.open() as lines:
        yield from lines
