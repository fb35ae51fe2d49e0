"""The shell of `zenlake sql`: history, completion of tables and columns, and a few commands.

\\d           the tables            \\d TABLE     its columns
\\timing      how long answers take \\plot        draw answers instead of printing them
\\q           the end; Ctrl-D too
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

from zenlake.cli.connection import note
from zenlake.printable import printable, printable_lines

if TYPE_CHECKING:
    import pyarrow as pa

    from zenlake.cli.sql import SqlOptions

__all__ = ["Shell", "shell"]

WORDS = [
    *("SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "HAVING", "JOIN", "LEFT"),
    *("ON", "USING", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "AS", "DISTINCT"),
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "CAST", "WITH", "UNION", "ALL", "CASE", "WHEN", "THEN"),
    *("ELSE", "END", "DESC", "ASC"),
]
HELP = (
    r"\d tables · \d TABLE columns · \timing · \plot · \q end. "
    "A question ends with ; or with an empty line."
)
Answer = Callable[[str, int | None], "pa.Table"]


def history_file() -> Path:
    """Where questions are remembered, between shells too."""
    root = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(root) / "zenlake" / "sql_history"


@final
class Shell:
    """What a line means; reading them is not its business."""

    def __init__(
        self, answer: Answer, tables: Callable[[], dict[str, dict[str, str]]], limit: int
    ) -> None:
        """`tables` gives the columns of each table, with their types."""
        self._answer = answer
        self._tables = tables
        self._limit = limit
        self._held: list[str] = []
        self.timing = False
        self.plot = False

    @property
    def prompt(self) -> str:
        """What stands before the next line."""
        return "   ...> " if self._held else "zenlake> "

    def interrupted(self) -> None:
        """Forget the question that was begun."""
        self._held.clear()

    def line(self, text: str) -> bool:
        """Take a line; whether there is to be another."""
        word = text.strip()
        if not self._held and word.startswith("\\"):
            return self._command(word)
        if not self._held and word.lower().rstrip(";") in ("exit", "quit"):
            return False
        if word:
            self._held.append(text)
        if self._held and (not word or word.endswith(";")):
            query = "\n".join(self._held)
            self._held.clear()
            self._ask(query.strip().rstrip(";"))
        return True

    def _command(self, word: str) -> bool:
        name, _, rest = word.partition(" ")
        if name in ("\\q", "\\quit"):
            return False
        if name == "\\timing":
            self.timing = not self.timing
            typer.echo(f"timing is {'on' if self.timing else 'off'}")
        elif name == "\\plot":
            self.plot = not self.plot
            typer.echo(f"answers are {'drawn' if self.plot else 'printed'}")
        elif name == "\\d":
            self._describe(rest.strip())
        else:
            typer.echo(HELP)
        return True

    def _describe(self, table: str) -> None:
        tables = self._tables()
        if not table:
            for name, columns in sorted(tables.items()):
                typer.echo(printable(f"{name:<16} {', '.join(columns)}"[:200]))
        elif table in tables:
            for column, kind in tables[table].items():
                typer.echo(printable(f"{column:<20} {kind}"))
        else:
            typer.echo(
                printable(f"there is no table '{table}'; there are {', '.join(sorted(tables))}")
            )

    def _ask(self, query: str) -> None:
        from zenlake.cli.plot import drawn
        from zenlake.cli.sql import show_table
        from zenlake.errors import ZError

        began = time.monotonic()
        try:
            answered = self._answer(query, None if self.plot else self._limit + 1)
        except ZError as error:
            typer.echo(printable_lines(str(error)), err=True)
            return
        took = time.monotonic() - began
        try:
            if self.plot:
                typer.echo(printable_lines(drawn(answered)))
            else:
                show_table(answered, self._limit)
        except ZError as error:
            typer.echo(printable_lines(str(error)), err=True)
        if self.timing:
            typer.echo(f"{answered.num_rows} rows in {took:.3f} s")

    def completions(self, text: str) -> list[str]:
        """What a word may become: commands, tables, columns, words of SQL."""
        if text.startswith("\\"):
            return [one for one in ("\\d", "\\timing", "\\plot", "\\q") if one.startswith(text)]
        tables = self._tables()
        names = {*tables, *(column for columns in tables.values() for column in columns)}
        table, dot, start = text.rpartition(".")
        if dot:
            qualified = [
                f"{table}.{one}" for one in tables.get(table, names) if one.startswith(start)
            ]
            return sorted(qualified)
        low = text.lower()
        words = [one if text.isupper() else one.lower() for one in WORDS]
        return sorted({one for one in [*names, *words] if one.lower().startswith(low)})


def shell(where: str, options: SqlOptions, limit: int) -> None:
    """Read lines from the terminal until the end."""
    import readline

    from zenlake.cli.sql import answer_of_running_lake, asker

    with ExitStack() as held:
        alone: list[Answer] = []

        def answer(query: str, first: int | None) -> pa.Table:
            if not options.own:
                answered = answer_of_running_lake(where, query, options, first)
                if answered is not None:
                    return answered
            if not alone:
                alone.append(held.enter_context(asker(where, options)))
            return alone[0](query, first)

        known: dict[str, dict[str, str]] = {}

        def tables() -> dict[str, dict[str, str]]:
            if not known:
                known.update(columns_of(where))
            return known

        typed = Shell(answer, tables, limit)
        file = history_file()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.read_history_file(file)
        except OSError:
            pass
        readline.set_history_length(10_000)
        readline.set_completer_delims(" \t\n,()<>=+-*/;'\"")
        readline.set_completer(lambda text, n: _nth(typed.completions(text), n))
        readline.parse_and_bind("tab: complete")
        note(f"asking the lake in {where}. {HELP}")
        try:
            while typed.line(_read(typed)):
                pass
        except EOFError:
            typer.echo("")
        finally:
            try:
                readline.write_history_file(file)
            except OSError as error:
                note(f"the questions are not remembered: {error}")


def _read(prompt: Shell) -> str:
    while True:
        try:
            return input(prompt.prompt)
        except KeyboardInterrupt:
            typer.echo("")
            prompt.interrupted()


def _nth(completions: list[str], n: int) -> str | None:
    return completions[n] if n < len(completions) else None


def columns_of(where: str) -> dict[str, dict[str, str]]:
    """The columns of each table: from the lake that runs, or from its folder."""
    from zenlake.lake_client import ask

    asking = ask(where, {"do": "tables"})
    if asking is not None:
        with asking:
            tables: dict[str, Any] = asking.fact()
        return {name: dict(one["columns"]) for name, one in tables.items()}
    import zenlake.lake
    from zenlake.lake.query.document_column import columns_in_sql

    return {
        name: columns_in_sql(name, table.schema)
        for name, table in zenlake.lake.open(where).tables().items()
    }
