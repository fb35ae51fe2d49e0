"""The columns of a journal: what one row says about one sample."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

#: A microsecond timestamp in UTC, as every table of ours has them.
INSTANT: Final = pa.timestamp("us", tz="UTC")

#: Keys repeat; a batch names each one once.
KEY: Final = pa.dictionary(pa.int32(), pa.string())

#: `kind`: what happened to the key.
PUT: Final = 0
DELETE: Final = 1

#: `origin`: how the row came to be here.
HEARD: Final = 0
HEALED: Final = 1
IMPORTED: Final = 2
#: No sample: a publisher tells which number it used last. Only for readers that ask for it.
HEARTBEAT: Final = 3
#: A sample whose value a rule of retention has taken; who sent it, and as which number, stays.
RETIRED: Final = 4
#: What the key of every heartbeat has in it, after the key that it is about.
HEARTBEAT_MARK: Final = "/@adv/pub/"

#: The size of an attachment in which ROS 2 numbers a sample.
ROS_SIZE: Final = 33

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("key", KEY, nullable=False),
        pa.field("value", pa.binary(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("encoding_id", pa.int32(), nullable=False),
        pa.field("encoding_schema", pa.string()),
        pa.field("hlc", pa.int64(), nullable=False),
        pa.field("time", INSTANT, nullable=False),
        pa.field("stamp_id", pa.binary(), nullable=False),
        pa.field("stamped", pa.bool_(), nullable=False),
        pa.field("attachment", pa.binary()),
        pa.field("source_zid", pa.binary()),
        pa.field("source_eid", pa.int64()),
        pa.field("source_sn", pa.int64()),
        pa.field("priority", pa.int8(), nullable=False),
        pa.field("congestion", pa.int8(), nullable=False),
        pa.field("express", pa.bool_(), nullable=False),
        pa.field("reliable", pa.bool_(), nullable=False),
        pa.field("received", INSTANT, nullable=False),
        pa.field("origin", pa.int8(), nullable=False),
    ]
)
"""One row of the journal. Its identity is (journal id, partition, offset)."""

UNNUMBERED: Final = SCHEMA.remove(0)
"""What a recorder hands to the writer: rows that have no number yet."""
