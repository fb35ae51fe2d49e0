"""What somebody wants of a journal's rows: in parameters, or as JSON beside the question.

Parameters do for numbers: `partition=0;start=10;end=20`. Key expressions and lists of columns
travel as JSON, because a `;` would end a parameter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from zenlake.errors import SelectorError
from zenlake.journal.schema import SCHEMA
from zenlake.keys import KeyExpr, Parameters

__all__ = ["RowRequest"]


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Rows of one partition, from `start` up to and without `end`, and what of them."""

    partition: int = 0
    start: int | None = None
    end: int | None = None
    keys: tuple[str, ...] = ()
    time: tuple[int | None, int | None] | None = None
    columns: tuple[str, ...] | None = None
    #: The id of the journal that is meant, if it may be another of the same name.
    journal: str | None = None

    def to_json(self) -> str:
        """The request as it travels beside a question."""
        return json.dumps(
            {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}
            | {"partition": self.partition, "start": self.start}
        )

    @classmethod
    def parse(cls, parameters: Parameters, payload: bytes | None) -> RowRequest:
        """Read what a stranger asks for."""
        told: dict[str, Any] = {}
        if payload:
            try:
                told = json.loads(payload)
            except ValueError as error:
                raise SelectorError(f"the request is not JSON: {error}") from error
            if not isinstance(told, dict):
                raise SelectorError(f"the request is a {type(told).__name__}; send an object")
        for name in ("partition", "start", "end"):
            text = parameters.get(name)
            if text:
                told[name] = text
        columns = told.get("columns")
        return cls(
            _whole(told.get("partition"), "partition") or 0,
            _whole(told.get("start"), "start"),
            _whole(told.get("end"), "end"),
            tuple(str(KeyExpr.of(key)) for key in _texts(told.get("keys") or (), "keys")),
            _time(told.get("time")),
            None if columns is None else _columns(_texts(columns, "columns")),
            None if told.get("journal") is None else str(told["journal"]),
        )


def _whole(found: object, name: str) -> int | None:
    if found is None:
        return None
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 19:
        return int(found)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 62:
        return found
    raise SelectorError(f"{name}={found!r} is no number of rows; write one like {name}=10")


def _texts(found: object, name: str) -> list[str]:
    if isinstance(found, list | tuple) and all(isinstance(one, str) for one in found):
        return list(found)
    raise SelectorError(f"{name} is {found!r}; send a list of texts")


def _columns(found: list[str]) -> tuple[str, ...]:
    unknown = sorted(set(found) - set(SCHEMA.names))
    if unknown:
        raise SelectorError(f"no columns {unknown}; there are {', '.join(SCHEMA.names)}")
    return tuple(found)


def _time(found: object) -> tuple[int | None, int | None] | None:
    if found is None:
        return None
    if isinstance(found, list | tuple) and len(found) == 2:
        low, high = found
        if all(one is None or (isinstance(one, int) and abs(one) < 1 << 62) for one in found):
            return low, high
    raise SelectorError(f"time is {found!r}; send two numbers of microseconds, or null for open")
