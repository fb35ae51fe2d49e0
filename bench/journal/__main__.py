"""Benchmarks of the journal: `python -m bench.journal scan`, `recovery` or `start`."""

from __future__ import annotations

import importlib
import pathlib
import sys


def main() -> None:
    here = pathlib.Path(__file__).parent
    names = sorted(path.stem for path in here.glob("[a-z]*.py") if path.stem != "rows")
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: python -m bench.journal {{{','.join(names)}}} [options]")
    module = importlib.import_module(f"bench.journal.{sys.argv.pop(1)}")
    module.main()


if __name__ == "__main__":
    main()
