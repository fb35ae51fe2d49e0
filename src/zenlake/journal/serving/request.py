"""A request for a journal's rows: in parameters, or as JSON beside the query.

Parameters do for numbers: `partition=0;start=10;end=20`. Key expressions and lists of columns
travel as JSON, because a `;` would end a parameter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from zenlake.config.nearest import nearest
from zenlake.errors import SelectorError
from zenlake.journal.schema import SCHEMA
from zenlake.keys import KeyExpr, Parameters
from zenlake.recorded.time_bounds import ALL_TIME, TimeBounds

__all__ = ["PARAMETERS", "RowRequest"]

PARAMETERS: Final = ("partition", "start", "end")
"""The parameters of a query for rows; any other name is refused."""

_SHOWN: Final = 40
"""Letters of an unknown name that are shown."""


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Rows of one partition, from `start` up to and without `end`, and what of them."""

    partition: int = 0
    start: int | None = None
    end: int | None = None
    keys: tuple[str, ...] = ()
    time: TimeBounds = ALL_TIME
    columns: tuple[str, ...] | None = None
    #: The id of the journal that is meant, if it may be another of the same name.
    journal: str | None = None

    def to_json(self) -> str:
        """The request as it travels beside a query."""
        fields = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}
        fields |= {"partition": self.partition, "start": self.start}
        del fields["time"]
        if self.time != ALL_TIME:
            # Microseconds for those who know no other unit: they give a little more.
            fields |= {"time": self.time.micros, "stamps": (self.time.first, self.time.last)}
        return json.dumps(fields)

    @classmethod
    def parse(cls, parameters: Parameters, payload: bytes | None) -> RowRequest:
        """Read what a stranger asks for."""
        fields: dict[str, Any] = {}
        if payload:
            try:
                fields = json.loads(payload)
            except (ValueError, RecursionError) as error:
                raise SelectorError(f"the request is not JSON: {error}") from error
            if not isinstance(fields, dict):
                raise SelectorError(f"the request is a {type(fields).__name__}; send an object")
        for name, _ in parameters:
            if name in PARAMETERS:
                fields[name] = parameters.interpreted(name)
            elif name[:1] != "_":  # those were judged with all other parameters of queries
                raise SelectorError(_unknown(name))
        columns = fields.get("columns")
        return cls(
            _number(fields.get("partition"), "partition") or 0,
            _number(fields.get("start"), "start"),
            _number(fields.get("end"), "end"),
            tuple(str(KeyExpr.of(key)) for key in _texts(fields.get("keys") or (), "keys")),
            _time(fields.get("time"), fields.get("stamps")),
            None if columns is None else _columns(_texts(columns, "columns")),
            None if fields.get("journal") is None else str(fields["journal"]),
        )


def _number(value: object, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return value
    raise SelectorError(f"{name}={value!r} is no number of rows; write one like {name}=10")


def _unknown(name: str) -> str:
    near = nearest(name, PARAMETERS)
    meant = f"write {', '.join(PARAMETERS)}" if near is None else f"did you mean '{near}'?"
    return f"'{name[:_SHOWN]}' is no parameter of rows: {meant}"


def _texts(value: object, name: str) -> list[str]:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return list(value)
    raise SelectorError(f"{name} is {value!r}; send a list of texts")


def _columns(names: list[str]) -> tuple[str, ...]:
    unknown = sorted(set(names) - set(SCHEMA.names))
    if unknown:
        raise SelectorError(f"no columns {unknown}; there are {', '.join(SCHEMA.names)}")
    return tuple(names)


def _time(micros: object, stamps: object) -> TimeBounds:
    """A range of microseconds, half open, or of NTP64, both included, if there are both."""
    if stamps is not None:
        first, last = _pair(stamps, "stamps")
        if first is not None and last is not None:
            return TimeBounds(first, last)
    return ALL_TIME if micros is None else TimeBounds.of_micros(*_pair(micros, "time"))


def _pair(value: object, name: str) -> tuple[int | None, int | None]:
    if isinstance(value, list | tuple) and len(value) == 2:
        low, high = value
        if all(one is None or (isinstance(one, int) and abs(one) <= 1 << 64) for one in value):
            return low, high
    raise SelectorError(f"{name} is {value!r}; send two whole numbers, or null for open")
