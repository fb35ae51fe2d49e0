"""The storages of a node, under `plugins/storage_manager` as Eclipse Zenoh writes them."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, key, section, section_of
from zenlake.config.grammar import KeyText, Namespace
from zenlake.config.json5 import Plain
from zenlake.config.shape import FreeForm, Members, Mode, Path, Real, Whole

__all__ = [
    "GarbageCollection",
    "Replication",
    "StorageManager",
    "StorageSettings",
    "storage_manager",
]

_BY = "zenlake.storage_manager.service.Storages"


def _storage_name(text: str) -> str:
    """Refuse a name that could not be that of a file."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", text):
        return "a storage's name has letters, digits, '_', '-' and '.', 64 at most"
    return ""


@section
class GarbageCollection:
    """When a storage forgets that keys were deleted."""

    period: Annotated[float, Real("seconds", 0.001)] = key(
        30.0, "How often it looks.", honoured_by=_BY
    )
    lifespan: Annotated[float, Real("seconds", 0.0)] = key(
        86400.0,
        "How long a deletion is remembered, so that older samples that come late are refused.",
        honoured_by=_BY,
    )


@section
class Replication:
    """How storages of one key expression become equal; the same for all of them."""

    interval: Annotated[float, Real("seconds", 0.001)] = key(
        10.0, "How often digests are exchanged.", honoured_by=_BY
    )
    sub_intervals: Annotated[int, Whole("", 1, 1 << 16)] = key(
        5, "Into how many parts an interval is cut.", honoured_by=_BY
    )
    hot: Annotated[int, Whole("intervals", 1, 1 << 16)] = key(
        6, "How many intervals are compared by their parts.", honoured_by=_BY
    )
    warm: Annotated[int, Whole("intervals", 0, 1 << 16)] = key(
        30, "How many intervals before those are compared one by one.", honoured_by=_BY
    )
    propagation_delay: Annotated[int, Whole("milliseconds", 0)] = key(
        250, "How long a sample may be on its way.", honoured_by=_BY
    )

    @staticmethod
    def holds(plain: Mapping[str, Plain]) -> Iterator[tuple[Path, str]]:
        """The delay is shorter than half an interval, and a part of it not less than 1 ms."""
        delay, interval = plain["propagation_delay"], plain["interval"]
        assert isinstance(delay, int)
        assert isinstance(interval, int | float)
        if delay * 2 >= interval * 1000:
            why = f"{delay} ms is not less than half of the interval of {interval} s"
            yield ("propagation_delay",), why
        parts = plain["sub_intervals"]
        assert isinstance(parts, int)
        if parts > round(interval * 1e9) // 1_000_000:
            why = f"an interval of {interval} s has no {parts} parts of a millisecond or more"
            yield ("sub_intervals",), why


@section
class StorageSettings:
    """One storage: what it stores, and where."""

    key_expr: KeyText = key(REQUIRED, "What is stored and answered for.", honoured_by=_BY)
    volume: Annotated[Plain, FreeForm()] = key(
        REQUIRED,
        "The volume it lies in: its name, or an object with `id` and options of the volume.",
        honoured_by=_BY,
    )
    strip_prefix: Namespace | None = key(
        None, "What is taken away from keys before they are handed to the volume.", honoured_by=_BY
    )
    complete: bool = key(
        False, "Whether others are told that no one else need be asked.", honoured_by=_BY
    )
    garbage_collection: GarbageCollection = key(GarbageCollection, "When deletions are forgotten.")
    replication: Replication | None = key(
        None, "How it becomes equal to others of the same key expression.", honoured_by=_BY
    )
    ttl: Annotated[float, Real("seconds", 0.001)] | None = key(
        None, "How old values may become; null means as old as they like.", honoured_by=_BY
    )
    history: Literal["latest", "all"] = key(
        "latest",
        "Whether every sample is kept, for queries with `_time`, or the newest of each key.",
        honoured_by=_BY,
    )
    history_age: Annotated[float, Real("seconds", 0.001)] | None = key(
        None, "How old samples of the history may become.", honoured_by=_BY
    )
    history_count: Annotated[int, Whole("samples", 1)] | None = key(
        None, "How many samples of each key the history keeps.", honoured_by=_BY
    )
    history_bytes: Annotated[int, Whole("bytes", 1)] | None = key(
        1 << 30, "How large the history of all keys may become.", honoured_by=_BY
    )

    @staticmethod
    def holds(plain: Mapping[str, Plain]) -> Iterator[tuple[Path, str]]:
        """The prefix is one of the key expression, and the volume has a name."""
        expr, prefix, volume = plain["key_expr"], plain.get("strip_prefix"), plain["volume"]
        if isinstance(prefix, str) and not f"{expr}/".startswith(f"{prefix}/"):
            yield ("strip_prefix",), f"'{prefix}' is no beginning of the key_expr '{expr}'"
        if plain.get("replication") is not None and plain.get("history") == "all":
            why = 'replicas have the newest value of each key: write history: "latest"'
            yield ("replication",), why
        name = volume.get("id") if isinstance(volume, dict) else volume
        if not isinstance(name, str):
            yield ("volume",), 'expected a name, or an object with an id: {id: "memory"}'


@section
class StorageManager:
    """The storages of a node, and the volumes they lie in."""

    volumes: Annotated[Plain, FreeForm(members=True)] = key(
        {},
        "Volumes by name, with options for all storages in one; `backend` names its kind.",
        honoured_by=_BY,
    )
    storages: Annotated[
        Mapping[str, StorageSettings], Members(_storage_name, section_of(StorageSettings))
    ] = key({}, "Storages by name.", honoured_by=_BY)
    backend_search_dirs: Annotated[Plain, FreeForm()] = key(
        None, "Where Eclipse's router looks for libraries of volumes; ours are Python packages."
    )


def storage_manager(plugins: Mapping[str, Plain], mode: Mode) -> StorageManager | None:
    """The storages that the member `plugins` of a configuration asks for, if it names any."""
    plain = plugins.get("storage_manager")
    if not isinstance(plain, dict):
        return None
    members = {name: member for name, member in plain.items() if not name.startswith("__")}
    configured = section_of(StorageManager).build(members, mode)
    assert isinstance(configured, StorageManager)
    return configured
