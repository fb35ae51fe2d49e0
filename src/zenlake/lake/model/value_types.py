"""The kinds of columns that payloads make, and which values fit into them.

    boolean · bigint · double · string · binary · array<one of these>

JSON cannot tell 21 from 21.0, so numbers go where they lose nothing: a whole number into a double
that holds it exactly, a double without a fraction into a bigint. A bigint column that meets a
fraction becomes a double. -0.0 fits no bigint, for its sign would be lost. Anything else that does
not fit is a change of type.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from zenlake.lake.model.decoder import Reason, Undecodable

__all__ = ["KINDS", "column_name", "fitted", "flattened", "joined", "kind_of", "name_key"]

_ONE: Final = ("boolean", "bigint", "double", "string", "binary")
KINDS: Final = (*_ONE, *(f"array<{kind}>" for kind in _ONE))
"""The kinds that values which describe themselves make; decoders of batches make others too."""

NUMBERS: Final = ("bigint", "double")

EXACT: Final = 1 << 53
"""Up to here every whole number is a double."""

MOST_DEPTH: Final = 8
MOST_FIELDS: Final = 1000
MOST_NAME: Final = 200
BYTES: Final = "$base64"
"""The member of an object that stands for bytes in JSON text."""
_SIMPLE: Final[Mapping[type, str]] = {bool: "boolean", float: "double", bytes: "binary"}
"""Types whose values are all of one kind, whatever they are."""
_ATOMS: Final = frozenset((bool, int, float, str, bytes, type(None)))
_UNFIT: Final = re.compile(r"\W")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def kind_of(value: object) -> str | None:
    """The kind of column that a value would make; None where it makes none (null, `[]`)."""
    simple = _SIMPLE.get(type(value))
    if simple is not None:
        return simple
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise Undecodable(f"{str(value)[:40]} does not fit 64 bits", Reason.RANGE)
        return "bigint"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        # JSON can spell half of a surrogate pair, and no column of text holds one.
        if not value.isascii() and _SURROGATE.search(value) is not None:
            raise Undecodable(f"{_shown(value)} is not Unicode text", Reason.TEXT)
        return "string"
    if isinstance(value, bytes):
        return "binary"
    if isinstance(value, list):
        kind: str | None = None
        for item in value:
            inner = kind_of(item)
            if inner is not None:
                kind = inner if kind is None else joined(kind, inner)
                if kind is None:
                    raise Undecodable(
                        "a list of several kinds", Reason.TYPE
                    )  # flattened() leaves none
        return None if kind is None else f"array<{kind}>"
    if value is None:
        return None
    raise Undecodable(f"a {type(value).__name__} makes no column", Reason.TYPE)


def joined(one: str, other: str) -> str | None:
    """The kind that holds both, or None if there is none."""
    if one == other:
        return one
    if {one, other} == {"bigint", "double"}:
        return "double"
    if {one, other} == {"array<bigint>", "array<double>"}:
        return "array<double>"
    return None


def fitted(value: object, kind: str) -> object:
    """The value as the column holds it; raises `Undecodable` if it would not be the same."""
    if value is None or _SIMPLE.get(type(value)) == kind:
        return value
    if kind.startswith("array<"):
        if isinstance(value, list):
            return [fitted(item, kind[6:-1]) for item in value]
    elif kind == "double":
        if isinstance(value, float):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= EXACT:
            return float(value)
    elif kind == "bigint":
        if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
            if value == 0 and math.copysign(1, value) < 0:
                raise Undecodable(
                    "-0.0 where there was bigint, which has no sign of 0", Reason.RANGE
                )
            return int(value)
        if kind_of(value) == kind:
            return value
    elif kind_of(value) == kind:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    raise Undecodable(
        f"{kind_of(value) or 'a list'} {_shown(value)} where there was {kind}",
        Reason.RANGE if number and kind in NUMBERS else Reason.TYPE,
    )


def flattened(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields by column: those of a mapping inside get its name before theirs, `pose_x`.

    Lists of lists, of mappings, or of several kinds become JSON text, in which bytes are an object
    with the one member `$base64`.
    """
    columns: dict[str, object] = {}
    _flatten("", fields, columns, 0)
    return columns


def _flatten(
    before: str, fields: Mapping[str, object], columns: dict[str, object], depth: int
) -> None:
    for name, value in fields.items():
        column = before + column_name(str(name))
        atom = type(value) in _ATOMS
        if not atom and isinstance(value, Mapping) and depth < MOST_DEPTH:
            _flatten(f"{column}_", value, columns, depth + 1)
            continue
        if column in columns:
            raise Undecodable(f"two fields come to the column '{column}'", Reason.NAME, column)
        if len(columns) >= MOST_FIELDS:
            raise Undecodable(f"more than {MOST_FIELDS} fields", Reason.COLUMNS)
        if atom:
            pass
        else:
            try:
                if isinstance(value, Mapping) or (isinstance(value, list) and not _even(value)):
                    value = json.dumps(_as_json(value), ensure_ascii=False)
            except Undecodable as error:
                error.field = column
                raise
        columns[column] = value


def _as_json(value: object) -> object:
    """Return a value of a list as JSON has it, so that it can be read back as it was."""
    if isinstance(value, bytes):
        return {BYTES: b64encode(value).decode()}
    if isinstance(value, Mapping):
        if value.keys() == {BYTES}:
            raise Undecodable(f"a member '{BYTES}', which stands for bytes", Reason.TYPE)
        return {str(name): _as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise Undecodable(f"{value} in a list that becomes JSON, which has none", Reason.RANGE)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Undecodable(f"a {type(value).__name__} makes no column", Reason.TYPE)


@lru_cache(maxsize=4096)
def column_name(name: str) -> str:
    """Return a name that every reader of tables accepts: of letters, digits and `_`.

    What is cut from a long name is in its last 16 digits, so that long names stay apart.
    """
    fitting = _UNFIT.sub("_", name)
    if len(fitting) > MOST_NAME:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{fitting[: MOST_NAME - len(digest) - 1]}_{digest}"
    return fitting or "_"


@lru_cache(maxsize=65536)
def name_key(name: str) -> str:
    """Return what is equal for names that readers of tables take for one, whatever their case.

    Spark compares letter by letter, by their capitals too (`equalsIgnoreCase` of Java): `ς` is `σ`,
    and the sign of micro is the letter mu. `ß` is not `ss`.
    """
    if name.isascii():
        return name.lower()
    return "".join(map(_letter_key, name))


def _letter_key(letter: str) -> str:
    if letter == "\u0130":  # Python writes its small letter with two
        return "i"
    capital = letter.upper()
    small = (capital if len(capital) == 1 else letter).lower()
    return small if len(small) == 1 else letter


def _even(items: list[object]) -> bool:
    kind: str | None = None
    for item in items:
        if isinstance(item, list | Mapping):
            return False
        inner = kind_of(item)
        if inner is None:
            continue
        both = inner if kind is None else joined(kind, inner)
        if both is None:
            return False
        kind = both
    return True


def _shown(value: object) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
