"""`zenlake replay`: put what was recorded back on the bus."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note, until_interrupted
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.keys import ResolvedRange
    from zenlake.replay import Replay, SampleSource

ERASE = "\r\x1b[K"

What = Annotated[
    str, typer.Argument(metavar="KEYEXPR|SELECT", help="Key expression, or a SELECT in SQL.")
]
Lake = Annotated[
    str | None,
    typer.Option(
        "--lake", metavar="DIR", help="The lake.  [default: zenlake-data/lake]", show_default=False
    ),
]
Journal = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="DIR",
        help="The journal; alone, or with --lake.  [default: beside the lake]",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Begin here: 2026-01-31T12:00, now(-1h) or -1h.",
        show_default=False,
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="End before this time.", show_default=False),
]


@examples(
    "zenlake replay 'robot/**' --from -10m --prefix ghost --speed 4",
    "zenlake replay 'robot/**' --journal flight --prefix ghost --speed max",
    "zenlake replay \"SELECT * FROM samples WHERE key LIKE '%/pose'\" --prefix g",
)
@networked
def replay(
    connection: Connection,
    what: What,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix",
            metavar="KEY",
            help="Publish below this key; '' means the very keys that were recorded.",
        ),
    ],
    start: From = None,
    end: To = None,
    speed: Annotated[
        str, typer.Option("--speed", metavar="TIMES", help="original, max, or how many times.")
    ] = "original",
    retime: Annotated[
        bool, typer.Option("--retime", help="Give new timestamps instead of the recorded ones.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Keep source, reliability and congestion control as recorded, too."
        ),
    ] = False,
    clock: Annotated[
        str | None,
        typer.Option(
            "--clock", metavar="KEY", help="Publish the replay's time here.", show_default=False
        ),
    ] = None,
    loop: Annotated[bool, typer.Option("--loop", help="Begin again at the end.")] = False,
    paused: Annotated[
        bool, typer.Option("--paused", help="Wait before the first sample until told to go on.")
    ] = False,
    lake: Lake = None,
    journal: Journal = None,
) -> None:
    """Put what was recorded back on the bus, in order.

    Payloads, encodings, attachments and timestamps are those that were recorded; sources only with
    --exact, for a recorder that hears them counts their numbers again. Told what to do
    by the keyboard (space pauses, s steps, arrows seek, + and - change the speed, q ends), or by
    JSON on the key PREFIX/@replay/control. Waits for a subscriber as long as --wait says. Ends
    with 3 if nothing was recorded.
    """
    from zenlake.cli.patience import matched
    from zenlake.cli.show import print_json
    from zenlake.replay import Replay
    from zenlake.replay.commands import range_at
    from zenlake.replay.outlet import below
    from zenlake.replay.pace import speed_of

    times = speed_of(speed)
    source = source_of(what, range_at(start, end, time.time_ns()), lake, journal)
    if source.span() is None:
        note(f"nothing was recorded that '{what}' means there")
        raise typer.Exit(NOBODY)
    with connection.session() as session:
        replaying = Replay(
            session,
            source,
            prefix=prefix,
            speed=times,
            retime=retime,
            exact=exact,
            clock=clock,
            loop=loop,
            paused=paused,
        )
        began = time.monotonic()
        with until_interrupted():
            with session.declare_publisher(below(prefix, "**")) as publisher:
                matched(publisher, session, connection)
            with _watched(replaying, connection.as_json):
                replaying.run()
        facts = replaying.status() | {"seconds": round(time.monotonic() - began, 3)}
    if connection.as_json:
        print_json(facts)
    else:
        lost = f", {facts['lost']} not taken" if facts["lost"] else ""
        typer.echo(
            f"{facts['samples']} samples, {facts['bytes']} B in {facts['seconds']:.1f} s, "
            f"up to {facts['time']}{lost}"
        )
    if not facts["samples"]:
        raise typer.Exit(NOBODY)
    if facts["lost"]:
        raise typer.Exit(FAILED)


def source_of(
    what: str, range: ResolvedRange, lake: str | None, journal: str | None
) -> SampleSource:
    """The samples that a key expression or a question means."""
    from zenlake.replay import AnswerSource, find
    from zenlake.replay.sources import LAKE

    if not what.lstrip().lower().startswith(("select ", "select\n", "select\t", "with ")):
        return find(what, range, journal=journal, lake=lake)
    from zenlake.errors import LocalError

    if range.start_ns is not None or range.end_ns is not None:
        raise LocalError("--from and --to are for key expressions; write WHERE time >= … instead")
    if journal is not None:
        raise LocalError("SQL asks a lake; leave --journal out, or write a key expression")
    return AnswerSource(_answer(what, LAKE if lake is None else lake))


def _answer(query: str, where: str) -> Any:
    """The rows of an answer: of the lake that runs, or of a Spark of our own."""
    from zenlake.cli.sql import SqlOptions, answer_of_running_lake, asker

    options = SqlOptions(False, False, 3600.0, 10_000_000, "local[*]", ())
    rows = answer_of_running_lake(where, query, options, None)
    if rows is None:
        with asker(where, options) as answer:
            rows = answer(query, None)
    return rows


@contextmanager
def _watched(replaying: Replay, quiet: bool) -> Iterator[None]:
    """Show how it goes, and obey the keyboard, if there are a terminal and a keyboard."""
    over = threading.Event()
    helpers = []
    with _keyboard() as keys:
        if keys is not None:
            helpers.append(threading.Thread(target=_obey, args=(replaying, keys, over)))
        if sys.stderr.isatty() and not quiet:
            helpers.append(threading.Thread(target=_tell, args=(replaying, over)))
        for helper in helpers:
            helper.daemon = True
            helper.start()
        try:
            yield
        finally:
            over.set()
            for helper in helpers:
                helper.join()
            if sys.stderr.isatty() and not quiet:
                sys.stderr.write(ERASE)
                sys.stderr.flush()


@contextmanager
def _keyboard() -> Iterator[int | None]:
    """The keyboard key by key, given back as it was; None if there is none."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        yield None
        return
    import termios
    import tty

    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    try:
        tty.setcbreak(keys)
        yield keys
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _obey(replaying: Replay, keys: int, over: threading.Event) -> None:
    import select

    from zenlake.errors import LocalError
    from zenlake.replay.commands import typed

    while not over.is_set():
        if select.select([keys], [], [], 0.1)[0]:
            try:
                for command in typed(os.read(keys, 64)):
                    replaying.tell(command)
            except LocalError:
                continue  # counted


def _tell(replaying: Replay, over: threading.Event) -> None:
    from zenlake.replay.commands import KEYS_HELP

    while not over.wait(0.2):
        line = _progress(replaying)
        width = os.get_terminal_size(sys.stderr.fileno()).columns
        sys.stderr.write(f"{ERASE}{f'{line}   {KEYS_HELP}'[: width - 1]}")
        sys.stderr.flush()


def _progress(replaying: Replay) -> str:
    facts = replaying.status()
    first, last = replaying.span or (0, 0)
    share = (facts["ns"] - first) / (last - first) if last > first else 1.0
    done = min(1.0, max(0.0, share))
    bar = "█" * round(done * 20)
    speed = facts["speed"] if facts["speed"] == "max" else f"×{facts['speed']:g}"
    return (
        f"{facts['time'][:23]:<23}  {bar:░<20} {done:>4.0%}  {speed}  {facts['state']}  "
        f"{facts['samples']} samples"
    )
