"""Tables of a pipeline on the bus: each row that is new or has changed, under a key of its own.

    published = PublishedTables(session)
    published.follow(place, {"energy": publication}, state.folder / "published")
    published.facts(); published.close()

The log of a table says which rows came, so what is published follows the commits, in their order,
and nothing is kept in memory: a page beside the pipeline's state says which commit is next. It
moves on when so much time has passed that a broken link would have been noticed. After a broken
link, or a death, rows are read and put again from there: each is put at least once.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import LocalError
from zenlake.lake.continuous.publishing import RECENT, RouterLink
from zenlake.lake.ingest.failure_reason import reason_of
from zenlake.lake.pipelines.changed_rows import Commit, commit_of, part_rows
from zenlake.lake.pipelines.publication import RowRefused, TablePublication
from zenlake.lake.spark_source.tasks import TableColumns, files_of, table_schema
from zenlake.lake.table.delta import Table
from zenlake.spark.offsets import DataLoss

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.lake.table.location import LakeLocation

__all__ = ["PublishedTables", "TablePublisher"]

log = logging.getLogger("zenlake.lake")

LOOK_SECONDS: Final = 0.5
"""Between two looks at the logs of published tables."""


@final
@dataclass(frozen=True, slots=True)
class _Position:
    """The part of a commit that is published next."""

    #: The id of the table, which another table of this name has not.
    table: str
    version: int
    part: int = 0
    #: Whether all rows of the version are published, and not those that it brought.
    is_snapshot: bool = False


@final
class TablePublisher:
    """Publishes the rows of one table."""

    def __init__(
        self,
        lake: LakeLocation,
        name: str,
        publication: TablePublication,
        page: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin where the page says, or, without one, with the next commit of the table."""
        self.publication = publication
        self.lake = lake
        self.place = lake / name
        self.name = name
        self.page = page
        self.published = 0
        self.refused = 0
        """Rows that could have no key or no value."""
        self.refusal = ""
        """Why the last such row had none."""
        self.begun_again = 0
        """How often all rows were published again, because commits were forgotten."""
        self.why = ""
        """Why it does not go on."""
        self.has_ended = False
        self._clock = clock
        self._table = self._opened()
        self._settled = self._read() or _Position(self._table.id, self._table.version + 1)
        self._next = self._settled
        self._reached: deque[tuple[float, _Position]] = deque()
        if not page.exists():
            self._write()

    @property
    def waiting(self) -> int:
        """How many commits are not published yet."""
        return max(0, self._table.version + 1 - self._next.version)

    def publish(self, link: RouterLink) -> None:
        """Publish what the table has and is not published, as long as the link takes it."""
        if self.has_ended:
            return
        self._settle()
        if not self._table.is_where_it_was():
            self._table = self._opened()
        self._table.refresh()
        if self._next.table != self._table.id:
            self._next = _Position(self._table.id, 0)
        while self._next.version <= self._table.version and not self.has_ended:
            if not self._publish_commit(link):
                return

    def begin_again(self) -> None:
        """Publish again what may have been lost with a link."""
        self._reached.clear()
        self._next = self._settled

    def close(self, is_broken: bool) -> None:
        """End it; `is_broken`: what was published last may be lost."""
        self.has_ended = True
        self._settle()
        if not is_broken and self._settled != self._next:
            self._settled = self._next
            self._write()

    # --- one commit -------------------------------------------------------------------------------

    def _publish_commit(self, link: RouterLink) -> bool:
        """Publish the parts of a commit that are left; False: the link takes no more."""
        version = self._next.version
        commit = self._snapshot() if self._next.is_snapshot else self._commit(version)
        if commit is None:
            self._begin_with_all()
            return True
        columns = TableColumns(table_schema(self._table, ()))
        spread_by = next(iter(self.publication.key_columns), None)
        for part in range(self._next.part, commit.parts):
            try:
                for rows in part_rows(self.place.uri, columns, commit, part, spread_by):
                    if not all(self._put(link, row) for row in rows.to_pylist()):
                        return False
            except DataLoss:
                if self._next.is_snapshot:
                    raise
                self._begin_with_all()
                return True
            self._move(_Position(self._next.table, version, part + 1, self._next.is_snapshot))
        self._move(_Position(self._next.table, version + 1))
        return True

    def _put(self, link: RouterLink, row: Mapping[str, Any]) -> bool:
        if self.has_ended or not link.look() or link.was_broken:
            return False
        try:
            key, payload = self.publication.key(row), self.publication.payload(row)
        except RowRefused as error:
            self.refused += 1
            self.refusal = str(error)
            return True
        if not link.put(key, payload, self.publication.encoding):
            return False
        self.published += 1
        return True

    def _commit(self, version: int) -> Commit | None:
        actions = self._table.commit_actions(version)
        return None if actions is None else commit_of(actions)

    def _snapshot(self) -> Commit | None:
        """Return all files of a version as a commit; None if it is forgotten, too."""
        if self._table.version != self._next.version:
            return None
        return Commit(tuple(files_of(self._table.actions())), ())

    def _begin_with_all(self) -> None:
        """Publish all rows that there are: which of them are new is not known any more."""
        self._table.refresh()
        self.begun_again += 1
        self._next = _Position(self._table.id, self._table.version, 0, is_snapshot=True)

    # --- how far it is ----------------------------------------------------------------------------

    def _move(self, position: _Position) -> None:
        self._next = position
        now = self._clock()
        # A few a second are enough, however many commits there are.
        if not self._reached or self._reached[-1][0] <= now - LOOK_SECONDS:
            self._reached.append((now, position))

    def _settle(self) -> None:
        """Note how far it was when no link can have broken since without being noticed."""
        now = self._clock()
        last = self._reached[-1] if self._reached else (now - RECENT, self._settled)
        if last[1] != self._next and last[0] <= now - LOOK_SECONDS:
            self._reached.append((now, self._next))
        before = now - RECENT
        settled = self._settled
        while self._reached and self._reached[0][0] <= before:
            settled = self._reached.popleft()[1]
        if settled != self._settled:
            self._settled = settled
            self._write()

    def _read(self) -> _Position | None:
        try:
            return _Position(**json.loads(self.page.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise LocalError(
                f"{self.page} cannot be read ({error}), and it says which rows of "
                f"'{self.name}' are on the bus; delete it to go on with the next commit"
            ) from error

    def _write(self) -> None:
        self.page.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.page.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self._settled)))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.page)

    def _opened(self) -> Table:
        table = Table.open(self.lake, self.name)
        if table is None:
            raise LocalError(f"there is no table '{self.name}' any more")
        return table


@final
class PublishedTables:
    """The tables of a pipeline that are published, on a thread of their own."""

    def __init__(self, session: Session | None) -> None:
        """Without a session nothing is published; what comes meanwhile waits for a lake that
        runs."""
        self._link = None if session is None else RouterLink(session)
        self._publishers: dict[str, TablePublisher] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(
        self, lake: LakeLocation, wanted: Mapping[str, TablePublication], folder: Path
    ) -> None:
        """Publish these tables, and no others.

        `folder`: where it is kept how far each is. A table that was not published before begins
        with its next commit.
        """
        kept: dict[str, TablePublisher] = {}
        for name, publication in wanted.items():
            known = self._publishers.get(name)
            if (
                known is not None
                and known.publication == publication
                and known.page.parent == folder
                and known.lake.uri == lake.uri
            ):
                kept[name] = known
                continue
            if known is not None:
                known.close(is_broken=self._is_broken())
            kept[name] = TablePublisher(lake, name, publication, folder / f"{name}.json")
        for name, one in self._publishers.items():
            if name not in wanted:
                one.close(is_broken=True)
        self._publishers = kept
        for page in folder.glob("*.json"):
            if page.stem not in wanted:
                # If it is published again some day, it begins with what comes then.
                page.unlink()
        if self._link is not None and self._thread is None and kept:
            self._thread = threading.Thread(
                target=self._run, args=(self._link,), name="zenlake publish", daemon=True
            )
            self._thread.start()

    def names(self) -> list[str]:
        """Return the tables that are published."""
        return sorted(self._publishers)

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return how far each published table is."""
        return {
            name: {
                "published": one.published,
                "waiting": one.waiting,
                "refused": one.refused,
                "refusal": one.refusal,
                "begun_again": one.begun_again,
            }
            for name, one in tuple(self._publishers.items())
        }

    def stopped(self) -> dict[str, str]:
        """Return why tables are not published, by name."""
        return {
            name: f"the table '{name}' is not published: {one.why}"
            for name, one in tuple(self._publishers.items())
            if one.why
        }

    def close(self) -> None:
        """Publish no more; it goes on from there."""
        self._over.set()
        for one in self._publishers.values():
            one.has_ended = True
        if self._thread is not None:
            self._thread.join(10.0)
        if self._link is not None:
            for one in self._publishers.values():
                one.close(self._is_broken())

    def _is_broken(self) -> bool:
        if self._link is None:
            return True
        self._link.look()
        return self._link.was_broken

    def _run(self, link: RouterLink) -> None:
        while not self._over.wait(LOOK_SECONDS):
            can_put = link.look()
            every = tuple(self._publishers.values())
            if link.was_broken:
                for one in every:
                    one.begin_again()
                link.was_broken = False
            if not can_put:
                continue
            for one in every:
                try:
                    one.publish(link)
                    one.why = ""
                except Exception as error:
                    reason = reason_of(error)
                    if reason != one.why:
                        log.warning("the table '%s' is not published: %s", one.name, reason)
                    one.why = reason
