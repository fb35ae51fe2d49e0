"""`zenlake lake`: fill a lake from a journal, look at it, keep it in shape."""

from __future__ import annotations

from zenlake.cli.continuous import alert, view
from zenlake.cli.lake_run import run_lake
from zenlake.cli.lake_show import lake_status, lake_tables
from zenlake.cli.lake_table import suggest_tables, table
from zenlake.cli.lake_upkeep import (
    compact_lake,
    decode_table,
    forget_keys,
    rebuild_table,
    repair_lake,
    retain_rows,
    vacuum_lake,
)
from zenlake.cli.pages import add, group

lake = group(
    """Turn a journal into open tables, and keep them in shape.

    Each sample is in each table once, whoever is killed when. The tables are Delta tables, which
    Spark, DuckDB, delta-rs, Trino and others read; `zenlake sql` asks them."""
)
add(lake, "run", run_lake)
add(lake, "status", lake_status)
add(lake, "tables", lake_tables)
add(lake, "suggest", suggest_tables)
add(lake, "compact", compact_lake)
add(lake, "retain", retain_rows)
add(lake, "vacuum", vacuum_lake)
add(lake, "rebuild", rebuild_table)
add(lake, "decode", decode_table)
add(lake, "forget", forget_keys)
add(lake, "repair", repair_lake)
lake.add_typer(table, name="table")
lake.add_typer(view, name="view")
lake.add_typer(alert, name="alert")
