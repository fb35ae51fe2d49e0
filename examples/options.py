"""The command-line options that all these programs share, and the configuration they ask for.

It knows no package by itself: a program gives the one that it has imported, so that the same
program runs on zenlake (`import zenlake as zenoh`) and on Eclipse's package (`import zenoh`).
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any


def parser(name: str, description: str) -> ArgumentParser:
    """A parser that knows how to reach the network."""
    made = ArgumentParser(prog=name, description=description)
    made.add_argument("--mode", "-m", choices=["peer", "client"], help="what to be")
    made.add_argument(
        "--connect", "-e", metavar="ENDPOINT", action="append", help="where to connect to"
    )
    made.add_argument("--listen", "-l", metavar="ENDPOINT", action="append", help="where to listen")
    made.add_argument("--config", "-c", metavar="FILE", help="a configuration file")
    made.add_argument(
        "--no-multicast-scouting", action="store_true", help="do not look for others by multicast"
    )
    made.add_argument(
        "--cfg",
        metavar="KEY:VALUE",
        action="append",
        default=[],
        help="one key of the configuration and its JSON5 value",
    )
    return made


def config(zenoh: ModuleType, arguments: Namespace) -> Any:
    """The configuration that the arguments ask for, made by the package in use."""
    made = zenoh.Config.from_file(arguments.config) if arguments.config else zenoh.Config()
    if arguments.mode is not None:
        made.insert_json5("mode", json.dumps(arguments.mode))
    if arguments.connect is not None:
        made.insert_json5("connect/endpoints", json.dumps(arguments.connect))
    if arguments.listen is not None:
        made.insert_json5("listen/endpoints", json.dumps(arguments.listen))
    if arguments.no_multicast_scouting:
        made.insert_json5("scouting/multicast/enabled", "false")
    for change in arguments.cfg:
        key, _, value = change.partition(":")
        made.insert_json5(key, value)
    return made


def run(main: Callable[[], None]) -> None:
    """Run a program until it ends or is interrupted."""
    with suppress(KeyboardInterrupt):
        main()
