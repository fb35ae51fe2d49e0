"""A process without pandas, for commands that have no use for it.

pyarrow imports pandas, where it is installed, with the first array that it makes: a second of CPU
and 58 MB for each router and recorder, which never make a data frame.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["leave_out_pandas"]

COMMANDS = frozenset({"diff", "journal", "ledger", "record", "router"})
"""The sub-commands that make arrays, and neither data frames nor a Spark."""


class WithoutPandas(MetaPathFinder):
    """A finder that refuses pandas as if it were not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Nothing; raises `ModuleNotFoundError` for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("left out: no data frame is made here", name=fullname)
        return None


def leave_out_pandas(asked: Sequence[str]) -> None:
    """Leave pandas out of this process, if all that it runs is a command without data frames."""
    if asked and asked[0] in COMMANDS:
        sys.meta_path.insert(0, WithoutPandas())
