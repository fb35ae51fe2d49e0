from __future__ import annotations

from pathlib import Path

from zenlake.admin.document import render, write
from zenlake.node.inspection.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_the_page_says_what_the_metrics_declare() -> None:
    stale = "stale; run: python -m zenlake.admin.document"
    assert PAGE.read_text(encoding="utf-8") == render(), stale


def test_every_metric_is_on_the_page() -> None:
    page = render()
    for metric in METRICS:
        assert f"`{metric.sample}`" in page
        assert metric.help in page


def test_it_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    write(tmp_path / "deep")
    assert (tmp_path / "deep" / "metrics.md").read_text(encoding="utf-8") == render()
