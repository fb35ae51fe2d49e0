"""Volumes by name: those that come with zenlake, and those that other packages register."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from zenlake.config.nearest import nearest
from zenlake.volumes.contract import Volume, VolumeError

__all__ = ["GROUP", "known_volumes", "volume_class"]

GROUP: Final = "zenlake.volumes"
"""The group of entry points through which other packages add volumes."""

OURS: Final = {
    "memory": "zenlake.volumes.memory:Memory",
    "fs": "zenlake.volumes.fs:Files",
    "sqlite": "zenlake.volumes.sqlite:Sqlite",
    "rocksdb": "zenlake.volumes.rocksdb:RocksDb",
    "postgres": "zenlake.volumes.postgres:Postgres",
    "redis": "zenlake.volumes.redis:Redis",
    "s3": "zenlake.volumes.s3:S3",
}


def known_volumes() -> tuple[str, ...]:
    """The names of all volumes there are."""
    others = {point.name for point in entry_points(group=GROUP)}
    return (*OURS, *sorted(others - OURS.keys()))


def volume_class(name: str) -> type[Volume]:
    """The class of a volume; raises `VolumeError` if there is none, or a package is missing."""
    if name in OURS:
        module, _, attribute = OURS[name].partition(":")
        try:
            loaded: object = getattr(import_module(module), attribute)
        except ImportError as error:
            raise VolumeError(
                f"the volume '{name}' needs the package '{error.name}': "
                f"pip install 'zenlake[{name}]'"
            ) from error
    else:
        points = [point for point in entry_points(group=GROUP) if point.name == name]
        if not points:
            hint = nearest(name, known_volumes())
            meant = f"; did you mean '{hint}'?" if hint else "."
            raise VolumeError(
                f"there is no volume '{name}'{meant} There are: {', '.join(known_volumes())}"
            )
        loaded = points[0].load()
    if not (isinstance(loaded, type) and issubclass(loaded, Volume)):
        raise VolumeError(f"the volume '{name}' is {loaded!r}, which is no subclass of Volume")
    return loaded
