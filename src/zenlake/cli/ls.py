"""`zenlake ls`: the keys that nodes know of."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.connection import Connection, networked

KeyArgument = Annotated[str, typer.Argument(metavar="[KEYEXPR]", help="Only keys that meet it.")]


@networked
def ls(connection: Connection, key: KeyArgument = "**") -> None:
    """List the keys that are declared or spoken on, and what is there.

    Asks the admin spaces of all nodes that show themselves; ends with 3 if there are none.
    """
    from zenlake.cli.admin_space import keyspace, shown_nodes
    from zenlake.cli.show import escaped, paint, print_json

    with connection.session() as session:
        shown = shown_nodes(session, connection)
        found = keyspace(session, shown, key)
    wide = max((len(facts.key) for facts in found), default=0)
    for facts in found:
        if connection.as_json:
            print_json(facts.facts())
        else:
            name = escaped(facts.key)
            typer.echo(f"{paint(name, 'cyan')}{' ' * (wide - len(name))}  {facts.words()}")
