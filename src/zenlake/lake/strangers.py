"""What strangers may ask in SQL: one SELECT, over tables of the lake, with nothing that acts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from zenlake.errors import LocalError

__all__ = ["demand_select"]

LONGEST: Final = 16 * 1024
REFUSED: Final = frozenset(
    {
        *("reflect", "java_method", "try_reflect", "input_file_name", "input_file_block_start"),
        *("input_file_block_length", "assert_true", "raise_error", "read_files", "from_avro"),
        *("to_avro", "current_user", "session_user", "user", "version", "spark_partition_id"),
    }
)


def demand_select(query: str, tables: Collection[str]) -> None:
    """Raise `LocalError`, with the words that are at fault, for anything else."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(query) > LONGEST:
        raise LocalError(f"a question of {len(query)} characters; at most {LONGEST}")
    try:
        trees = [tree for tree in sqlglot.parse(query, read="spark") if tree is not None]
    except (SqlglotError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise LocalError(f"the question is not understood: {first}") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise LocalError(f"'{query[:80]}' is not one SELECT; nothing else is answered")
    (tree,) = trees
    for kind in (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Hint):
        found = tree.find(kind)
        if found is not None and not isinstance(found, exp.Query):
            raise LocalError(f"'{found.sql()[:80]}' is not part of a SELECT")
    own = {name.lower() for name in tables}
    own |= {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.db:
            raise LocalError(f"'{table.sql()[:80]}' is no table of this lake")
        if table.name.lower() not in own:
            raise LocalError(
                f"there is no table '{table.name}'; there are {', '.join(sorted(tables))}"
            )
    for call in tree.find_all(exp.Func):
        name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
        if name in REFUSED:
            raise LocalError(f"the function {name}() is not answered")
