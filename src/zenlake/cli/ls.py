"""`zenlake ls`: the keys that nodes know of."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.connection import Connection, networked
from zenlake.cli.pages import examples

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEYEXPR", help="Only keys that this key expression matches.")
]


@examples(
    "zenlake ls",
    "zenlake ls 'robot/1/**' --json",
)
@networked
def ls(connection: Connection, key: KeyArgument = "**") -> None:
    """List keys: publishers, subscribers, queryables, samples.

    Asks the admin spaces of the nodes that can be reached; ends with 3 if none answers.
    """
    from zenlake.cli.admin_space import keyspace, shown_nodes
    from zenlake.cli.show import paint, print_json
    from zenlake.keys import check
    from zenlake.printable import printable

    check(key)
    with connection.session() as session:
        shown = shown_nodes(session, connection)
        keys = keyspace(session, shown, key)
    wide = max((len(facts.key) for facts in keys), default=0)
    for facts in keys:
        if connection.as_json:
            print_json(facts.facts())
        else:
            name = printable(facts.key)
            typer.echo(f"{paint(name, 'cyan')}{' ' * (wide - len(name))}  {facts.words()}")
