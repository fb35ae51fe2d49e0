"""A session as the broker sees it: what it declared, what waits for it, how it is spoken to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from zenlake.errors import EncodeError
from zenlake.xrce.batches import BATCH_HEAD, UnreadBatch
from zenlake.xrce.broker_options import BrokerCounters, BrokerOptions
from zenlake.xrce.codec import (
    BatchedData,
    Commit,
    Declare,
    ForgetSubscriber,
    Pull,
    Resource,
    Result,
    StreamData,
    Subscriber,
    WriteData,
)
from zenlake.xrce.markers import space_of
from zenlake.xrce.options import BAD_DECLARATION, Habits
from zenlake.xrce.session import OPEN, XrceSession
from zenlake.xrce.stores import Store, Stored, StoreRoom, inside, next_window
from zenlake.xrce.tables import (
    OK,
    PERIODIC_PULL,
    PERIODIC_PUSH,
    PULL,
    PUSH,
    TOO_LARGE,
    Declaration,
    DeclaredPublisher,
    InvalidDeclaration,
    SpaceTables,
    Subscription,
    bytes_of,
)

#: Declarations of one transaction, and bytes of their names and properties.
TRANSACTION_MAX: Final = 1024
TRANSACTION_BYTES: Final = 1 << 22
#: Resource spaces that one session may use.
SPACES_MAX: Final = 16
#: Samples that one BatchedData carries.
BATCH_MAX: Final = 127


#: Such numbers, far from those that a device chooses, and how many there are.
GIVEN_FIRST: Final = 1 << 40
GIVEN_MAX: Final = 4096
#: Seconds after which a client on a stream is told again of a subscriber: those of 2018 send
#: their declaration first, note it then, and miss an answer that comes in between.
REMINDED_SOON: Final = 0.1
REMINDED_LATER: Final = 1.0


class BrokerTables(ABC):
    """What a session knows of its broker: where its declarations are entered."""

    def __init__(self, options: BrokerOptions) -> None:
        """Nothing is declared."""
        self.options = options
        self.counters = BrokerCounters()
        self.publications: dict[DeclaredPublisher, Member] = {}
        self.now = 0.0

    @abstractmethod
    def allow(self, member: Member, made: list[SpaceTables]) -> None:
        """Refuse what the outside could not know; raises `InvalidDeclaration`."""

    @abstractmethod
    def subscribed(self, member: Member, one: Subscription, now: float) -> None:
        """Enter a subscription of a session."""

    @abstractmethod
    def unsubscribed(self, member: Member, one: Subscription) -> None:
        """Remove a subscription of a session."""

    @abstractmethod
    def publishing(self, member: Member, publication: DeclaredPublisher) -> None:
        """Enter a publisher of a session."""

    @abstractmethod
    def unpublished(self, member: Member, publication: DeclaredPublisher) -> None:
        """Remove a publisher of a session."""

    @abstractmethod
    def ask(self, member: Member, one: Subscription, most: int | None) -> bool:
        """Ask elsewhere, when a subscription is pulled for the first time."""


class Member:
    """One session of a broker."""

    def __init__(self, broker: BrokerTables, session: XrceSession) -> None:
        """It has just opened."""
        self.broker = broker
        self.session = session
        self.spaces: dict[int, SpaceTables] = {}
        self.pending: dict[int, list[Declaration]] = {}
        self.pending_count = 0
        self.pending_bytes = 0
        self.stores: dict[Subscription, Store] = {}
        self.store_room = StoreRoom(broker.options.session_store_bytes)
        #: Samples that stores which are gone had dropped.
        self.store_dropped = 0
        #: Pulls that wait for a window: how many samples are wanted.
        self.held: dict[Subscription, int | None] = {}
        #: Pull sessions of selections in which the outside was asked already.
        self.asked: set[Subscription] = set()
        #: Numbers that the broker gave to names which the peer has none for.
        self.given: dict[tuple[int, str], int] = {}
        #: Publishers that are told once more of a subscriber, and when.
        self.reminders: dict[DeclaredPublisher, tuple[float, ...]] = {}
        self.style = "/"
        self.styled = False
        self.congested = 0
        self.now = broker.now

    @property
    def habits(self) -> Habits:
        """What its peer does otherwise than the paper says."""
        return self.session.habits

    def tables(self, space: int) -> SpaceTables:
        """Its declarations in a space."""
        tables = self.spaces.get(space)
        if tables is None:
            tables = SpaceTables(space, self.broker.options.declarations, self.habits.ocaml)
            self.spaces[space] = tables
        return tables

    # ---------------------------------------------------------------------------- declarations

    def declare(self, message: Declare, now: float) -> None:
        """Take declarations, at once or as part of a transaction."""
        space = space_of(message, self.habits.ocaml)
        known = space in self.spaces or space in self.pending
        begun = sum(1 for other in self.pending if other not in self.spaces)
        if not known and len(self.spaces) + begun >= SPACES_MAX:
            self.session.fail(3, f"more than {SPACES_MAX} resource spaces")
            return
        at_once: list[Declaration] = []
        for declaration in message.declarations:
            if isinstance(declaration, Commit):
                self._commit(declaration, now)
            elif isinstance(declaration, Result):
                continue
            elif message.committed or self.habits.eager:
                at_once.append(declaration)
            else:
                self._pend(space, declaration)
        if not at_once:
            return
        try:
            made = self.tables(space).apply_all(at_once, now)
            self.broker.allow(self, [made])
            self._replace(made, now)
        except InvalidDeclaration as error:
            self.broker.counters.refused_declarations += 1
            if message.committed:
                self.session.fail(BAD_DECLARATION, str(error))

    def _pend(self, space: int, declaration: Declaration) -> None:
        """Keep a declaration until its commit; of a transaction that is too large, nothing is."""
        self.pending_count += 1
        self.pending_bytes += bytes_of(declaration)
        if self._too_large():
            self.pending.clear()
        else:
            self.pending.setdefault(space, []).append(declaration)

    def _too_large(self) -> bool:
        return self.pending_count > TRANSACTION_MAX or self.pending_bytes > TRANSACTION_BYTES

    def _commit(self, message: Commit, now: float) -> None:
        pending, self.pending = self.pending, {}
        too_large = self._too_large()
        self.pending_count = self.pending_bytes = 0
        status, id = OK, 0
        if too_large:
            status, id = TOO_LARGE, 1
            self.broker.counters.refused_declarations += 1
        else:
            try:
                made = [
                    self.tables(space).apply_all(declarations, now)
                    for space, declarations in pending.items()
                ]
                self.broker.allow(self, made)
                for tables in made:
                    self._replace(tables, now)
            except InvalidDeclaration as error:
                status, id = error.status, error.id
                self.broker.counters.refused_declarations += 1
        result = Result(commit_id=message.commit_id, status=status, id=id)
        self.tell((result,))

    def _replace(self, made: SpaceTables, now: float) -> None:
        """Put tables into force, and tell the broker what changed."""
        before = self.spaces.get(made.space, SpaceTables(made.space))
        self.spaces[made.space] = made
        if not self.styled:
            for known in made.resources.values():
                self.style, self.styled = known.name.style, True
                break
        for id, gone in before.subscribers.items():
            if made.subscribers.get(id) is not gone:
                self._drop(gone)
        for id, publication in before.publishers.items():
            if made.publishers.get(id) is not publication:
                self.broker.unpublished(self, publication)
        for id, publication in made.publishers.items():
            if before.publishers.get(id) is not publication:
                self.broker.publishing(self, publication)
        for id, one in made.subscribers.items():
            if before.subscribers.get(id) is not one:
                if one.mode != PUSH:
                    options = self.broker.options
                    self.stores[one] = Store(
                        options.store_depth, options.store_bytes, room=self.store_room
                    )
                self.broker.subscribed(self, one, now)

    def _drop(self, gone: Subscription) -> None:
        store = self.stores.pop(gone, None)
        if store is not None:
            self.store_dropped += store.dropped
            store.close()
        self.held.pop(gone, None)
        self.asked.discard(gone)
        self.broker.unsubscribed(self, gone)

    def leave(self) -> None:
        """Forget all that it declared."""
        for tables in self.spaces.values():
            for one in tables.subscribers.values():
                self._drop(one)
            for publication in tables.publishers.values():
                self.broker.unpublished(self, publication)
        self.spaces.clear()

    def tell(self, declarations: tuple[Declaration, ...], space: int = 0) -> None:
        """Send declarations that are in force."""
        try:
            self.session.send(
                Declare(committed=True, sn=0, declarations=declarations), True, space=space
            )
        except EncodeError:
            self.congested += 1

    def match(self, publication: DeclaredPublisher, matched: bool) -> None:
        """Tell a publisher whether it has subscribers, by a Subscriber with its own id."""
        if publication.matched == matched:
            return
        publication.matched = matched
        if matched and self.session.options.lossless and not self.habits.complete:
            now = self.broker.now
            self.reminders[publication] = (now + REMINDED_SOON, now + REMINDED_LATER)
        declaration: Declaration = (
            Subscriber(id=publication.id, mode=PUSH)
            if matched
            else ForgetSubscriber(id=publication.id)
        )
        self.tell((declaration,), publication.space)

    # ------------------------------------------------------------------------------- samples

    def give(
        self, one: Subscription, path: str | None, payload: bytes, reliable: bool, conduit: int
    ) -> None:
        """A sample for a subscription: sent now, or kept."""
        if one.mode == PUSH:
            self.push(one, path, payload, reliable and one.reliable, conduit)
        else:
            store = self.stores.get(one)
            if store is not None:
                store.put(path, payload, conduit)

    def push(
        self,
        one: Subscription,
        path: str | None,
        payload: bytes,
        reliable: bool,
        conduit: int,
        kept: bool = False,
    ) -> None:
        """Send a sample: by the subscriber's id if it can be, else by name.

        What was `kept` says for which subscription, so that a peer with several is not confused:
        a name that it has no number for gets one, if it understands that.
        """
        session = self.session
        number = conduit if conduit < session.usable else 0
        message: StreamData | WriteData
        if one.exact or path is None:
            message = StreamData(reliable=reliable, sn=0, id=one.id, payload=payload)
        else:
            known = self.spaces[one.space].ids.get(path)
            if known is None and kept and self.habits.complete:
                known, reliable = self._given(path, one.space), True
            if known is None:
                name = self.style + path
                message = WriteData(reliable=reliable, sn=0, resource=name, payload=payload)
            else:
                message = StreamData(
                    reliable=reliable, sn=0, id=one.id, prid=known, payload=payload
                )
        try:
            sent = session.send(message, reliable, number, one.space)
        except EncodeError:
            sent = False
        if not sent:
            self.congested += 1

    def push_batch(self, one: Subscription, batch: UnreadBatch) -> None:
        """Pass on a batch for a subscription of the very resource, as the bytes that it is."""
        session = self.session
        reliable = batch.reliable and one.reliable
        if len(batch.body) + BATCH_HEAD > session.options.mtu:
            for payload in batch.payloads():
                self.push(one, None, payload, reliable, 0)
            return
        message = UnreadBatch(
            reliable=reliable, sn=0, id=one.id, body=batch.body, count=batch.count
        )
        if not session.send(message, reliable, 0, one.space):
            self.congested += batch.count

    def _given(self, path: str, space: int) -> int | None:
        """The number that this broker gave a name for the peer's sake; None: they are used up."""
        known = self.given.get((space, path))
        if known is None:
            if len(self.given) >= GIVEN_MAX:
                return None
            known = GIVEN_FIRST + 2 * len(self.given)
            self.given[space, path] = known
            self.tell((Resource(rid=known, uri=self.style + path),), space)
        return known

    def pull(self, message: Pull, now: float) -> None:
        """Send what was kept for a subscriber that is awake again."""
        space = space_of(message, self.habits.ocaml)
        tables = self.spaces.get(space)
        one = tables.subscribers.get(message.id) if tables is not None else None
        if one is None or one.mode not in (PULL, PERIODIC_PULL):
            self.session.counters.ignored += 1
            return
        if message.final and message.max_samples is None:
            self.asked.discard(one)
            self.held.pop(one, None)
            return
        if one.mode == PERIODIC_PULL and not inside(one, now):
            self.held[one] = message.max_samples
        else:
            self.answer(one, message.max_samples)
        if message.final:
            self.asked.discard(one)

    def answer(self, one: Subscription, most: int | None) -> None:
        """Send what was kept for a subscription, then say whether that was all."""
        store = self.stores[one]
        if one not in self.asked and most != 0:
            self.asked.add(one)
            if self.broker.ask(self, one, most):
                return  # the answer goes on when the outside has answered
        self.drain(one, store.take(most))
        if not store.count:
            self.finish(one)

    def finish(self, one: Subscription) -> None:
        """Say that there is no more; the next pull begins anew."""
        self.session.send(
            StreamData(reliable=True, sn=0, id=one.id, prid=0, payload=b""), True, space=one.space
        )

    def drain(self, one: Subscription, stored: list[Stored]) -> None:
        """Send samples that were kept, several in one message where that is understood."""
        batch: list[bytes] = []
        size = 0
        conduit = 0
        room = self.session.options.mtu - 24
        batching = one.mode == PERIODIC_PUSH and one.exact and self.habits.complete
        for item in stored:
            if not batching or len(item.payload) + 4 > room:
                self.push(one, item.path, item.payload, one.reliable, item.conduit, kept=True)
                continue
            if batch and (size + len(item.payload) + 2 > room or len(batch) >= BATCH_MAX):
                self._send_batch(one, batch, conduit)
                batch, size = [], 0
            batch.append(item.payload)
            size += len(item.payload) + 2
            conduit = item.conduit
        if batch:
            self._send_batch(one, batch, conduit)

    def _send_batch(self, one: Subscription, batch: list[bytes], conduit: int) -> None:
        if len(batch) == 1:
            self.push(one, None, batch[0], one.reliable, conduit)
            return
        message = BatchedData(reliable=one.reliable, sn=0, id=one.id, payloads=tuple(batch))
        number = conduit if conduit < self.session.usable else 0
        if not self.session.send(message, one.reliable, number, one.space):
            self.congested += len(batch)

    # ---------------------------------------------------------------------------------- time

    @property
    def deadline(self) -> float:
        """When `tick` is to be called."""
        at = self.session.deadline
        for times in self.reminders.values():
            at = min(at, times[0])
        for one, store in self.stores.items():
            waits = one.mode == PERIODIC_PUSH and store.count
            if waits or one in self.held:
                at = min(at, self.now if inside(one, self.now) else next_window(one, self.now))
        return at

    def tick(self, now: float) -> None:
        """Do what the time demands: sessions, and windows that are open."""
        self.now = now
        self.session.tick(now)
        if self.session.state != OPEN:
            return
        if self.reminders:
            for publication, times in list(self.reminders.items()):
                if times[0] > now:
                    continue
                if publication.matched and publication in self.broker.publications:
                    self.tell((Subscriber(id=publication.id, mode=PUSH),), publication.space)
                later = tuple(when for when in times if when > now)
                if later:
                    self.reminders[publication] = later
                else:
                    del self.reminders[publication]
        for one, store in list(self.stores.items()):
            if one.mode == PERIODIC_PUSH and store.count and inside(one, now):
                self.drain(one, store.take())
            elif one in self.held and inside(one, now):
                self.answer(one, self.held.pop(one))
