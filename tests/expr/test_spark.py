"""A predicate says the same of a sample in this process and in Spark."""

from __future__ import annotations

import datetime
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.expr.spark_sql import PAYLOAD, Names, spark_sql
from zenlake.expr.closure import SampleFields, compiled
from zenlake.expr.parse import parse
from zenlake.expr.record import json_value
from zenlake.expr.tree import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Field,
    Function,
    In,
    IsNull,
    Literal,
    Moment,
    Node,
    Not,
    Or,
    Term,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

NOW = 1_790_000_000_000_000
NAMES = ("a", "b", "c.d", "l[1]")
WORDS = ["", "x", "ab", "aß", "日本", "😀", "a%b", "a_b", "a\\b", "it's", "A", "12", "true", "\n"]

texts = st.sampled_from(WORDS) | st.text("ab%_\\'é", max_size=4)
numbers = (
    st.integers(-5, 5)
    | st.sampled_from([0.1, 2.5, -0.0, 1e300, -1e300, 1 << 53, (1 << 53) + 1, 1e-300])
    | st.floats(-1e6, 1e6)
)
fields = st.sampled_from(NAMES).map(Field)
number_terms: st.SearchStrategy[Term] = st.recursive(
    fields
    | numbers.map(Literal)
    | st.just(Function("length", (Function("key"),)))
    | st.sampled_from([Function(name, (Function("time"),)) for name in ("year", "hour", "second")])
    | st.just(Function("value"))
    | fields.map(lambda field: Function("abs", (field,))),
    lambda inner: st.builds(Arithmetic, inner, st.sampled_from("+-*/%"), inner),
    max_leaves=3,
)
text_terms: st.SearchStrategy[Term] = (
    fields
    | texts.map(Literal)
    | st.sampled_from([Function("key"), Function("kind"), Function("encoding"), Function("value")])
    | st.integers(-3, 3).map(lambda n: Function("chunk", (Literal(n),)))
)
time_terms: st.SearchStrategy[Term] = st.sampled_from(
    [Function("time"), Function("now"), Function("now", (Literal("-10s"),)), Moment(NOW - 5, "")]
)
compared = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
truths: st.SearchStrategy[Term] = fields | st.booleans().map(Literal)


def alike(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Node]:
    return (
        st.builds(Comparison, terms, compared, terms)
        | st.builds(Between, terms, terms, terms, st.booleans())
        | st.builds(In, terms, st.lists(terms, min_size=1, max_size=3).map(tuple), st.booleans())
    )


conditions: st.SearchStrategy[Node] = (
    alike(number_terms)
    | alike(text_terms)
    | alike(time_terms)
    | alike(truths)
    | alike(fields)
    | st.builds(Comparison, text_terms, st.just("LIKE"), texts.map(Literal))
    | st.builds(IsNull, fields, st.booleans())
)
trees: st.SearchStrategy[Node] = st.recursive(
    conditions,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda nodes: And(tuple(nodes))),
        st.lists(inner, min_size=2, max_size=3).map(lambda nodes: Or(tuple(nodes))),
    ),
    max_leaves=4,
)
scalars = texts | numbers | st.booleans() | st.none()
payloads = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "a": scalars,
            "b": scalars | st.just([1]),
            "c": st.fixed_dictionaries({}, optional={"d": scalars}) | scalars,
            "l": st.lists(scalars, max_size=3) | scalars,
        },
    ).map(lambda found: json.dumps(found).encode()),
    scalars.map(lambda found: json.dumps(found).encode()),
    st.sampled_from(
        [b"", b"\xff\xfe", b"{", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[1, 2]", b"hello", b" 7 "]
    ),
)
samples = st.tuples(
    st.sampled_from(["a", "a/b", "x/ß/1", "k/12"]),
    payloads,
    st.sampled_from([0, NOW - 20_000_000, NOW - 5, NOW, NOW + 1_234_567]),
    st.sampled_from(["put", "delete"]),
    st.sampled_from(["application/json", "zenoh/bytes"]),
)


@settings(max_examples=4, deadline=None, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(
    st.lists(trees, min_size=40, max_size=40),
    st.lists(samples, min_size=30, max_size=30),
)
def test_spark_and_the_closure_agree(
    spark: SparkSession, nodes: list[Node], rows: list[tuple[Any, ...]]
) -> None:
    columns = "key string, value binary, time timestamp, kind string, encoding string, n int"
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    frame = spark.createDataFrame(
        [
            (key, value, epoch + datetime.timedelta(microseconds=at), kind, encoding, n)
            for n, (key, value, at, kind, encoding) in enumerate(rows)
        ],
        columns,
    ).selectExpr("*", f"{PAYLOAD} AS payload")
    names = Names("payload", now=NOW)
    found = (
        frame.selectExpr(
            "n", *(f"{spark_sql(node, names)} AS c{i}" for i, node in enumerate(nodes))
        )
        .orderBy("n")
        .collect()
    )
    for n, (key, value, at, kind, encoding) in enumerate(rows):
        plain = json_value(value)
        subject = SampleFields(
            plain if isinstance(plain, dict) else None,
            key, at, kind, encoding,
            None if isinstance(plain, dict | list) else plain,
            NOW,
        )  # fmt: skip
        for i, node in enumerate(nodes):
            assert compiled(node)(subject) is found[n][f"c{i}"], (node.sql(), rows[n])


@pytest.mark.parametrize(
    "text",
    ["a LIKE b", "a = %0"],
)
def test_what_spark_has_no_words_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"pattern of LIKE|parameters"):
        spark_sql(parse(text), Names("payload"))


def test_text_cannot_leave_its_quotes() -> None:
    chance = random.Random(1)
    for _ in range(100):
        word = "".join(chance.choices("'\\;-\"`a", k=6))
        sql = spark_sql(Comparison(Field("a"), "=", Literal(word)), Names("p"))
        inside = sql.rpartition("= '")[2].removesuffix("')")
        assert "'" not in inside.replace("\\\\", "").replace("\\'", "")
