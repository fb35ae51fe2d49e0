"""What each neighbour should know of the keys that there are, and telling it.

One rule is kept: a neighbour has been told of a key if and only if a face whose declarations may
flow to it holds that key, and it is either told everything or has shown interest. Announcements are
one a key, however many hold it.
"""

from __future__ import annotations

from typing import Final

from zenlake.keys.matching import includes
from zenlake.keys.tree import KeyTree
from zenlake.routing.face import CONTROL_QOS, Aggregate, Face, InterestIn
from zenlake.routing.filters import any_of
from zenlake.routing.policy.messages import DECLARE_SUBSCRIBER
from zenlake.routing.regions import LOCAL, PEER, ROUTER
from zenlake.routing.resources import KINDS, QUERYABLE, SUBSCRIBER, Resource, merged
from zenlake.wire.codec_declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    KeyExt,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenlake.wire.codec_network import Declare

MANY_ALIKE: Final = 256
"""The interests of a neighbour in one key that it may have before it is named for them."""


class RouterRegion:
    """The other routers of a region, as the tables see them: they tell each other everything."""

    def spread(self, kind: int, resource: Resource) -> None:
        """The faces that hold a key have changed: bring what is declared there up to date."""
        raise NotImplementedError

    def heard(self, face: Face, message: Declare) -> None:
        """A router of the region declares something, for itself or another router."""
        raise NotImplementedError


class Announcements:
    """The keys that there are, the faces that hold them, and the faces that are told of them."""

    def __init__(self, mode: int) -> None:
        """For a node of `mode`."""
        self.mode: int = mode
        self.tree: KeyTree[Resource] = KeyTree()
        self.faces: dict[int, Face] = {}
        #: The faces that declarations are sent to: unasked, or since they first showed interest.
        #: Most clients of a router never do, and cost a declaration nothing.
        self.listeners: dict[int, Face] = {}
        #: Grows with every change that may alter a route.
        self.version: int = 0
        #: Whether a router passes on between its peers that have no link to each other.
        self.brokering: bool = False
        #: The other routers, if this is one, by region.
        self.routers: dict[int, RouterRegion] = {}
        #: By kind: the keys of aggregate interests, and what meets them for each face.
        self.aggregating: list[KeyTree[dict[int, Aggregate]]] = [KeyTree(), KeyTree(), KeyTree()]
        #: How often all keys were looked through for one of these.
        self.counted: int = 0

    def holders(self, kind: int, key: str, target: Face) -> list[Face]:
        """The faces whose entities of this kind meet `key` and may be known to `target`."""
        holders: list[Face] = []
        for entry in self.tree.intersecting(key):
            for face in entry.value.holders[kind]:
                if face is target or face.closed or face in holders:
                    continue
                if self.flows(face, target):
                    holders.append(face)
        return holders

    def flows(self, source: Face, target: Face) -> bool:
        """Whether what `source` has or says is passed on to `target`."""
        if source is target or not source.carried:
            return False
        if source.region != target.region or target.brokered:
            return True
        return (
            self.brokering
            and source.south
            and source.kind == PEER
            and target.zid not in source.links
            and source.zid not in target.links
        )

    def is_visible(self, face: Face, kind: int, resource: Resource) -> bool:
        """Whether `face` should know that an entity of this kind is declared on a key."""
        return any(self.flows(holder, face) for holder in resource.holders[kind])

    def info(self, face: Face, resource: Resource) -> int:
        """What the queryables of a key amount to, as `face` should see it."""
        infos: list[int] = []
        for holder, ids in resource.holders[QUERYABLE].items():
            if self.flows(holder, face):
                infos.extend(ids.values())
        return merged(infos) if infos else 0

    def spread(self, kind: int, resource: Resource, added: bool) -> None:
        """Tell every face what it should know of a key now; `added`: it was declared just now."""
        for mesh in self.routers.values():
            mesh.spread(kind, resource)
        for face in list(self.listeners.values()):
            self._update(face, kind, resource, added)

    def respread(self) -> None:
        """The gateways have changed: announce to other routers anew."""
        self.version += 1
        for entry in self.tree.entries():
            for kind in KINDS:
                for mesh in self.routers.values():
                    mesh.spread(kind, entry.value)

    def _update(self, face: Face, kind: int, resource: Resource, added: bool) -> None:
        key = resource.key
        announced = face.announced[kind]
        visible = self.is_visible(face, kind, resource)
        if key in announced:
            if not visible:
                id = announced.pop(key)
                face.announced_info.pop(key, None) if kind == QUERYABLE else None
                face.announced_filters.pop(key, None) if kind == SUBSCRIBER else None
                retract(face, kind, id, key)
            elif kind == SUBSCRIBER:
                if face.announced_filters.get(key, "") != self.filter_of(face, resource):
                    # Under another id: to everybody else it is one subscriber more and one less.
                    id = announced.pop(key)
                    self.tell(face, kind, resource, None)
                    retract(face, kind, id, key)
            elif kind == QUERYABLE:
                info = self.info(face, resource)
                if face.announced_info.get(key, 0) != info:
                    face.announced_info[key] = info
                    announce(face, kind, announced[key], key, info, None)
        elif (
            added  # an interest in the future alone is not told of a key by its loss
            and visible
            and (not face.south or face.has_interest(kind, key))
        ):
            self.tell(face, kind, resource, None)

    def tell(self, face: Face, kind: int, resource: Resource, interest: int | None) -> None:
        """Announce a key that the face will be kept informed about."""
        key = resource.key
        info = self.info(face, resource) if kind == QUERYABLE else 0
        announced = face.announced[kind]
        id = announced.get(key, 0)
        if not id:
            id = face.fresh_id()
            announced[key] = id
        if kind == QUERYABLE:
            face.announced_info[key] = info
        filter = self.filter_of(face, resource) if kind == SUBSCRIBER else ""
        if filter:
            face.announced_filters[key] = filter
        elif kind == SUBSCRIBER:
            face.announced_filters.pop(key, None)
        announce(face, kind, id, key, info, interest, filter)

    def filter_of(self, face: Face, resource: Resource) -> str:
        """What a router may ask of samples of a key before it sends them here; empty: nothing.

        Only if all who are behind this node's subscription have a filter: its own programs.
        """
        if face.role != ROUTER:
            return ""
        texts: list[str] = []
        for holder, ids in resource.holders[SUBSCRIBER].items():
            if holder is face or not self.flows(holder, face):
                continue
            if holder.role != LOCAL:
                return ""
            for id in ids:
                filter = holder.filters.get(id)
                if filter is None:
                    return ""
                texts.append(filter.text)
        return any_of(texts) if texts else ""

    # ---------------------------------------------------------- one word for all that matches

    def concerned(self, kind: int, resource: Resource) -> list[tuple[Aggregate, int]]:
        """The aggregate interests that meet a key, and how it stands for each: before a change."""
        concerned: list[tuple[Aggregate, int]] = []
        aggregating = self.aggregating[kind]
        if not len(aggregating):
            return concerned
        standings: dict[Face, int] = {}
        for entry in aggregating.intersecting(resource.key):
            for aggregate in entry.value.values():
                face = aggregate.face
                standing = standings.get(face, -1)
                if standing < 0:
                    standing = self._standing(face, kind, resource)
                    standings[face] = standing
                concerned.append((aggregate, standing))
        return concerned

    def recount(
        self, kind: int, resource: Resource, concerned: list[tuple[Aggregate, int]]
    ) -> None:
        """Bring aggregate interests up to date with a change of the key that they meet."""
        if not concerned:
            return
        standings: dict[Face, int] = {}
        for aggregate, before in concerned:
            face = aggregate.face
            standing = standings.get(face, -1)
            if standing < 0:
                standing = self._standing(face, kind, resource)
                standings[face] = standing
            gained = (standing & 1) - (before & 1)
            if standing == before and not aggregate.behind:
                continue
            aggregate.count += gained
            if standing >> 1 != before >> 1 and includes(resource.key, aggregate.key):
                aggregate.complete += (standing >> 1) - (before >> 1)
            self._announce_all(kind, aggregate, gained > 0)

    def count_again(self) -> None:
        """What flows to which face has changed: count anew what meets aggregate interests."""
        for kind in KINDS:
            for entry in self.aggregating[kind].entries():
                for aggregate in list(entry.value.values()):
                    self._count(kind, aggregate)
                    self._announce_all(kind, aggregate, True)

    def aggregate(
        self, face: Face, kind: int, interest: InterestIn, interest_id: int | None
    ) -> None:
        """Give a face one word for all that matches an interest, now and while it has it.

        Without `interest_id` it is not told of what there is already.
        """
        rows = self.aggregating[kind]
        row = rows.get(interest.key)
        if row is None:
            row = {}
            rows.insert(interest.key, row)
        known = row.get(face.id)
        if known is None:
            known = Aggregate(face, interest.key)
            row[face.id] = known
            self._count(kind, known)
            known.announced = known.state()
        known.interests[interest.id] = interest
        if len(known.interests) > MANY_ALIKE:
            face.held_back(f"more than {MANY_ALIKE} interests in one key: each is told by itself")
        if known.count and interest_id is None:
            known.behind = True
        elif known.count:
            id = face.fresh_id()
            interest.announced[kind] = id
            interest.announced_info = known.announced >> 1
            announce(face, kind, id, interest.key, known.announced >> 1, interest_id)

    def aggregate_no_more(self, face: Face, kind: int, interest: InterestIn) -> None:
        """A face has an aggregate interest no more."""
        rows = self.aggregating[kind]
        row = rows.get(interest.key)
        known = None if row is None else row.get(face.id)
        if row is None or known is None or known.interests.pop(interest.id, None) is None:
            return
        if not known.interests:
            del row[face.id]
            if not row:
                rows.remove(interest.key)

    def _standing(self, face: Face, kind: int, resource: Resource) -> int:
        """How a key stands for a face: 1 if it should know of it, 3 if it is complete as well."""
        if not self.is_visible(face, kind, resource):
            return 0
        if kind != QUERYABLE:
            return 1
        return 3 if self.info(face, resource) & 1 else 1

    def _count(self, kind: int, aggregate: Aggregate) -> None:
        """Count what meets an interest."""
        self.counted += 1
        aggregate.count = 0
        aggregate.complete = 0
        for entry in self.tree.intersecting(aggregate.key):
            resource = entry.value
            if not resource.holders[kind]:
                continue
            standing = self._standing(aggregate.face, kind, resource)
            aggregate.count += standing & 1
            if standing > 1 and includes(resource.key, aggregate.key):
                aggregate.complete += 1

    def _announce_all(self, kind: int, aggregate: Aggregate, gained: bool) -> None:
        """One announcement, under the interest's own key, for all that matches it."""
        state = aggregate.state()
        if state == aggregate.announced and not (gained and aggregate.behind):
            return
        aggregate.announced = state
        aggregate.behind = False
        face = aggregate.face
        complete = state >> 1
        for interest in aggregate.interests.values():
            id = interest.announced[kind]
            if state and not id:
                id = face.fresh_id()
                interest.announced[kind] = id
                interest.announced_info = complete
                announce(face, kind, id, interest.key, complete, None)
            elif id and not state:
                interest.announced[kind] = 0
                retract(face, kind, id, interest.key)
            elif id and kind == QUERYABLE and interest.announced_info != complete:
                interest.announced_info = complete
                announce(face, kind, id, interest.key, complete, None)


def announce(
    face: Face, kind: int, id: int, key: str, info: int, interest: int | None, filter: str = ""
) -> None:
    """Tell a neighbour of a key, in reply to an interest of its or on our own account."""
    # The policy counts the kinds of declarations in the same order.
    if not face.may_learn(DECLARE_SUBSCRIBER + kind, key):
        return
    may_declare = not face.south or (face.wants_keys and id != 0)
    scope, mine, suffix = face.wire_key(key, may_declare)
    body = declaration(kind, id, scope, suffix, mine, info, filter)
    face.send(Declare(interest_id=interest, qos=CONTROL_QOS, body=body))


def retract(face: Face, kind: int, id: int, key: str) -> None:
    """Undeclare a key to a neighbour: nothing is declared on it any more."""
    if not face.may_learn(DECLARE_SUBSCRIBER + kind, key):
        return
    face.send(Declare(qos=CONTROL_QOS, body=undeclaration(kind, id, KeyExt(scope=0))))


def declaration(
    kind: int, id: int, scope: int, suffix: str, mine: bool, info: int, filter: str = ""
) -> DeclareSubscriber | DeclareQueryable | DeclareToken:
    """The body that declares an entity of a kind."""
    if kind == SUBSCRIBER:
        return DeclareSubscriber(
            id=id,
            scope=scope,
            suffix=suffix,
            sender_mapping=mine,
            filter=filter.encode() if filter else None,
        )
    if kind == QUERYABLE:
        return DeclareQueryable(id=id, scope=scope, suffix=suffix, sender_mapping=mine, info=info)
    return DeclareToken(id=id, scope=scope, suffix=suffix, sender_mapping=mine)


def undeclaration(
    kind: int, id: int, key: KeyExt
) -> UndeclareSubscriber | UndeclareQueryable | UndeclareToken:
    """The body that undeclares an entity of a kind."""
    if kind == SUBSCRIBER:
        return UndeclareSubscriber(id=id, key=key if key.scope or key.suffix else None)
    if kind == QUERYABLE:
        return UndeclareQueryable(id=id, key=key)
    return UndeclareToken(id=id, key=key)
