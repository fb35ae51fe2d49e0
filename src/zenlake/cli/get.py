"""`zenlake get`: query, and print the replies."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note
from zenlake.cli.options import (
    Attachment,
    EncodingName,
    OptionalPayload,
    Timeout,
    bytes_of,
    payload_of,
)
from zenlake.cli.pages import examples


class Target(StrEnum):
    """Which queryables are asked."""

    BEST_MATCHING = "BEST_MATCHING"
    ALL = "ALL"
    ALL_COMPLETE = "ALL_COMPLETE"


class Consolidation(StrEnum):
    """What becomes of several replies for one key."""

    AUTO = "AUTO"
    NONE = "NONE"
    MONOTONIC = "MONOTONIC"
    LATEST = "LATEST"


@examples(
    "zenlake get -s 'demo/**'",
    "zenlake get -s 'demo/**?_time=[now(-5m)..]'",
    "zenlake get -s '@/*/router/metrics'",
)
@networked
def get(
    connection: Connection,
    selector: Annotated[
        str,
        typer.Option(
            "-s",
            "--selector",
            "-k",
            "--key",
            metavar="SELECTOR",
            help="Key expression and parameters, e.g. demo/**?unit=rad.",
        ),
    ] = "demo/example/**",
    payload: OptionalPayload = None,
    target: Annotated[
        Target,
        typer.Option(
            "-t",
            "--target",
            metavar="TARGET",
            case_sensitive=False,
            help="Which queryables: BEST_MATCHING, ALL or ALL_COMPLETE.",
        ),
    ] = Target.BEST_MATCHING,
    consolidation: Annotated[
        Consolidation,
        typer.Option(
            "--consolidation",
            metavar="MODE",
            case_sensitive=False,
            help="Which of several replies for one key: LATEST, MONOTONIC, NONE or AUTO.",
        ),
    ] = Consolidation.AUTO,
    timeout: Timeout = 10.0,
    encoding: EncodingName = None,
    attach: Attachment = None,
) -> None:
    """Query for values and print the replies.

    Waits until there is a queryable, at most as long as --wait says. Ends with 1 if all replies
    were errors, with 3 if there was none.
    """
    from zenlake.cli.patience import WaitNotice, matched, neighboured
    from zenlake.cli.show import print_json, reply_facts, reply_line
    from zenlake.keys import Selector
    from zenlake.values import ConsolidationMode, QueryTarget

    asked = Selector(selector)
    answers, errors = 0, 0
    with connection.session() as session:
        querier = session.declare_querier(
            asked.key_expr,
            target=QueryTarget[target.name],
            consolidation=ConsolidationMode[consolidation.name],
            timeout=timeout,
        )
        if str(asked.key_expr).startswith("@"):
            # Admin spaces answer without a declaration: a neighbour is all it takes.
            there = neighboured(session, connection)
        else:
            there = matched(querier, session, connection)
        with WaitNotice("waiting for replies") as waiting:
            for reply in querier.get(
                parameters=asked.parameters,
                payload=None if payload is None else payload_of(payload),
                encoding=encoding,
                attachment=None if attach is None else bytes_of(attach),
            ):
                waiting.clear()
                if connection.as_json:
                    print_json(reply_facts(reply))
                else:
                    typer.echo(reply_line(reply))
                answers += reply.ok is not None
                errors += reply.ok is None
    if answers:
        return
    if errors:
        raise typer.Exit(FAILED)
    if there:
        note(f"no reply to '{selector}'")
    raise typer.Exit(NOBODY)
