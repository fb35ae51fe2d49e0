"""Writes the list of nightly tests in CONTRIBUTING.md from the marks in the tests.

    python -m tools.nightly

A test that moves from `make test` to `make nightly` says by `@pytest.mark.nightly(day=…)` which
tests still cover its mechanism by day. The list is generated, so that `make fresh` finds one that
is stale.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- nightly: written by `make wire` -->", "<!-- end of nightly -->"


def nightly_tests() -> Iterator[tuple[str, list[str]]]:
    """Yield each place of a nightly mark and the test files that cover it by day."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.nightly" not in text:
            continue
        tree = ast.parse(text)
        for node in tree.body:
            for mark in ast.walk(node):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.nightly":
                    name = getattr(node, "name", "")
                    if (
                        isinstance(node, ast.Assign)
                        and ast.unparse(node.targets[0]) != "pytestmark"
                    ):
                        name = ast.unparse(node.targets[0])
                    place = path.relative_to(TESTS).as_posix() + (f"::{name}" if name else "")
                    (day,) = (word.value for word in mark.keywords if word.arg == "day")
                    yield place, ast.literal_eval(day).split(", ")


def table() -> str:
    """Return the list as a table in Markdown."""
    lines = ["| by night | its mechanism by day |", "|---|---|"]
    for place, day in nightly_tests():
        lines.append(f"| `{place}` | {', '.join(f'`{name}`' for name in day)} |")
    return "\n".join(lines)


def main() -> None:
    """Put the list into the page, in place of the one before."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
