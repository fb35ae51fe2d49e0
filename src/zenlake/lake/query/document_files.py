"""Which files of samples have payloads of CBOR or MessagePack: only those are read by Python.

The statistics of a file say between which two encodings all of its own are. A file that has JSON
and payloads without an encoding is on both sides of MessagePack, so the column itself is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from zenlake.lake.decode.document_text import BINARY_ENCODINGS, is_binary
from zenlake.lake.query.document_column import CUSTOM
from zenlake.lake.table.data_files import read_table
from zenlake.lake.table.table_version import TableVersion

__all__ = ["files_that_may_be_binary", "has_binary"]

ENCODING: Final = "encoding"


def files_that_may_be_binary(actions: pa.Table) -> Iterator[str]:
    """Yield the files whose statistics do not rule such payloads out."""
    paths = actions["path"].to_pylist()
    names = (f"min.{ENCODING}", f"max.{ENCODING}")
    if not all(name in actions.column_names for name in names):
        yield from paths
        return
    for path, least, greatest in zip(
        paths, *(actions[name].to_pylist() for name in names), strict=True
    ):
        # A schema may follow the name of an encoding.
        if (
            least is None
            or greatest is None
            or any(
                least <= f"{name};\U0010ffff" and name <= greatest
                for encoding in BINARY_ENCODINGS
                for name in (encoding, f"{CUSTOM}{encoding}")
            )
        ):
            yield path


def has_binary(table: TableVersion, path: str) -> bool:
    """Return True if a file has such payloads; a file that is lost has none."""
    if ENCODING not in table.file_schema.names:
        return False
    try:
        rows = read_table(table.place, path, table.file_schema, [ENCODING])
    except FileNotFoundError:
        return False
    return any(is_binary(encoding) for encoding in pc.unique(rows[ENCODING]).to_pylist())
