"""Keys are looked up once for all tables, and each table gets exactly its own."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.keys import KeyFormat
from zenlake.lake.decode.key_columns import KeyParts, rows_of_table
from zenlake.lake.decode.key_router import KeyRouter, RoutedKeys
from zenlake.lake.model.typed_table import TypedTable

FORMATS = (
    "robot/${id:*}/pose",
    "robot/7/pose",
    "${first:*}/${rest:**}",
    "robot/${path:**}/pose",
    "home/${room:*}",
    "a",
)
CHUNK = st.sampled_from(["robot", "7", "pose", "home", "a", "x", "*", "**"])
KEYS = st.lists(CHUNK, min_size=1, max_size=4).map("/".join)


def tables(formats: list[str]) -> list[TypedTable]:
    return [TypedTable(f"t{n}", form) for n, form in enumerate(formats)]


@given(st.lists(st.sampled_from(FORMATS), unique=True), KEYS)
def test_a_key_is_routed_to_the_tables_whose_formats_match(formats: list[str], key: str) -> None:
    if "**/**" in key or "**/*" in key:
        return  # no canonical key
    expected = {f"t{n}" for n, form in enumerate(formats) if KeyFormat(form).matches(key)}
    found = set(KeyRouter(tables(formats)).tables_of(key))
    assert found == expected if "*" not in key else found >= expected


@given(
    st.lists(st.sampled_from(FORMATS), unique=True),
    st.lists(st.sampled_from(["robot/7/pose", "robot/8/pose", "home/x", "a", "b/c/d"]), min_size=1),
    st.integers(0, 3),
)
def test_a_table_gets_the_same_rows_as_if_it_looked_alone(
    formats: list[str], keys: list[str], skip: int
) -> None:
    rows = pa.table({"key": keys, "n": list(range(len(keys)))})
    routed = RoutedKeys(rows, KeyRouter(tables(formats)))
    for table in tables(formats):
        rest, parts = rows.slice(skip), KeyParts(table)
        mine, columns = rows_of_table(rest, parts, routed.after(skip))
        alone, expected = rows_of_table(rest, parts)
        assert mine["n"].to_pylist() == alone["n"].to_pylist()
        for part in range(len(table.chunks)):
            assert columns.column(part).to_pylist() == expected.column(part).to_pylist()
    unknown = {routed.keys[code] for code in routed.unknown}
    known = [KeyFormat(form) for form in formats]
    assert unknown == {key for key in keys if not any(one.matches(key) for one in known)}


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("0/tf/tf2_msgs::msg::dds_::TFMessage_/RIHS01_" + "a" * 64, ("tf",)),
        ("0/robot1/odom/nav_msgs::msg::dds_::Odometry_/TypeHashNotSupported", ("odom",)),
        ("0/robot1/odom/nav_msgs::msg::dds_::Odometry_", ()),
        ("tf", ()),
        ("robot1/odom", ()),
        ("robot2/odom", ("odom",)),
    ],
)
def test_topics_of_ros_2_are_found_by_their_keys_and_those_of_bridges(
    key: str, names: tuple[str, ...]
) -> None:
    bridged = {"bridged": {"robot2/odom": ("nav_msgs/msg/Odometry", "")}}
    router = KeyRouter(
        [
            TypedTable("tf", "tf", ros2=True),
            TypedTable("odom", "${robot:*}/odom", ros2=True, type=bridged),
        ]
    )
    assert router.tables_of(key) == names
