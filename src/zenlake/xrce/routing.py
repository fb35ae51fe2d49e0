"""Where a sample goes among the sessions of a broker, and which publishers are told of subscribers.

The way of a sample is found once for each name and remembered until a subscription comes or goes.
A session gets a sample once, however many of its pushed subscriptions want it, and never its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from zenlake.expr import Type, json_record
from zenlake.wire.cursor import Writer
from zenlake.xrce.batches import UnreadBatch
from zenlake.xrce.broker_options import BrokerOptions
from zenlake.xrce.member import BrokerTables, Member
from zenlake.xrce.names import Name, matches, meets
from zenlake.xrce.outside import DurableValues, Outside, Values
from zenlake.xrce.session import CLOSED
from zenlake.xrce.tables import (
    NO_SPACE,
    OK,
    PUSH,
    DeclaredPublisher,
    InvalidDeclaration,
    SpaceTables,
    Subscription,
)

#: Names whose way is remembered.
ROUTES_MAX: Final = 65536


@final
class DeviceSample:
    """A sample on its way among the sessions of a broker."""

    __slots__ = (
        "conduit",
        "durability",
        "id",
        "path",
        "payload",
        "reliable",
        "source",
        "space",
        "type",
    )

    def __init__(
        self,
        source: Member | None,
        space: int,
        path: str | None,
        payload: bytes,
        *,
        reliable: bool,
        id: int = 0,
        conduit: int = 0,
        durability: int = 0,
        type: Type | None = None,
    ) -> None:
        """Of a session, or without one of the outside; `id` counts where there is no path."""
        self.source = source
        self.space = space
        self.path = path
        self.payload = payload
        self.reliable = reliable
        self.id = id
        self.conduit = conduit
        self.durability = durability
        self.type = type


class Routing(BrokerTables):
    """The sessions of a broker and what they declared."""

    def __init__(
        self, options: BrokerOptions, outside: Outside | None = None, values: Values | None = None
    ) -> None:
        """`values`: where those of durable resources are kept; in memory if not said."""
        super().__init__(options)
        self.outside = outside or Outside()
        self.values: Values = values if values is not None else DurableValues()
        self.members: dict[bytes, Member] = {}
        #: Sessions with something to send, until the broker takes them.
        self.touched: dict[Member, None] = {}
        self._exact: dict[tuple[int, str | int], dict[Subscription, Member]] = {}
        self._wild: dict[Subscription, Member] = {}
        self._routes: dict[tuple[int, str | int], list[tuple[Member, Subscription]]] = {}
        #: The publications, found by what they publish; those whose names have wildcards apart.
        self._published: dict[tuple[int, str | int], dict[DeclaredPublisher, Member]] = {}
        self._published_wild: dict[DeclaredPublisher, Member] = {}
        self._publishing: dict[str, int] = {}
        self._wanted: dict[str, int] = {}
        self._listened: set[str] = set()
        self._subscribed = 0

    # --------------------------------------------------------------------------------- routing

    def route(self, sample: DeviceSample) -> None:
        """Give a sample to every session that wants it, once, but not to its source."""
        self.counters.samples_in += 1
        source, path, payload = sample.source, sample.path, sample.payload
        key: tuple[int, str | int] = (sample.space, sample.id if path is None else path)
        targets = self._routes.get(key)
        if targets is None:
            targets = self._find(sample.space, path, sample.id)
            if len(self._routes) > ROUTES_MAX:
                self._routes.clear()
            self._routes[key] = targets
        pushed: Member | None = None
        record: dict[str, Any] | None = None
        judged = False
        for member, one in targets:
            if member is source or (one.mode == PUSH and member is pushed):
                continue
            if self._apart(source, member):
                continue
            tagged = one.name is not None and one.name.tags and path is not None
            if tagged and not meets(one.name, path, sample.durability):  # type: ignore[arg-type]
                continue
            if one.chosen is not None and one.chosen.tree is not None:
                if not judged:
                    type = sample.type
                    record = type.record(payload) if type is not None else json_record(payload)
                    judged = True
                if record is None or not one.chosen.tree.holds(record, one.chosen.parameters):
                    continue
            if one.mode == PUSH:
                pushed = member
            member.give(one, path, payload, sample.reliable, sample.conduit)
            self.counters.samples_out += 1
            self.touched[member] = None

    def route_batch(
        self,
        source: Member,
        path: str | None,
        batch: UnreadBatch,
        durability: int,
        type: Type | None,
    ) -> None:
        """Give all samples of a batch to every session that wants them.

        Where each session wants them all, and as they are, nobody looks at them one by one.
        """
        id = batch.id
        key: tuple[int, str | int] = (0, id if path is None else path)
        targets = self._routes.get(key)
        if targets is None or not self._all_alike(source, targets):
            for payload in batch.payloads():
                sample = DeviceSample(
                    source, 0, path, payload, reliable=batch.reliable, id=id,
                    durability=durability, type=type,
                )  # fmt: skip
                self.route(sample)
            return
        self.counters.samples_in += batch.count
        pushed: Member | None = None
        for member, one in targets:
            if member is source or member is pushed or self._apart(source, member):
                continue
            pushed = member
            member.push_batch(one, batch)
            self.counters.samples_out += batch.count
            self.touched[member] = None

    def _all_alike(self, source: Member, targets: list[tuple[Member, Subscription]]) -> bool:
        """Whether every session gets every sample of a batch, at once, by its own id."""
        for member, one in targets:
            if member is source:
                continue
            if one.mode != PUSH or not one.plain or not member.session.habits.complete:
                return False
        return True

    def _find(self, space: int, path: str | None, id: int) -> list[tuple[Member, Subscription]]:
        """Who wants a path; of the subscriptions of one session, exact ones come first."""
        matched = [
            (member, one)
            for one, member in self._exact.get((space, id if path is None else path), {}).items()
        ]
        if path is not None:
            for one, member in self._wild.items():
                if one.space == space and one.name is not None and matches(one.name.path, path):
                    matched.append((member, one))
        order = {member: i for i, (member, _) in reversed(list(enumerate(matched)))}
        matched.sort(key=lambda pair: order[pair[0]])
        return matched

    def inject(self, path: str, payload: bytes, reliable: bool, conduit: int, now: float) -> None:
        """A sample from outside."""
        self.now = now
        space, inner = unspaced(path)
        self.route(DeviceSample(None, space, inner, payload, reliable=reliable, conduit=conduit))

    # ---------------------------------------------------------------------------- declarations

    def allow(self, member: Member, made: list[SpaceTables]) -> None:
        """Refuse what the outside could not know; raises `InvalidDeclaration`."""
        most = self.options.all_declarations
        for tables in made:
            before = member.spaces.get(tables.space)
            more = len(tables.subscribers) + len(tables.publishers)
            if before is not None:
                more -= len(before.subscribers) + len(before.publishers)
            if more > 0 and len(self.publications) + self._subscribed + more > most:
                raise InvalidDeclaration(
                    NO_SPACE, 1, f"more than {most} publishers and subscribers in all"
                )
            for rid, known in tables.resources.items():
                new = before is None or rid not in before.resources
                status = self.outside.refuses(known.name) if new else OK
                if status:
                    raise InvalidDeclaration(status, rid, f"'{known.uri}' cannot be a key outside")

    def subscribed(self, member: Member, one: Subscription, now: float) -> None:
        """A session subscribed."""
        self._subscribed += 1
        self._routes.clear()
        if one.name is None:
            self._exact.setdefault((one.space, one.id), {})[one] = member
        elif one.name.meta:
            self._tell_meta(member, one)
            return
        elif one.name.trivial:
            self._exact.setdefault((one.space, one.name.path), {})[one] = member
        else:
            self._wild[one] = member
        if one.name is not None and one.space != 1:
            self._count_up(self._wanted, spaced(one.space, one.name.path), self.outside.wanted)
        self._late(member, one)
        self._rematch(one)

    def unsubscribed(self, member: Member, one: Subscription) -> None:
        """A session unsubscribed."""
        self._subscribed -= 1
        self._routes.clear()
        if one.name is not None and one.name.meta:
            return
        key = (one.space, one.id if one.name is None else one.name.path)
        table = self._exact.get(key)
        if table is not None:
            table.pop(one, None)
            if not table:
                del self._exact[key]
        self._wild.pop(one, None)
        if one.name is not None and one.space != 1:
            self._count_down(self._wanted, spaced(one.space, one.name.path), self.outside.wanted)
        self._rematch(one)

    def _late(self, member: Member, one: Subscription) -> None:
        """Give a late subscriber the last values that its tags ask for."""
        if one.name is None or not one.name.tags:
            return
        self._give_values(member, one)
        if one.space != 1:
            self.outside.late(member, one)

    def _give_values(self, member: Member, one: Subscription) -> set[str]:
        """Give the last values that are kept here; gives their paths."""
        paths: set[str] = set()
        assert one.name is not None
        for path, durability, payload in self.values.matching(spaced(one.space, one.name.path)):
            space, inner = unspaced(path)
            if space == one.space and meets(one.name, inner, durability):
                member.give(one, inner, payload, True, 0)
            paths.add(path)
        return paths

    def remembered(
        self, member: Member, one: Subscription, values: list[tuple[str, bytes]], now: float
    ) -> None:
        """The outside knows last values, too: those of names that nothing is kept of here."""
        self.now = now
        if one.name is None or not self._still(member, one):
            return
        here = {path for path, _, _ in self.values.matching(spaced(one.space, one.name.path))}
        for path, payload in values:
            space, inner = unspaced(path)
            if path not in here and space == one.space and matches(one.name.path, inner):
                here.add(path)
                member.give(one, inner, payload, True, 0)
        self.touched[member] = None

    def _still(self, member: Member, one: Subscription) -> bool:
        """Whether a subscription is in force that something was asked for."""
        tables = member.spaces.get(one.space)
        if tables is None or member.session.state == CLOSED:
            return False
        return tables.subscribers.get(one.id) is one

    def publishing(self, member: Member, publication: DeclaredPublisher) -> None:
        """A session publishes."""
        self.publications[publication] = member
        if publication.name is None or publication.name.trivial:
            self._published.setdefault(_key_of(publication), {})[publication] = member
        else:
            self._published_wild[publication] = member
        if publication.name is not None and publication.space != 1:
            path = spaced(publication.space, publication.name.path)
            count = self._publishing.get(path, 0)
            self._publishing[path] = count + 1
            if not count and self.outside.publishing(path, True):
                self._listened.add(path)
        member.match(publication, self._interested(member, publication))

    def unpublished(self, member: Member, publication: DeclaredPublisher) -> None:
        """A session publishes no longer."""
        self.publications.pop(publication, None)
        self._published_wild.pop(publication, None)
        table = self._published.get(_key_of(publication))
        if table is not None:
            table.pop(publication, None)
            if not table:
                del self._published[_key_of(publication)]
        if publication.name is not None and publication.space != 1:
            path = spaced(publication.space, publication.name.path)
            count = self._publishing.get(path, 0) - 1
            if count > 0:
                self._publishing[path] = count
            else:
                self._publishing.pop(path, None)
                self._listened.discard(path)
                self.outside.publishing(path, False)

    def listened(self, path: str, listened: bool) -> None:
        """A path that is published here has a subscriber outside, or has none any more."""
        if listened:
            self._listened.add(path)
        else:
            self._listened.discard(path)
        space, inner = unspaced(path)
        for publication, member in self._published.get((space, inner), {}).items():
            self._match(publication, member)
        for publication, member in self._published_wild.items():
            self._match(publication, member)

    def pushes_all(self, path: str) -> bool:
        """Whether all subscriptions that want a path want it at once and as it is."""
        return all(one.mode == PUSH and one.chosen is None for _, one in self._find(0, path, 0))

    def _apart(self, one: Member | None, other: Member) -> bool:
        """Whether two sessions have nothing to do with each other: both are peers of a program."""
        only = self.options.only
        return (
            bool(only) and other.session.peer != only and (one is None or one.session.peer != only)
        )

    def _hears(self, owner: Member, member: Member) -> bool:
        return member is not owner and not self._apart(owner, member)

    def _interested(self, owner: Member, publication: DeclaredPublisher) -> bool:
        name, space = publication.name, publication.space
        if name is None:
            return any(
                self._hears(owner, member)
                for member in self._exact.get((space, publication.id), {}).values()
            )
        if spaced(space, name.path) in self._listened or publication.durability:
            return True
        if name.trivial:
            table = self._exact.get((space, name.path))
            if table and any(self._hears(owner, member) for member in table.values()):
                return True
        else:
            for (at, path), table in self._exact.items():
                same = at == space and isinstance(path, str) and matches(name.path, path)
                if same and any(self._hears(owner, member) for member in table.values()):
                    return True
        return any(
            self._hears(owner, member) and one.space == space and one.name is not None
            and matches(one.name.path, name.path)
            for one, member in self._wild.items()
        )  # fmt: skip

    def _rematch(self, one: Subscription) -> None:
        """A subscription came or went: tell those publishers whom it concerns."""
        name = one.name
        if name is None or name.trivial:
            key: tuple[int, str | int] = (one.space, one.id if name is None else name.path)
            for publication, member in self._published.get(key, {}).items():
                self._match(publication, member)
            if name is None:
                return
            concerned = self._published_wild
        else:
            concerned = self.publications
        for publication, member in concerned.items():
            theirs = publication.name
            if theirs is None or publication.space != one.space:
                continue
            if matches(name.path, theirs.path):
                self._match(publication, member)

    def _match(self, publication: DeclaredPublisher, member: Member) -> None:
        """Tell a publisher whether it has subscribers, if that has changed."""
        matched = self._interested(member, publication)
        if matched != publication.matched:
            member.match(publication, matched)
            self.touched[member] = None

    @staticmethod
    def _count_up(table: dict[str, int], path: str, changed: Callable[[str, bool], None]) -> None:
        count = table.get(path, 0)
        table[path] = count + 1
        if not count:
            changed(path, True)

    @staticmethod
    def _count_down(table: dict[str, int], path: str, changed: Callable[[str, bool], None]) -> None:
        count = table.get(path, 1) - 1
        if count:
            table[path] = count
        else:
            table.pop(path, None)
            changed(path, False)

    # ------------------------------------------------------------------------- meta, questions

    def ask(self, member: Member, one: Subscription, most: int | None) -> bool:
        """A subscription is pulled for the first time: ask what is known elsewhere."""
        if one.name is None:
            return False
        if one.name.meta:
            if one.name.meta == "s" and self.outside.children(member, one, most):
                return True
            member.stores[one].put(None, self.meta(one.name, one.space))
            member.asked.discard(one)
            return False
        if one.chosen is None:
            return False
        return self.outside.ask(member, one, most)

    def answered(
        self, member: Member, one: Subscription, values: list[tuple[str, bytes]], most: int | None,
        now: float,
    ) -> None:  # fmt: skip
        """The outside has answered: what it knows of names that nothing was kept of is older."""
        self.now = now
        store = member.stores.get(one)
        if store is None or member.session.state == CLOSED:
            return
        kept = store.take()
        paths = {stored.path for stored in kept}
        tree = one.chosen.tree if one.chosen is not None else None
        for path, payload in values:
            _, inner = unspaced(path)
            if inner in paths or one.name is None or not matches(one.name.path, inner):
                continue
            if tree is not None and one.chosen is not None:
                record = json_record(payload)
                if record is None or not tree.holds(record, one.chosen.parameters):
                    continue
            store.put(inner, payload)
        for stored in kept:
            store.put(stored.path, stored.payload, stored.conduit)
        member.answer(one, most)
        self.touched[member] = None

    def _tell_meta(self, member: Member, one: Subscription) -> None:
        if one.mode != PUSH or one.name is None:
            return
        if one.name.meta != "s" or not self.outside.children(member, one, None):
            member.push(one, None, self.meta(one.name, one.space), True, 0)

    def named(
        self, member: Member, one: Subscription, names: set[str], most: int | None, now: float
    ) -> None:
        """The outside knows these names below a path, besides those that are known here."""
        self.now = now
        if one.name is None or not self._still(member, one):
            return
        payload = self.meta(one.name, one.space, names)
        if one.mode == PUSH:
            member.push(one, None, payload, True, 0)
        else:
            member.stores[one].put(None, payload)
            member.answer(one, most)
            member.asked.discard(one)
        self.touched[member] = None

    def meta(self, name: Name, space: int, more: set[str] | None = None) -> bytes:
        """What a meta resource says, in the protocol's own encoding; `more`: other children."""
        w = Writer()
        if name.meta == "s":
            children = sorted(self._children(name.path, space) | (more or set()))
            w.nat(len(children))
            for child in children:
                data = child.encode()
                w.nat(len(data))
                w.raw(data)
            return w.getvalue()
        for member in self.members.values():
            tables = member.spaces.get(space)
            rid = tables.ids.get(name.path) if tables is not None else None
            if tables is None or rid is None:
                continue
            if name.meta == "id":
                w.nat(rid)
                return w.getvalue()
            properties = tables.resources[rid].properties
            if properties:
                w.nat(len(properties))
                for item in properties:
                    item.write(w)
                return w.getvalue()
        w.nat(0)
        return w.getvalue()

    def _children(self, path: str, space: int) -> set[str]:
        children: set[str] = set()
        for member in self.members.values():
            tables = member.spaces.get(space)
            for known in tables.ids if tables is not None else ():
                if known.startswith(path + "/"):
                    children.add(known[len(path) + 1 :].split("/")[0])
        return children


def _key_of(publication: DeclaredPublisher) -> tuple[int, str | int]:
    name = publication.name
    return publication.space, publication.id if name is None else name.path


def spaced(space: int, path: str) -> str:
    """The path of a resource of any space among those of space 0."""
    return f"z18/space/{space}/{path}" if space else path


def unspaced(path: str) -> tuple[int, str]:
    """The space of such a path, and the path in it."""
    if path.startswith("z18/space/"):
        number, _, inner = path[len("z18/space/") :].partition("/")
        if number.isdigit() and inner:
            return int(number), inner
    return 0, path
