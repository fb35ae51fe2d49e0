"""`zenlake ls`: the keys that nodes know of."""

from __future__ import annotations

from typing import Annotated

import typer

from zenlake.cli.connection import NOBODY, Connection, networked

KeyArgument = Annotated[str, typer.Argument(metavar="[KEYEXPR]", help="Only keys that meet it.")]


@networked
def ls(connection: Connection, key: KeyArgument = "**") -> None:
    """List the keys that are declared or spoken on, and what is there.

    Asks the admin spaces of all nodes that show themselves; ends with 3 if there are none.
    """
    from zenlake.cli.admin_space import keyspace, need, nodes
    from zenlake.cli.patience import neighboured
    from zenlake.cli.show import escaped, paint, print_json

    with connection.session() as session:
        if not neighboured(session, connection):
            raise typer.Exit(NOBODY)
        shown = nodes(session)
        if not need(shown):
            raise typer.Exit(NOBODY)
        found = keyspace(session, shown, key)
    wide = max((len(facts.key) for facts in found), default=0)
    for facts in found:
        if connection.as_json:
            print_json(facts.facts())
        else:
            name = escaped(facts.key)
            typer.echo(f"{paint(name, 'cyan')}{' ' * (wide - len(name))}  {facts.words()}")
