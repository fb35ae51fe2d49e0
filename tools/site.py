"""What the documentation site needs beyond `docs/`: hooks of mkdocs.

Pages of the repository's own folder (changes, contributing) become pages of the site, and links
between them and `docs/` are turned, so that they lead somewhere in both places.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md")
STYLE = """
pre code { white-space: pre; }
img { max-width: 100%; border: 1px solid rgba(128, 128, 128, 0.4); }
td, th { vertical-align: top; }
table code { word-break: break-word; }
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside `docs/`, and a style sheet with the colours of code."""
    for name in BESIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text("utf-8")))
    light = HtmlFormatter(style="default").get_style_defs(".codehilite")
    dark = HtmlFormatter(style="github-dark").get_style_defs("[data-bs-theme=dark] .codehilite")
    files.append(File.generated(config, "site.css", content=f"{light}\n{dark}\n{STYLE}"))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Turn links that lead out of `docs/`, and into it."""
    if page.file.src_uri in BESIDE:
        return re.sub(r"\]\(docs/", "](", markdown)
    depth = "../" * page.file.src_uri.count("/")
    for name in BESIDE:
        markdown = markdown.replace(f"]({depth}../{name}", f"]({depth}{name}")
    # A folder of the repository is no page: its name stays.
    return re.sub(
        rf"\[([^\]]+)\]\({re.escape(depth)}\.\./(?:deploy|examples)[^)]*\)", r"\1", markdown
    )
