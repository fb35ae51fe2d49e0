from __future__ import annotations

from collections.abc import Iterator

import pytest

import zenlake
from tests.api.sessions import config, joined


@pytest.fixture
def alone() -> Iterator[zenlake.Session]:
    """A session without neighbours."""
    with zenlake.open(config()) as session:
        yield session


@pytest.fixture
def pair() -> Iterator[tuple[zenlake.Session, zenlake.Session]]:
    """Two peers with a session between them."""
    with joined() as sessions:
        yield sessions
