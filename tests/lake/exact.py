"""Random documents in the formats that programs send, and an oracle that reads tables back.

The oracle knows documents and rows. It asks nothing of the lake: what a column is called, and how a
value may be written in it, is said here once more.
"""

from __future__ import annotations

import base64
import datetime
import io
import itertools
import json
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Final

import cbor2
import msgpack
import pyarrow as pa

OWN: Final = frozenset(
    ("key", "id", "kind", "time", "hlc", "received", "journal", "partition", "offset", "day")
)
JSON, CBOR, NO_ENCODING, CUSTOM = 5, 8, 0, 65535
NAMES: Final = ["x", "x", "y", "y", "n", "X", "a b", "a_b", "key", "Time", "p", "p_x", "é", "q.r"]
TEXTS: Final = [
    "",
    "a",
    "NaN",
    "1",
    "true",
    "2026-11-17T00:00:00Z",
    "ü🤖",
    "\0",
    '"',
    "\ud800",
    "{",
]
EDGES: Final = [1 << 53, (1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, -(1 << 63), 1 << 63]
WHOLE: Final = [0, 1, -1, 7, *EDGES]
FLOATS: Final = [0.0, -0.0, 0.5, 3.0, 1e300, 5e-324, float(1 << 53), float(1 << 60), 0.1]
ODD_FLOATS: Final = [math.nan, math.inf, -math.inf]
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class Sent:
    """A payload, and what its publisher meant."""

    payload: bytes
    encoding: int
    schema: str | None
    meant: Any
    """A document, a list of documents (the rows of Arrow), or a text or bytes that name nothing."""


# --- documents ----------------------------------------------------------------------------------


def scalar(random: Random, binary: bool) -> Any:
    kind = random.randrange(12 if binary else 10)
    if kind < 3:
        return random.choice(WHOLE) if random.random() < 0.3 else random.randrange(-50, 50)
    if kind < 6:
        return random.choice(FLOATS) if random.random() < 0.5 else random.uniform(-9, 9)
    if kind < 8:
        return random.choice(TEXTS)
    if kind == 8:
        return random.random() < 0.5
    if kind == 9:
        return None
    return random.choice([b"", b"\xff\0", b"text"] if kind == 10 else ODD_FLOATS)


def value(random: Random, binary: bool, depth: int = 0) -> Any:
    chance = random.random()
    if depth < 3 and chance < 0.15:
        return document(random, binary, depth + 1)
    if depth < 3 and chance < 0.3:
        if random.random() < 0.6:  # of one kind, as most are
            kinds: list[list[Any]] = [WHOLE, FLOATS, TEXTS[:4], [True, False], [None]]
            one = random.choice(kinds)
            return [random.choice(one) for _ in range(random.randrange(4))]
        return [value(random, binary, depth + 1) for _ in range(random.randrange(4))]
    return scalar(random, binary)


def document(random: Random, binary: bool, depth: int = 0) -> dict[str, Any]:
    names = [random.choice(NAMES) for _ in range(random.randrange(4))]
    return {name: usual(random, name, binary, depth) for name in names}


def usual(random: Random, name: str, binary: bool, depth: int) -> Any:
    """Return a value of the kind that a member of this name has most of the time."""
    if random.random() < 0.1:
        return value(random, binary, depth)
    if name in ("x", "X", "p_x"):
        return random.choice([*WHOLE[:5], *FLOATS, *(ODD_FLOATS if binary else [])])
    if name in ("n", "key", "é"):
        # A fraction comes seldom: mostly when the table has numbers that no double holds.
        return random.choice(WHOLE) if random.random() < 0.95 else 0.5
    if name in ("y", "Time"):
        return random.choice(TEXTS)
    if name == "p":
        return document(random, binary, depth + 1) if depth < 3 else None
    return [random.choice([1, 2, 0.5, None]) for _ in range(random.randrange(3))]


def alike(random: Random) -> dict[str, Any]:
    """Return one of many documents that have the same members of the same kinds."""
    return {
        "x": random.choice([random.randrange(100), random.randrange(100), 0.25, -0.0]),
        "n": random.randrange(-5, 5),
        "at": {"t": random.choice(["noon", "2026-11-17"]), "z": random.uniform(-1, 1)},
        "l": [random.randrange(5) for _ in range(random.randrange(1, 3))],
    }


def sent(random: Random) -> Sent:
    """Return a payload of JSON, CBOR or MessagePack, or one that says nothing of itself."""
    form = random.randrange(5)
    binary = form in (2, 3)
    if form < 2:
        meant: Any = alike(random) if random.random() < 0.5 else document(random, False)
        if random.random() < 0.1:
            meant = [value(random, False, 1) for _ in range(random.randrange(3))]
        text = json.dumps(meant, ensure_ascii=random.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
        if form == 1 and not unicode(text):
            return Sent(text, NO_ENCODING, None, text)
        return Sent(text, JSON if form == 0 else NO_ENCODING, None, meant)
    if binary:
        meant = document(random, True)
        try:
            if form == 2:
                return Sent(cbor2.dumps(meant), CBOR, None, meant)
            payload = msgpack.packb(meant)
            return Sent(payload, CUSTOM, "application/msgpack", meant)
        except (UnicodeEncodeError, OverflowError):
            return Sent(b"\xc1", CUSTOM, "application/msgpack", None)
    raw = random.choice([b"21.5", b" -3", b"1e999", b"auto", b"{broken", b"\xff\xfe", b"", b"007"])
    return Sent(raw, NO_ENCODING, None, raw)


def unicode(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- Arrow --------------------------------------------------------------------------------------

SMALL: Final = [0, 1, 2, 100, None]
ARROWS: Final[list[tuple[pa.DataType, list[Any]]]] = [
    (pa.int8(), SMALL),
    (pa.int32(), [*SMALL, -(1 << 31)]),
    (pa.int64(), [*SMALL, (1 << 53) + 1]),
    (pa.uint16(), [*SMALL, 65535]),
    (pa.uint64(), [*SMALL, (1 << 64) - 1]),
    (pa.float32(), [0.5, -0.0, None, math.inf, math.nan]),
    (pa.float64(), [0.1, -0.0, None, -math.inf, math.nan]),
    (pa.string(), ["a", "", None]),
    (pa.binary(), [b"\xff", None]),
    (pa.bool_(), [True, None]),
    (pa.decimal128(9, 2), [Decimal("1.50"), None]),
    (pa.timestamp("us", "UTC"), [EPOCH, EPOCH - datetime.timedelta(microseconds=1), None]),
    (pa.timestamp("ns"), [0, 1_000, None, -1_500, 1_500]),
    (pa.date32(), [datetime.date(1969, 12, 31), None]),
    (pa.struct([("a", pa.int32())]), [{"a": 1}, None, {"a": None}]),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1 << 60, "b": "x"}, None]),
    (pa.struct([("b", pa.string()), ("t", pa.timestamp("ns"))]), [{"b": "x", "t": 1_500}]),
    (pa.list_(pa.int16()), [[1, None], [], None]),
    (pa.list_(pa.struct([("a", pa.int64())])), [[{"a": 5}], [], None]),
    (pa.duration("s"), [None]),
]
_ENDS: Final = (3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20)
FAMILIES: Final = [ARROWS[start:end] for start, end in itertools.pairwise((0, *_ENDS))]
"""Types that a column may have one after the other, as it becomes wider."""


def sent_arrow(random: Random) -> Sent:
    """Return a payload of Arrow, with up to three rows of a few columns."""
    count = random.randrange(4)
    columns: dict[str, pa.Array] = {}
    meant: list[dict[str, Any]] = [{} for _ in range(count)]
    for n, family in enumerate(random.sample(FAMILIES, 3)):
        kind, values = random.choice(family)
        name = random.choice(["key", "a b", "é"]) if random.random() < 0.05 else f"c{n}"
        if random.random() < 0.9:  # the kinds of a column go together, most of the time
            name = f"c{FAMILIES.index(family)}"
        told = [random.choice(values) for _ in range(count)]
        columns[name] = pa.array(told, kind)
        narrow = kind == pa.float32()
        for row, one in zip(meant, told, strict=True):
            row[name] = struct.unpack("f", struct.pack("f", one))[0] if narrow and one else one
            if kind == pa.timestamp("ns") and one is not None:
                row[name] = Nanoseconds(one)
    rows = pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return Sent(sink.getvalue(), CUSTOM, "application/vnd.apache.arrow.stream", meant)


class Nanoseconds(int):
    """A time in nanoseconds since 1970."""


# --- the oracle ---------------------------------------------------------------------------------


def told(document: dict[str, Any], row: dict[str, Any], batches: bool = False) -> str:
    """Return what a row of a table says otherwise than the document; "" if it says the same."""
    left = {name.lower(): one for name, one in row.items() if name not in OWN}
    # Where two members come to one column, one of them is null, which says nothing.
    for name, meant in sorted(leaves(document, batches), key=lambda leaf: is_nothing(leaf[1])):
        column = called(name).lower()
        found = left.pop(column, None)
        beside = left.pop(f"{column}_ns", None) if isinstance(meant, Nanoseconds) else None
        if not same(meant, found, beside):
            return f"{name}: {meant!r} became {found!r} {beside or ''}"
    more = {name: one for name, one in left.items() if one is not None}
    return f"nobody said {more}" if more else ""


def is_nothing(meant: Any) -> bool:
    """Return True for what makes no column: null, and a list of nothing else."""
    return meant is None or (isinstance(meant, list) and all(map(is_nothing, meant)))


def leaves(document: dict[str, Any], batches: bool) -> Iterator[tuple[str, Any]]:
    """Give the values of a document, those of objects inside by their names joined with `_`."""
    for name, one in document.items():
        if isinstance(one, dict) and not batches:
            for inner, deep in leaves(one, batches):
                yield f"{fit(name)}_{inner}", deep
        else:
            yield fit(name), one


def fit(name: str) -> str:
    return re.sub(r"\W", "_", name) or "_"


def called(name: str) -> str:
    return f"payload_{name}" if name.lower() in OWN else name


def same(meant: Any, found: Any, beside: Any = None) -> bool:
    """Return True if what was found is what was meant, to the last bit."""
    if meant is None or meant == [] or meant == {}:
        return found is None or found == meant or found == str(meant)
    if isinstance(meant, Nanoseconds):
        if not isinstance(found, datetime.datetime):
            return False
        micros = (found - EPOCH) // datetime.timedelta(microseconds=1)
        return micros == meant // 1000 and (
            beside == meant if meant % 1000 else beside in (None, meant)
        )
    if isinstance(meant, bool) or isinstance(found, bool):
        return meant is found
    if isinstance(meant, int):
        return isinstance(found, int | float | Decimal) and found == meant
    if isinstance(meant, float):
        if isinstance(found, int):
            return found == meant and (meant != 0 or math.copysign(1, meant) > 0)
        if not isinstance(found, float):
            return False
        both_nan = math.isnan(meant) and math.isnan(found)
        return both_nan or struct.pack("d", meant) == struct.pack("d", found)
    if isinstance(meant, list):
        if isinstance(found, str):
            return same_json(meant, json.loads(found))
        if found is None:
            return all(one is None for one in meant)
        return isinstance(found, list) and len(found) == len(meant) and all(map(same, meant, found))
    if isinstance(meant, dict):
        if not isinstance(found, dict) or not meant.keys() <= found.keys():
            return False
        rest = (one for name, one in found.items() if name not in meant)
        return all(same(one, found[name]) for name, one in meant.items()) and not any(
            one is not None for one in rest
        )
    return type(meant) is type(found) and bool(meant == found)


def same_json(meant: Any, found: Any) -> bool:
    """Return True if JSON text in a column says what was meant."""
    if isinstance(meant, bytes):
        return bool(found == {"$base64": base64.b64encode(meant).decode()})
    if isinstance(meant, list):
        return (
            isinstance(found, list)
            and len(found) == len(meant)
            and all(map(same_json, meant, found))
        )
    if isinstance(meant, dict):
        return (
            isinstance(found, dict)
            and found.keys() == meant.keys()
            and all(same_json(one, found[name]) for name, one in meant.items())
        )
    if isinstance(meant, float):
        return isinstance(found, float) and struct.pack("d", meant) == struct.pack("d", found)
    return type(meant) is type(found) and bool(meant == found)


def told_raw(payload: bytes, row: dict[str, Any]) -> str:
    """Return what a row says otherwise than a payload that names nothing, and is no document."""
    left = {name: one for name, one in row.items() if name not in OWN and one is not None}
    number = left.pop("number", None)
    if number is not None and not same(float(payload), number):
        return f"{payload!r} became the number {number}"
    if not unicode(payload):
        return "" if left == {"bytes": payload} else f"{payload!r} became {left}"
    return "" if left == {"text": payload.decode()} else f"{payload!r} became {left}"
