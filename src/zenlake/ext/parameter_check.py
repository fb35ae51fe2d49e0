"""Refuses queries with parameters that their service does not obey (`keys/query_parameters`)."""

from __future__ import annotations

from typing import Final

from zenlake.config.nearest import nearest
from zenlake.errors import SelectorError
from zenlake.keys import Parameters
from zenlake.keys.query_parameters import KNOWN, LENIENT, SERVICES

__all__ = ["demand_understood"]

_LONGEST: Final = 40
"""Letters of an unknown name that are shown."""


def demand_understood(parameters: Parameters, service: str) -> None:
    """Raise `SelectorError` for the first parameter that a service of `SERVICES` refuses.

    Names without `_` belong to applications and always pass.
    """
    assert service in set(SERVICES).difference(LENIENT), service
    seen: set[str] = set()
    for name, _ in parameters:
        if name[:1] != "_":
            continue
        known = KNOWN.get(name)
        if known is None:
            raise SelectorError(_unknown(name))
        if name in seen and not known.repeats:
            parameters.interpreted(name)
        seen.add(name)
        if known.is_refused_by(service):
            raise SelectorError(f"'{name}' {known.refusal_of(service)}")


def _unknown(name: str) -> str:
    near = nearest(name, KNOWN)
    meant = "leave it out." if near is None else f"did you mean '{near}'?"
    return f"'{name[:_LONGEST]}' is no parameter: {meant} Names of your own begin without '_'"
