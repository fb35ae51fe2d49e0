"""Columns of a journal as words that people search for, and words as columns of a journal.

    encoding_id, encoding_schema   ⇄   encoding    application/json;utf-8
    kind                           ⇄   kind        put, delete
    source_zid, stamp_id           ⇄   the same    1a2b3
    source_zid, source_eid          →  source_id   1a2b3:7

What repeats is worked on once for each value that is different, never once for each row: words
come as dictionary arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.clock.zid import id_text
from zenlake.errors import LocalError
from zenlake.recorded.encoding import recorded_parts, recorded_schema, recorded_text
from zenlake.recorded.words import KINDS, source_text

__all__ = [
    "coded",
    "constant",
    "encoding_numbers",
    "encoding_words",
    "id_bytes",
    "id_words",
    "ids_of_words",
    "kind_numbers",
    "kind_words",
    "numbers_for_words",
    "schema_words",
    "source_words",
]

_KIND_WORDS: Final = pa.array(KINDS)


def coded(column: Any) -> pa.DictionaryArray:
    """Return a column, in chunks or not, as one dictionary array."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.array([], column.type.value_type).dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


# ------------------------------------------------------------------------------- numbers to words


def encoding_words(ids: pa.Array, schemas: pa.Array) -> pa.DictionaryArray:
    """Return the recorded texts of encodings, from the ids and schemas of the wire."""
    numbers = ids.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(ids) and schemas.null_count == len(ids) and (numbers == numbers[0]).all():
        return constant(recorded_text(int(numbers[0]), None), len(ids))
    named = schemas.dictionary_encode() if schemas.null_count < len(schemas) else None
    codes = np.zeros(len(numbers), np.int64) if named is None else _codes(named)
    both = pa.array(numbers << 32 | codes).dictionary_encode()
    texts = []
    for value in both.dictionary.to_pylist():
        code = value & 0xFFFFFFFF
        schema = named.dictionary[code - 1].as_py() if named is not None and code else None
        texts.append(recorded_text(value >> 32, schema))
    return pa.DictionaryArray.from_arrays(both.indices, pa.array(texts, pa.string()))


def schema_words(schemas: pa.Array) -> pa.Array:
    """Return the recorded texts of the schemas of encodings; null stays null."""
    return _mapped(schemas, recorded_schema, pa.string())


def kind_words(kinds: pa.Array) -> pa.DictionaryArray:
    """Return `put` or `delete` for each number of a kind."""
    return pa.DictionaryArray.from_arrays(kinds.cast(pa.int32()), _KIND_WORDS)


def id_words(ids: pa.Array) -> pa.DictionaryArray:
    """Return ids of nodes as people read them; null where there is none."""
    if ids.null_count == len(ids):
        return pa.nulls(len(ids), pa.dictionary(pa.int32(), pa.string()))
    codes = ids.dictionary_encode()
    texts = [id_text(id) for id in codes.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(codes.indices, pa.array(texts, pa.string()))


def source_words(zids: pa.Array, eids: pa.Array) -> pa.DictionaryArray:
    """Return who sent each, `zid:eid`, as the ledger names sources; null where that is not told."""
    if zids.null_count == len(zids):
        return pa.nulls(len(zids), pa.dictionary(pa.int32(), pa.string()))
    nodes = zids.dictionary_encode()
    entities = pc.fill_null(eids, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    both = pa.array(_codes(nodes) << 32 | entities & 0xFFFFFFFF).dictionary_encode()
    texts: list[str | None] = []
    for value in both.dictionary.to_pylist():
        code = value >> 32
        zid = nodes.dictionary[code - 1].as_py() if code else None
        texts.append(None if zid is None else source_text(zid, value & 0xFFFFFFFF))
    # Encoded once more, for a dictionary may not hold null itself.
    return pa.array(texts, pa.string()).take(both.indices).dictionary_encode()


def constant(word: str, count: int) -> pa.DictionaryArray:
    """Return a column that says one word, so many times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([word]))


# ------------------------------------------------------------------------------- words to numbers


def numbers_for_words(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table as a journal has them; what has no words stays as it is."""
    found = dict(columns)
    if "encoding" in found:
        found["encoding_id"], found["encoding_schema"] = encoding_numbers(found.pop("encoding"))
    for name, numbers in _NUMBERS.items():
        if name in found and _has_words(found[name]):
            found[name] = numbers(found[name])
    return found


def _has_words(column: Any) -> bool:
    type = column.type
    plain = type.value_type if pa.types.is_dictionary(type) else type
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def encoding_numbers(words: Any) -> tuple[pa.Array, pa.Array]:
    """Return the ids and schemas of recorded texts; null is `zenoh/bytes`."""
    codes = coded(words)
    parts = [recorded_parts(text) for text in codes.dictionary.to_pylist()]
    ids = pa.array([id for id, _ in parts], pa.int32()).take(codes.indices)
    schemas = pa.array([schema for _, schema in parts], pa.string()).take(codes.indices)
    return pc.fill_null(ids, recorded_parts("")[0]), schemas


def kind_numbers(words: Any) -> pa.Array:
    """Return the number of each kind."""
    return _mapped(words, _kind_number, pa.int8())


def _kind_number(word: str) -> int:
    if word not in KINDS:
        raise LocalError(f"'{word}' is no kind of sample; it is put or delete")
    return KINDS.index(word)


def ids_of_words(words: Any) -> pa.Array:
    """Return the bytes of ids; null stays null."""
    return _mapped(words, id_bytes, pa.binary())


_NUMBERS: Final = {
    "kind": kind_numbers,
    "stamp_id": ids_of_words,
    "source_zid": ids_of_words,
}
"""What makes numbers of the words of a column."""


def id_bytes(text: str | None) -> bytes:
    """Return the bytes of an id, by which ids are ordered; no id is before all others."""
    number = int(text, 16) if text else 0
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _mapped(column: Any, function: Callable[[Any], Any], type: pa.DataType) -> pa.Array:
    """Return a function of each value, asked once for each that is different."""
    codes = coded(column)
    return pa.array(list(map(function, codes.dictionary.to_pylist())), type).take(codes.indices)


def _codes(column: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the place of each value among the different ones, from 1; 0 is null."""
    indices = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
    return np.asarray(indices.astype(np.int64) + 1)
