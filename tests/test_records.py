from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest

from zenlake.records import record


@record(frozen=True, slots=True)
class Span:
    """From one moment to another."""

    begin: int
    end: int = 10
    names: tuple[str, ...] = ()
    secret: str = field(default="s", repr=False, compare=False)

    def length(self) -> int:
        return self.end - self.begin


@record(slots=True)
class Tally:
    """What was counted."""

    name: str
    counts: list[int] = field(default_factory=list)


@record(frozen=True, slots=True, kw_only=True)
class Named:
    """Values that are given by name only."""

    first: int = 1
    second: int


@record(frozen=True, slots=True)
class Quiet:
    """A class that shows itself in its own way."""

    value: int

    def __repr__(self) -> str:
        return "quiet"


def twin() -> type:
    """`Span` as the standard library makes it."""

    @dataclass(frozen=True, slots=True)
    class Twin:
        begin: int
        end: int = 10
        names: tuple[str, ...] = ()
        secret: str = field(default="s", repr=False, compare=False)

    Twin.__qualname__ = "Span"
    return Twin


def test_values_are_given_by_position_and_by_name() -> None:
    span = Span(1, names=("a",))
    assert (span.begin, span.end, span.names, span.secret) == (1, 10, ("a",), "s")
    assert span.length() == 9
    named = Named(second=2)
    assert (named.first, named.second) == (1, 2)


def test_a_record_shows_compares_and_hashes_as_a_dataclass_does() -> None:
    same = twin()
    assert (
        repr(Span(1, 2, ("a",))) == repr(same(1, 2, ("a",))) == "Span(begin=1, end=2, names=('a',))"
    )
    assert hash(Span(1, 2)) == hash(same(1, 2))
    assert Span(1, 2, secret="x") == Span(1, 2, secret="y")
    assert Span(1, 2) != Span(1, 3)
    assert Span(1, 2) != same(1, 2)
    assert [one.name for one in fields(Span)] == [one.name for one in fields(same)]
    assert Span.__match_args__ == same.__match_args__  # type: ignore[attr-defined]
    assert Span.__slots__ == same.__slots__  # type: ignore[attr-defined]


def test_a_frozen_record_does_not_change() -> None:
    span = Span(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'begin'"):
        span.begin = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'begin'"):
        del span.begin
    assert span.begin == 1


def test_a_record_that_is_not_frozen_changes_and_has_no_hash() -> None:
    tally = Tally("a")
    tally.name = "b"
    tally.counts.append(1)
    assert tally == Tally("b", [1])
    assert Tally("c").counts == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)
    with pytest.raises(AttributeError):
        tally.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [Span(1, 2, ("a",), "x"), Tally("a", [1]), Named(second=3)])
def test_records_are_pickled_and_copied(value: Span | Tally | Named) -> None:
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert type(other) is type(value)
        assert asdict(other) == asdict(value)


def test_functions_of_dataclasses_take_records() -> None:
    assert replace(Span(1), end=5) == Span(1, 5)
    assert asdict(Named(second=2)) == {"first": 1, "second": 2}


def test_methods_in_the_body_of_a_class_stay() -> None:
    assert repr(Quiet(1)) == "quiet"
    assert Quiet(1) == Quiet(1)


def test_wrong_values_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="Span needs 'begin'; write begin="):
        Span()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Span has no field 'middle'"):
        Span(1, middle=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Span got 'begin' by position and by name"):
        Span(1, begin=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="Named takes 0 values by position, got 1"):
        Named(1, second=2)  # type: ignore[call-arg]


def test_a_record_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match=r"write record\(slots=True\)"):

        @record(slots=False)
        class Loose:
            value: int


def test_what_only_a_dataclass_can_do_is_refused() -> None:
    with pytest.raises(TypeError, match=r"make it with dataclasses\.dataclass"):

        @record(slots=True)
        class Checked:
            value: int

            def __post_init__(self) -> None:
                raise AssertionError

    with pytest.raises(TypeError, match=r"make it with dataclasses\.dataclass"):

        @record(frozen=True, slots=True)
        class Longer(Span):
            more: int = 0
