"""What a lake is told: its typed tables, what is kept how long, and the sizes of things.

// lake.json5
{
  tables: {
    pose: {format: "robot/${id}/pose"},
    battery: {format: "robot/${id}/battery", encoding: "application/json",
              columns: {percent: "double"}},
  },
  retain: [{keys: "robot/*/camera", age: "7d"}],
  row_access: {guests: {keys: ["robot/*/pose"]}},
}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from zenlake.errors import ConfigError
from zenlake.lake.model.row_access import RowAccess
from zenlake.lake.model.status import LATE_SECONDS
from zenlake.lake.model.typed_table import TypedTable

__all__ = ["FIXED", "LakeConfig", "Retention", "Ros2Config", "pipelines_of", "seconds_of"]

FIXED: Final = (
    "samples", "latest", "gaps", "quarantine", "rollups", "network", "metrics",
)  # fmt: skip
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class Retention:
    """Samples of these keys are kept this long."""

    keys: str
    age: float


@dataclass(frozen=True, slots=True)
class Ros2Config:
    """How topics of ROS 2 are read."""

    tables: bool = True
    """A table for every topic that comes along."""
    distribution: str = "humble"
    """Where types without a hash are looked up."""
    folders: tuple[str, ...] = ()
    """Folders with `.msg` files."""


@dataclass(frozen=True, slots=True)
class LakeConfig:
    """All of it, with what holds when nothing is said."""

    path: str | None = None
    journal: str | None = None
    tables: tuple[TypedTable, ...] = ()
    families: bool = True
    """Tables for families of keys appear by themselves."""
    retain: tuple[Retention, ...] = ()
    row_access: Mapping[str, RowAccess] = field(default_factory=dict)
    """By name: the rows that queries to `@lake/sql/<name>` see."""
    buckets: int = 16
    """Files that `latest` is cut into."""
    remember: float = 86400.0
    """Seconds that a deletion is remembered for data that comes late."""
    gaps_every: float = 10.0
    batch_rows: int = 2_000_000
    """Rows that one step reads at most."""
    batch_bytes: int = 4 * 1024 * 1024 * 1024
    """Bytes of the journal that one step reads at most, or a row of each partition."""
    task_rows: int = 20_000
    """Fewer rows than these are not worth another task."""
    most_task_rows: int = 500_000
    task_bytes: int = 256 * 1024 * 1024
    """Bytes of the journal that one task reads at most, or one row."""
    compact_files: int = 32
    """Files of about one size that are merged into one."""
    compact_bytes: int = 128 * 1024 * 1024
    """The size at which a file is left alone."""
    vacuum_age: float = 600.0
    """Seconds after which a file that no version needs is deleted."""
    ros2: Ros2Config = Ros2Config()
    late: float = LATE_SECONDS
    """Seconds that rows may wait for the tables before `zenlake up` is not well."""
    history: float = 0.0
    """Seconds that old versions can be asked, at least."""
    iceberg: bool = False
    """Publish metadata of Iceberg beside that of Delta."""
    rollups: float | None = None
    """Seconds between two times that minutes and hours are counted; None: they are not."""
    pipelines: str | None = None
    """The folder with the files of a pipeline; None: `pipelines` beside `lake.json5`."""
    network: float | None = None
    """Seconds between two looks at the network; None: it is not looked at."""
    network_keep: float = 30 * 86400.0
    """Seconds that what was seen there is kept."""

    @property
    def kept(self) -> float:
        """Seconds that files are kept which only old versions need."""
        return max(self.vacuum_age, self.history)


def pipelines_of(lake: str, config_file: Path | None, config: LakeConfig) -> Path:
    """Return the folder of a lake's pipeline: as configured, or `pipelines` beside `lake.json5`."""
    beside = Path(lake) if config_file is None else config_file.parent
    return beside / (config.pipelines or "pipelines")


def seconds_of(given: object, what: str = "a duration") -> float:
    """The seconds of `7d`, `90s`, `500ms`, or of a plain number."""
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    duration = _DURATION.fullmatch(given.strip()) if isinstance(given, str) else None
    if duration is None:
        raise ConfigError(f"{given!r} is not {what}; write a number and ms, s, m, h, d or w")
    return float(duration[1]) * _UNITS[duration[2]]
