"""`zenlake get`: ask, and print the answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from zenlake.cli.connection import FAILED, NOBODY, Connection, networked, note
from zenlake.cli.options import Attachment, EncodingName, OptionalPayload, Timeout, payload_of


class Target(StrEnum):
    """Who of those that could answer shall."""

    BEST_MATCHING = "BEST_MATCHING"
    ALL = "ALL"
    ALL_COMPLETE = "ALL_COMPLETE"


class Consolidation(StrEnum):
    """What becomes of several answers for one key."""

    AUTO = "AUTO"
    NONE = "NONE"
    MONOTONIC = "MONOTONIC"
    LATEST = "LATEST"


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
            help="What to ask for, e.g. 'demo/**?unit=rad'.",
        ),
    ] = "demo/example/**",
    payload: OptionalPayload = None,
    target: Annotated[
        Target, typer.Option("-t", "--target", case_sensitive=False, help="Whom to ask.")
    ] = Target.BEST_MATCHING,
    consolidation: Annotated[
        Consolidation,
        typer.Option(
            "--consolidation", case_sensitive=False, help="Which of several answers for one key."
        ),
    ] = Consolidation.AUTO,
    timeout: Timeout = 10.0,
    encoding: EncodingName = None,
    attach: Attachment = None,
) -> None:
    """Ask for values, and print the answers and errors as they come.

    Waits until somebody is there who can answer. Ends with 1 if all answers were errors, with 3
    if there was none.
    """
    from zenlake.cli.patience import Waiting, matched
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
        there = matched(querier, session, connection)
        with Waiting("waiting for answers") as waiting:
            for reply in querier.get(
                parameters=asked.parameters,
                payload=None if payload is None else payload_of(payload),
                encoding=encoding,
                attachment=attach,
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
        note(f"no answer to '{selector}'")
    raise typer.Exit(NOBODY)
