"""`zenlake tree`: the keys that nodes know of, chunk by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zenlake.cli.connection import Connection, networked
from zenlake.cli.ls import KeyArgument
from zenlake.cli.pages import examples

if TYPE_CHECKING:
    from zenlake.cli.admin_space import KeyFacts


@examples(
    "zenlake tree",
    "zenlake tree 'robot/**'",
)
@networked
def tree(connection: Connection, key: KeyArgument = "**") -> None:
    """Draw the keys of `zenlake ls` as a tree.

    With --json the tree is one object: each chunk leads to those below it.
    """
    from zenlake.cli.admin_space import keyspace, shown_nodes
    from zenlake.cli.show import print_json
    from zenlake.keys import check

    check(key)
    with connection.session() as session:
        shown = shown_nodes(session, connection)
        keys = keyspace(session, shown, key)
    grown = KeyBranch()
    for facts in keys:
        grown.grow(facts)
    if connection.as_json:
        print_json(grown.plain())
    else:
        for line in grown.lines():
            typer.echo(line)


class KeyBranch:
    """The keys below some chunks."""

    def __init__(self) -> None:
        """No keys yet."""
        self.facts: KeyFacts | None = None
        self.below: dict[str, KeyBranch] = {}

    def grow(self, facts: KeyFacts) -> None:
        """Put a key in its place."""
        at = self
        for chunk in facts.key.split("/"):
            at = at.below.setdefault(chunk, KeyBranch())
        at.facts = facts

    def lines(self, before: str = "") -> list[str]:
        """The drawing."""
        from zenlake.cli.show import paint
        from zenlake.printable import printable

        drawn: list[str] = []
        for number, (chunk, branch) in enumerate(self.below.items(), 1):
            last = number == len(self.below)
            words = "" if branch.facts is None else f"  {branch.facts.words()}"
            drawn.append(
                f"{before}{'└── ' if last else '├── '}{paint(printable(chunk), 'cyan')}{words}"
            )
            drawn += branch.lines(before + ("    " if last else "│   "))
        return drawn

    def plain(self) -> dict[str, object]:
        """The tree for programs."""
        return {chunk: branch.plain() for chunk, branch in self.below.items()}
