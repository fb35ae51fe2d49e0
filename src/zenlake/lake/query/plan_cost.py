"""Bounds what a question makes Spark do while it plans, where nobody can cancel it.

Spark evaluates what holds for all rows in its driver, before the first job: constants, and what it
knows of files. So no constant of a stranger may take long: sizes stand in the question and are
small, their product too; patterns are texts that `lake/query/pattern_guard` lets through; loops in
loops over large arrays are refused. And no plan may grow large from a short text: subqueries that
are named are put in wherever the name stands, columns wherever they are used, and each set of
`CUBE` is a branch of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, final

from zenlake.lake.query.allowed_functions import (
    INFERRED,
    MANIFOLD,
    MOST_SIZE,
    PATTERNS,
    SIZED,
    TYPES,
)
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.pattern_guard import MOST_LOOPS, demand_like, demand_pattern, power_of
from zenlake.lake.query.plan_nodes import Refused, expressions_of, items, kind_of, plans

__all__ = ["MOST_SOURCES", "AliasGuard", "CostGuard", "demand_sources"]

MOST_PATTERNS: Final = 50
"""Regular expressions in a question."""
MOST_MADE: Final = 10_000_000
"""What the sizes in a question give, multiplied."""
MOST_LOOPED: Final = 100_000_000
"""Steps of loops in loops over the largest constant of a question."""
MOST_SETS: Final = 256
"""Sets of columns that one question groups by."""
MOST_SOURCES: Final = 100
"""Tables that a question reads, each as often as it stands in the plan."""
MOST_EXPANDED: Final = 20_000
"""Parts of an expression once the columns are put in that it is made of."""
MOST_WINDOWS: Final = 1_000
"""Windows of time that a row may fall into."""
MOST_TYPES: Final = 200
"""Brackets in the name of a type, or in the example that it is made of."""
MOST_WIDTH: Final = 3
"""Digits of a width in a format."""

_LIKES: Final = frozenset({"Like", "ILike"})
_MANY_LIKES: Final = frozenset({"LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny"})
_MATCHING: Final = _LIKES | _MANY_LIKES | {
    "ParseUrl", "RLike", "RegExpCount", "RegExpExtract", "RegExpExtractAll", "RegExpInStr",
    "RegExpReplace", "RegExpSubStr", "StringSplit", "StringToMap",
}  # fmt: skip
"""Expressions that match their first part with a pattern."""
_GROWING: Final = re.compile(
    r"concat|\|\||array|map|struct|flatten|replace|overlay|zip|format|join"
)
_UNITS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


@final
class CostGuard:
    """Looks at the parts of one parsed question, one after the other."""

    def __init__(self, limits: QueryLimits) -> None:
        """Nothing was seen yet."""
        self._limits = limits
        self._patterns = 0
        self._made = 1
        self._largest = 1
        self._depth = 0
        self._sets = 1
        self._steps = 0
        self._flattens = False

    def function(self, name: str, arguments: list[Any]) -> None:
        """Refuse a call that takes long, or makes something large."""
        self._largest = max(self._largest, len(arguments))
        if name in SIZED:
            self._sized(name, arguments)
        for place in PATTERNS.get(name, ()):
            if place < len(arguments):
                self._pattern(name, arguments[place])
        place = TYPES.get(name, len(arguments))
        if place < len(arguments):
            _demand_type(name, arguments[place])
        if name in ("aggregate", "reduce"):
            self._accumulated(name, arguments)
        elif name in ("format_string", "printf"):
            self._format(name, arguments)
        elif name == "window" and len(arguments) > 2:
            self._windows(arguments)
        elif name in ("approx_count_distinct", "count_min_sketch"):
            self._sketched(name, arguments)
        elif name in ("levenshtein", "like", "ilike"):
            self._looped(2)
            if name != "levenshtein" and len(arguments) > 1:
                self._like(arguments[1])
        elif name == "flatten":
            self._flattens = self._flattens or any(
                kind == "LambdaFunction" for one in arguments for _, kind in expressions_of(one)
            )
        elif name == "cube":
            self._grouped(2 ** min(len(arguments), 64))

    def expression(self, one: Any, kind: str) -> None:
        """Refuse another part of an expression that does."""
        if kind == "Literal":
            self._largest = max(self._largest, min(len(str(one.toString())), self._limits.text))
        elif kind == "RLike":
            self._pattern("rlike", items(one.children())[1])
        elif kind in _LIKES:
            self._looped(2)
            self._like(items(one.children())[1])
        elif kind in _MANY_LIKES:
            self._looped(2)
            for pattern in items(one.patterns()):
                _demand(demand_like(str(pattern)))
        elif kind == "LambdaFunction":
            self._looped(self._nested(one))
        elif kind == "Cube":
            self._grouped(2 ** min(len(items(one.groupingSetIndexes())), 64))
        elif kind == "Rollup":
            self._grouped(len(items(one.groupingSetIndexes())) + 1)
        elif kind == "GroupingSets":
            self._grouped(max(1, len(items(one.groupingSetIndexes()))))

    def close(self) -> None:
        """Refuse the question if all of it together takes long."""
        if self._flattens and self._largest**2 > MOST_MADE:
            raise Refused(
                f"flatten puts together what a function makes of each of {self._largest:,} items, "
                f"and at most {MOST_MADE:,} parts are made; take smaller arrays, or values of a "
                "table"
            )
        if self._depth > 1 and max(self._largest, self._made) ** self._depth > MOST_LOOPED:
            raise Refused(
                "the question computes loops in loops over constants as large as "
                f"{max(self._largest, self._made):,}; take smaller ones, or values of a table"
            )

    def _sized(self, name: str, arguments: list[Any]) -> None:
        sizes = []
        for place in SIZED[name]:
            if place < len(arguments):
                number = _number(arguments[place])
                if number is None and kind_of(arguments[place]) == "Literal" and name == FORMATTED:
                    continue  # a format, written out
                if number is None or abs(number) > MOST_SIZE:
                    raise Refused(
                        f"{name} takes only whole numbers up to {MOST_SIZE:,}, written out"
                    )
                sizes.append(number)
        if not sizes:
            return
        size = max(1, *(abs(one) for one in sizes))
        if name == "sequence":
            size = abs(sizes[-1 if len(sizes) < 3 else 1] - sizes[0]) + 1
        self._largest = max(self._largest, size)
        if name in MANIFOLD:
            self._made *= max(1, size)
            if self._made > MOST_MADE:
                raise Refused(
                    f"the sizes in the question make {self._made:,} parts, and at most "
                    f"{MOST_MADE:,} are made; take smaller ones"
                )

    def _pattern(self, name: str, argument: Any) -> None:
        if kind_of(argument) != "Literal":
            raise Refused(
                f"the pattern of {name} is not written out; write it as one text, such as "
                "'robot/[0-9]+', or compare with contains, startswith or LIKE"
            )
        self._patterns += 1
        if self._patterns > MOST_PATTERNS:
            raise Refused(f"the question has more than {MOST_PATTERNS} patterns")
        pattern = str(argument.toString())
        _demand(demand_pattern(pattern))
        self._looped(max(2, power_of(pattern)))

    def _like(self, pattern: Any) -> None:
        if kind_of(pattern) == "Literal":
            text = str(pattern.toString())
            _demand(demand_like(text))
            self._looped(min(MOST_LOOPS, max(2, text.rstrip("%").count("%"))))

    def _looped(self, depth: int) -> None:
        self._depth = max(self._depth, depth)

    def _grouped(self, sets: int) -> None:
        self._sets *= sets
        if self._sets > MOST_SETS:
            raise Refused(
                f"the question groups by more than {MOST_SETS} sets of columns; name those that "
                "you need in GROUPING SETS, or take fewer columns"
            )

    def _nested(self, one: Any) -> int:
        """How many loops are inside each other from this one on."""
        most = 1
        waiting = [(one, 1)]
        while waiting:
            part, depth = waiting.pop()
            self._steps += 1
            if self._steps > 2 * self._limits.nodes:
                raise Refused("the question has too many loops inside each other")
            most = max(most, depth)
            for child in items(part.children()):
                waiting.append((child, depth + (kind_of(child) == "LambdaFunction")))
        return most

    def _accumulated(self, name: str, arguments: list[Any]) -> None:
        """What grows in each round by what it was grows beyond all bounds."""
        if len(arguments) < 3 or kind_of(arguments[2]) != "LambdaFunction":
            return
        body, variables = arguments[2].function(), items(arguments[2].arguments())
        own = str(variables[0].name()) if variables else ""
        used, grows = 0, False
        waiting = [body]
        while waiting:
            part = waiting.pop()
            kind = kind_of(part)
            self._steps += 1
            if self._steps > 2 * self._limits.nodes:
                raise Refused("the question has too many loops inside each other")
            if kind == "UnresolvedNamedLambdaVariable":
                used += str(part.name()).lower() == own.lower()
            elif kind == "UnresolvedFunction":
                called = str(items(part.nameParts())[-1]).lower()
                if called in MANIFOLD:
                    raise Refused(
                        f"{called} is not called within {name}; make its value outside of it"
                    )
                grows = grows or _GROWING.search(called) is not None
            waiting += items(part.children())
        if used > 1 and grows:
            raise Refused(
                f"{name} uses '{own}' more than once in what it becomes, and would grow beyond all "
                "bounds; use it once"
            )

    def _format(self, name: str, arguments: list[Any]) -> None:
        if not arguments or kind_of(arguments[0]) != "Literal":
            raise Refused(f"the format of {name} is not written out; write it as one text")
        if re.search(rf"[0-9]{{{MOST_WIDTH + 1}}}", str(arguments[0].toString())):
            raise Refused(f"{name} takes only widths of up to {MOST_WIDTH} digits")

    def _windows(self, arguments: list[Any]) -> None:
        size, slide = (_microseconds(one) for one in arguments[1:3])
        if size is None or slide is None or size > MOST_WINDOWS * slide:
            raise Refused(
                "window takes lengths such as '1 hour' and '5 minutes', and at most "
                f"{MOST_WINDOWS:,} windows for each row"
            )

    def _sketched(self, name: str, arguments: list[Any]) -> None:
        for argument in arguments[1:]:
            try:
                number = float(str(argument.toString()))
            except ValueError:
                number = 0.0
            if kind_of(argument) != "Literal" or number < 0.001:
                raise Refused(f"{name} takes only numbers of 0.001 or more, written out")


FORMATTED: Final = "format_number"


def _demand_type(name: str, argument: Any) -> None:
    """Refuse a type that is computed: how deep it is nobody can tell before Spark reads it."""
    if kind_of(argument) == "UnresolvedFunction":
        called = ".".join(str(part) for part in items(argument.nameParts())).lower()
        if called in INFERRED:  # of an example, as deep as brackets of a question may be
            argument = items(argument.arguments())[0]
    if kind_of(argument) != "Literal":
        raise Refused(
            f"the type that {name} makes is not written out; write it as one text, such as "
            "'array<int>' or 'x double, y double'"
        )
    # Its letters may be written by their numbers, so that the text of the question shows none.
    text = str(argument.toString())
    if sum(text.count(bracket) for bracket in "<([{") > MOST_TYPES:
        raise Refused(f"the type of {name} has more than {MOST_TYPES} brackets; write fewer")


def _demand(why: str) -> None:
    if why:
        raise Refused(why)


def _number(argument: Any) -> int | None:
    """The whole number that is written there."""
    kind = kind_of(argument)
    if kind == "UnaryMinus":
        argument = argument.child()
        kind = kind_of(argument)
    text = str(argument.toString()) if kind == "Literal" else ""
    plain = text.isascii() and text.lstrip("-").isdigit() and len(text) < 20
    return int(text) if plain else None


def _microseconds(argument: Any) -> int | None:
    """A length of time that is written there."""
    text = str(argument.toString()).lower() if kind_of(argument) == "Literal" else ""
    words = text.removeprefix("interval ").split()
    total = 0
    for count, unit in zip(words[::2], words[1::2], strict=False):
        scale = _UNITS.get(unit.removesuffix("s"))
        if scale is None or not count.isascii() or not count.isdigit() or len(count) > 12:
            return None
        total += int(count) * scale
    return total if words and len(words) % 2 == 0 and total else None


def demand_sources(walk: list[tuple[Any, str]], limits: QueryLimits) -> None:
    """Refuse a question that reads many tables, those of named subqueries wherever they stand."""
    defined: dict[str, Any] = {}
    for node, kind in walk:
        if kind == "UnresolvedWith":
            for item in items(node.cteRelations()):
                name = str(item._1()).lower()
                if name in defined:
                    raise Refused(f"two subqueries are called '{name}'; give them different names")
                defined[name] = item._2()
    inner = {name: _sources(plan, limits) for name, plan in defined.items()}
    every = [str(one) for one in _names(walk)]
    for sources in inner.values():  # what stands within them counts where they are read
        for name in sources:
            every.remove(name)
    weights: dict[str, int] = {}
    total = sum(_weight(name, inner, weights, ()) for name in every)
    if total > MOST_SOURCES:
        raise Refused(
            f"the question reads tables in {total:,} places, subqueries counted wherever their "
            f"names stand, and at most {MOST_SOURCES} are let through"
        )


def _names(walk: list[tuple[Any, str]]) -> list[str]:
    return [
        ".".join(str(part) for part in items(node.multipartIdentifier())).lower()
        for node, kind in walk
        if kind == "UnresolvedRelation"
    ]


def _sources(plan: Any, limits: QueryLimits) -> list[str]:
    """The names that a named subquery reads; those of subqueries named within it are their own."""
    walk = list(plans(plan, limits))
    names = _names(walk)
    for node, kind in walk:
        if kind == "UnresolvedWith":
            for item in items(node.cteRelations()):
                for name in _sources(item._2(), limits):
                    names.remove(name)
    return names


def _weight(
    name: str, inner: Mapping[str, list[str]], known: dict[str, int], above: tuple[str, ...]
) -> int:
    if name not in inner or name in above:
        return 1
    if len(above) > 200:
        raise Refused("the question has more than 200 named subqueries that read one another")
    if name not in known:
        each = (_weight(one, inner, known, (*above, name)) for one in inner[name])
        known[name] = min(max(1, sum(each)), 10**18)
    return known[name]


@final
class AliasGuard:
    """Follows the columns of one analysed plan, from the tables upwards."""

    def __init__(self) -> None:
        """Of no column anything is known."""
        self._weights: dict[int, int] = {}
        self._constants: set[int] = set()
        self._definitions: dict[int, list[int]] = {}

    def node(self, node: Any, kind: str) -> None:
        """Look at a part of the plan; those that it reads were looked at before."""
        if kind == "LocalRelation":
            if not node.data().isEmpty():
                self._constants.update(_ids(node.output()))
        elif kind == "CTERelationDef":
            self._definitions[int(node.id())] = _ids(node.output())
        elif kind == "CTERelationRef":
            known = self._definitions.get(int(node.cteId()), [])
            self._same(_ids(node.output()), known)
        elif kind == "Union":
            for child in items(node.children()):
                self._same(_ids(node.output()), _ids(child.output()))
        for root in items(node.expressions()):
            weight, constant = self._seen(root)
            if kind_of(root) == "Alias":
                id = int(root.exprId().id())
                self._weights[id] = weight
                if constant:
                    self._constants.add(id)

    def _same(self, ids: list[int], others: list[int]) -> None:
        for id, other in zip(ids, others, strict=False):
            self._weights[id] = max(self._weights.get(id, 1), self._weights.get(other, 1))
            if other in self._constants:
                self._constants.add(id)

    def _seen(self, root: Any) -> tuple[int, bool]:
        """How large an expression becomes, and whether it is the same for all rows."""
        weight, constant = 0, True
        matching = []
        for part, kind in expressions_of(root):
            if kind in ("AttributeReference", "OuterReference"):
                id = int(part.exprId().id())
                weight += self._weights.get(id, 1)
                constant = constant and id in self._constants
            else:
                weight += 1
            if kind in _LIKES:
                pattern = items(part.children())[1]
                if kind_of(pattern) != "Literal" and self._seen(pattern)[1]:
                    raise Refused(
                        "the pattern of LIKE is computed from constants; write it as one text"
                    )
            if kind in _MATCHING:
                matching.append(items(part.children())[0])
        for text in matching:
            self._demand_matched(text, constant)
        if weight > MOST_EXPANDED:
            raise Refused(
                f"an expression of the question has {weight:,} parts, with the columns put in that "
                f"it is made of, and at most {MOST_EXPANDED:,} are let through; use columns of "
                "subqueries fewer times"
            )
        return weight, constant

    def _demand_matched(self, text: Any, all_constant: bool) -> None:
        """Refuse to match a text that Spark computes while it plans: it may be of any length."""
        if kind_of(text) == "Literal":
            return
        parts = [(part, kind) for part, kind in expressions_of(text)]
        varies = any(kind == "NamedLambdaVariable" for _, kind in parts)
        known = all(
            int(part.exprId().id()) in self._constants
            for part, kind in parts
            if kind in ("AttributeReference", "OuterReference")
        )
        if all_constant or (known and not varies):
            raise Refused(
                "the text that a pattern is matched with is computed from constants; write it as "
                "one text, or match a column of a table"
            )


def _ids(attributes: Any) -> list[int]:
    return [int(one.exprId().id()) for one in items(attributes)]
