"""Sessions and journals as options ask for them. Nothing here is kept or pickled."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from zenlake.errors import ConfigError, LinkError
from zenlake.spark.options import OptionError, SourceOptions

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config

__all__ = ["absolute", "configuration", "open_journal", "open_session"]


def absolute(path: str) -> str:
    """A path that means the same in every process of this machine; a URI as it is."""
    return path if "://" in path else os.path.abspath(path)


def configuration(options: SourceOptions) -> Config:
    """The configuration that the options beginning with `zenoh.` make."""
    from zenlake.config import Config, ConfigWarning

    given = dict(options.zenoh())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        file = given.pop("config", "")
        config = Config.from_file(file) if file else Config()
        if not file:
            # A task is a guest: it connects where it is told and looks for nobody.
            config.insert_json5("mode", '"client"')
            config.insert_json5("scouting/multicast/enabled", "false")
        endpoints = [word.strip() for word in given.pop("connect", "").split(",") if word.strip()]
        if endpoints:
            config.insert_json5("connect/endpoints", json.dumps(endpoints))
        for key, value in given.items():
            try:
                config.insert_json5(key, value)
            except ConfigError as error:
                # Text is the commonest value, and nobody quotes it in an option.
                try:
                    config.insert_json5(key, json.dumps(value))
                except ConfigError:
                    raise OptionError(
                        f"zenoh.{key.replace('/', '.')}={value!r}: {error}"
                    ) from error
    return config


@contextmanager
def open_session(options: SourceOptions) -> Iterator[Session]:
    """A session as the options ask for it, closed at the end."""
    import zenlake

    if not options.connects():
        raise OptionError(
            "say where the network is: option('zenoh.connect', 'tcp/localhost:7447'), or "
            "option('zenoh.config', FILE)"
        )
    config = configuration(options)
    try:
        session = zenlake.open(config)
    except LinkError as error:
        raise LinkError(
            f'no session for format("zenoh"): {error}. Is a router running there? '
            "Start one by: zenlake router"
        ) from error
    with session:
        yield session


@contextmanager
def open_journal(options: SourceOptions) -> Iterator[Any]:
    """The journal that is read: in a folder, at a URI, or behind the network."""
    from zenlake.journal import Journal

    path = options.text("path")
    name = options.text("journal")
    if path and name:
        raise OptionError("path and journal are both set: a journal is read from one place")
    if path:
        with Journal.open(absolute(path)) as journal:
            yield journal
    elif name:
        from zenlake.journal.serving.bus import RemoteJournal

        with (
            open_session(options) as session,
            RemoteJournal.open(session, name, options.seconds("timeout", 10.0)) as remote,
        ):
            yield remote
    else:
        raise OptionError(
            "say what to read: load('FOLDER OF A JOURNAL'), option('journal', NAME) with "
            "zenoh.connect, or option('get', SELECTOR) with zenoh.connect"
        )
