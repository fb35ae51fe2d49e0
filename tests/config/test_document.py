from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from zenlake.config import Config
from zenlake.config.document import render_defaults, render_reference, write
from zenlake.config.load import all_keys

PAGES = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "text"),
    [("config.md", render_reference()), ("DEFAULT_CONFIG.json5", render_defaults())],
)
def test_the_pages_say_what_the_model_says(name: str, text: str) -> None:
    assert (PAGES / name).read_text(encoding="utf-8") == text, (
        "stale; run: python -m zenlake.config.document"
    )


def test_the_defaults_file_reads_back_to_the_defaults() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Config.from_json5(render_defaults()) == Config()


def test_both_pages_have_every_key() -> None:
    reference = render_reference()
    defaults = render_defaults()
    for path, key in all_keys().items():
        assert key.doc in reference, path
        assert f"`{path}`" in reference, path
        if not path.startswith(("connect/retry/", "listen/retry/", "routing/peer/")):
            assert f"{key.name}: " in defaults, path


def test_a_key_without_effect_is_listed_as_such() -> None:
    rows = [line for line in render_reference().splitlines() if line.startswith("| `")]
    (threads,) = [row for row in rows if row.startswith("| `transport/link/tx/threads` |")]
    assert threads.endswith("| accepted, not honoured yet |")
    (mode,) = [row for row in rows if row.startswith("| `mode` |")]
    assert mode.endswith("| `zenlake.config.config.Config.for_mode` |")


def test_the_pages_are_written_to_a_directory(tmp_path: Path) -> None:
    write(tmp_path / "new")
    assert (tmp_path / "new" / "config.md").read_text(encoding="utf-8") == render_reference()
