from __future__ import annotations

import json
import math
from typing import Any

import pytest

from zenlake.lake.model.json_values import plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        ([1.5, math.nan], '[1.5, "NaN"]'),
        ({"x": {"y": -math.inf}}, '{"x": {"y": "-Infinity"}}'),
        (-0.0, "-0.0"),
        (b"\xff", '"ff"'),
    ],
)
def test_every_value_is_json_for_every_reader(value: Any, text: str) -> None:
    assert json.dumps(plain(value), allow_nan=False) == text
