"""Every name of Eclipse Zenoh's Python package, walked over against ours.

`import zenlake as zenoh` must do: each public name of each module, what kind of thing it is, and
for what can be called the names, kinds and defaults of its parameters. Where ours differs, the
difference stands here with its reason; one that is no longer there fails the walk too.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.interop

MODULES = ["zenoh", "zenoh.handlers", "zenoh.ext", "zenoh.shm"]

#: Special methods whose presence a program can tell.
SPECIAL = {
    "__bool__", "__bytes__", "__call__", "__class_getitem__", "__contains__", "__delitem__",
    "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__next__", "__rtruediv__",
    "__setitem__", "__str__", "__truediv__",
}  # fmt: skip

DOCUMENTED = "ours is what its documentation says; the extension calls the parameter otherwise"
MORE = "ours can be left out"

#: What differs, and why.
DIFFERENCES = {
    "zenoh.zenoh": "the extension itself; ours has none of that name",
    "zenoh.Encoding()": DOCUMENTED,
    "zenoh.KeyExpr()": DOCUMENTED,
    "zenoh.NTP64()": DOCUMENTED,
    "zenoh.Parameters()": DOCUMENTED,
    "zenoh.WhatAmIMatcher()": DOCUMENTED,
    "zenoh.ZBytes()": "documented as `bytes`, in the extension `obj`: ours is given by place",
    "zenoh.Timestamp()": "ours may be given the two halves of the time, as the wire has it",
    "zenoh.WhatAmI()": "ours is an Enum, made from a name or a flag",
    "zenoh.QueryConsolidation.mode": "documented as a property; ours can also be called",
    "zenoh.open": MORE,
    "zenoh.shm.MemoryLayout()": "ours takes size and alignment too, as its documentation says",
}


class Difference(NamedTuple):
    """Something that is not the same."""

    name: str
    theirs: object
    ours: object


def shape(function: object, of_object: bool = False) -> list[tuple[str, str, object]] | None:
    """Parameters as (name, kind, default), or None if there is no telling."""
    try:
        parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if of_object and parameters and parameters[0].name == "self":
        del parameters[0]
    return [(one.name, one.kind.name, one.default) for one in parameters]


def sort(value: object) -> str:
    """Whether something is read, called, or simply there."""
    if isinstance(value, Enum):
        return "constant"
    if isinstance(value, property) or type(value).__name__ in {
        "getset_descriptor",
        "member_descriptor",
    }:
        return "property"
    if callable(value) or isinstance(value, classmethod | staticmethod):
        return "method"
    return "method" if type(value).__name__ == "classmethod_descriptor" else "constant"


def public(theirs: type) -> list[str]:
    return [name for name in vars(theirs) if name in SPECIAL or not name.startswith("_")]


def walk_class(name: str, theirs: type, ours: type) -> Iterator[Difference]:
    expected = shape(theirs)
    if expected is not None and shape(ours) != expected:
        yield Difference(f"{name}()", expected, shape(ours))
    if issubclass(theirs, BaseException):
        bases = {base.__name__ for base in theirs.__mro__} - {theirs.__name__}
        if not bases <= {base.__name__ for base in ours.__mro__}:
            yield Difference(name, theirs.__mro__, ours.__mro__)
    for member in public(theirs):
        path = f"{name}.{member}"
        if not hasattr(ours, member):
            yield Difference(path, "there", "missing")
            continue
        sorts = [sort(inspect.getattr_static(one, member)) for one in (theirs, ours)]
        if sorts[0] != sorts[1]:
            yield Difference(path, *sorts)
        elif sorts[0] == "method" and member not in SPECIAL:
            expected = shape(getattr(theirs, member), True)
            if expected is not None and shape(getattr(ours, member), True) != expected:
                yield Difference(path, expected, shape(getattr(ours, member), True))
        elif member in SPECIAL and getattr(ours, member) is getattr(object, member, None):
            if member == "__str__" and "__repr__" in vars(ours):
                continue  # told by its other text
            yield Difference(path, "its own", "inherited")


def walk(module: str) -> Iterator[Difference]:
    theirs = importlib.import_module(module)
    ours = importlib.import_module(module.replace("zenoh", "zenlake", 1))
    for name in dir(theirs):
        if name.startswith("_"):
            continue
        path = f"{module}.{name}"
        expected = getattr(theirs, name)
        if not hasattr(ours, name):
            yield Difference(path, "there", "missing")
            continue
        found = getattr(ours, name)
        if inspect.isclass(expected):
            yield from walk_class(path, expected, found)
        elif callable(expected) and shape(expected) != shape(found):
            yield Difference(path, shape(expected), shape(found))


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_the_same_or_differs_for_a_reason(module: str) -> None:
    unexplained = [one for one in walk(module) if one.name not in DIFFERENCES]
    assert unexplained == []


def test_every_reason_is_still_needed() -> None:
    found = {one.name for module in MODULES for one in walk(module)}
    assert sorted(set(DIFFERENCES) - found) == []


def test_the_walk_sees_what_there_is() -> None:
    """A walk over nothing would find no difference."""
    seen = {
        f"{module}.{name}"
        for module in MODULES
        for name in dir(importlib.import_module(module))
        if not name.startswith("_")
    }
    assert len(seen) > 100
    assert {"zenoh.Session", "zenoh.handlers.Callback", "zenoh.ext.Miss", "zenoh.shm.ZShm"} <= seen
    session = importlib.import_module("zenoh").Session
    assert {"put", "get", "declare_querier", "__enter__", "info"} <= set(public(session))


@pytest.mark.parametrize(
    "name",
    [
        "CongestionControl", "ConsolidationMode", "InterceptionPoint", "Locality", "Priority",
        "QueryTarget", "Reliability", "ReplyKeyExpr", "SampleKind", "SetIntersectionLevel",
        "WhatAmI",
    ],
)  # fmt: skip
def test_enumerations_have_the_same_members_and_texts(name: str) -> None:
    theirs = getattr(importlib.import_module("zenoh"), name)
    ours = getattr(importlib.import_module("zenlake"), name)
    members = [one for one in public(theirs) if isinstance(getattr(theirs, one), theirs)]
    assert members
    for member in members:
        assert str(getattr(ours, member)) == str(getattr(theirs, member)), member
    same = [[getattr(one, a) == getattr(one, b) for a in members for b in members]
            for one in (theirs, ours)]  # fmt: skip
    assert same[0] == same[1]


def test_small_things_that_only_running_shows() -> None:
    for package in ("zenoh", "zenlake"):
        zenoh = importlib.import_module(package)
        assert zenoh.Priority.NUM == 7
        latest = zenoh.ConsolidationMode.LATEST
        assert zenoh.QueryConsolidation(mode=latest).mode() == latest
        assert str(zenoh.WhatAmI("router")) == "router"
        with pytest.raises(zenoh.ZError):
            zenoh.WhatAmI("gateway")
        assert zenoh.Querier[int] is not None
        ext = importlib.import_module(f"{package}.ext")
        assert ext.z_deserialize(tp=int, zbytes=ext.z_serialize(obj=3)) == 3
        assert ext.UInt8(i=3) == 3
        assert bytes(zenoh.TimestampId(bytes=b"\x01")) == b"\x01"
        assert zenoh.NTP64.parse_rfc3339(s="1970-01-01T00:00:01Z").as_secs() == 1
        with pytest.raises(ValueError, match="invalid parameters"):
            ext.RecoveryConfig()
        with pytest.raises(ValueError, match="negative timeout"):
            ext.MissDetectionConfig(heartbeat=-1)
