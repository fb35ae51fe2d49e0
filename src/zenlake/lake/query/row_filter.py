"""Leaves the rows of a table out that an asker may not see, beneath all that a question does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.lake.model.row_access import RowAccess

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["visible_rows"]

KEY: Final = "key"


def visible_rows(frame: DataFrame, access: RowAccess) -> DataFrame:
    """Return the rows that may be seen; none of a table without keys."""
    from pyspark.sql import functions as f

    if access.unrestricted:
        return frame
    if KEY not in frame.columns:
        nothing: Column = f.lit(False)
        return frame.filter(nothing)
    return frame.filter(f.coalesce(f.col(KEY).rlike(access.pattern()), f.lit(False)))
