"""Ships the sealed segments of a journal to another filesystem, and again what did not arrive.

    zenlake journal ship zenlake-data/journal --to s3://bucket/robot-7

Runs beside a recorder. What is interrupted goes on with the segment that was under way. What is
there is a journal: readers and lakes open its address.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zenlake.errors import JournalCorrupt, JournalError
from zenlake.journal.disk.files import LocalFiles, replace
from zenlake.journal.disk.layout import INFO, JournalInfo, manifest_path
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import RemoteFiles, joined
from zenlake.journal.disk.watermark import WATERMARK, Watermark
from zenlake.journal.transfer.cargo import Load, deletable, ends, listing, loads
from zenlake.journal.writing.readers import SHIPPED

__all__ = ["Shipped", "ship"]

Progress = Callable[[int, int], None]
"""Told: how many bytes of how many are there."""

PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Shipped:
    """What was done."""

    segments: int
    """That were uploaded now."""
    bytes: int
    present: int
    """Segments that were there already."""
    deleted: int
    """Segments that were proven there byte by byte, and deleted here."""


def ship(
    folder: str, to: str, *, delete: bool = False, progress: Progress | None = None
) -> Shipped:
    """Make `to` hold every sealed segment of the journal in a folder.

    With `delete`, those that were read back and are the same are deleted here; that needs the
    journal's lock, for its list changes. Raises `JournalLocked` if a recorder has it (whose own
    retention can delete what was shipped), before anything is done.
    """
    local, remote = LocalFiles(folder), RemoteFiles(to)
    if not delete:
        return _ship(local, remote, progress, delete=False)
    lock = local.lock()
    try:
        return _ship(local, remote, progress, delete=True)
    finally:
        lock.release()


def _ship(
    local: LocalFiles, remote: RemoteFiles, progress: Progress | None, *, delete: bool
) -> Shipped:
    info = _identified(local, remote)
    near = _manifests(local, info, local.root)
    far = _manifests(remote, info, remote.uri)
    cargo = loads(near, far)
    sizes = {load.path: remote.size(load.path) for load in cargo}
    due = [load for load in cargo if not load.arrived(sizes)]
    total = sum(load.segment.bytes for load in due)
    uploaded = segments = 0
    gone: set[str] = set()
    for load in due:
        try:
            with local.open(load.segment.path) as source:
                remote.put(load.path, source)
        except FileNotFoundError:
            # A recorder beside us let it go; what it lists now is looked at below.
            gone.add(load.path)
            continue
        sizes[load.path] = remote.size(load.path)
        if not load.arrived(sizes):
            raise JournalError(
                f"{joined(remote.uri, load.path)} has {sizes[load.path]} bytes after its upload, "
                f"not {load.segment.bytes}; nothing was deleted: ship again"
            )
        segments += 1
        uploaded += load.segment.bytes
        if progress is not None:
            progress(uploaded, total)
    if gone:
        near = _manifests(local, info, local.root)
    listed = _list(info, near, far, cargo, sizes, remote)
    if listed != far or not delete:
        _note(local, info, listed)
    deleted = _delete(local, remote, near, listed) if delete else 0
    return Shipped(segments, uploaded, len(cargo) - len(due), deleted)


def _identified(local: LocalFiles, remote: RemoteFiles) -> JournalInfo:
    """Which journal this is; what is there must be the same, or nothing."""
    try:
        page = local.read(INFO)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise JournalError(f"{local.root} is not a journal: it has no {INFO}") from error
    info = JournalInfo.from_json(page, local.root)
    try:
        other = JournalInfo.from_json(remote.read(INFO), remote.uri)
    except FileNotFoundError:
        remote.put(INFO, io.BytesIO(info.to_json()))
        return info
    if other.id != info.id:
        raise JournalError(
            f"{remote.uri} holds another journal ('{other.name}', {other.id}); ship each journal "
            "to an address of its own"
        )
    return info


def _manifests(shelf: Any, info: JournalInfo, where: str) -> list[Manifest]:
    manifests = []
    for number in range(info.partitions):
        path = manifest_path(number)
        try:
            manifests.append(Manifest.from_json(shelf.read(path), f"{where}/{path}"))
        except FileNotFoundError:
            manifests.append(Manifest())
    return manifests


def _list(
    info: JournalInfo,
    near: Sequence[Manifest],
    far: Sequence[Manifest],
    cargo: Sequence[Load],
    sizes: dict[str, int],
    remote: RemoteFiles,
) -> list[Manifest]:
    """Write manifests with the segments that arrived, then the watermark."""
    arrived: dict[int, set[int]] = {}
    for load in cargo:
        if load.arrived(sizes):
            arrived.setdefault(load.partition, set()).add(load.segment.first)
    listed = [
        listing(number, mine, far[number], arrived.get(number, ()), remote.uri)
        for number, mine in enumerate(near)
    ]
    for number, manifest in enumerate(listed):
        if manifest != far[number]:
            remote.put(manifest_path(number), io.BytesIO(manifest.to_json()))
    page = Watermark(ends(listed)).to_json()
    try:
        same = remote.read(WATERMARK) == page
    except FileNotFoundError:
        same = False
    if not same:
        remote.put(WATERMARK, io.BytesIO(page))
    return listed


def _note(local: LocalFiles, info: JournalInfo, listed: Sequence[Manifest]) -> None:
    """Tell the recorder's retention how far it may let go."""
    page = {"ship": {info.id: list(ends(listed))}}
    replace(local, SHIPPED, json.dumps(page).encode(), durable=False)


def _delete(
    local: LocalFiles, remote: RemoteFiles, near: Sequence[Manifest], listed: Sequence[Manifest]
) -> int:
    """Read back, list segments where they are now, and only then delete them here."""
    proven = set()
    for load in deletable(near, listed, {(x.partition, x.segment.first) for x in loads(near)}):
        if _digest(local, load.segment.path) != _digest(remote, load.path):
            raise JournalCorrupt(
                f"{joined(remote.uri, load.path)} is not what lies here as {load.segment.path}; it "
                "was not deleted here: delete it there, and ship again"
            )
        proven.add((load.partition, load.segment.first))
    chosen = deletable(near, listed, proven)
    for number, manifest in enumerate(near):
        places = {
            x.segment.first: joined(remote.uri, x.path) for x in chosen if x.partition == number
        }
        if places:
            replace(local, manifest_path(number), manifest.moved(places).to_json())
            local.sync(manifest_path(number).partition("/")[0])
    for load in chosen:
        local.remove(load.segment.path)
    return len(chosen)


def _digest(shelf: Any, path: str) -> bytes:
    digest = hashlib.sha256()
    with shelf.open(path) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.digest()
