"""Judges plans of Spark: whether a question is one SELECT over tables of a lake and no more.

A plan is judged as it is, node by node, and not the text that it came from: lists say which nodes,
functions and expressions are let through, and what they do not name is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from zenlake.lake.query.allowed_functions import ALLOWED, MOST_SIZE, SIZED, TABLE_FUNCTIONS
from zenlake.lake.query.limits import QueryLimits
from zenlake.lake.query.referenced_tables import Unanswerable

__all__ = ["Refused", "demand_text", "judge_analysed", "judge_parsed", "parsed"]


def _named(words: str) -> frozenset[str]:
    return frozenset(words.split())


MOST_NESTED: Final = 200
"""Brackets that are open at once. Spark gives up at some 400 of them, and for thousands its parser,
which nobody can stop, takes seconds."""


class Refused(Unanswerable):
    """A question that is not let through; the message says why."""


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
        if character in "([":
            depth += 1
            if depth > MOST_NESTED:
                raise Refused(
                    f"the question has more than {MOST_NESTED} brackets inside each other"
                )
        elif character in ")]":
            depth -= 1


def parsed(parser: Any, query: str) -> Any:
    """The plan of a question as Spark's parser reads it: nothing is looked up yet."""
    return parser.parsePlan(query)


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
    walk = list(_plans(plan, limits))
    defined = {
        item._1().lower()
        for node, kind in walk
        if kind == "UnresolvedWith"
        for item in _items(node.cteRelations())
    }
    for node, kind in walk:
        if kind not in _PARSED_PLANS:
            raise Refused(
                f"only a single SELECT over tables is let through; {_words(kind)} is not "
                "(the owner of the machine may say --unsafe at the terminal)"
            )
        if kind == "UnresolvedRelation":
            _judge_relation(node, names | defined)
        elif kind == "UnresolvedTableValuedFunction":
            _judge_function(_items(node.name()), _items(node.functionArgs()), TABLE_FUNCTIONS)
    for expression, kind in _expressions(walk, limits):
        if kind == "UnresolvedFunction":
            _judge_function(_items(expression.nameParts()), _items(expression.arguments()), ALLOWED)
        elif kind == "UnresolvedGenerator":
            given = [expression.name().funcName()]
            _judge_function(given, _items(expression.children()), ALLOWED)
        elif kind in _NEVER_PARSED:
            raise Refused(f"{_words(kind)} is not let through")


_NEVER_PARSED: Final = _named(
    """ExpressionWithUnresolvedIdentifier CallMethodViaReflection PythonUDF ScalaUDF
    UnresolvedPlanId LazyExpression InputFileName NamedParameter PosParameter
    FunctionTableSubqueryArgumentExpression"""
)


def _judge_relation(node: Any, names: set[str]) -> None:
    parts = [str(part) for part in _items(node.multipartIdentifier())]
    if len(parts) != 1 or parts[0].lower() not in names:
        raise Refused(f"'{'.'.join(parts)}' is no table of the lake, and nothing else is read")
    if node.isStreaming() or not node.options().isEmpty():
        raise Refused(f"table '{parts[0]}' is read as it is, without options and not as a stream")


def _judge_function(parts: list[Any], arguments: list[Any], allowed: frozenset[str]) -> None:
    name = ".".join(str(part) for part in parts).lower()
    if name not in allowed:
        raise Refused(f"the function {name} is not among those that may be called")
    if name not in SIZED:
        return
    for argument in arguments if name == "sequence" else arguments[1 if name != "space" else 0 :]:
        kind = argument.getClass().getSimpleName()
        if kind == "UnaryMinus":
            argument = argument.child()
            kind = argument.getClass().getSimpleName()
        text = str(argument.toString()) if kind == "Literal" else ""
        number = int(text) if text.lstrip("-").isdigit() else None
        if number is None and kind == "Literal" and name in ("lpad", "rpad"):
            continue  # what is padded with
        if number is None or abs(number) > MOST_SIZE:
            raise Refused(f"{name} takes only whole numbers up to {MOST_SIZE:,}, written out")


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
    walk = list(_plans(plan, limits))
    for node, kind in walk:
        if kind == "DataSourceV2Relation":
            # Of a lake on a store of objects: our own source, and only in the lake.
            table = str(node.options().get("place") or "").partition("?")[0]
            if str(node.table().name()) != FILES or not table.startswith(f"{place}/"):
                raise Refused("the question reads something that is no table of the lake")
            continue
        if kind not in _ANALYSED_PLANS:
            raise Refused(f"only a single SELECT over tables is let through; {_words(kind)} is not")
        if kind == "LogicalRelation":
            relation = node.relation()
            if relation.getClass().getSimpleName() != "HadoopFsRelation":
                raise Refused("the question reads something that is no table of the lake")
            for path in _items(relation.location().rootPaths()):
                if not _bare(str(path.toString())).startswith(f"{_bare(place)}/"):
                    raise Refused("the question reads a file that is not of the lake")
    for expression, kind in _expressions(walk, limits):
        name = str(expression.getClass().getName())
        if kind in _NEVER or not name.startswith(_OURS):
            raise Refused(f"{_words(kind)} is not let through")


# --- walking ------------------------------------------------------------------------------------


def _plans(plan: Any, limits: QueryLimits) -> Iterator[tuple[Any, str]]:
    """The nodes of a plan, those of its subqueries and definitions too."""
    waiting = [plan]
    count = 0
    while waiting:
        node = waiting.pop()
        kind = str(node.getClass().getSimpleName()).rstrip("$")
        count += 1
        if count > limits.nodes:
            raise Refused(f"the question has more than {limits.nodes:,} parts")
        yield node, kind
        waiting += _items(node.children())
        if kind == "UnresolvedWith":
            waiting += [item._2() for item in _items(node.cteRelations())]
        waiting += _items(node.subqueries())


def _expressions(walk: list[tuple[Any, str]], limits: QueryLimits) -> Iterator[tuple[Any, str]]:
    count = len(walk)
    for node, _ in walk:
        waiting = _items(node.expressions())
        while waiting:
            expression = waiting.pop()
            count += 1
            if count > limits.nodes:
                raise Refused(f"the question has more than {limits.nodes:,} parts")
            yield expression, str(expression.getClass().getSimpleName()).rstrip("$")
            waiting += _items(expression.children())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(n) for n in range(sequence.size())]


def _bare(address: str) -> str:
    return (
        "/" + address.removeprefix("file:").lstrip("/") if address.startswith("file:") else address
    )


def _words(kind: str) -> str:
    """The name of a part of a plan as words: `InsertIntoDir` is 'insert into dir'."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind).strip()
    return f"'{words}'"
