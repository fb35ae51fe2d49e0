"""Leaves the rows of a table out that an asker may not see, beneath all that a question does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.lake.model.row_access import RowAccess

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["visible_rows"]

KEY: Final = "key"


def visible_rows(
    frame: DataFrame, access: RowAccess, published: str = "", *, is_by_programs: bool = False
) -> DataFrame:
    """Return the rows that may be seen; none of a table without keys.

    `is_by_programs`: programs of users fill the table. Nobody knows which samples its rows were
    made of, whatever their key is, so they are for those who may see everything.

    `published`: `view/NAME` or `alert/NAME`, for results. Their keys may be those of samples that
    anybody may read, with values of others; so an asker has to be allowed to read a result by the
    key under which it is published as well.
    """
    from pyspark.sql import functions as f

    if access.unrestricted:
        return frame
    if is_by_programs or KEY not in frame.columns:
        nothing: Column = f.lit(False)
        return frame.filter(nothing)
    visible = f.col(KEY).rlike(access.pattern())
    if published:
        visible &= f.concat(f.lit(f"{published}/"), f.col(KEY)).rlike(access.pattern())
    return frame.filter(f.coalesce(visible, f.lit(False)))
