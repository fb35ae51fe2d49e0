"""Expectations: conditions on the rows of pipelines that are written with `pyspark.pipelines`.

    from pyspark import pipelines as dp
    from zenlake.pipelines import expect, expect_or_drop, expect_or_fail

    @dp.table
    @expect("percent in range", "percent BETWEEN 0 AND 100")
    @expect_or_drop("robot is known", "id IS NOT NULL")
    def checked_battery() -> DataFrame:
        return spark.readStream.table("battery")

The decorators stand below those of `pyspark.pipelines`. A row meets an expectation if the condition
is true; a row for which the condition is false or null does not.

The lake's own runner takes an `ExpectingQuery` apart: tables are written by a sink that separates
the rows. Whatever else calls the function, such as `spark-pipelines run`, gets a DataFrame that
counts, filters and raises by itself. Importing this module starts nothing and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "Expectation",
    "ExpectingQuery",
    "Violation",
    "expect",
    "expect_all",
    "expect_all_or_drop",
    "expect_all_or_fail",
    "expect_or_drop",
    "expect_or_fail",
]

MOST_EXPECTATIONS: Final = 50
"""Expectations of one table, flow or view."""
MOST_NAME_CHARACTERS: Final = 200
FAILED_PREFIX: Final = "ExpectationFailed: "
"""What the message begins with when a row ends a flow."""
UNMET: Final = " is not met by the row "
"""What stands in front of the row in the message."""

Query = Callable[[], "DataFrame"]
Decorator = Callable[[Query], "ExpectingQuery"]


class Violation(StrEnum):
    """What happens to a row that does not meet an expectation."""

    WARN = "warn"
    """The row is kept and counted."""
    DROP = "drop"
    """The row is left out of the table."""
    FAIL = "fail"
    """The flow stops before anything of the batch is committed."""


@final
@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition on each row of a table, a flow or a view."""

    name: str
    condition: str
    """A condition of SQL over the columns of the row."""
    violation: Violation


@final
class ExpectingQuery:
    """A query function with expectations of its rows."""

    __name__: str

    def __init__(self, query: Query, expectations: Sequence[Expectation]) -> None:
        """`query`: the function below the decorators; `expectations`: in the order of the file."""
        update_wrapper(self, query)
        self.query = query
        self.expectations = tuple(expectations)

    def __call__(self) -> DataFrame:
        """Return the rows with the expectations applied by the DataFrame itself."""
        return _applied(self.query(), self.expectations, self.__name__)


def expect(name: str, condition: str) -> Decorator:
    """Count the rows that do not meet a condition, and keep them.

    Args:
        name: What the expectation is called in counts; one name for each expectation of a table.
        condition: A condition of SQL over the columns of a row, such as `percent <= 100`.

    Returns:
        A decorator for the function below `@dp.table`, `@dp.materialized_view`,
        `@dp.append_flow(…)` or `@dp.temporary_view`.
    """
    return _decorator({name: condition}, Violation.WARN)


def expect_or_drop(name: str, condition: str) -> Decorator:
    """Leave out the rows that do not meet a condition, and count them.

    The lake's own runner puts those of tables into the table `quarantine`.

    Args:
        name: What the expectation is called in counts and in `quarantine`.
        condition: A condition of SQL over the columns of a row.

    Returns:
        A decorator for the function below that of `pyspark.pipelines`.
    """
    return _decorator({name: condition}, Violation.DROP)


def expect_or_fail(name: str, condition: str) -> Decorator:
    """Stop the flow at a row that does not meet a condition; nothing of its batch is committed.

    Args:
        name: What the expectation is called in counts and in the error.
        condition: A condition of SQL over the columns of a row.

    Returns:
        A decorator for the function below that of `pyspark.pipelines`.
    """
    return _decorator({name: condition}, Violation.FAIL)


def expect_all(expectations: Mapping[str, str]) -> Decorator:
    """Count the rows that do not meet conditions, and keep them.

    Args:
        expectations: The condition of each expectation, by name.

    Returns:
        A decorator as that of `expect`.
    """
    return _decorator(expectations, Violation.WARN)


def expect_all_or_drop(expectations: Mapping[str, str]) -> Decorator:
    """Leave out the rows that do not meet all of some conditions, and count them.

    Args:
        expectations: The condition of each expectation, by name.

    Returns:
        A decorator as that of `expect_or_drop`.
    """
    return _decorator(expectations, Violation.DROP)


def expect_all_or_fail(expectations: Mapping[str, str]) -> Decorator:
    """Stop the flow at a row that does not meet all of some conditions.

    Args:
        expectations: The condition of each expectation, by name.

    Returns:
        A decorator as that of `expect_or_fail`.
    """
    return _decorator(expectations, Violation.FAIL)


def _decorator(conditions: Any, violation: Violation) -> Decorator:
    if not isinstance(conditions, Mapping) or not conditions:
        raise LocalError(
            f"{conditions!r} has no expectations; write {{'percent in range': 'percent <= 100'}}"
        )
    added = [_expectation(name, text, violation) for name, text in conditions.items()]

    def decorate(query: Query) -> ExpectingQuery:
        if not callable(query):
            raise LocalError(
                f"@expect_…('{added[0].name}', …) stands above a decorator of pyspark.pipelines; "
                "write it below, just above the function"
            )
        inner, every = query, added
        if isinstance(query, ExpectingQuery):
            inner, every = query.query, [*added, *query.expectations]
        names = [one.name for one in every]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise LocalError(
                f"'{query.__name__}' has two expectations '{twice}'; give each a name of its own"
            )
        if len(every) > MOST_EXPECTATIONS:
            raise LocalError(
                f"'{query.__name__}' has {len(every)} expectations; at most {MOST_EXPECTATIONS} "
                "are counted one by one: join conditions with AND"
            )
        return ExpectingQuery(inner, every)

    return decorate


def _expectation(name: Any, condition: Any, violation: Violation) -> Expectation:
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME_CHARACTERS:
        raise LocalError(
            f"{name!r} cannot name an expectation; write a text of at most "
            f"{MOST_NAME_CHARACTERS} characters, such as 'percent in range'"
        )
    if not name.isprintable():
        raise LocalError(f"{name!r} has characters that are not printable; leave them out")
    if not isinstance(condition, str) or not condition.strip():
        raise LocalError(
            f"the expectation '{name}' has the condition {condition!r}; write one of SQL, "
            "such as 'percent BETWEEN 0 AND 100'"
        )
    return Expectation(name, condition, violation)


# --- rows that are checked by the DataFrame itself ------------------------------------------------


def is_met(expectation: Expectation) -> Column:
    """Return a column that is true for rows that meet an expectation, and else false."""
    from pyspark.sql import functions as f

    return f.coalesce(f.expr(f"({expectation.condition}\n)"), f.lit(False))


def _applied(frame: DataFrame, expectations: Sequence[Expectation], name: str) -> DataFrame:
    """Return the rows that are kept; counts are metrics that Spark observes.

    A progress event has them under `expectations of NAME`.
    """
    from pyspark.sql import functions as f

    counts = [f.count_if(~is_met(one)).alias(f"{one.name} failed") for one in expectations]
    frame = frame.observe(f"expectations of {name}", f.count(f.lit(1)).alias("rows"), *counts)
    for one in expectations:
        if one.violation is Violation.FAIL:
            row: Any = f.to_json(f.struct("*"))
            message = f.concat(f.lit(failed_message(one)), f.coalesce(row, f.lit("?")))
            frame = frame.where(f.when(is_met(one), f.lit(True)).otherwise(f.raise_error(message)))
    for one in expectations:
        if one.violation is Violation.DROP:
            frame = frame.where(is_met(one))
    return frame


def failed_message(expectation: Expectation) -> str:
    """Return why a row ends a flow; the row comes behind it."""
    named = f"the expectation '{expectation.name}' ({expectation.condition})"
    return f"{FAILED_PREFIX}{named}{UNMET}"
