"""How a command reaches the network: the options that all of them share.

A command that wants a session takes a `Connection` first and is marked with `networked`. The
fields of `Connection` then become its options, and it ends as `zenlake.cli.ending` says.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.ending import FAILED, NOBODY, REFUSED, ended_well, note, until_interrupted
from zenlake.cli.shared_options import with_options

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config

__all__ = [
    "FAILED",
    "NOBODY",
    "REFUSED",
    "Connection",
    "Mode",
    "ended_well",
    "networked",
    "note",
    "until_interrupted",
]

PANEL = "Network"


class Mode(StrEnum):
    """What kind of node to be."""

    PEER = "peer"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Connection:
    """The options that every command on the network has; each field is one."""

    mode: Annotated[
        Mode | None,
        typer.Option(
            "-m",
            "--mode",
            metavar="MODE",
            help="The mode of this node: peer or client.  [default: peer]",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    connect: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--connect",
            metavar="ENDPOINT",
            help="Connect to this endpoint, e.g. tcp/localhost:7447; repeatable.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "-l",
            "--listen",
            metavar="ENDPOINT",
            help="Listen on this endpoint, e.g. tcp/0.0.0.0:7447; repeatable.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    file: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--config",
            metavar="FILE",
            help="A configuration file: .json5, .json or .yaml.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--cfg",
            metavar="KEY:VALUE",
            help="Set one key of the configuration to a JSON5 value, e.g. "
            "scouting/delay:100; repeatable.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    no_multicast_scouting: Annotated[
        bool,
        typer.Option(
            "--no-multicast-scouting",
            help="Do not look for nodes by multicast.",
            rich_help_panel=PANEL,
        ),
    ] = False
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="The timeout for finding a node, a subscriber or a queryable.",
            rich_help_panel=PANEL,
        ),
    ] = 3.0
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object a line.")] = False

    def asked(self) -> bool:
        """Whether anything was said about the network at all."""
        return any(
            getattr(self, field.name) != field.default
            for field in fields(self)
            if field.name not in ("wait", "as_json")
        )

    def config(self, *, quiet: bool = False) -> Config:
        """The configuration that the options ask for.

        What has no effect is told, unless `quiet`.
        """
        from zenlake.config import Config, ConfigWarning

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", ConfigWarning)
            config = Config() if self.file is None else Config.from_file(self.file)
        with warnings.catch_warnings():
            # These have options of their own because they matter.
            warnings.simplefilter("ignore", ConfigWarning)
            if self.mode is not None:
                config.insert_json5("mode", json.dumps(self.mode.value))
            if self.connect:
                config.insert_json5("connect/endpoints", json.dumps(self.connect))
            if self.listen:
                config.insert_json5("listen/endpoints", json.dumps(self.listen))
            if self.no_multicast_scouting:
                config.insert_json5("scouting/multicast/enabled", "false")
        with warnings.catch_warnings(record=True) as warned_too:
            warnings.simplefilter("always", ConfigWarning)
            for change in self.changes or ():
                key, colon, value = change.partition(":")
                if not colon:
                    raise typer.BadParameter(
                        f"'{change}' has no value; write KEY:VALUE, such as 'mode:\"client\"'",
                        param_hint="--cfg",
                    )
                config.insert_json5(key, value)
        for warning in () if quiet else (*warned, *warned_too):
            note(str(warning.message))
        return config

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session as the options ask for it, closed at the end."""
        import zenlake
        from zenlake.cli.patience import WaitNotice

        zenlake.init_log_from_env_or("error")
        config = self.config()
        with WaitNotice("opening a session"):
            session = zenlake.open(config)
        with session:
            yield session


def networked(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Connection`, and end it as the shell expects."""

    @wraps(command)
    def run(network: Connection, **given: object) -> None:
        with ended_well():
            command(network, **given)

    return with_options(Connection, run)
