"""Walks over plans of Spark, node by node and no further than a question may be long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.referenced_tables import Unanswerable

__all__ = ["Refused", "expressions", "expressions_of", "items", "kind_of", "plans", "words"]


class Refused(Unanswerable):
    """A question that is not let through; the message says why."""


def kind_of(node: Any) -> str:
    """The name of the class of a node."""
    return str(node.getClass().getSimpleName()).rstrip("$")


def plans(plan: Any, limits: QueryLimits) -> Iterator[tuple[Any, str]]:
    """The nodes of a plan, those of its subqueries and definitions too."""
    waiting = [plan]
    count = 0
    while waiting:
        node = waiting.pop()
        kind = kind_of(node)
        count += 1
        if count > limits.nodes:
            raise Refused(f"the question has more than {limits.nodes:,} parts")
        yield node, kind
        waiting += items(node.children())
        if kind == "UnresolvedWith":
            waiting += [item._2() for item in items(node.cteRelations())]
        waiting += items(node.subqueries())


def expressions(walk: list[tuple[Any, str]], limits: QueryLimits) -> Iterator[tuple[Any, str]]:
    """The expressions of nodes, and all that they are made of."""
    count = len(walk)
    for node, _ in walk:
        waiting = items(node.expressions())
        while waiting:
            expression = waiting.pop()
            count += 1
            if count > limits.nodes:
                raise Refused(f"the question has more than {limits.nodes:,} parts")
            yield expression, kind_of(expression)
            waiting += items(expression.children())


def expressions_of(root: Any) -> Iterator[tuple[Any, str]]:
    """An expression and all that it is made of."""
    waiting = [root]
    while waiting:
        expression = waiting.pop()
        yield expression, kind_of(expression)
        waiting += items(expression.children())


def items(sequence: Any) -> list[Any]:
    """The items of a sequence of Scala."""
    return [sequence.apply(n) for n in range(sequence.size())]


def words(kind: str) -> str:
    """The name of a part of a plan as words: `InsertIntoDir` is 'insert into dir'."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip()
    return f"'{words}'"
