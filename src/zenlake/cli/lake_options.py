"""The options that the commands of a lake share, and the lake that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from zenlake.lake import LakeConfig

__all__ = [
    "LAKE",
    "AsJson",
    "ChosenLake",
    "Conf",
    "ConfigFile",
    "Journals",
    "Master",
    "Where",
    "choose_lake",
    "configuration",
]

LAKE = "zenlake-data/lake"
JOURNAL = "zenlake-data/journal"

Where = Annotated[str, typer.Option("--lake", metavar="DIR", help="Where the tables are.")]
Journals = Annotated[
    list[str] | None,
    typer.Option(
        "--journal",
        metavar="DIR",
        help=f"The journal that feeds the lake, {JOURNAL} if not said; may be given often.",
        show_default=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Typed tables, retention, sizes; lake.json5 in the lake's folder, if not said.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Facts as JSON.")]
Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="The Spark to use, e.g. spark://host:7077.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given often."),
]


@dataclass(frozen=True, slots=True)
class ChosenLake:
    """The lake that the options of a command choose, and the journals that feed it."""

    where: str
    journals: list[str]
    settings: LakeConfig


def choose_lake(where: str, config: Path | None, journals: list[str] | None = None) -> ChosenLake:
    """Return the lake that the options choose; its configuration says what they leave out."""
    settings = configuration(config, where)
    if settings.path is not None and where == LAKE:
        where = settings.path
    return ChosenLake(where, journals or [settings.journal or JOURNAL], settings)


def configuration(path: Path | None, where: str) -> LakeConfig:
    """Return the configuration in a file, or in `lake.json5` of the lake's own folder."""
    from zenlake.errors import ConfigError
    from zenlake.lake import LakeConfig, read_config

    file = path or Path(where) / "lake.json5"
    if path is None and not file.is_file():
        return LakeConfig()
    try:
        return read_config(file.read_text("utf-8"), str(file))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
