"""What things are called: key expressions, the tree they live in, formats and selectors."""

from __future__ import annotations

from zenlake.keys.format import KeyFormat
from zenlake.keys.keyexpr import IntoKeyExpr, KeyExpr, SetIntersectionLevel
from zenlake.keys.matching import canonize, check, includes, intersects, is_wild
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME, IntoParameters, Parameters
from zenlake.keys.selector import IntoSelector, Selector
from zenlake.keys.time_range import Instant, Now, ResolvedRange, TimeBound, TimeRange
from zenlake.keys.tree import KeyTree, TreeEntry

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
