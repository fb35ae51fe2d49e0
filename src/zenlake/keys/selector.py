"""`Selector`: a key expression and the parameters of a question about its keys.

    robot/*/pose?_time=[now(-1h)..];unit=mm
    └─ where ──┘ └──── parameters ────────┘

Text is cut at its first `?`. On the wire the two halves travel apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from zenlake.keys.keyexpr import IntoKeyExpr, KeyExpr
from zenlake.keys.parameters import ANY_KEY_EXPR, IntoParameters, Parameters

if TYPE_CHECKING:
    from zenlake.keys.time_range import TimeRange

__all__ = ["IntoSelector", "Selector"]


@final
class Selector:
    """What to ask for: which keys, and with which parameters."""

    __slots__ = ("_key_expr", "_parameters")

    def __init__(self, arg: IntoKeyExpr, /, parameters: IntoParameters | None = None) -> None:
        """Read `keyexpr?parameters`, or put together a key expression and parameters."""
        if parameters is None and isinstance(arg, str):
            arg, _, parameters = arg.partition("?")
        self._key_expr = KeyExpr.of(arg)
        self._parameters = Parameters(parameters)

    @classmethod
    def of(cls, selector: IntoSelector) -> Selector:
        """Return `selector` itself if it is a `Selector`, else read it."""
        return selector if isinstance(selector, Selector) else cls(selector)

    @property
    def key_expr(self) -> KeyExpr:
        """The keys asked for."""
        return self._key_expr

    @property
    def parameters(self) -> Parameters:
        """A copy of the parameters: editing it leaves the selector as it is."""
        return Parameters(self._parameters)

    @property
    def time_range(self) -> TimeRange | None:
        """The range of `_time`, or None; raises `SelectorError` if it does not parse."""
        return self._parameters.time_range()

    @property
    def accepts_any_key(self) -> bool:
        """Whether replies may come on keys outside the question (`_anyke`, whatever its value)."""
        return ANY_KEY_EXPR in self._parameters

    def __str__(self) -> str:
        return f"{self._key_expr}?{self._parameters}" if self._parameters else str(self._key_expr)

    def __repr__(self) -> str:
        return f'sel"{self}"'

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Selector, (str(self),)


IntoSelector = Selector | KeyExpr | str
"""What may stand for a selector."""
