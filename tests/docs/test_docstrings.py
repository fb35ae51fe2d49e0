"""Runs the examples in the docstrings of every module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import zenlake

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(zenlake.__path__, "zenlake.")
    if found.name != "zenlake.__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_a_module_do_what_they_say(name: str) -> None:
    told = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert told.failed == 0
