"""Expectations as decorators, without a Spark."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from zenlake.errors import LocalError
from zenlake.pipelines import (
    Expectation,
    Violation,
    expect,
    expect_all,
    expect_all_or_drop,
    expect_all_or_fail,
    expect_or_drop,
    expect_or_fail,
)


def rows() -> Any:
    """What a user's function returns."""
    return None


def test_decorators_stand_above_each_other_in_the_order_of_the_file() -> None:
    found = expect("a", "x > 0")(
        expect_or_drop("b", "y > 0")(
            expect_all_or_fail({"c": "z > 0", "d": "z < 9"})(
                expect_all({"e": "w > 0"})(expect_all_or_drop({"f": "v"})(rows))
            )
        )
    )

    assert found.expectations == (
        Expectation("a", "x > 0", Violation.WARN),
        Expectation("b", "y > 0", Violation.DROP),
        Expectation("c", "z > 0", Violation.FAIL),
        Expectation("d", "z < 9", Violation.FAIL),
        Expectation("e", "w > 0", Violation.WARN),
        Expectation("f", "v", Violation.DROP),
    )
    assert found.query is rows
    # Spark's decorators name a table after its function, and show its text.
    assert (found.__name__, inspect.unwrap(found)) == ("rows", rows)


@pytest.mark.parametrize(
    ("decorate", "words"),
    [
        (lambda: expect("", "x"), "'' cannot name an expectation"),
        (lambda: expect("x" * 201, "x"), "at most 200 characters"),
        (lambda: expect("a\x1b[2J", "x"), "characters that are not printable"),
        (lambda: expect_or_drop("a", " "), "the expectation 'a' has the condition ' '"),
        (lambda: expect_or_drop("a", None), "the condition None; write one of SQL"),  # type: ignore[arg-type]
        (lambda: expect_all({}), "{} has no expectations"),
        (lambda: expect_all([("a", "x")]), "has no expectations; write {'percent"),  # type: ignore[arg-type]
        (lambda: expect("a", "x")(None), "write it below, just above the function"),  # type: ignore[arg-type]
        (
            lambda: expect("a", "x")(expect_or_fail("a", "y")(rows)),
            "'rows' has two expectations 'a'",
        ),
        (
            lambda: expect_all({str(n): "x" for n in range(51)})(rows),
            "'rows' has 51 expectations; at most 50",
        ),
    ],
)
def test_an_expectation_that_is_none_is_refused(decorate: Callable[[], Any], words: str) -> None:
    with pytest.raises(LocalError) as refused:
        decorate()
    assert words in str(refused.value)


def test_the_import_brings_no_spark() -> None:
    heavy = "{'pyspark', 'pyarrow', 'asyncio'} & set(sys.modules)"
    text = f"import sys, zenlake.pipelines; print({heavy})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "pyspark" not in done.stdout
    assert "pyarrow" not in done.stdout
