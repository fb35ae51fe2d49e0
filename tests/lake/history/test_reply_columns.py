"""The columns of an answer: every row keeps its own key, kind, time, value and source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from zenlake.journal.reading.wire_times import TIME_BYTES
from zenlake.lake.history.answer import NEWEST, SAMPLES
from zenlake.lake.history.reply_columns import ReplyColumns
from zenlake.recorded.time_bounds import HLC_BIAS
from zenlake.wire.cursor import Reader

IDS = {"1": b"\x01", "1ab": b"\xab\x01", "f" * 32: b"\xff" * 16}
"""The bytes of ids by their texts: hexadecimal digits of a little-endian number."""

ENCODINGS: dict[str | None, tuple[int, bytes]] = {
    None: (0, b""),
    "": (0, b""),
    "zenoh/bytes": (0, b""),
    "application/json;x": (5, b"x"),
    "my/own;v2": (65535, b"my/own;v2"),
    "unknown(4000)": (4000, b""),
    "unknown(4000);v2": (4000, b"v2"),
    "unknown(65535);text/plain": (65535, b"text/plain"),
    "unknown(4000);" + "x" * 255: (4000, b"x" * 255),
    # Longer than a message carries: only the number is left.
    "unknown(4000);" + "x" * 256: (4000, b""),
}
"""The number and the schema of encodings on the wire by their texts in the table."""

ids = st.sampled_from(sorted(IDS))
rows = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "a/b", "ä/☃", "robot/1"]),
        "value": st.none() | st.binary(max_size=4),
        "encoding": st.sampled_from(list(ENCODINGS)),
        "kind": st.sampled_from(["put", "delete"]),
        "time": st.just(0),
        "hlc": st.integers(0, 1 << 62),
        "stamp_id": ids,
        "attachment": st.none() | st.binary(max_size=3),
        "source_zid": st.none() | ids,
        "source_eid": st.none() | st.integers(0, 9),
        "source_sn": st.none() | st.integers(0, 9),
        "offset": st.integers(0, 9),
    }
)


def table(parts: list[list[dict[str, Any]]], schema: pa.Schema) -> pa.Table:
    plain = [pa.Table.from_pylist(part, NEWEST).cast(schema) for part in parts]
    return pa.concat_tables(plain) if plain else schema.empty_table()


@given(st.lists(st.lists(rows, max_size=5), max_size=3), st.booleans(), st.integers(1, 4))
def test_every_row_keeps_what_it_has(
    parts: list[list[dict[str, Any]]], coded: bool, size: int
) -> None:
    told = [row for part in parts for row in part]
    columns = ReplyColumns(table(parts, SAMPLES if coded else NEWEST))
    found: list[dict[str, Any]] = []
    for start in range(0, len(told), size):
        stretch = columns.stretch(start, size)
        for n, head in enumerate(stretch.heads):
            kind, key = divmod(head, len(columns.keys))
            of = columns.kinds[kind]
            seconds, fraction = Reader(stretch.times[n * TIME_BYTES :]).ntp64()
            source = None if stretch.sources is None else stretch.sources[n]
            found.append(
                {
                    "key": columns.keys[key],
                    "deleted": of.deleted,
                    "id": of.id,
                    "encoding": (of.encoding, of.schema),
                    "hlc": (seconds << 32 | fraction) - HLC_BIAS,
                    "value": stretch.values[n],
                    "attachment": None if stretch.attachments is None else stretch.attachments[n],
                    "source": None if source is None else (source.zid, source.eid, source.sn),
                }
            )
    assert found == [
        {
            "key": row["key"],
            "deleted": row["kind"] == "delete",
            "id": IDS[row["stamp_id"]],
            "encoding": ENCODINGS[row["encoding"]],
            "hlc": row["hlc"],
            "value": row["value"] or b"",
            "attachment": row["attachment"],
            "source": None
            if row["source_zid"] is None or row["source_sn"] is None
            else (IDS[row["source_zid"]], row["source_eid"] or 0, row["source_sn"]),
        }
        for row in told
    ]


def test_other_values_have_an_encoding_of_their_own() -> None:
    one: dict[str, Any] = {
        "key": "a",
        "value": b"1",
        "encoding": "zenoh/bytes",
        "kind": "put",
        "hlc": 1,
    }
    one["stamp_id"] = "ab"
    columns = ReplyColumns(table([[one, one]], NEWEST), "application/json")
    assert [(kind.encoding, kind.schema) for kind in columns.kinds] == [(5, b"")]
    assert columns.stretch(0, 2, [b"x", b"y"]).values == [b"x", b"y"]
