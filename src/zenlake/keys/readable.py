"""The keys whose values a querier may get, and how a query carries them: the parameter `_readable`.

An answer that tells of many keys in one reply (an aggregate, rows of SQL, a stretch of a journal)
has no key of its own that a router could judge. So the router that an asker is a neighbour of says
with the question which keys it may read, and who answers leaves out all others. Every router on
the way may say it again, and so may the asker: each takes keys away, none adds any.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from zenlake.errors import KeyExprError, SelectorError
from zenlake.keys.matching import check, includes
from zenlake.keys.parameters import Parameters
from zenlake.keys.query_parameters import LAKE
from zenlake.records import record

__all__ = ["ALL_KEYS", "READABLE", "ReadableChoice", "ReadableKeys", "asks_of_many"]

READABLE: Final = "_readable"

MOST_EXPRESSIONS: Final = 10_000
"""Key expressions that may be said with one question; with more it is refused."""

#: First chunks of keys under which nodes tell of other keys.
_TELLING: Final = ("@", "@lake", "@journal")


@record(frozen=True, slots=True)
class ReadableChoice:
    """Keys that some of `allowed` include and none of `denied` does."""

    #: None: all keys, those with chunks that begin with @ too.
    allowed: tuple[str, ...] | None
    denied: tuple[str, ...] = ()

    def lets(self, key: str) -> bool:
        """Whether the key is one of them."""
        allowed = self.allowed
        return (allowed is None or any(includes(one, key) for one in allowed)) and not any(
            includes(one, key) for one in self.denied
        )


@record(frozen=True, slots=True)
class ReadableKeys:
    """Keys that are in at least one choice of each demand."""

    demands: tuple[tuple[ReadableChoice, ...], ...] = ()

    @property
    def unrestricted(self) -> bool:
        """Whether all keys are readable."""
        return not self.demands

    def lets(self, key: str) -> bool:
        """Whether the values of a key may be told."""
        return all(any(one.lets(key) for one in choices) for choices in self.demands)

    def granted(self) -> ReadableKeys:
        """Without what only the lack of a permission takes away: keys that a rule denies remain.

        For answers that an operator has granted as such.
        """
        return ReadableKeys(
            tuple(
                tuple(ReadableChoice(None, one.denied) for one in choices)
                for choices in self.demands
                if choices and all(one.denied for one in choices)
            )
        )

    def text(self) -> str:
        """The value of the parameter; it has no letter that ends one."""
        import json

        plain = [[[one.allowed, one.denied] for one in choices] for choices in self.demands]
        raw = json.dumps(plain, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def in_parameters(cls, parameters: Parameters) -> ReadableKeys:
        """All that is said of it with a question; `SelectorError` for what cannot be read."""
        demands: list[tuple[ReadableChoice, ...]] = []
        for name, value in parameters:
            if name == READABLE:
                demands += _read(value)
        choices = [one for choices in demands for one in choices]
        if sum(len(one.allowed or ()) + len(one.denied) for one in choices) > MOST_EXPRESSIONS:
            raise SelectorError(
                f"{READABLE} has more than {MOST_EXPRESSIONS} key expressions; write rules of "
                "access control with wildcards instead of many keys"
            )
        return cls(tuple(dict.fromkeys(demands)))

    @classmethod
    def of(cls, text: str) -> ReadableKeys:
        """Return what `text` wrote; `SelectorError` for what cannot be read."""
        return cls(tuple(_read(text)))

    def restrict(self, parameters: str) -> str:
        """The parameters of a question with this said before all else."""
        said = f"{READABLE}={self.text()}"
        return f"{said};{parameters}" if parameters else said


ALL_KEYS: Final = ReadableKeys()


def asks_of_many(key: str, parameters: str) -> bool:
    """Whether answers to a question may tell of keys that their own does not show."""
    first = key.partition("/")[0]
    return first in _TELLING or (
        "_" in parameters and any(name in LAKE for name, _ in Parameters(parameters))
    )


def _read(text: str) -> list[tuple[ReadableChoice, ...]]:
    import json

    try:
        plain = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return [
            tuple(
                ReadableChoice(None if allowed is None else _exprs(allowed), _exprs(denied))
                for allowed, denied in choices
            )
            for choices in plain
        ]
    except (binascii.Error, ValueError, TypeError, KeyExprError, RecursionError) as error:
        raise SelectorError(
            f"{READABLE}={text[:40]}: routers write it, and this none did; leave it out"
        ) from error


def _exprs(listed: list[str]) -> tuple[str, ...]:
    if not isinstance(listed, list):
        raise TypeError(listed)
    for one in listed:
        check(one)
    return tuple(listed)
