"""Recorded values on their way to neighbours: the path of every row of a replay that is a put."""

from __future__ import annotations

from zenlake.journal.reading.wire_times import TIME_BYTES
from zenlake.node.entities import Publication, Remote
from zenlake.wire.codec_zenoh import Put, SourceInfo, Timestamp, put_head
from zenlake.wire.numbers import PUT_FLAG_TIMESTAMP

__all__ = ["RecordedPuts", "ReplayRoute"]


class ReplayRoute:
    """A publication, with what each neighbour is sent before the head of a put."""

    __slots__ = ("alone", "behind", "heads", "publication", "remotes", "starts", "version")

    def __init__(self, publication: Publication) -> None:
        """Who listens is found out with the first value."""
        self.publication: Publication = publication
        self.version: int = -1
        self.alone: bool = False
        self.remotes: list[Remote] = []
        self.heads: list[bytes] = []
        #: For each neighbour all that stands before the time of a put without attachment, and for
        #: all of them what stands behind its timestamp.
        self.starts: list[bytes] = []
        self.behind: bytes = b""

    def renew(self) -> None:
        """Find out who listens now; with a policy or subscribers here, message by message."""
        one = self.publication
        one.routes.renew(one)
        self.version = one.version
        put = put_head(encoding=one.encoding, schema=one.schema)
        plain = len(put)
        self.alone = not one.guarded and not one.locals
        self.remotes = one.remotes
        self.heads = [remote.put_head[:-plain] for remote in one.remotes]
        start = bytes((put[0] | PUT_FLAG_TIMESTAMP,))
        self.starts = [head + start for head in self.heads]
        self.behind = put[1:]

    def put_at(self, stamp: bytes, value: bytes) -> bool:
        """The same as `put`, of a timestamp as it is written, where it is `alone`."""
        one = self.publication
        taken = True
        remotes = self.remotes
        starts = self.starts
        rest = stamp + self.behind
        for n in range(len(remotes)):
            if not remotes[n].outbox.offer(
                starts[n] + rest, value, one.priority, one.reliable, one.congestion, one.express
            ):
                taken = False
        self._count(len(value), taken)
        return taken

    def _count(self, size: int, taken: bool) -> None:
        one = self.publication
        one.sent += 1
        tally = one.tally
        tally.samples += 1
        tally.size += size
        if not taken:
            one.dropped += 1

    def put(
        self, stamp: Timestamp, attachment: bytes | None, source: SourceInfo | None, value: bytes
    ) -> bool:
        """Publish a value with its own time; False if a neighbour had no room for it."""
        one = self.publication
        if self.version != one.node.tables.version:
            self.renew()
        if not self.alone:
            body = Put(
                timestamp=stamp,
                encoding=one.encoding,
                schema=one.schema,
                source_info=source,
                attachment=attachment,
                payload=value,
            )
            return one.publish(one.message(body, None))
        head = put_head(
            timestamp=stamp,
            encoding=one.encoding,
            schema=one.schema,
            source_info=source,
            attachment=attachment,
        )
        taken = True
        remotes = self.remotes
        heads = self.heads
        for n in range(len(remotes)):
            if not remotes[n].outbox.offer(
                heads[n] + head, value, one.priority, one.reliable, one.congestion, one.express
            ):
                taken = False
        self._count(len(value), taken)
        return taken


class RecordedPuts:
    """Rows of a replay, column by column."""

    __slots__ = (
        "attachments", "fractions", "ids", "lost", "seconds", "size", "sources", "times", "values",
    )  # fmt: skip

    def __init__(
        self,
        seconds: list[int],
        fractions: list[int],
        ids: list[bytes],
        values: list[bytes],
        attachments: list[bytes | None] | None,
        times: bytes = b"",
        sources: list[SourceInfo | None] | None = None,
    ) -> None:
        """`seconds`, `fractions` and `ids` are the timestamps; nothing is published yet.

        `times`: the times as they are written, `TIME_BYTES` bytes each; or none. `sources`: who
        published each at first, if that is to be told.
        """
        self.sources: list[SourceInfo | None] | None = sources
        self.times: bytes = times
        self.seconds: list[int] = seconds
        self.fractions: list[int] = fractions
        self.ids: list[bytes] = ids
        self.values: list[bytes] = values
        self.attachments: list[bytes | None] | None = attachments
        #: Bytes of the values that were published, and how many values a neighbour did not take.
        self.size: int = 0
        self.lost: int = 0

    def publish(self, routes: list[ReplayRoute], codes: list[int], start: int, end: int) -> None:
        """Publish these rows, each on the route of its code; waits where there is no room."""
        attachments = self.attachments
        sources = self.sources
        times = self.times
        written = b""
        id: bytes | None = None
        for row in range(start, end):
            route = routes[codes[row]]
            one = route.publication
            if route.version != one.node.tables.version:
                route.renew()
            source = None if sources is None else sources[row]
            attachment = None if attachments is None else attachments[row]
            if times and route.alone and attachment is None and source is None:
                if self.ids[row] is not id:
                    id = self.ids[row]
                    written = bytes((len(id),)) + id
                value = self.values[row]
                self.size += len(value)
                if not route.put_at(
                    times[row * TIME_BYTES : (row + 1) * TIME_BYTES] + written, value
                ):
                    self.lost += 1
                continue
            stamp = Timestamp(
                seconds=self.seconds[row], fraction=self.fractions[row], id=self.ids[row]
            )
            value = self.values[row]
            self.size += len(value)
            if not route.put(stamp, attachment, source, value):
                self.lost += 1
