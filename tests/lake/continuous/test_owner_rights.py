"""Whether what belongs to a user may run, be dropped, be tried: decided without a lake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zenlake.errors import LocalError
from zenlake.keys.readable import ALL_KEYS, ReadableChoice, ReadableKeys
from zenlake.keys.rights import ALL_RIGHTS, Rights
from zenlake.lake.continuous.definitions import definition_in
from zenlake.lake.continuous.owner_rights import (
    LEASE_SECONDS,
    MOST_ROUTERS,
    SUPERSEDED_SECONDS,
    OwnerRights,
    may_drop,
    may_try,
)
from zenlake.lake.maintain.definition_store import ContinuousQueryStore, new_definition
from zenlake.lake.model.continuous_query import MOST_OF_USER
from zenlake.lake.model.owner import OwningUser, router_of
from zenlake.lake.table.location import LakeLocation


def but(*denied: str) -> ReadableKeys:
    return ReadableKeys(((ReadableChoice(None, denied),),))


NO_SECRETS = Rights(but("secret/**"))
EVE = OwningUser("eve", NO_SECRETS)
VIEW = new_definition("leak", "view", "SELECT key FROM samples", owner=EVE)


def told(rights: Rights | None, at: float = 100.0, router: str = "r", **more: Any) -> OwnerRights:
    book = OwnerRights()
    tell(book, rights, at, router)
    return book


def tell(book: OwnerRights, rights: Rights | None, at: float, router: str = "r") -> None:
    book.tell(router, [{"user": "eve", **({} if rights is None else rights.plain())}], at)


def test_it_runs_with_exactly_the_rights_that_it_was_made_with() -> None:
    assert told(NO_SECRETS).hindrance(VIEW, 101.0) == ""
    reordered = replace(VIEW, owner=OwningUser("eve", Rights(but("a", "b"))))
    assert told(Rights(but("b", "a"))).hindrance(reordered, 101.0) == ""
    for other in (Rights(but("secret/**", "robot/**")), Rights(but()), ALL_RIGHTS):
        why = told(other).hindrance(VIEW, 101.0)
        assert "the rights of user 'eve' changed" in why
        assert "drop the view and create it again" in why


def test_it_needs_the_right_to_put_its_definition_and_all_that_it_publishes() -> None:
    for denied in ("view/**", "view/leak/**", "@lake/views/*", "**"):
        why = told(Rights(NO_SECRETS.readable, but(denied))).hindrance(VIEW, 101.0)
        assert why.startswith("user 'eve' may not put '"), denied
    nothing = Rights(NO_SECRETS.readable, ReadableKeys(((),)))
    assert "may not put '@lake/views/leak'" in told(nothing).hindrance(VIEW, 101.0)
    some = Rights(NO_SECRETS.readable, but("view/leak/x"))
    book = told(some)
    assert book.hindrance(VIEW, 101.0) == ""
    assert book.may_put(EVE, "view/leak/y", 101.0)
    assert not book.may_put(EVE, "view/leak/x", 101.0)  # one result of many


def test_without_a_router_that_speaks_nothing_of_a_user_runs() -> None:
    assert "no router has said" in OwnerRights().hindrance(VIEW, 0.0)
    assert not OwnerRights().may_put(EVE, "view/leak/y", 0.0)
    book = told(NO_SECRETS, at=100.0)
    assert book.hindrance(VIEW, 100.0 + LEASE_SECONDS) == ""
    assert "no router has said" in book.hindrance(VIEW, 100.1 + LEASE_SECONDS)
    assert not book.may_put(EVE, "view/leak/y", 100.1 + LEASE_SECONDS)
    tell(book, NO_SECRETS, 200.0)
    assert book.hindrance(VIEW, 201.0) == ""
    assert "is not known to the router any more" in told(None).hindrance(VIEW, 101.0)


def test_the_operator_needs_nobody() -> None:
    own = replace(VIEW, owner=None)
    assert OwnerRights().hindrance(own, 0.0) == ""
    assert OwnerRights().may_put(None, "view/leak/y", 0.0)
    assert own.access.unrestricted
    assert not VIEW.access.unrestricted


def test_of_several_routers_each_takes_away_and_none_adds() -> None:
    book = told(NO_SECRETS)
    tell(book, ALL_RIGHTS, 100.0, "other")
    assert book.hindrance(VIEW, 101.0) == ""
    tell(book, Rights(but("robot/**")), 100.0, "third")
    assert "changed" in book.hindrance(VIEW, 101.0)
    for n in range(MOST_ROUTERS - 3):
        tell(book, ALL_RIGHTS, 100.0, f"router {n}")
    with pytest.raises(LocalError, match="routers tell"):
        tell(book, ALL_RIGHTS, 100.0, "one more")
    tell(book, ALL_RIGHTS, 200.0, "one more")  # the others have long been silent


def test_a_router_that_was_started_again_speaks_for_itself_alone() -> None:
    book = told(NO_SECRETS, at=100.0, router="before")
    tell(book, None, 103.0, "after")  # without this user
    tell(book, None, 104.0, "after")
    assert book.hindrance(VIEW, 104.0) == ""  # two routers may know different users
    tell(book, None, 100.1 + SUPERSEDED_SECONDS, "after")
    assert "is not known" in book.hindrance(VIEW, 106.0)
    tell(book, NO_SECRETS, 107.0, "after")
    assert book.hindrance(VIEW, 107.0) == ""


def test_a_user_drops_what_is_theirs_and_the_unrestricted_drop_all() -> None:
    assert may_drop(None, VIEW)
    assert may_drop(EVE, VIEW)
    assert may_drop(OwningUser("ann", ALL_RIGHTS), VIEW)
    assert not may_drop(OwningUser("ann", NO_SECRETS), VIEW)
    assert not may_drop(OwningUser(None, NO_SECRETS), VIEW)
    assert not may_drop(EVE, replace(VIEW, owner=None))
    assert not may_drop(OwningUser(None, NO_SECRETS), replace(VIEW, owner=None))


def test_an_alert_is_tried_by_those_who_may_read_all_that_its_owner_may() -> None:
    assert may_try(ALL_KEYS, VIEW)
    assert may_try(NO_SECRETS.readable, VIEW)
    assert not may_try(but("robot/**"), VIEW)
    assert not may_try(NO_SECRETS.readable, replace(VIEW, owner=None))
    # As much of the samples, but not what it publishes.
    blind = replace(VIEW, owner=OwningUser("eve", Rights(but("view/**"))))
    assert not may_try(but("view/**"), blind)
    # A router on the way says it again.
    twice = ReadableKeys(NO_SECRETS.readable.demands * 2)
    assert may_try(twice, VIEW)


def test_a_request_says_whom_it_is_for() -> None:
    request = {"kind": "view", "name": "leak", "sql": "SELECT key FROM samples"}
    assert definition_in({**request, "as": "operator"}).owner is None
    assert definition_in({**request, "as": EVE.plain()}).owner == EVE
    bad: tuple[object, ...] = (
        None, "", "eve", {}, {"user": "eve"}, {"user": 5, **NO_SECRETS.plain()},
        {"user": "operator"}, {"readable": "W10", "writable": "W10"},
    )  # fmt: skip
    for who in bad:
        with pytest.raises(LocalError):
            definition_in({**request, "as": who})
    with pytest.raises(LocalError, match="says who it is made for"):
        definition_in(request)


def test_its_owner_is_kept_with_it_and_one_without_is_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    definitions = ContinuousQueryStore(LakeLocation(tmp_path / "lake"))
    definitions.write(VIEW)
    definitions.write(replace(VIEW, name="own", owner=None))
    assert definitions.all()["leak"] == VIEW
    assert definitions.all()["own"].owner is None
    file = tmp_path / "lake" / ".standing" / "leak.json"
    plain = json.loads(file.read_text())
    # What cannot be read never becomes the operator's.
    for owner in ({}, None, "root", {"user": "eve"}, {"user": "eve", "readable": "?"}):
        file.write_text(json.dumps({**plain, "owner": owner}))
        assert list(definitions.all()) == ["own"]
    del plain["owner"]  # as before there were owners
    file.write_text(json.dumps(plain))
    assert definitions.all()["leak"].owner is None
    assert definitions.adopt() == ["leak"]
    assert json.loads(file.read_text())["owner"] == "operator"
    assert definitions.adopt() == []


def test_one_restricted_user_takes_a_share_of_the_places(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    definitions = ContinuousQueryStore(LakeLocation(tmp_path / "lake"))
    for n in range(MOST_OF_USER):
        definitions.write(replace(VIEW, name=f"v{n}"))
    with pytest.raises(LocalError, match="user 'eve' has 4 views and alerts already"):
        definitions.write(VIEW)
    definitions.write(replace(VIEW, name="v0", id="again"))  # no new one
    definitions.write(replace(VIEW, name="a", owner=OwningUser("ann", NO_SECRETS)))
    definitions.write(replace(VIEW, name="b", owner=None))
    definitions.write(replace(VIEW, name="c", owner=OwningUser("eve", ALL_RIGHTS)))


@pytest.mark.parametrize("router", [{}, {"router": None}, {"router": ""}, {"router": 7}])
def test_rights_are_told_by_a_router_with_a_name(router: dict[str, Any]) -> None:
    assert router_of({"do": "rights", "router": "ab12"}) == "ab12"
    with pytest.raises(LocalError, match="names the router"):
        router_of({"as": {"router": "ab12", **EVE.plain()}, **router})
