"""Names of values: key expressions, the key tree, key formats and selectors.

The modules of formats and time ranges are imported on first use: most programs need neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.keys.keyexpr import IntoKeyExpr, KeyExpr, SetIntersectionLevel
from zenlake.keys.matching import canonize, check, includes, intersects, is_wild
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME, IntoParameters, Parameters
from zenlake.keys.selector import IntoSelector, Selector
from zenlake.keys.tree import KeyTree, TreeEntry
from zenlake.lazy import lazy_names

if TYPE_CHECKING:
    from zenlake.keys.format import KeyFormat
    from zenlake.keys.time_range import Instant, Now, ResolvedRange, TimeBound, TimeRange

__all__ = [
    "ANY_KEY_EXPR",
    "TIME",
    "Instant",
    "IntoKeyExpr",
    "IntoParameters",
    "IntoSelector",
    "KeyExpr",
    "KeyFormat",
    "KeyTree",
    "Now",
    "Parameters",
    "ResolvedRange",
    "Selector",
    "SetIntersectionLevel",
    "TimeBound",
    "TimeRange",
    "TreeEntry",
    "canonize",
    "check",
    "includes",
    "intersects",
    "is_wild",
]

_RANGES = ("Instant", "Now", "ResolvedRange", "TimeBound", "TimeRange")
__getattr__ = lazy_names(__name__, {"KeyFormat": "format"} | dict.fromkeys(_RANGES, "time_range"))


def __dir__() -> list[str]:
    """Return all names of the module, imported or not."""
    return sorted({*globals(), *__all__})
