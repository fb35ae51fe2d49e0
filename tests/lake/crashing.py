"""Deaths at the commits of tables, as kill -9 would have them: nothing after them runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from deltalake import DeltaTable


class Killed(BaseException):
    """What kill -9 is to the program."""


@contextmanager
def dying(
    count: int = 1, *, after: bool = False, of: Callable[[str], bool] = lambda uri: True
) -> Iterator[None]:
    """Die before, or right after, the count-th commit of deltalake; `of` chooses tables."""
    commits = DeltaTable.create_write_transaction
    left = count

    def commit(self: DeltaTable, *args: Any, **more: Any) -> None:
        nonlocal left
        left -= of(self.table_uri)
        if not left and not after:
            raise Killed
        commits(self, *args, **more)
        if not left:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", commit)
        with pytest.raises(Killed):
            yield
