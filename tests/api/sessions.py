"""Sessions in one process, joined over loopback by their endpoints alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import zenlake
from tests.waiting import SECONDS
from zenlake.config.problem import ConfigWarning


def config(**keys: str) -> zenlake.Config:
    """A configuration that finds nobody by itself; `a__b` stands for the key `a/b`."""
    made = zenlake.Config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        made.insert_json5("scouting/multicast/enabled", "false")
        made.insert_json5("listen/endpoints", "[]")
        for name, value in keys.items():
            made.insert_json5(name.replace("__", "/"), value)
    return made


def listening(**keys: str) -> zenlake.Session:
    """A session that others can connect to."""
    return zenlake.open(config(listen__endpoints='["tcp/127.0.0.1:0"]', **keys))


def where(session: zenlake.Session) -> str:
    """The endpoint that a session listens on."""
    return session.runtime.node.settings.locators[0]


def connected(to: zenlake.Session, **keys: str) -> zenlake.Session:
    """A session that is connected to another, and knows what that one has declared."""
    return zenlake.open(config(**connecting_to(where(to)) | keys))


def client_of(to: zenlake.Session) -> zenlake.Config:
    """The configuration of a client of a session that listens."""
    return config(mode='"client"', connect__endpoints=f'["{where(to)}"]')


def connecting_to(endpoint: str) -> dict[str, str]:
    """Keys of a session that opens when it is connected, however long a busy machine takes."""
    return {"connect__endpoints": f'["{endpoint}"]', "scouting__delay": str(int(SECONDS * 1000))}


@contextmanager
def joined(**keys: str) -> Iterator[tuple[zenlake.Session, zenlake.Session]]:
    """Two peers with a session between them."""
    with listening(**keys) as here, connected(here, **keys) as there:
        yield here, there


def until_matched(entity: zenlake.Publisher | zenlake.Querier) -> None:
    """Wait until somebody listens to a publisher, or answers a querier."""
    with entity.declare_matching_listener() as listener:
        while not listener.recv().matching:
            pass
