from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.spark.options import OPTIONS, READ, STREAM, WRITE, OptionError, SourceOptions


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(OptionError, match=r"'startingofsets'; did you mean 'startingOffsets'\?"):
        SourceOptions({"startingOfsets": "latest"}, READ)
    with pytest.raises(OptionError, match=r"no option 'kafka.bootstrap.servers'\. Options of read"):
        SourceOptions({"kafka.bootstrap.servers": "x"}, READ)


def test_an_option_that_means_nothing_here_is_refused() -> None:
    with pytest.raises(OptionError, match="'maxBytesPerTrigger' is for readStream"):
        SourceOptions({"maxBytesPerTrigger": "1m"}, READ)
    with pytest.raises(OptionError, match="'congestion' is for write"):
        SourceOptions({"congestion": "drop"}, STREAM)


def test_every_option_is_taken_where_it_says() -> None:
    for option in OPTIONS:
        for use in option.used_by:
            name = option.name.replace("*", "mode")
            assert SourceOptions({name.upper(): "x"}, use).text(name) == "x"


def test_spark_hands_its_own_options_to_a_sink() -> None:
    given = SourceOptions({"checkpointLocation": "/x", "path": "/y", "queryName": "q"}, WRITE)
    assert (given.text("checkpointLocation"), given.text("path")) == ("/x", "/y")


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", 0.5), ("30s", 30), ("15m", 900), ("1h", 3600), ("2", 2)]
)
def test_a_time_has_a_unit(text: str, value: float) -> None:
    assert SourceOptions({"timeout": text}, READ).seconds("timeout", 1) == value


@pytest.mark.parametrize(
    ("text", "value"), [("100", 100), ("64k", 65536), ("64m", 64 << 20), ("2GiB", 2 << 30)]
)
def test_a_size_has_a_unit(text: str, value: int) -> None:
    assert SourceOptions({"maxBytesPerTrigger": text}, STREAM).size("maxBytesPerTrigger") == value


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("1500", 1_500_000),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:00.000001+01:00", 1),
        ("1970-01-02", 86_400_000_000),
    ],
)
def test_a_moment_is_iso_or_milliseconds_and_utc_if_it_says_no_zone(text: str, micros: int) -> None:
    assert SourceOptions({"startingTimestamp": text}, READ).instant("startingTimestamp") == micros


def test_offsets_are_words_or_kafkas_json() -> None:
    def said(text: str) -> str | dict[int, int]:
        return SourceOptions({"startingOffsets": text}, READ).offsets("startingOffsets", "latest")

    assert said("Earliest") == "earliest"
    assert said('{"0": 3, "1": -2}') == {0: 3, 1: -2}
    assert said('{"robots": {"0": 3}}') == {0: 3}
    assert said('{"5": 3}') == {5: 3}
    for wrong in ("first", "[1]", '{"0": "x"}', '{"a": 1}', '{"0": -3}', '{"0": true}', "{", "7"):
        with pytest.raises(OptionError, match="startingOffsets"):
            said(wrong)


def test_subscribe_takes_key_expressions_with_commas_between_them() -> None:
    assert SourceOptions({"subscribe": "a/*, b/**"}, READ).keys() == ["a/*", "b/**"]
    assert SourceOptions({}, READ).keys() is None
    with pytest.raises(OptionError, match=r"subscribe='a//b'"):
        SourceOptions({"subscribe": "a//b"}, READ).keys()


def test_what_begins_with_zenoh_is_the_sessions_configuration() -> None:
    options = SourceOptions(
        {"zenoh.connect": "tcp/a:1", "zenoh.transport.unicast.max_links": "2"}, READ
    )
    assert dict(options.zenoh()) == {"connect": "tcp/a:1", "transport/unicast/max_links": "2"}
    assert options.connects()
    assert not SourceOptions({"path": "x"}, READ).connects()


@given(st.text(max_size=30))
def test_no_text_makes_an_option_fail_in_another_way(text: str) -> None:
    names = (
        "startingOffsets",
        "startingTimestamp",
        "subscribe",
        "minPartitions",
        "maxBytesPerTrigger",
        "timeout",
        "failOnDataLoss",
    )
    options = SourceOptions(dict.fromkeys(names, text), STREAM)
    asked = (
        lambda: options.offsets("startingOffsets", "latest"),
        lambda: options.instant("startingTimestamp"),
        options.keys,
        lambda: options.count("minPartitions"),
        lambda: options.size("maxBytesPerTrigger"),
        lambda: options.seconds("timeout", 1),
        lambda: options.flag("failOnDataLoss", True),
    )
    for ask in asked:
        with contextlib.suppress(OptionError):
            ask()
