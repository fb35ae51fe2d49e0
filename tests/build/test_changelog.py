from __future__ import annotations

import re
from datetime import date

import zenlake
from tools.compiled_tree import ROOT

HEADINGS = re.findall(
    r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_newest_release_is_the_version_of_the_package() -> None:
    assert HEADINGS[0] == "Unreleased"
    version, _, _ = HEADINGS[1].partition(" ")
    assert version == zenlake.__version__


def test_releases_have_a_version_and_a_date_newest_first() -> None:
    parts = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", one) for one in HEADINGS[1:]]
    assert all(parts)
    versions = [tuple(map(int, one[1].split("."))) for one in parts if one]
    days = [date.fromisoformat(one[2]) for one in parts if one]
    assert versions == sorted(versions, reverse=True)
    assert days == sorted(days, reverse=True)
