"""The sealed segments of a partition: a small page, replaced whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from zenlake.errors import JournalCorrupt
from zenlake.journal.disk.layout import page_bytes, read_page
from zenlake.journal.disk.segment import Segment

__all__ = ["Manifest"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Segments without a gap between them; `earliest` is the first offset that is kept."""

    earliest: int = 0
    segments: tuple[Segment, ...] = ()

    @property
    def end(self) -> int:
        """The offset after the last sealed row."""
        return self.segments[-1].end if self.segments else self.earliest

    def sealed(self, segment: Segment) -> Manifest:
        """The manifest with one segment more."""
        return replace(self, segments=(*self.segments, segment))

    def without(self, count: int) -> Manifest:
        """The manifest without its `count` oldest segments."""
        gone = self.segments[count - 1].end if count else self.earliest
        return Manifest(gone, self.segments[count:])

    def moved(self, places: dict[int, str]) -> Manifest:
        """The manifest with segments, named by their first offsets, in other places."""
        return replace(
            self,
            segments=tuple(
                segment.at(places.get(segment.first, segment.path)) for segment in self.segments
            ),
        )

    def to_json(self) -> bytes:
        """The content of `manifest.json`."""
        segments = [segment.to_page() for segment in self.segments]
        return page_bytes("manifest", {"earliest": self.earliest, "segments": segments})

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Manifest:
        """Read `manifest.json`."""
        page = read_page("manifest", data, where)
        try:
            segments = tuple(Segment.from_page(entry) for entry in page["segments"])
            manifest = cls(int(page["earliest"]), segments)
        except (KeyError, TypeError, ValueError) as error:
            raise JournalCorrupt(f"{where} is not a manifest: {error!r}") from error
        due = manifest.earliest
        for segment in segments:
            if segment.first != due or segment.end <= segment.first:
                raise JournalCorrupt(
                    f"{where} lists offsets {segment.first} to {segment.end} where {due} is due"
                )
            due = segment.end
        return manifest
