"""Judges plans of Spark: whether a question is one SELECT over tables of a lake and no more.

A plan is judged as it is, node by node, and not the text that it came from: lists say which nodes,
functions and expressions are let through, and what they do not name is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final

from zenlake.lake.query.allowed_functions import ALLOWED, TABLE_FUNCTIONS
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.plan_cost import AliasGuard, CostGuard, demand_sources
from zenlake.lake.query.plan_nodes import Refused, expressions, items, plans, words

__all__ = ["Refused", "demand_text", "judge_analysed", "judge_parsed"]


def _named(words: str) -> frozenset[str]:
    return frozenset(words.split())


MOST_NESTED: Final = 200
"""Brackets that are open at once. Spark gives up at some 400 of them, and for thousands its parser,
which nobody can stop, takes seconds."""


#: Types that may lie inside each other: Spark's parser takes seconds for some thousand. Functions
#: of these names count, too: what stands between a name and its bracket may be a remark.
_TYPES: Final = re.compile(r"\b(?:array|map|struct)\b", re.IGNORECASE)


def demand_text(query: str, limits: QueryLimits) -> None:
    """Refuse a question whose text is too long or too deep to be read.

    Brackets in quotes count, too: what a quote is, a parser would have to say.
    """
    if len(query) > limits.text:
        raise Refused(
            f"the question has {len(query):,} characters; at most {limits.text:,} are read"
        )
    depth = 0
    for character in query:
        if character in "([{":
            depth += 1
            if depth > MOST_NESTED:
                raise Refused(
                    f"the question has more than {MOST_NESTED} brackets inside each other; ask it "
                    "with fewer"
                )
        elif character in ")]}":
            depth -= 1
    if len(_TYPES.findall(query)) > MOST_NESTED:
        raise Refused(
            f"the question names more than {MOST_NESTED} arrays, maps and structs; name fewer, or "
            "ask in several questions"
        )


# --- as parsed ----------------------------------------------------------------------------------

_PARSED_PLANS: Final = _named(
    """Project Filter Aggregate Sort GlobalLimit LocalLimit Offset Join SubqueryAlias
    UnresolvedSubqueryColumnAliases UnresolvedRelation UnresolvedInlineTable InlineTable
    ResolvedInlineTable OneRowRelation LocalRelation Distinct Union Intersect Except
    UnresolvedWith UnresolvedHaving WithWindowDefinition Window Generate Expand LateralJoin
    Pivot UnresolvedPivot Unpivot UnresolvedUnpivot UnresolvedTableValuedFunction
    UnresolvedTVFAliases UnresolvedOrderBy AggregateInPipe UnresolvedEventTimeWatermark
    Sample Deduplicate"""
)


def judge_parsed(plan: Any, tables: frozenset[str], limits: QueryLimits) -> None:
    """Refuse what a parsed question must not hold; `tables` are the names that may be read."""
    names = {name.lower() for name in tables}
    walk = list(plans(plan, limits))
    defined = {
        item._1().lower()
        for node, kind in walk
        if kind == "UnresolvedWith"
        for item in items(node.cteRelations())
    }
    cost = CostGuard(limits)
    for node, kind in walk:
        if kind not in _PARSED_PLANS:
            raise Refused(
                f"only a single SELECT over tables is let through; {words(kind)} is not "
                "(the owner of the machine may say --unsafe at the terminal)"
            )
        if kind == "UnresolvedRelation":
            _judge_relation(node, names | defined)
        elif kind == "UnresolvedTableValuedFunction":
            name = _judge_function(items(node.name()), TABLE_FUNCTIONS)
            cost.function(name, items(node.functionArgs()))
    for expression, kind in expressions(walk, limits):
        if kind == "UnresolvedFunction":
            arguments = items(expression.arguments())
            cost.function(_judge_function(items(expression.nameParts()), ALLOWED), arguments)
        elif kind == "UnresolvedGenerator":
            given = [expression.name().funcName()]
            cost.function(_judge_function(given, ALLOWED), items(expression.children()))
        elif kind in _NEVER_PARSED:
            raise Refused(f"{words(kind)} is not let through")
        cost.expression(expression, kind)
    cost.close()
    demand_sources(walk, limits)


_NEVER_PARSED: Final = _named(
    """ExpressionWithUnresolvedIdentifier CallMethodViaReflection PythonUDF ScalaUDF
    UnresolvedPlanId LazyExpression InputFileName NamedParameter PosParameter
    FunctionTableSubqueryArgumentExpression"""
)


def _judge_relation(node: Any, names: set[str]) -> None:
    parts = [str(part) for part in items(node.multipartIdentifier())]
    if len(parts) != 1 or parts[0].lower() not in names:
        raise Refused(f"'{'.'.join(parts)}' is no table of the lake, and nothing else is read")
    if node.isStreaming() or not node.options().isEmpty():
        raise Refused(f"table '{parts[0]}' is read as it is, without options and not as a stream")


def _judge_function(parts: list[Any], allowed: frozenset[str]) -> str:
    """The name of a function, if it may be called."""
    name = ".".join(str(part) for part in parts).lower()
    if name not in allowed:
        raise Refused(f"the function {name} is not among those that may be called")
    return name


# --- as analysed --------------------------------------------------------------------------------

_ANALYSED_PLANS: Final = _named(
    """Project Filter Aggregate Sort GlobalLimit LocalLimit Offset Join SubqueryAlias View
    LogicalRelation LogicalRDD LocalRelation OneRowRelation Distinct Union Intersect Except
    WithCTE CTERelationDef CTERelationRef Window Generate Expand LateralJoin Pivot Unpivot
    Sample Deduplicate UnionLoop UnionLoopRef LocalTableScan"""
)
FILES: Final = "zenlake_files"
"""The data source of `lake/query/object_source`."""
_OURS: Final = (
    "org.apache.spark.sql.catalyst.expressions.",
    "org.apache.spark.sql.catalyst.analysis.",
)
_NEVER: Final = _named(
    """CallMethodViaReflection TryReflect PythonUDF PythonUDAF PythonUDTF PythonFuncExpression
    ScalaUDF ScalaAggregator UserDefinedExpression InputFileName InputFileBlockStart
    InputFileBlockLength CurrentDatabase CurrentCatalog CurrentUser SparkVersion RaiseError
    SparkPartitionID MonotonicallyIncreasingID Invoke StaticInvoke NewInstance
    ApplyFunctionExpression TransformWithState VariableReference"""
)


def judge_analysed(plan: Any, place: str, limits: QueryLimits) -> None:
    """Refuse a plan that reads anything but files below `place`, or computes with foreign code."""
    walk = list(plans(plan, limits))
    for node, kind in walk:
        if kind == "DataSourceV2Relation":
            # Our own source, for a store of objects and for documents; and only in the lake.
            table = str(node.options().get("place") or "").partition("?")[0]
            inside = _bare(table).startswith(f"{_bare(place)}/")
            if str(node.table().name()) != FILES or not inside:
                raise Refused("the question reads something that is no table of the lake")
            continue
        if kind not in _ANALYSED_PLANS:
            raise Refused(f"only a single SELECT over tables is let through; {words(kind)} is not")
        if kind == "LogicalRelation":
            relation = node.relation()
            if relation.getClass().getSimpleName() != "HadoopFsRelation":
                raise Refused("the question reads something that is no table of the lake")
            for path in items(relation.location().rootPaths()):
                if not _bare(str(path.toString())).startswith(f"{_bare(place)}/"):
                    raise Refused("the question reads a file that is not of the lake")
    for expression, kind in expressions(walk, limits):
        name = str(expression.getClass().getName())
        if kind in _NEVER or not name.startswith(_OURS):
            raise Refused(f"{words(kind)} is not let through")
    aliases = AliasGuard()
    for node, kind in reversed(walk):
        aliases.node(node, kind)


def _bare(address: str) -> str:
    return (
        "/" + address.removeprefix("file:").lstrip("/") if address.startswith("file:") else address
    )
