"""`Parameters`: the `name=value;name=value` part of a selector.

The rules, which are also those of the wire: items stand between `;`, empty ones are skipped; the
first `=` of an item ends its name, and an item without `=` has an empty value; where a name occurs
twice the first one counts; nothing is percent-decoded; `|` separates several values in one.

Reading with `get` forgives everything. The accessors that *interpret* a parameter (`interpreted`,
`flag`, `time_range`) raise `SelectorError` where the name occurs twice, because two nodes could
choose differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from zenlake.errors import SelectorError
from zenlake.keys.query_parameters import KNOWN, LAKE

if TYPE_CHECKING:
    from zenlake.keys.time_range import TimeRange

__all__ = ["ANY_KEY_EXPR", "TIME", "IntoParameters", "Parameters"]

TIME: Final = "_time"
"""The range of time asked for."""

LIMIT: Final = "_limit"
"""How many samples are asked for."""

ANY_KEY_EXPR: Final = "_anyke"
"""Replies may come on keys outside the question."""


class Parameters:
    """The parameters of a selector: an ordered list of names and values that can be edited."""

    __slots__ = ("_text",)

    def __init__(self, parameters: IntoParameters | None = None) -> None:
        """Read text, or write a mapping of names to values."""
        if parameters is None:
            self._text = ""
        elif isinstance(parameters, str):
            self._text = str(parameters).rstrip(";")
        elif isinstance(parameters, Parameters):
            self._text = parameters._text
        elif isinstance(parameters, Mapping):
            self._text = _write([_item(name, value) for name, value in parameters.items()])
        else:
            raise TypeError(
                "parameters are written as str or as a dict of str, "
                f"not {type(parameters).__name__}: {parameters!r}"
            )

    # --- reading -------------------------------------------------------------------------------

    def is_empty(self, /) -> bool:
        """Whether there is no parameter at all."""
        return not self._text

    def get(self, /, key: str, default: str | None = None) -> str | None:
        """Return the first value of `key`, or `default`."""
        _need_text("a parameter's name", key)
        for name, value in self:
            if name == key:
                return value
        return default

    def values(self, /, key: str) -> list[str]:
        """Return the first value of `key` cut at each `|`; nothing if there is no such name."""
        value = self.get(key)
        return [] if value is None else value.split("|")

    def is_ordered(self, /) -> bool:
        """Whether the names stand in alphabetical order."""
        names = [name for name, _ in self]
        return names == sorted(names)

    def __bool__(self) -> bool:
        return not self.is_empty()

    def __contains__(self, item: str) -> bool:
        return self.get(item) is not None

    def __getitem__(self, item: str) -> str | None:
        return self.get(item)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(_read(self._text))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Parameters) else NotImplemented

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    # --- editing -------------------------------------------------------------------------------

    def insert(self, /, key: str, value: str) -> str | None:
        """Put `key` last with `value`, in place of all it had; return its former first value."""
        item = _item(key, value)
        before = self.get(key)
        self._text = _write([pair for pair in self if pair[0] != key] + [item])
        return before

    def remove(self, /, key: str) -> str | None:
        """Take out every occurrence of `key`; return its former first value."""
        before = self.get(key)
        self._text = _write([pair for pair in self if pair[0] != key])
        return before

    def extend(self, /, parameters: IntoParameters) -> None:
        """Add others at the end; a name they hold replaces all it had here.

        Args:
            parameters: Those to add; they replace what has the same name.
        """
        added = list(Parameters(parameters))
        names = {name for name, _ in added}
        self._text = _write([pair for pair in self if pair[0] not in names] + added)

    # --- interpreting --------------------------------------------------------------------------

    def interpreted(self, key: str) -> str | None:
        """Return the only value of `key`, or None; raise `SelectorError` if there are several."""
        values = [value for name, value in self if name == key]
        if len(values) > 1:
            raise SelectorError(
                f"'{self._text}': '{key}' occurs {len(values)} times; write it once"
            )
        return values[0] if values else None

    def flag(self, key: str) -> bool:
        """Whether `key` is present with any value but `false`."""
        value = self.interpreted(key)
        return value is not None and value != "false"

    def asks_lake(self) -> bool:
        """Return True if one of them is for a lake to answer, or for a lake to refuse.

        A name that begins with `_` and that nobody knows is refused once: by the lake, where
        there is one.
        """
        return any(name in LAKE or (name[:1] == "_" and name not in KNOWN) for name, _ in self)

    def limit(self) -> int | None:
        """Return the number of `_limit`, or None; raise `SelectorError` for what is none."""
        text = self.interpreted(LIMIT)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise SelectorError(f"{LIMIT}={text}: write a number of samples")
        return int(text)

    def time_range(self) -> TimeRange | None:
        """Return the range of `_time`, or None; raise `SelectorError` if it does not parse."""
        text = self.interpreted(TIME)
        if text is None:
            return None
        # Imported here: the module of time ranges is slow to load, and few queries have one.
        from zenlake.keys.time_range import TimeRange

        if text[:1] in ("[", "]") and text[-1:] not in ("[", "]"):
            text = self._rejoin_length(text)
        return TimeRange.parse(text)

    def _rejoin_length(self, text: str) -> str:
        """Undo the cut of `_time=[start;length]`, whose `;` is also the separator of items."""
        items = self._text.split(";")
        for k in range(len(items) - 1):
            if items[k] == f"{TIME}={text}" and "=" not in items[k + 1]:
                return f"{text};{items[k + 1]}"
        return text


IntoParameters = Parameters | Mapping[str, str] | str
"""What may stand for parameters."""


def _read(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for item in text.split(";"):
        if item:
            name, _, value = item.partition("=")
            pairs.append((name, value))
    return pairs


def _write(pairs: list[tuple[str, str]]) -> str:
    return ";".join([f"{name}={value}" if value else name for name, value in pairs if name])


def _item(name: str, value: str) -> tuple[str, str]:
    """Check that reading what is written gives back the same name and value."""
    _need_text("a parameter's name", name)
    _need_text("a parameter's value", value)
    if ";" in name or "=" in name:
        raise SelectorError(f"parameter name '{name}': ';' and '=' end a name; leave them out")
    if ";" in value:
        hint = "write the range as '[start..end]'" if name == TIME else "write '|' between values"
        raise SelectorError(f"parameter '{name}={value}': ';' starts the next parameter; {hint}")
    return name, value


def _need_text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} is written as str, not {type(value).__name__}: {value!r}")
