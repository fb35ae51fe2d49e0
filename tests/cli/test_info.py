from __future__ import annotations

import json

from typer.testing import CliRunner

import zenlake
from hatch_build import compiled_modules
from tools.compiled_tree import ROOT
from zenlake.cli.app import application
from zenlake.cli.info import extensions


def test_info_says_version_and_build() -> None:
    told = CliRunner().invoke(application(["info"]), ["info"])
    kind = "compiled" if zenlake.compiled else "interpreted"
    assert told.output.startswith(f"zenlake   {zenlake.__version__} ({kind})\n")


def test_info_as_json_says_the_same() -> None:
    told = CliRunner().invoke(application(["info"]), ["info", "--json"])
    facts = json.loads(told.output)
    assert facts["version"] == zenlake.__version__
    assert facts["compiled"] is zenlake.compiled
    assert facts["modules"] == extensions()


def test_the_extensions_are_all_the_hot_modules_or_none() -> None:
    assert extensions() == (compiled_modules(ROOT) if zenlake.compiled else [])
