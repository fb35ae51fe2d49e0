"""One router with HTTP, a storage with a history, for the tests of a module."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

import zenlake
from tests.api.sessions import listening
from tests.waiting import SECONDS
from zenlake.rest import RestService


def plugins(**rest: object) -> str:
    history = {"key_expr": "past/**", "volume": "memory", "history": "all"}
    latest = {"key_expr": "demo/**", "volume": "memory"}
    return json.dumps(
        {
            "rest": {"http_port": "127.0.0.1:0", **rest},
            "storage_manager": {"storages": {"latest": latest, "history": history}},
        }
    )


def router(plugins: str, **keys: str) -> zenlake.Session:
    return listening(mode='"router"', adminspace__enabled="true", plugins=plugins, **keys)


def url_of(session: zenlake.Session) -> str:
    service = session.runtime.services["zenlake.rest"]
    assert isinstance(service, RestService)
    assert service.url
    return service.url


@pytest.fixture(scope="module")
def bus() -> Iterator[zenlake.Session]:
    with router(plugins()) as session:
        yield session


@pytest.fixture(scope="module")
def web(bus: zenlake.Session) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as client:
        yield client
