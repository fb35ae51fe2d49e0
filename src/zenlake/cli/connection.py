"""How a command reaches the network: the options that all of them share, and how they end.

A command that wants a session takes a `Connection` first and is marked with `networked`. The
fields of `Connection` then become its options, and it ends with a code that means something:

    0    done
    1    it did not work: no session, or only errors for an answer
    2    the command line or the configuration is wrong
    3    nobody is there: nobody listened, answered or was found
    130  interrupted before it was done
"""

from __future__ import annotations

import inspect
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config import Config

FAILED = 1
REFUSED = 2
NOBODY = 3
INTERRUPTED = 130

PANEL = "Network"

#: Libraries that only some commands need, and the extra that brings them.
EXTRAS = {"librt": "journal", "numpy": "journal", "pyarrow": "journal"}


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
            help="What to be in the network; a peer, if not said.",
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
            help="Where to connect to, e.g. tcp/localhost:7447. May be repeated.",
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
            help="Where to listen, e.g. tcp/0.0.0.0:7447. May be repeated.",
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
            "'transport/unicast/max_links:2'. May be repeated.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    no_multicast_scouting: Annotated[
        bool,
        typer.Option(
            "--no-multicast-scouting",
            help="Do not look for others by multicast.",
            rich_help_panel=PANEL,
        ),
    ] = False
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="How long to wait for somebody before saying that nobody is there.",
            rich_help_panel=PANEL,
        ),
    ] = 3.0
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False

    def asked(self) -> bool:
        """Whether anything was said about the network at all."""
        return any(
            getattr(self, field.name) != field.default
            for field in fields(self)
            if field.name not in ("wait", "as_json")
        )

    def config(self) -> Config:
        """The configuration that the options ask for."""
        from zenlake.config import Config, ConfigWarning

        with warnings.catch_warnings(record=True) as told:
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
        with warnings.catch_warnings(record=True) as told_too:
            warnings.simplefilter("always", ConfigWarning)
            for change in self.changes or ():
                key, colon, value = change.partition(":")
                if not colon:
                    raise typer.BadParameter(
                        f"'{change}' has no value; write KEY:VALUE, such as 'mode:\"client\"'",
                        param_hint="--cfg",
                    )
                config.insert_json5(key, value)
        for warning in (*told, *told_too):
            note(str(warning.message))
        return config

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session as the options ask for it, closed at the end."""
        import zenlake
        from zenlake.cli.patience import Waiting

        zenlake.init_log_from_env_or("error")
        config = self.config()
        with Waiting("opening a session"):
            session = zenlake.open(config)
        with session:
            yield session


def networked(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Connection`, and end it as the shell expects."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    types = get_type_hints(Connection, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=types[field.name])
        for field in fields(Connection)
    ]

    @wraps(command)
    def run(**given: object) -> None:
        network = {parameter.name: given.pop(parameter.name) for parameter in shared}
        with ended_well():
            command(Connection(**network), **given)  # type: ignore[arg-type]

    parameters = [parameter.replace(kind=kind) for parameter in own] + shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@contextmanager
def ended_well() -> Iterator[None]:
    """Turn what ends a command into one line and a code; a termination is an interruption."""
    from zenlake.errors import LocalError, ZError

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _interrupt) if main else None
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except LocalError as error:
        note(str(error))
        raise typer.Exit(REFUSED) from None
    except ZError as error:
        note(str(error))
        raise typer.Exit(FAILED) from None
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        note(f"this needs {error.name}, which is not installed: pip install 'zenlake[{extra}]'")
        raise typer.Exit(FAILED) from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """For what has no end of its own: an interruption is how it ends."""
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            typer.echo("", err=True)  # the terminal has printed ^C


def note(text: str) -> None:
    """Tell the person at the terminal, beside the output proper."""
    typer.echo(f"zenlake: {text}", err=True)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
