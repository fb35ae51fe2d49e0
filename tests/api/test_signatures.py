"""The names, parameters and defaults of Eclipse Zenoh's Python package, walked over."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pytest

import zenlake

pytestmark = pytest.mark.interop

#: What is added on purpose, or cannot be compared because theirs shows no signature.
OURS = {
    "open": {"config"},  # theirs must be given one
}


@pytest.fixture(scope="module")
def eclipse() -> ModuleType:
    return importlib.import_module("zenoh")


def classes(module: ModuleType) -> list[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and not name.startswith("_")
    )


def shape(function: object) -> list[tuple[str, inspect._ParameterKind, object]] | None:
    """Parameters as (name, kind, default), or None if there is no telling."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind, p.default) for p in parameters]


def test_every_name_is_there(eclipse: ModuleType) -> None:
    missing = [
        name
        for name in dir(eclipse)
        if not name.startswith("_")
        and name not in {"ext", "shm", "zenoh"}
        and not hasattr(zenlake, name)
    ]
    assert missing == []


def test_every_handler_is_there(eclipse: ModuleType) -> None:
    names = classes(eclipse.handlers)
    assert [name for name in names if not hasattr(zenlake.handlers, name)] == []


def test_every_member_of_every_class_is_there(eclipse: ModuleType) -> None:
    missing = []
    for name in classes(eclipse):
        theirs, ours = getattr(eclipse, name), getattr(zenlake, name)
        for member in vars(theirs):
            if member.startswith("__") and member not in {"__enter__", "__exit__", "__iter__"}:
                continue
            if not hasattr(ours, member) and f"{name}.{member}" != "Priority.NUM":
                missing.append(f"{name}.{member}")
    assert missing == []


WALKED = [
    "CancellationToken",
    "Handler",
    "Link",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessToken",
    "MatchingListener",
    "Publisher",
    "Querier",
    "Query",
    "Queryable",
    "Reply",
    "Scout",
    "Session",
    "SessionInfo",
    "Subscriber",
    "TransportEventsListener",
]


@pytest.mark.parametrize("name", WALKED)
def test_every_method_has_the_same_parameters(eclipse: ModuleType, name: str) -> None:
    theirs, ours = getattr(eclipse, name), getattr(zenlake, name)
    compared = 0
    for member, value in vars(theirs).items():
        if member.startswith("__") or not callable(value):
            continue
        expected = shape(getattr(theirs, member))
        if expected is None:
            continue
        assert shape(getattr(ours, member)) == expected, f"{name}.{member}"
        compared += 1
    assert compared or name in {"Reply", "Link"}


@pytest.mark.parametrize("name", ["open", "scout", "init_log_from_env_or", "try_init_log_from_env"])
def test_every_function_has_the_same_parameters(eclipse: ModuleType, name: str) -> None:
    expected, found = shape(getattr(eclipse, name)), shape(getattr(zenlake, name))
    assert expected is not None
    assert found is not None
    assert [(one[0], one[1]) for one in found] == [(one[0], one[1]) for one in expected]
    for mine, theirs in zip(found, expected, strict=True):
        if mine[0] not in OURS.get(name, set()):
            assert mine[2] == theirs[2]


@pytest.mark.parametrize(
    "name", ["Subscriber", "Queryable", "MatchingListener", "Scout", "Handler"]
)
def test_what_is_generic_there_is_generic_here(eclipse: ModuleType, name: str) -> None:
    assert getattr(eclipse, name)[int] is not None
    assert getattr(zenlake, name)[int] is not None
