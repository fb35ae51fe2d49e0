"""`zenlake record`: write what is published to a journal."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zenlake.cli import quantities
from zenlake.cli.connection import FAILED, Connection, networked, note, until_interrupted
from zenlake.cli.options import Fsync, Retain, RetainAge, RetainSize
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.journal.recorder import Recorder


class OnFull(StrEnum):
    """What to do when the disk is full."""

    BLOCK = "block"
    DROP = "drop"


@examples(
    "zenlake record -k 'robot/**' --to flight",
    "zenlake record -k '**' --to flight --retain-age 30d --retain-size 100GB",
    "zenlake record -k '**' --to faults --around '*/fault' --before 1m",
)
@networked
def record(
    connection: Connection,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="The folder of the journal.")],
    keys: Annotated[
        list[str],
        typer.Option("-k", "--key", metavar="KEYEXPR", help="What to record; repeatable."),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Its name on the bus.  [default: the folder]", show_default=False
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            help="Partitions of a new journal.  [default: 1]",
            show_default=False,
        ),
    ] = None,
    fsync: Fsync = "50ms",
    segment_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest size of a segment.")
    ] = "128MiB",
    segment_age: Annotated[
        str, typer.Option(metavar="TIME", help="The longest time that a segment grows.")
    ] = "1h",
    retain_size: RetainSize = None,
    retain_age: RetainAge = None,
    hold_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Keep this much more of what a lake has not read yet, e.g. 50GB.",
            show_default=False,
        ),
    ] = None,
    retain: Retain = None,
    on_full: Annotated[
        OnFull,
        typer.Option(metavar="POLICY", help="On a full disk: block publishers, or drop and count."),
    ] = OnFull.BLOCK,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            metavar="KEYEXPR",
            help="Write only what lies around samples of these keys; ?_filter=… chooses.",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="--around: how long before an event.")
    ] = "30s",
    after: Annotated[
        str, typer.Option("--after", metavar="TIME", help="--around: how long after an event.")
    ] = "10s",
    ring_size: Annotated[
        str,
        typer.Option("--ring-size", metavar="SIZE", help="--around: memory for what may be kept."),
    ] = "256MiB",
    no_answer: Annotated[
        bool, typer.Option("--no-answer", help="Do not reply to queries with the latest values.")
    ] = False,
    no_answer_time: Annotated[
        bool, typer.Option("--no-answer-time", help="Do not reply to queries with _time.")
    ] = False,
    complete: Annotated[
        bool, typer.Option("--complete", help="Declare that it has every value of these keys.")
    ] = False,
    no_heal: Annotated[
        bool,
        typer.Option(
            "--no-heal", help="Do not ask publishers for missing samples, or for their past."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only the first and the last line.")
    ] = False,
) -> None:
    """Write what is published to a journal.

    Runs until Ctrl-C. Every row below the durable watermark survives a crash. It prints a line each
    second; `missing` counts samples that publishers sent and that did not come.

    With --around, what is heard waits in memory and is written only if an event follows in time;
    it then replies to no queries, for it does not have all values.
    """
    from zenlake.journal.disk.memory import keep_memory
    from zenlake.journal.options import Around, Options, RetainRule
    from zenlake.journal.recorder import Recorder

    quantities.local(to, "--to")
    policy: Literal["block", "drop"] = "drop" if on_full is OnFull.DROP else "block"
    options = Options(
        tuple(keys),
        to,
        name=name,
        partitions=partitions,
        fsync=fsync,
        segment_bytes=quantities.size(segment_size, "--segment-size") or 1,
        segment_age=quantities.duration(segment_age, "--segment-age") or 1.0,
        retain_bytes=quantities.size(retain_size, "--retain-size"),
        retain_age=quantities.duration(retain_age, "--retain-age"),
        hold_bytes=quantities.size(hold_size, "--hold-size"),
        retain=tuple(RetainRule(*rule) for rule in quantities.rules(retain, "--retain")),
        on_full=policy,
        answer=not no_answer,
        answer_time=not no_answer_time,
        complete=complete,
        heal=not no_heal,
        around=None
        if around is None
        else Around(
            around,
            quantities.duration(before, "--before") or 0.0,
            quantities.duration(after, "--after") or 0.0,
            quantities.size(ring_size, "--ring-size") or 1,
        ),
    )
    keep_memory()  # this process does nothing else
    with connection.session() as session:
        recorder = Recorder(session, options)
        try:
            with until_interrupted():
                begun = ", ".join([f"'{key}'" for key in keys])
                condition = "" if around is None else f", around '{around}'"
                note(f"recording {begun} into {to} as '{recorder.name}'{condition}; Ctrl-C ends it")
                _watch(connection, recorder, quiet)
        finally:
            recorder.close()
        _tell_total(connection, recorder)
    if recorder.failure is not None:
        raise typer.Exit(FAILED)


def _watch(connection: Connection, recorder: Recorder, quiet: bool) -> None:
    rows, size, before = 0, 0, time.monotonic()
    while recorder.failure is None:
        time.sleep(1.0)
        now = time.monotonic()
        if not quiet:
            seconds = now - before
            _tell_rate(
                connection, recorder, (recorder.rows - rows) / seconds,
                (recorder.payload_bytes - size) / seconds,
            )  # fmt: skip
        rows, size, before = recorder.rows, recorder.payload_bytes, now
    note(str(recorder.failure))


def _tell_rate(connection: Connection, recorder: Recorder, rows: float, size: float) -> None:
    from zenlake.cli.show import print_json

    totals = recorder.totals()
    durable = sum(recorder.watermark().offsets)
    dropped = recorder.dropped
    if connection.as_json:
        print_json(
            {
                "rows_per_s": rows,
                "bytes_per_s": size,
                "rows": recorder.rows,
                "durable": durable,
                "missing": totals["missing"],
                "healed": totals["healed"],
                "dropped": dropped,
            }
            | ({} if recorder.ring is None else {"around": recorder.ring.counts})
        )
        return
    ring = recorder.ring
    waiting = "" if ring is None else f"  {ring.events:>4} events  {ring.rows:>9} rows wait"
    typer.echo(
        f"{rows:>10.0f} rows/s  {size / 1e6:>9.3f} MB/s  {durable:>12} durable"
        f"  {totals['missing']:>6} missing  {totals['healed']:>6} healed  {dropped:>6} dropped"
        f"{waiting}"
    )


def _tell_total(connection: Connection, recorder: Recorder) -> None:
    from zenlake.cli.show import print_json

    totals = recorder.totals()
    durable = list(recorder.watermark().offsets)
    if connection.as_json:
        print_json(
            {"rows": recorder.rows, "bytes": recorder.payload_bytes, "durable": durable} | totals
        )
        return
    typer.echo(
        f"{recorder.rows} rows, {recorder.payload_bytes} B; durable up to {durable}; "
        f"{totals['sources']} sources sent {totals['expected']}, {totals['missing']} missing, "
        f"{totals['healed']} healed; {totals['unprovable_rows']} rows unprovable; "
        f"{totals['drops']} dropped"
    )
    ring = recorder.ring
    if ring is not None:
        typer.echo(
            f"{ring.events} events; {ring.kept} rows around them were kept, {ring.passed} let go, "
            f"{ring.overflowed} did not fit into the ring"
        )
