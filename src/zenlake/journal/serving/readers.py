"""What a querier may read of a journal if access control keeps some keys from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import LocalError
from zenlake.journal.schema import KEY
from zenlake.journal.serving.documents import manifest_of
from zenlake.keys.readable import ReadableKeys

if TYPE_CHECKING:
    from zenlake.api.query import Query
    from zenlake.journal.reading.reader import Journal

__all__ = ["demand_all_keys", "readable_ledger", "readable_manifest", "readable_rows"]


def demand_all_keys(query: Query, why: str) -> None:
    """Refuse a query for what tells of all keys, unless its asker may read all of them."""
    if not ReadableKeys.in_parameters(query.parameters).unrestricted:
        raise LocalError(f"access control denies some keys to you, and {why}")


def readable_manifest(journal: Journal, readable: ReadableKeys) -> dict[str, object]:
    """What a journal is and has; to an asker who may not read all keys it names none."""
    return manifest_of(journal, keys=readable.unrestricted)


def readable_ledger(report: dict[str, Any], readable: ReadableKeys) -> dict[str, Any]:
    """What came of the sources that were first heard under keys that may be read."""
    if readable.unrestricted:
        return report
    sources = [source for source in report["sources"] if readable.lets(source["key"])]
    counts = {key: count for key, count in report["unprovable"].items() if readable.lets(key)}
    return {"sources": sources, "unprovable": counts, "offsets": report["offsets"]}


def readable_rows(batch: pa.RecordBatch, readable: ReadableKeys) -> pa.RecordBatch:
    """The rows of keys that may be read; the dictionary of keys has no others either."""
    if readable.unrestricted:
        return batch
    keys = batch.column("key").cast(pa.string())
    seen = [key for key in pc.unique(keys).to_pylist() if readable.lets(key)]
    kept = pc.is_in(keys, pa.array(seen, pa.string()))
    rows = batch.filter(kept)
    place = batch.schema.get_field_index("key")
    return rows.set_column(place, batch.schema.field(place), keys.filter(kept).cast(KEY))
