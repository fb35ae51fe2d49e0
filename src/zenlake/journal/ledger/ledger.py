"""The ledger: for every source, what it sent, what came, and what did not.

It is a fold over the rows of a journal, partition by partition in the order of offsets. So it can
be kept while recording, put aside as JSON, taken up again after a crash, or made anew from the
journal: the result is the same, to the row, however the rows are cut into batches.

Sources that do not number their samples cannot be judged. They are listed as *unprovable*, by
key, with their counts and no verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from zenlake.clock.ntp64 import NTP64
from zenlake.errors import LocalError
from zenlake.journal.ledger.account import NO_TIME, Account, Gap
from zenlake.journal.ledger.heartbeats import Heartbeat, pieces
from zenlake.journal.ledger.senders import COLUMNS, ZENOH_BITS, senders_in
from zenlake.recorded.time_bounds import HLC_BIAS

__all__ = ["COLUMNS", "Ledger", "LedgerPage", "Opened"]

FORMAT: Final = 1
MOST_SOURCES: Final = 100_000
MOST_KEYS: Final = 100_000
MOST_LISTED: Final = 100
"""How many gaps of one source a page lists."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A gap that has just been noticed."""

    partition: int
    source: str
    key: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """What the ledger says of one source, over all partitions."""

    source: str
    key: str
    expected: int
    received: int
    missing: int
    duplicates: int
    reordered: int
    healed: int
    restarts: int
    rows: int
    first: int
    last: int
    #: The gaps of its present run, as its own numbers tell them; at most a hundred.
    gaps: tuple[Gap, ...]
    #: When the number after each of them was used, in nanoseconds since 1970; None: nobody knows.
    since: tuple[int | None, ...]

    def facts(self) -> dict[str, object]:
        """The same, for JSON."""
        return asdict(self) | {"gaps": [list(gap) for gap in self.gaps], "since": list(self.since)}


class Ledger:
    """Who sent what, and what of it came."""

    def __init__(self) -> None:
        """Empty, before the first row."""
        #: For each partition: the offset after the last row that was entered.
        self.offsets: dict[int, int] = {}
        #: What the recorder itself could not keep, by reason; no fold over rows can know it.
        self.drops: dict[str, int] = {}
        #: Rows of sources, or under keys, too many to list.
        self.unlisted_rows = 0
        #: Rows that are heartbeats, and no samples.
        self.heartbeats = 0
        self._accounts: dict[int, dict[str, Account]] = {}
        self._unprovable: dict[int, dict[str, int]] = {}

    # -------------------------------------------------------------------------------- entries

    def begin(self, partition: int, offset: int) -> None:
        """Begin a partition at an offset other than zero: what is older is no longer there."""
        self.offsets[partition] = offset

    def enter(self, partition: int, batch: Any) -> list[Opened]:
        """Enter the next rows of a partition, heartbeats too; gives the gaps that they opened."""
        self.offsets[partition] = self.offsets.get(partition, 0) + batch.num_rows
        opened: list[Opened] = []
        self.heartbeats += batch.num_rows
        for samples, beat in pieces(batch):
            if samples.num_rows:
                self.heartbeats -= samples.num_rows
                opened += self._enter_samples(partition, samples)
            if beat is not None:
                opened += self._enter_heartbeat(partition, beat)
        return opened

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Leave out sources that began with a key that is to go, and rows counted under one."""
        for accounts in self._accounts.values():
            for source in [name for name, one in accounts.items() if gone(one.key)]:
                del accounts[source]
        for keys in self._unprovable.values():
            for key in [key for key in keys if gone(key)]:
                del keys[key]

    def is_news(self, partition: int, beat: Heartbeat) -> bool:
        """Whether a heartbeat tells something that the rows up to now do not."""
        account = self.account(partition, beat.source)
        if account is None:
            return len(self._accounts.get(partition, {})) < MOST_SOURCES
        return account.is_news(beat.number)

    def _enter_heartbeat(self, partition: int, beat: Heartbeat) -> list[Opened]:
        if not self.is_news(partition, beat):
            return []
        accounts = self._accounts.setdefault(partition, {})
        account = accounts.get(beat.source)
        if account is None:
            account = accounts[beat.source] = Account(beat.key, ZENOH_BITS)
        return [
            Opened(partition, beat.source, account.key, first, last)
            for first, last in account.heartbeat(beat.number, beat.time)
        ]

    def _enter_samples(self, partition: int, batch: Any) -> list[Opened]:
        accounts = self._accounts.setdefault(partition, {})
        opened: list[Opened] = []
        numbered, unnumbered = senders_in(batch)
        for stretch in numbered:
            account = accounts.get(stretch.source)
            if account is None:
                if len(accounts) >= MOST_SOURCES:
                    self.unlisted_rows += len(stretch.numbers)
                    continue
                account = accounts[stretch.source] = Account(stretch.key, stretch.bits)
            for first, last in account.enter(
                stretch.numbers, stretch.times, stretch.own_clock, stretch.healed
            ):
                opened.append(Opened(partition, stretch.source, account.key, first, last))
        keys = self._unprovable.setdefault(partition, {})
        for key, count in unnumbered.items():
            if key in keys or len(keys) < MOST_KEYS:
                keys[key] = keys.get(key, 0) + count
            else:
                self.unlisted_rows += count
        return opened

    def drop(self, reason: str, count: int = 1) -> None:
        """Count what the recorder could not keep."""
        self.drops[reason] = self.drops.get(reason, 0) + count

    # ------------------------------------------------------------------------------- reports

    def pages(self) -> list[LedgerPage]:
        """What is known of each source, worst first."""
        by_source: dict[str, list[Account]] = {}
        for accounts in self._accounts.values():
            for source, account in accounts.items():
                by_source.setdefault(source, []).append(account)
        pages = [_page(source, every) for source, every in by_source.items()]
        return sorted(pages, key=lambda page: (-page.missing, page.source))

    def page(self, source: str) -> LedgerPage | None:
        """What is known of one source."""
        accounts = [held[source] for held in self._accounts.values() if source in held]
        return _page(source, accounts) if accounts else None

    def unprovable(self, partition: int | None = None) -> dict[str, int]:
        """How many rows without a number came under each key, in one partition or in all."""
        if partition is not None:
            return dict(self._unprovable.get(partition, {}))
        total: dict[str, int] = {}
        for keys in self._unprovable.values():
            for key, count in keys.items():
                total[key] = total.get(key, 0) + count
        return total

    def accounts(self, partition: int) -> dict[str, Account]:
        """The accounts of all sources in one partition."""
        return dict(self._accounts.get(partition, {}))

    def account(self, partition: int, source: str) -> Account | None:
        """The account of a source in one partition."""
        return self._accounts.get(partition, {}).get(source)

    def open_gaps(self) -> list[Opened]:
        """The gaps of present runs, wherever they are."""
        return [
            Opened(partition, source, account.key, first, last)
            for partition, accounts in self._accounts.items()
            for source, account in accounts.items()
            for first, last in account.open_gaps
        ]

    def totals(self) -> dict[str, int]:
        """Everything added up."""
        pages = self.pages()
        names = ("expected", "received", "missing", "duplicates", "reordered", "healed")
        totals = {name: sum([getattr(page, name) for page in pages]) for name in names}
        unprovable = self.unprovable()
        return {
            "sources": len(pages),
            **totals,
            "unprovable_keys": len(unprovable),
            "unprovable_rows": sum(unprovable.values()) + self.unlisted_rows,
            "rows": sum([page.rows for page in pages])
            + sum(unprovable.values())
            + self.unlisted_rows,
            "heartbeats": self.heartbeats,
            "drops": sum(self.drops.values()),
        }

    def report(self) -> dict[str, object]:
        """The whole ledger for people and programs, as JSON can carry it."""
        return {
            "totals": self.totals(),
            "sources": [page.facts() for page in self.pages()],
            "unprovable": self.unprovable(),
            "drops": dict(self.drops),
            "offsets": {str(p): offset for p, offset in sorted(self.offsets.items())},
        }

    # ---------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "format": FORMAT,
            "offsets": {str(p): offset for p, offset in self.offsets.items()},
            "drops": dict(self.drops),
            "unlisted_rows": self.unlisted_rows,
            "heartbeats": self.heartbeats,
            "accounts": {
                str(p): {source: account.state() for source, account in accounts.items()}
                for p, accounts in self._accounts.items()
            },
            "unprovable": {str(p): dict(keys) for p, keys in self._unprovable.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ledger:
        """The ledger that `state` was taken from."""
        if state.get("format") != FORMAT:
            raise LocalError(
                f"a ledger of format {state.get('format')!r}, and only {FORMAT} is known here; "
                "delete it, and it is made anew from the journal"
            )
        ledger = cls()
        ledger.offsets = {int(p): offset for p, offset in state["offsets"].items()}
        ledger.drops = dict(state["drops"])
        ledger.unlisted_rows = state["unlisted_rows"]
        ledger.heartbeats = state.get("heartbeats", 0)
        ledger._accounts = {
            int(p): {source: Account.from_state(one) for source, one in accounts.items()}
            for p, accounts in state["accounts"].items()
        }
        ledger._unprovable = {int(p): dict(keys) for p, keys in state["unprovable"].items()}
        return ledger

    def agrees(self, other: Ledger, partition: int | None = None) -> bool:
        """Whether both say the same of the same rows, of one partition or of all.

        Drops are not in the rows.
        """
        if partition is not None:
            return (
                self.offsets.get(partition, 0) == other.offsets.get(partition, 0)
                and self.accounts(partition) == other.accounts(partition)
                and self.unprovable(partition) == other.unprovable(partition)
            )
        mine, theirs = self.state(), other.state()
        for state in (mine, theirs):
            del state["drops"]
            for part in ("accounts", "unprovable"):
                state[part] = {p: held for p, held in state[part].items() if held}
        return mine == theirs


def _page(source: str, accounts: list[Account]) -> LedgerPage:
    # A heartbeat alone, under a key where nothing of the source ever came, proves nothing.
    accounts = [account for account in accounts if account.rows] or accounts
    since: list[int | None]
    if len(accounts) == 1:
        (one,) = accounts
        expected, missing = one.expected, one.missing
        first, last, gaps = one.first, one.end - 1, one.open_gaps
        since = [_nanos(time) for time in (*one.since, one.told)]
    else:
        first, last, gaps = _together(accounts)
        lost = sum([account.lost for account in accounts])
        unlisted = max([account.unlisted for account in accounts])
        runs = sum([account.runs for account in accounts])
        expected = runs + last - first + 1
        missing = lost + unlisted + sum([end - start + 1 for start, end in gaps])
        since = [None] * len(gaps)
    mask = (1 << accounts[0].bits) - 1
    return LedgerPage(
        source=source,
        key=accounts[0].key,
        expected=expected,
        received=expected - missing,
        missing=missing,
        duplicates=sum([account.duplicates for account in accounts]),
        reordered=sum([account.reordered for account in accounts]),
        healed=sum([account.healed for account in accounts]),
        restarts=max([account.restarts for account in accounts]),
        rows=sum([account.rows for account in accounts]),
        first=first & mask,
        last=last & mask,
        gaps=tuple([(start & mask, end & mask) for start, end in gaps[:MOST_LISTED]]),
        since=tuple(since[: min(len(gaps), MOST_LISTED)]),
    )


def _nanos(hlc: int) -> int | None:
    """The time of a row in nanoseconds since 1970."""
    return None if hlc == NO_TIME else NTP64.from_raw(hlc + HLC_BIAS).as_nanos()


def _together(accounts: list[Account]) -> tuple[int, int, list[Gap]]:
    """The first, the last and the missing numbers of a source whose keys lie in many partitions.

    What is missing in one partition may have come in another: only what is missing everywhere,
    or lies between their ranges, did not come.
    """
    came: list[Gap] = []
    for account in accounts:
        start = account.first
        for first, last in account.gaps:
            if start < first:
                came.append((start, first - 1))
            start = last + 1
        if start < account.next:
            came.append((start, account.next - 1))
    came.sort()
    gaps: list[Gap] = []
    lowest = min([account.first for account in accounts])
    end = lowest - 1
    for first, last in came:
        if first > end + 1:
            gaps.append((end + 1, first - 1))
        end = max(end, last)
    announced = max([account.claimed for account in accounts]) - 1
    if announced > end:
        gaps.append((end + 1, announced))
    return lowest, max(end, announced), gaps
