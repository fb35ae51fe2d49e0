"""What the tables and columns of a lake mean: for the reference, and as comments in catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from zenlake.spark.schema import COLUMNS

__all__ = ["ABOUT", "commented", "meaning_of"]

ABOUT: Final = {
    "samples": "Everything, as it was heard.",
    "latest": "The newest sample of each key; a deleted key has none.",
    "gaps": "The ledger: what each source must have said, and what of it came.",
    "quarantine": "Samples of typed tables that did not fit.",
    "rollups": "Numbers of typed tables by minute and hour; parts of one row are added up.",
    "network": "What changed in the network, as its nodes tell: sessions, links, declarations.",
    "metrics": "The metrics of the nodes, once a minute.",
}

MEANINGS: Final = {
    "attachment": "what came beside the payload",
    "time": "when the sample was made, by its own timestamp",
    "journal": "the journal's id; with `partition` and `offset` the identity of the sample",
    "day": "the day of receipt, in UTC; the table is partitioned by it",
    "bucket": "where the hash of the key puts it",
    "domain": "the domain of ROS 2",
    "topic": "the topic of ROS 2",
    "type": "the type of the message",
    "type_hash": "the hash of that type, as ROS 2 computes it",
    "table": "the typed table that it was for",
    "reason": "why it does not fit: one word",
    "field": "the field that does not fit",
    "detail": "why, with the value at hand",
    "source": "who numbers its samples: `node:entity`, or `ros2:gid`; null: no numbers came",
    "expected": "the numbers from the first that was heard to the last that was heard or told of",
    "missing": "those that did not come",
    "duplicates": "samples that came again",
    "reordered": "samples that came after a later one",
    "healed": "samples that did not come by themselves, and were asked for",
    "restarts": "how often the source began anew",
    "rows": "all rows of it",
    "first": "the first number of this run",
    "last": "the last number of this run",
    "gaps": "the ranges that are missing, each `[first, last]`",
}


_ELSEWHERE: Final = {
    ("gaps", "received"): "those that came, each once",
    ("rollups", "table"): "the typed table",
    ("rollups", "field"): "the column; inside of structs `a.b`",
    ("rollups", "width"): "`minute` or `hour`",
    ("rollups", "start"): "when it begins, by the samples' own time",
    ("rollups", "count"): "how many numbers there were",
    ("rollups", "sum"): "their sum",
    ("rollups", "min"): "the least",
    ("rollups", "max"): "the greatest",
    ("network", "time"): "when it was seen",
    ("network", "node"): "the id of the node that says so",
    ("network", "whatami"): "`router`, `peer` or `client`",
    (
        "network",
        "what",
    ): "`node`, `session`, `link`, `subscriber`, `publisher`, `queryable`, `querier`, "
    "`token`, `matching` (a publisher has subscribers) or `liveliness` (heard at once)",
    ("network", "key"): "the key expression that was declared",
    ("network", "peer"): "the id at the other end, or of who declared it",
    ("network", "state"): "`there` when watching began, `came` or `went`",
    (
        "network",
        "detail",
    ): "of a node its version, of a session its region, of a link both addresses",
    ("network", "day"): "the day of `time`; the table is partitioned by it",
    ("metrics", "time"): "when it was asked for",
    ("metrics", "node"): "the id of the node",
    ("metrics", "whatami"): "`router`, `peer` or `client`",
    ("metrics", "name"): "the name of the metric",
    ("metrics", "labels"): "its labels",
    ("metrics", "value"): "its value",
    ("metrics", "day"): "the day of `time`; the table is partitioned by it",
    ("rollups", "day"): "the day of `start`; the table is partitioned by it",
}


def meaning_of(table: str, column: str) -> str:
    """What a column of ours means; nothing of columns that payloads bring."""
    if (table, column) in _ELSEWHERE:
        return _ELSEWHERE[table, column]
    known = COLUMNS.get(column)
    return MEANINGS.get(column) or ("" if known is None else known.text)


def commented(
    table: str, schema: pa.Schema, comments: Mapping[str, str] | None = None
) -> pa.Schema:
    """The columns with what they mean as comments, as Delta and Iceberg keep them."""
    given = comments or {}
    fields = []
    for field in schema:
        text = given.get(field.name) or meaning_of(table, field.name)
        fields.append(field.with_metadata({"comment": text}) if text else field)
    return pa.schema(fields)
