"""`zenlake queryable`: reply to queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.connection import Connection, networked, note, until_interrupted
from zenlake.cli.options import Count, EncodingName, Key, Payload, payload_of
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.api.query import Query


@examples(
    "zenlake queryable -k demo/time -p noon",
    "zenlake queryable -k 'demo/**' -p 'not here' --error",
)
@networked
def queryable(
    connection: Connection,
    key: Key,
    payload: Payload = "Queryable from zenlake!",
    encoding: EncodingName = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Declare that it has every value under the key.")
    ] = False,
    error: Annotated[
        bool, typer.Option("--error", help="Reply with the payload as an error.")
    ] = False,
    count: Count = None,
) -> None:
    """Reply to every query with the same payload.

    Prints the queries. If the key has wildcards and the key of the query has none, the reply has
    the key of the query.
    """
    from zenlake.cli.patience import looking_out
    from zenlake.cli.show import print_json

    answer = payload_of(payload)
    with (
        connection.session() as session,
        looking_out(session, connection),
        until_interrupted(),
        session.declare_queryable(key, complete=complete) as asked,
    ):
        note(f"answering queries on '{key}'; Ctrl-C ends it")
        for number, query in enumerate(asked, 1):
            with query:
                if connection.as_json:
                    print_json(_facts(query))
                else:
                    typer.echo(_line(query))
                if error:
                    query.reply_err(answer, encoding=encoding)
                else:
                    query.reply(_under(key, query), answer, encoding=encoding)
            if number == count:
                break


def _under(key: str, query: Query) -> str:
    wild = "*" in key and "*" not in str(query.key_expr)
    return str(query.key_expr) if wild else key


def _line(query: Query) -> str:
    from zenlake.cli.show import aside, paint, readable
    from zenlake.printable import printable

    about = []
    if query.payload is not None:
        about.append(f"payload {readable(query.payload.to_bytes())}")
    if query.attachment is not None:
        about.append(f"attachment {readable(query.attachment.to_bytes())}")
    return f"{paint('query', 'yellow')} {paint(printable(str(query.selector)), 'cyan')}" + aside(
        about
    )


def _facts(query: Query) -> dict[str, object]:
    from zenlake.cli.show import payload_facts

    facts: dict[str, object] = {
        "selector": str(query.selector),
        "key": str(query.key_expr),
        "parameters": str(query.parameters),
    }
    if query.payload is not None:
        facts |= payload_facts(query.payload.to_bytes())
        facts["encoding"] = str(query.encoding)
    if query.attachment is not None:
        facts |= payload_facts(query.attachment.to_bytes(), "attachment")
    return facts
