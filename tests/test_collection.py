from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def test_a_run_of_everything_passes_over_no_file(
    pytestconfig: pytest.Config, collected: set[Path]
) -> None:
    """Tools pass over folders by name, and a test that nobody runs is always green."""
    options = pytestconfig.option
    whole = pytestconfig.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and not (options.ignore or options.ignore_glob or options.deselect):
        passed_over = set(TESTS.rglob("test_*.py")) - collected
        assert sorted(str(path.relative_to(TESTS)) for path in passed_over) == []
