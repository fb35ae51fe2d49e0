"""What to ship of a journal and what may be deleted then: decisions, without any file.

A journal here is what its manifests list. What lies there is a journal, too: it lists segments
without a gap, and keeps those that retention has let go here since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zenlake.errors import JournalError
from zenlake.journal.disk.layout import sealed_path
from zenlake.journal.disk.manifest import Manifest
from zenlake.journal.disk.remote import is_uri, joined
from zenlake.journal.disk.segment import Segment

__all__ = ["Load", "deletable", "ends", "listing", "loads"]


@dataclass(frozen=True, slots=True)
class Load:
    """A sealed segment that lies here, and the name that it gets there."""

    partition: int
    segment: Segment

    @property
    def path(self) -> str:
        """Where it lies there, from the address of the journal on."""
        return sealed_path(self.partition, self.segment.first)

    def arrived(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is there whole; what was interrupted is not there, or has another size."""
        return sizes.get(self.path, -1) == self.segment.bytes


def loads(manifests: Sequence[Manifest], there: Sequence[Manifest] = ()) -> list[Load]:
    """The segments that lie here, the oldest first: if the network goes, they are there.

    Not those that are listed there with other bytes: they were shipped before a rule of retention
    took rows out of them here.
    """
    listed = {
        (number, segment.first): segment.bytes
        for number, manifest in enumerate(there)
        for segment in manifest.segments
    }
    lying = [
        Load(number, segment)
        for number, manifest in enumerate(manifests)
        for segment in manifest.segments
        if not is_uri(segment.path)
        and not (
            segment.retired and listed.get((number, segment.first), segment.bytes) != segment.bytes
        )
    ]
    return sorted(lying, key=lambda load: (load.segment.closed, load.partition, load.segment.first))


def listing(
    partition: int, local: Manifest, remote: Manifest, arrived: Iterable[int], to: str
) -> Manifest:
    """What the manifest there says when these segments, by first offsets, have arrived.

    Raises `JournalError` where rows are missing between what is there and what is left here.
    """
    arrived = set(arrived)
    if not remote.segments:
        remote = Manifest(local.earliest)
    elif local.earliest > remote.end:
        raise JournalError(
            f"offsets {remote.end} to {local.earliest} of partition {partition} were let go before "
            f"they were shipped to {to}; ship to another address, and let the recorder hold what "
            "is not shipped yet (hold_bytes)"
        )
    for segment in local.segments:
        if segment.first < remote.end:
            continue
        elsewhere = is_uri(segment.path)
        if not elsewhere and segment.first not in arrived:
            break
        name = sealed_path(partition, segment.first)
        if elsewhere and segment.path != joined(to, name):
            name = segment.path
        remote = remote.sealed(segment.at(name))
    return remote


def deletable(
    manifests: Sequence[Manifest], there: Sequence[Manifest], proven: Iterable[tuple[int, int]]
) -> list[Load]:
    """The segments that may be deleted here: listed there, and proven there byte by byte."""
    proven = set(proven)
    listed = {
        (number, segment.first, segment.end)
        for number, manifest in enumerate(there)
        for segment in manifest.segments
    }
    return [
        load
        for load in loads(manifests, there)
        if (load.partition, load.segment.first) in proven
        and (load.partition, load.segment.first, load.segment.end) in listed
    ]


def ends(there: Sequence[Manifest]) -> tuple[int, ...]:
    """Of each partition, the offset below which all is there that was kept."""
    return tuple(manifest.end for manifest in there)
