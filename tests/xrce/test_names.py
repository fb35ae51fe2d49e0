from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.errors import DecodeError, EncodeError
from zenlake.xrce.dds import Topic, resource_of, topic_of
from zenlake.xrce.names import Name, canonical, matches, meets, parse_name
from zenlake.xrce.selections import Selected, parse_selection


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("a/**/b", "a/b", False), ("a/**/b", "a/x/b", True), ("a/**", "a", False),
        ("a/b*", "a/b", True), ("a/?", "a/bb", False), ("a/?", "a/*", True),
        ("a**b", "a/x/b", True), ("a*b", "a/x/b", False), ("a*", "*b", True),
    ],
)  # fmt: skip
def test_wildcards_work_on_characters(one: str, other: str, match: bool) -> None:
    assert matches(one, other) is match
    assert matches(other, one) is match


ALPHABET = "ab/"
PATHS = ["".join(c) for n in range(6) for c in itertools.product(ALPHABET, repeat=n)]
patterns = st.lists(st.sampled_from(["a", "b", "/", "?", "*", "**"]), max_size=6).map("".join)


def meaning(pattern: str) -> set[str]:
    """What a pattern stands for, among all short paths; slow and plain."""
    text = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return {path for path in PATHS if re.fullmatch(text, path, re.DOTALL)}


@given(patterns, patterns)
def test_two_names_match_if_a_path_is_meant_by_both(one: str, other: str) -> None:
    # Three literal characters and a slash at most in each: five characters show any witness
    # that there is, unless both are long; those are not asked.
    if len(re.sub(r"\*", "", one + other)) > 5:
        return
    expected = bool(meaning(one) & meaning(other))
    assert matches(canonical(one), canonical(other)) is expected


@given(patterns)
def test_the_canonical_spelling_means_the_same(pattern: str) -> None:
    assert meaning(canonical(pattern)) == meaning(re.sub(r"\*{3,}", "**", pattern))
    assert canonical(canonical(pattern)) == canonical(pattern)


@pytest.mark.parametrize(
    ("given_", "made"),
    [("*?", "?*"), ("***", "**"), ("**?", "**?"), ("a*?*b", "a?*b"), ("**/*", "**/*")],
)
def test_names_have_one_spelling(given_: str, made: str) -> None:
    assert canonical(given_) == made


def test_a_match_takes_no_long_time_whatever_the_pattern() -> None:
    assert not matches("a*" * 300 + "c", "a" * 900 + "b")
    assert matches("*a*" * 100, "**?" * 100)


@pytest.mark.parametrize("style", ["zenoh://", "//", "/", ""])
def test_a_name_is_written_back_in_the_style_of_the_peer(style: str) -> None:
    name = parse_name(f"{style}my/house#transient")
    assert (name.path, name.tags, name.durability) == ("my/house", frozenset({"transient"}), 1)
    assert name.text() == f"{style}my/house#transient"


@pytest.mark.parametrize(
    "text", ["", "/", "a//b", "a/", "a b", "a#{x}y", "a/{b", "a/$x", "a" * 2000]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        parse_name(text)


def test_meta_resources_are_told_apart() -> None:
    assert parse_name("zenoh://a/b${s}").meta == "s"
    assert parse_name("/a/b${id}").meta == "id"
    assert parse_name("/a/b/property") == Name("a/b", meta="property")


@pytest.mark.parametrize(
    ("wanted", "durability", "found"),
    [
        ("/a", 0, True), ("/a", 2, True), ("/a#transient", 0, False), ("/a#transient", 1, True),
        ("/a#transient", 2, False), ("/a#{transient,persistent}", 2, True),
    ],
)  # fmt: skip
def test_tags_choose_among_durable_samples(wanted: str, durability: int, found: bool) -> None:
    assert meets(parse_name(wanted), "a", durability) is found


@pytest.mark.parametrize(
    ("text", "path", "tags", "predicate"),
    [
        ("zenoh://a/erik/Light#?", "a/erik/Light", "", ""),
        ("zenoh://a/erik/Light", "a/erik/Light", "", ""),
        ("zenoh://f/*/Light#{luminosity>0}", "f/*/Light", "", "luminosity>0"),
        ("zenoh://f/*/Light#{transient}?{luminosity>0}", "f/*/Light", "transient", "luminosity>0"),
        ("zenoh://f/1/ID5?{inRange(p.l, s,r)}", "f/1/ID5", "", "inRange(p.l, s,r)"),
        ("/a?b", "a?b", "", ""),
        ("/a?c#transient?{x=1}", "a?c", "transient", "x=1"),
        ("/a#{transient,persistent}", "a", "persistent transient", ""),
    ],
)
def test_selections_are_parsed_in_order(text: str, path: str, tags: str, predicate: str) -> None:
    found = parse_selection(text)
    assert isinstance(found, Selected)
    assert found.name.path == path
    assert sorted(found.name.tags) == tags.split()
    assert found.predicate == predicate


@pytest.mark.parametrize(
    ("partition", "topic", "durability", "resource"),
    [
        ("house.floor1", "Light", "VOLATILE", "zenoh://house/floor1/Light"),
        ("house.*", "Light", "TRANSIENT", "zenoh://house/**/Light#transient"),
        ("a.**.b", "T", "PERSISTENT", "zenoh://a/**/b/T#persistent"),
        ("x*?*y", "T", "VOLATILE", "zenoh://x?**y/T"),
        ("a?c", "T", "VOLATILE", "zenoh://a?c/T"),
        ("", "T", "VOLATILE", "zenoh://T"),
    ],
)
def test_topics_in_partitions_are_resources(
    partition: str, topic: str, durability: str, resource: str
) -> None:
    assert resource_of(Topic(partition, topic, durability)) == resource
    back = topic_of(resource)
    assert (back.topic, back.durability) == (topic, durability)
    assert resource_of(back) == resource


def test_what_resources_cannot_say_is_refused() -> None:
    with pytest.raises(EncodeError, match="character class"):
        resource_of(Topic("a[bc]", "T"))
    with pytest.raises(DecodeError, match="ends in a wildcard"):
        topic_of("zenoh://a/**")
    with pytest.raises(EncodeError, match="EVERLASTING"):
        resource_of(Topic("a", "T", "EVERLASTING"))
