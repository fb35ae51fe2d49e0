"""`zenlake diff`: compare two recorded windows."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zenlake.cli.connection import FAILED, NOBODY, ended_well, note
from zenlake.cli.pages import examples
from zenlake.cli.replay import From, Journal, Lake, To
from zenlake.printable import json_text, printable

if TYPE_CHECKING:
    from zenlake.keys import ResolvedRange
    from zenlake.replay import SampleSource
    from zenlake.replay.comparison import DifferenceReport, KeyDifferences

MOST_SHOWN = 40


class MatchBy(StrEnum):
    """What says which samples belong together."""

    AUTO = "auto"
    TIME = "time"
    ORDER = "order"


Window = Annotated[
    str,
    typer.Argument(metavar="WINDOW", help="Key expression; ?_time=[…] says a range of its own."),
]


@examples(
    "zenlake diff 'robot/**' 'ghost/robot/**' --from -10m",
    "zenlake diff 'a/**?_time=[now(-2h);10m]' 'a/**?_time=[now(-1h);10m]'",
    "zenlake diff '**' '**' --journal mon --journal-b tue --tolerance 0.01",
)
def diff(
    a: Window,
    b: Window,
    start: From = None,
    end: To = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="KEY",
            help="What keys of the second begin with and those of the first do not. Found by "
            "itself if the second is PREFIX/ and the first.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        MatchBy,
        typer.Option(
            help="time: same timestamps belong together · order: the samples of a key one after "
            "the other · auto: time, if any are the same."
        ),
    ] = MatchBy.AUTO,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0, help="So far may numbers in JSON be apart.")
    ] = 0.0,
    lake: Lake = None,
    journal: Journal = None,
    lake_b: Annotated[
        str | None,
        typer.Option("--lake-b", metavar="DIR", help="The lake of the second, if it is another."),
    ] = None,
    journal_b: Annotated[
        str | None,
        typer.Option("--journal-b", metavar="DIR", help="The journal of the second, likewise."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two recorded windows key by key.

    Compared are kind, payload, encoding and attachment of every sample. Ends with 0 if none
    differ, with 1 if some do, with 3 if neither window has a sample.
    """

    from zenlake.replay.commands import range_at
    from zenlake.replay.differing import compare

    with ended_well():
        now = time.time_ns()
        both = range_at(start, end, now)
        left, first = _window(a, both, now, lake, journal)
        elsewhere = (lake_b, journal_b) if lake_b or journal_b else (lake, journal)
        right, second = _window(b, both, now, *elsewhere)
        if prefix is None:
            prefix = second.removesuffix(first).rstrip("/") if second.endswith(f"/{first}") else ""
        report, criterion = compare(
            left, right, strip_right=prefix, by=by.value, tolerance=tolerance
        )
        if as_json:
            document: dict[str, Any] = {
                "equal": report.equal,
                "by": criterion,
                "totals": report.totals(),
                "keys": {
                    key: page.facts() for key, page in sorted(report.keys.items())
                    if not page.equal or page.near
                },
            }  # fmt: skip
            typer.echo(json_text(document))
        else:
            _show(report, criterion)
        if not report.keys:
            note("neither window has a sample")
            raise typer.Exit(NOBODY)
        if not report.equal:
            raise typer.Exit(FAILED)


def _window(
    text: str, both: ResolvedRange, now: int, lake: str | None, journal: str | None
) -> tuple[SampleSource, str]:
    """The samples of a window, and its key expression."""
    from zenlake.errors import LocalError
    from zenlake.keys import Parameters
    from zenlake.replay import find

    expr, asked, parameters = text.partition("?")
    range = both
    if asked:
        parsed = Parameters(parameters)
        own = parsed.time_range()
        if own is None or len(list(parsed)) != 1:
            raise LocalError(f"'{text}': a window takes _time=[…] and nothing else")
        range = own.resolve(now)
    return find(expr, range, lake=lake, journal=journal), expr


def _show(report: DifferenceReport, criterion: str) -> None:
    from zenlake.cli.natural import natural

    worst = [key for key, page in report.keys.items() if not page.equal or page.near]
    for key in sorted(worst, key=natural)[:MOST_SHOWN]:
        typer.echo(f"{printable(key)}: {_line(report.keys[key])}")
    if len(worst) > MOST_SHOWN:
        note(f"… {len(worst) - MOST_SHOWN} more keys; --json has all")
    totals = report.totals()
    verdict = "none differ" if report.equal else "they differ"
    unlisted = f", {totals['unlisted']} of too many keys" if totals["unlisted"] else ""
    near = f", {totals['near']} within the tolerance" if totals["near"] else ""
    typer.echo(
        f"{totals['keys']} keys: {totals['same']} same{near}, {totals['missing']} missing, "
        f"{totals['extra']} extra, {totals['different']} different{unlisted}; matched by "
        f"{criterion}: {verdict}"
    )


def _line(page: KeyDifferences) -> str:
    names = ("same", "near", "missing", "extra", "different")
    counts = [f"{getattr(page, name)} {name}" for name in names if getattr(page, name)]
    text = ", ".join(counts)
    if page.reasons:
        text += " (" + ", ".join(f"{name} {count}" for name, count in page.reasons.items()) + ")"
    apart = [(name, one) for name, one in page.fields.items() if one.most > 0]
    apart.sort(key=lambda pair: -pair[1].most)
    for name, one in apart[:4]:
        text += f"; {name}: at most {one.most:g} apart, {one.total / one.count:g} on average"
    return text
