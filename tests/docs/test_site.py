"""The documentation site is built from `docs/`, its links lead somewhere, it asks nobody else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What a browser fetches by itself; links that a person clicks may lead elsewhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="(https?:)?//|<link[^>]*\shref="(https?:)?//|url\(["']?https?:"""
)


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f"({page}" not in readme] == []


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_site_is_built_with_links_that_lead_somewhere_and_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(tmp_path).with_suffix(".md") for page in pages}
    assert sources <= built
    fetching = [
        str(file.relative_to(tmp_path))
        for file in (*pages, tmp_path / "site.css")
        if FETCHED.search(file.read_text("utf-8"))
    ]
    assert fetching == []
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
