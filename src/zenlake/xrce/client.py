"""The client: a session with a broker, and what a program declares and does over it.

It owns no socket and no clock, as the broker: an edge feeds it packets and time, sends what
`packets` gives, and waits on its behalf. Declarations of one call are one transaction; its result
comes later, as do samples: `commits` and each subscription's `on_sample` tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from zenlake.errors import LocalError
from zenlake.wire.cursor import Writer
from zenlake.xrce.batches import UnreadBatch, body_of, room_for
from zenlake.xrce.codec import (
    BatchedData,
    Binding,
    Commit,
    Declare,
    ForgetPublisher,
    ForgetSelection,
    ForgetSubscriber,
    Hello,
    Property,
    Publisher,
    Pull,
    Resource,
    Result,
    Selection,
    StreamData,
    Subscriber,
    WriteData,
)
from zenlake.xrce.declared import STATUS
from zenlake.xrce.markers import XrceMessage
from zenlake.xrce.names import Name, matches, parse_name
from zenlake.xrce.options import SessionOptions
from zenlake.xrce.properties import RELIABILITY, number
from zenlake.xrce.selections import parse_selection
from zenlake.xrce.session import CLOSED, XrceSession
from zenlake.xrce.tables import PARAMETERS, PULL, PUSH, TYPE, Declaration

#: Gets the name of the resource a sample belongs to (empty if it has none), and the payload.
OnSample = Callable[[str, bytes], None]
#: Gets that name and the payloads of several samples of it.
OnSamples = Callable[[str, list[bytes]], None]


#: Transactions without a result, as many as have different numbers; and answers to scouting.
COMMITS_MAX: Final = 256
HELLOS_MAX: Final = 64


class DeclarationRefused(LocalError):
    """The other side refused a declaration."""


class Written:
    """A publisher of this client."""

    __slots__ = ("conduit", "id", "matched", "name", "reliable")

    def __init__(self, id: int, name: str, reliable: bool, conduit: int = 0) -> None:
        """Nobody listens yet that we know of."""
        self.id = id
        self.name = name
        self.reliable = reliable
        self.conduit = conduit
        #: Whether there is a subscriber; nothing is sent before.
        self.matched = False


class Read:
    """A subscription of this client."""

    __slots__ = ("ends", "id", "mode", "name", "on_sample", "on_samples", "samples")

    def __init__(
        self,
        id: int,
        name: Name | None,
        mode: int,
        on_sample: OnSample,
        on_samples: OnSamples | None = None,
    ) -> None:
        """`on_samples`: called for the samples of a batch, if it is given."""
        self.id = id
        self.name = name
        self.mode = mode
        self.on_sample = on_sample
        self.on_samples = on_samples
        #: How often a pull came to its end.
        self.ends = 0
        self.samples = 0


class Pending:
    """A transaction whose result has not come."""

    __slots__ = ("done", "failed", "groups", "id", "status")

    def __init__(self, id: int, groups: list[list[Declaration]]) -> None:
        """`groups`: its declarations, those of one message each."""
        self.id = id
        self.groups = groups
        self.done = False
        self.status = 0
        self.failed = 0

    def check(self) -> None:
        """Raise `DeclarationRefused` if it was refused."""
        if self.status:
            why = STATUS.get(self.status, str(self.status))
            raise DeclarationRefused(
                f"the broker refused the declaration of id {self.failed}: {why}"
            )


class Client:
    """One side of a session, with names and numbers for what it says."""

    def __init__(self, session: XrceSession, space: int = 0) -> None:
        """`space`: the resource space of all its names and numbers."""
        self.session = session
        self.space = space
        self.names: dict[int, Name] = {}
        self.publishers: dict[int, Written] = {}
        self.subscribers: dict[int, Read] = {}
        #: Transactions without a result, in their order; the first ones are sent.
        self.commits: dict[int, Pending] = {}
        self._unsent: deque[Pending] = deque()
        self.hellos: deque[Hello] = deque(maxlen=HELLOS_MAX)
        self.on_matching: Callable[[Written], None] | None = None
        self.dropped = 0
        self._ids: dict[str, int] = {}
        self._aliases: dict[int, int] = {}
        self._next_rid = 2
        self._next_sid = 1
        self._next_commit = 0

    @classmethod
    def make(cls, options: SessionOptions, space: int = 0) -> Client:
        """A client that has said nothing yet."""
        return cls(XrceSession(options, True), space)

    # ---------------------------------------------------------------------------- declarations

    def resource(
        self, uri: str, rid: int = 0, properties: tuple[Property, ...] = (), type: str = ""
    ) -> tuple[int, list[Declaration]]:
        """The id of a resource, and what has to be declared for it."""
        known = self._ids.get(uri)
        if known is not None and rid in (0, known):
            return known, []
        if not rid:
            while any(self._next_rid in t for t in (self.names, self.publishers, self.subscribers)):
                self._next_rid += 2
            rid = self._next_rid
        if type:
            properties = (*properties, Property(id=TYPE, value=type.encode()))
        self.names[rid] = parse_name(uri)
        self._ids[uri] = rid
        return rid, [Resource(rid=rid, uri=uri, properties=properties)]

    def selection(
        self, query: str, parameters: tuple[str, ...] = ()
    ) -> tuple[int, list[Declaration]]:
        """The id of a selection, and what has to be declared for it."""
        sid, self._next_sid = self._next_sid, self._next_sid + 2
        self.names[sid] = parse_selection(query).name
        properties = (Property(id=PARAMETERS, value=_texts(parameters)),) if parameters else ()
        return sid, [Selection(sid=sid, query=query, properties=properties)]

    def publisher(
        self, id: int, reliable: bool = True, conduit: int = 0
    ) -> tuple[Written, list[Declaration]]:
        """A publisher of a resource or selection, and what has to be declared for it."""
        name = self.names.get(id)
        made = Written(id, name.path if name is not None else "", reliable, conduit)
        self.publishers[id] = made
        return made, [Publisher(rid=id, properties=_reliability(reliable))]

    def subscriber(
        self, id: int, on_sample: OnSample, mode: int = PUSH, reliable: bool = True,
        window: tuple[int, int, int] = (0, 0, 0), on_samples: OnSamples | None = None,
    ) -> tuple[Read, list[Declaration]]:  # fmt: skip
        """A subscription; `window`: origin, period and duration in milliseconds."""
        made = Read(id, self.names.get(id), mode, on_sample, on_samples)
        self.subscribers[id] = made
        origin, period, duration = window
        declaration = Subscriber(
            id=id, mode=mode, origin=origin, period=period, duration=duration,
            properties=_reliability(reliable),
        )  # fmt: skip
        return made, [declaration]

    def commit(self, declarations: list[Declaration]) -> Pending:
        """Send declarations as one transaction, in as many messages as it takes."""
        if len(self.commits) >= COMMITS_MAX:
            raise LocalError(f"{COMMITS_MAX} transactions wait for their results: wait for some")
        id = self._next_commit
        self._next_commit = (id + 1) & 0xFF
        last: list[Declaration] = [Commit(commit_id=id)]
        groups: list[list[Declaration]] = []
        mtu = self.session.options.mtu
        group: list[Declaration] = []
        size = 0
        for declaration in [*declarations, *last]:
            w = Writer()
            declaration.write(w)
            more = len(w.getvalue())
            if group and size + more + 8 > mtu:
                groups.append(group)
                group, size = [], 0
            group.append(declaration)
            size += more
        groups.append(group)
        made = Pending(id, groups)
        self.commits[id] = made
        self._unsent.append(made)
        self._send_commits()
        return made

    def _send_commits(self) -> None:
        """Send as many transactions as the other side takes before it has answered the first."""
        while self._unsent:
            under_way = len(self.commits) - len(self._unsent)
            if under_way > self.session.commits_ahead:
                return
            for group in self._unsent.popleft().groups:
                self._declare(group)

    def _declare(self, declarations: list[Declaration]) -> None:
        message = Declare(sn=0, declarations=tuple(declarations))
        if not self.session.send(message, True, space=self.space):
            raise LocalError(
                "the session takes no declarations now: it is closed, or its queue full"
            )

    def forget(self, thing: Written | Read) -> list[Declaration]:
        """What has to be declared so that a publisher or subscription is no more."""
        if isinstance(thing, Written):
            self.publishers.pop(thing.id, None)
            return [ForgetPublisher(id=thing.id)]
        self.subscribers.pop(thing.id, None)
        declarations: list[Declaration] = [ForgetSubscriber(id=thing.id)]
        if thing.id % 2:
            declarations.append(ForgetSelection(sid=thing.id))
        return declarations

    # --------------------------------------------------------------------------------- samples

    def put(self, publisher: Written, payload: bytes, always: bool = False) -> bool:
        """Publish a sample if there is a subscriber; False: there is none, or no room."""
        if not publisher.matched and not always:
            return False
        message = StreamData(reliable=publisher.reliable, sn=0, id=publisher.id, payload=payload)
        return self.session.send(message, publisher.reliable, publisher.conduit, self.space)

    def put_batch(self, publisher: Written, payloads: list[bytes]) -> bool:
        """Publish several samples in one message."""
        if not publisher.matched:
            return False
        message = BatchedData(
            reliable=publisher.reliable, sn=0, id=publisher.id, payloads=tuple(payloads)
        )
        return self.session.send(message, publisher.reliable, publisher.conduit, self.space)

    def put_all(self, publisher: Written, payloads: list[bytes], start: int = 0) -> int:
        """Publish samples from one on, in batches if the other side reads them.

        Gives how many of them were taken: behind those, there is no room now.
        """
        session = self.session
        count = len(payloads)
        alone = publisher.conduit or self.space or not session.habits.complete
        i = start
        while i < count:
            stop = i + 1 if alone else room_for(payloads, i, session.mtu)
            if stop <= i + 1:
                if not self.put(publisher, payloads[i], True):
                    break
                i += 1
                continue
            message = UnreadBatch(
                reliable=publisher.reliable, sn=0, id=publisher.id,
                body=body_of(payloads, i, stop), count=stop - i,
            )  # fmt: skip
            if not session.send(message, publisher.reliable):
                break
            i = stop
        return i - start

    def write(self, name: str, payload: bytes, reliable: bool = True, conduit: int = 0) -> bool:
        """Write a sample by name, without having declared anything."""
        parse_name(name)
        message = WriteData(reliable=reliable, sn=0, resource=name, payload=payload)
        return self.session.send(message, reliable, conduit, self.space)

    def pull(self, one: Read, most: int | None = None, final: bool = False) -> bool:
        """Ask for what was kept."""
        message = Pull(final=final, sn=0, id=one.id, max_samples=most)
        return self.session.send(message, True, space=self.space)

    # ------------------------------------------------------------------------------- receiving

    def receive(self, packet: bytes, now: float) -> None:
        """Take a packet from the other side."""
        for message in self.session.receive(packet, now):
            self._message(message)

    def take(self, messages: list[XrceMessage], now: float) -> None:
        """Take messages of the other side that came another way than over the link."""
        for message in self.session.take(messages, now):
            self._message(message)

    def _message(self, message: XrceMessage) -> None:
        if isinstance(message, StreamData):
            self._sample(message.id, message.prid, message.payload)
        elif isinstance(message, UnreadBatch):
            self._batch(message)
        elif isinstance(message, BatchedData):
            for payload in message.payloads:
                self._sample(message.id, None, payload)
            for sample in message.samples:
                self._sample(message.id, sample.prid, sample.payload)
        elif isinstance(message, WriteData):
            self._write(message)
        elif isinstance(message, Declare):
            for declaration in message.declarations:
                self._declaration(declaration)
        elif isinstance(message, Hello):
            self.hellos.append(message)

    def _sample(self, id: int, prid: int | None, payload: bytes) -> None:
        one = self.subscribers.get(self._aliases.get(id, id))
        if one is None:
            self.dropped += 1
        elif prid == 0:
            one.ends += 1
        else:
            name = self.names.get(id if prid is None else prid)
            one.samples += 1
            one.on_sample(name.path if name is not None else "", payload)

    def _batch(self, batch: UnreadBatch) -> None:
        one = self.subscribers.get(self._aliases.get(batch.id, batch.id))
        if one is None:
            self.dropped += batch.count
            return
        name = self.names.get(batch.id)
        path = name.path if name is not None else ""
        payloads = batch.payloads()
        one.samples += len(payloads)
        if one.on_samples is not None:
            one.on_samples(path, payloads)
            return
        for payload in payloads:
            one.on_sample(path, payload)

    def _write(self, message: WriteData) -> None:
        path = parse_name(message.resource).path
        for one in self.subscribers.values():
            if one.name is not None and matches(one.name.path, path):
                one.samples += 1
                one.on_sample(path, message.payload)
                return
        self.dropped += 1

    def _declaration(self, declaration: Declaration) -> None:
        if isinstance(declaration, Result):
            pending = self.commits.pop(declaration.commit_id, None)
            if pending is not None:
                pending.status, pending.failed, pending.done = (
                    declaration.status,
                    declaration.id,
                    True,
                )
                self._send_commits()
        elif isinstance(declaration, Subscriber | ForgetSubscriber):
            publisher = self.publishers.get(declaration.id)
            if publisher is not None:
                publisher.matched = isinstance(declaration, Subscriber)
                if self.on_matching is not None:
                    self.on_matching(publisher)
        elif isinstance(declaration, Binding):
            self._aliases[declaration.new_id] = self._aliases.get(
                declaration.old_id, declaration.old_id
            )
        elif isinstance(declaration, Resource):
            self.names.setdefault(declaration.rid, parse_name(declaration.uri))

    @property
    def closed(self) -> bool:
        """Whether the session is over."""
        return self.session.state == CLOSED


def _reliability(reliable: bool) -> tuple[Property, ...]:
    return () if reliable else (number(RELIABILITY, 0),)


def _texts(texts: tuple[str, ...]) -> bytes:
    w = Writer()
    w.nat(len(texts))
    for text in texts:
        data = text.encode()
        w.nat(len(data))
        w.raw(data)
    return w.getvalue()


__all__ = ["PULL", "PUSH", "Client", "DeclarationRefused", "OnSample", "Pending", "Read", "Written"]
