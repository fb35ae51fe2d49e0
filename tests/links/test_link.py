from __future__ import annotations

import importlib
import pkgutil

import pytest

import zenlake.links
from zenlake.links.link import UnicastLink


def classes() -> list[type[UnicastLink]]:
    """Every class of links that there is."""
    for module in pkgutil.iter_modules(zenlake.links.__path__):
        importlib.import_module(f"zenlake.links.{module.name}")
    found: list[type[UnicastLink]] = []
    waiting = [UnicastLink]
    while waiting:
        for one in waiting.pop().__subclasses__():
            if one.__module__.startswith("zenlake."):
                found.append(one)
                waiting.append(one)
    return found


def test_every_link_that_threads_write_lets_them_wait() -> None:
    found = classes()
    assert len(found) >= 8
    for one in found:
        if getattr(one, "thread_safe", True):
            assert one.wait_writable is not UnicastLink.wait_writable, one


def test_a_link_that_threads_write_and_cannot_wait_for_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match="Forgetful may be written by any thread"):
        type("Forgetful", (UnicastLink,), {"thread_safe": True})
    with pytest.raises(TypeError, match="Undecided may be written by any thread"):
        type("Undecided", (UnicastLink,), {})


def test_a_link_of_the_loop_alone_need_not_let_anybody_wait() -> None:
    assert issubclass(type("Modest", (UnicastLink,), {"thread_safe": False}), UnicastLink)
