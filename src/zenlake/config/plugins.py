"""Plugins that a configuration insists on, and that zenlake has nothing for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zenlake.config.json5 import Plain
from zenlake.config.problem import Problem

__all__ = ["required_plugins"]

REQUIRED = "__required__"
#: What zenlake does itself, and Eclipse's router by plugins.
OURS = (
    "remote_api",
    "rest",
    "storage_manager",
    *(f"storage_manager/volumes/{it}" for it in ("memory", "fs", "sqlite")),
)


def required_plugins(plugins: Plain) -> list[Problem]:
    """The plugins, and volumes of theirs, that must be there and are not."""
    return [
        Problem(
            f"plugins/{path}/{REQUIRED}",
            f"zenlake has no plugin '{path.rpartition('/')[2]}'; set it to false to start "
            "without it",
        )
        for path in _insisted(plugins, "", 4)
    ]


def _insisted(value: Plain, path: str, depth: int) -> Iterator[str]:
    if not isinstance(value, Mapping) or not depth:
        return
    if path and path not in OURS and value.get(REQUIRED) is True:
        yield path
    for name, inner in value.items():
        yield from _insisted(inner, f"{path}/{name}" if path else str(name), depth - 1)
