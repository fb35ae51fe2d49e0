"""The interpreted and the compiled build say the same about every buffer."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tools import compiled_tree, fuzz

CASES = 6_000


def test_both_builds_agree_on_damaged_bytes() -> None:
    if not compiled_tree.is_fresh(compiled_tree.fingerprint()):
        pytest.skip(
            "build/compiled is missing or older than the sources: run `make build/compiled`"
        )
    report = fuzz.run(seed=2018, cases=CASES)
    assert report.failures == []
    assert report.cases >= CASES
    # Buffers that are all refused, or all accepted, would prove little.
    assert 0.1 < report.accepted / report.cases < 0.9


def test_a_build_that_differs_in_one_word_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(fuzz.BUILDS["interpreted"], tmp_path / "src", ignore=ignored)
    cursor = tmp_path / "src" / "zenlake" / "wire" / "cursor.py"
    cursor.write_text(cursor.read_text().replace("is above", "is over"))
    monkeypatch.setitem(fuzz.BUILDS, "compiled", tmp_path / "src")
    monkeypatch.setattr(fuzz, "SAVED", tmp_path / "saved")
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    case = ("network", bytes.fromhex("5d808004" + "0100"))
    builds = [fuzz.Build(name) for name in fuzz.BUILDS]
    report = fuzz.Report(seed=0)
    fuzz.judge(builds, [case, ("network", b"\x5d\x01\x01\x00")], report)
    for build in builds:
        build.close()
    assert report.cases == 2
    (failure,) = report.failures
    assert "65536 at offset 1 is above 65535" in failure
    assert "65536 at offset 1 is over 65535" in failure
    (saved,) = (tmp_path / "saved").iterdir()
    assert bytes.fromhex(saved.read_text()) == case[1]


def test_the_same_seed_gives_the_same_buffers() -> None:
    def first(seed: int) -> list[fuzz.Case]:
        stream = fuzz.buffers(Random(seed))
        return [next(stream) for _ in range(50)]

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert {kind for kind, _ in first(1)} == set(fuzz.READERS)
