"""What there is, and who was told: declarations and interests, always in balance.

Every change goes through `declare`, `undeclare`, `interest` or `remove`, which keep one rule: a
neighbour has been told of a key if and only if a face whose declarations may flow to it holds that
key, and it is either told everything or has shown interest. Announcements are one a key, however
many hold it.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import LimitError
from zenlake.keys.tree import TreeEntry
from zenlake.routing.face import BOTH, CONTROL_QOS, Face
from zenlake.routing.filters import CHARACTER, FilterNotAsked, SubscriberFilter, heard_filter
from zenlake.routing.home import Home
from zenlake.routing.interests import Interests
from zenlake.routing.keyids import key_flaw
from zenlake.routing.limits import key_excess
from zenlake.routing.regions import LOCAL, PEER, ROUTER, usual_region, usually_serves
from zenlake.routing.resources import KINDS, QUERYABLE, SUBSCRIBER, TOKEN, Resource
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
)
from zenlake.wire.codec_network import Declare

#: Characters of what is said about a filter that is wrong: it is a stranger's.
FLAW: Final = 200


class Joining:
    """A neighbour that has come and is told everything unasked, as far as it has not been told."""

    __slots__ = ("entries", "face", "final")

    def __init__(self, face: Face) -> None:
        """Which rows there are is seen when it is its turn."""
        self.face: Face = face
        self.entries: list[TreeEntry[Resource]] | None = None
        #: Whether it wants to know when that was all.
        self.final: bool = False


class Tables(Interests):
    """The declarations and interests of all faces."""

    def __init__(self, mode: int, home: Home) -> None:
        """For a node of `mode`, whose own programs are reached through `home`."""
        super().__init__(mode, home)
        #: Faces that have left, whose rows are still there.
        self.leaving: list[Face] = []
        #: How many filters of subscribers there are, of neighbours and our own.
        self.filters: int = 0
        #: Faces that are still told what there is; one after the other, for a list of all rows
        #: for each of them could be more than the rows.
        self.joining: dict[int, Joining] = {}

    # --------------------------------------------------------------------------- what there is

    def declare(
        self,
        face: Face,
        kind: int,
        id: int,
        key: str,
        info: int = 0,
        filter: SubscriberFilter | None = None,
    ) -> None:
        """`face` declares an entity; `filter`: a subscriber to what this is true of."""
        declared = face.declared[kind]
        old = declared.get(id)
        if old is not None and old != key:
            self.undeclare(face, kind, id)
            old = None
        if old is None:
            face.take_on(key)
        declared[id] = key
        if kind == SUBSCRIBER:
            self._filter(face, id, filter)
        resource = self.tree.get(key)
        if resource is None:
            resource = Resource(key)
            self.tree.insert(key, resource)
        first = face not in resource.holders[kind]
        concerned = self.concerned(kind, resource)
        resource.hold(kind, face, id, info)
        self.version += 1
        self.spread(kind, resource, True)
        if concerned:
            self.recount(kind, resource, concerned)
        if first or kind == QUERYABLE:  # which may have become complete
            self.home.changed(kind, key, face, True)

    def _filter(self, face: Face, id: int, filter: SubscriberFilter | None) -> None:
        """Ask this filter of samples for a subscriber, or none."""
        former = face.filters.pop(id, None)
        if former is not None:
            face.account.refund(CHARACTER * len(former.text))
            self.filters -= 1
        if filter is None:
            return
        if face.role != LOCAL and len(face.filters) >= face.limits.filters:
            face.refused(
                f"filters of more than {face.limits.filters} subscribers: it is sent everything "
                "for the others (limits/session/filters)"
            )
        elif face.account.charge(CHARACTER * len(filter.text)):
            face.filters[id] = filter
            self.filters += 1

    def undeclare(self, face: Face, kind: int, id: int) -> None:
        """`face` undeclares an entity; an unknown id is nothing."""
        key = face.declared[kind].pop(id, None)
        if key is not None:
            self._release(face, kind, id, key)

    def _release(self, face: Face, kind: int, id: int, key: str) -> None:
        """What `face` declared on a key under an id is over."""
        face.let_go(key)
        if kind == SUBSCRIBER and face.filters:
            self._filter(face, id, None)
        resource = self.tree.get(key)
        if resource is None:
            return
        concerned = self.concerned(kind, resource)
        resource.release(kind, face, id)
        self.version += 1
        self.spread(kind, resource, False)
        if concerned:
            self.recount(kind, resource, concerned)
        if kind == QUERYABLE or face not in resource.holders[kind]:
            self.home.changed(kind, key, face, False)
        self._prune(resource)

    def _prune(self, resource: Resource) -> None:
        if resource.is_empty() and self.tree.get(resource.key) is resource:
            self.tree.remove(resource.key)

    def relink(self, face: Face, links: frozenset[bytes]) -> None:
        """A peer announced its neighbours: it declares to them itself, to others through us."""
        if face.links == links or not self.brokering:
            return
        changed = face.links ^ links
        face.links = links
        # Whether two of our peers are linked is changed by either side's word.
        if not any(one.zid in changed for one in self.faces.values() if one is not face):
            return
        self.version += 1
        for entry in self.tree.entries():
            for kind in KINDS:
                if any(holder.role == PEER for holder in entry.value.holders[kind]):
                    self.spread(kind, entry.value, True)
        self.count_again()

    def carry(self, face: Face, carried: bool) -> None:
        """From now on this node carries the words of a peer, or leaves them to another router."""
        if face.carried == carried:
            return
        face.carried = carried
        self.version += 1
        for entry in self.tree.entries():
            resource = entry.value
            for kind in KINDS:
                if face in resource.holders[kind]:
                    self.spread(kind, resource, carried)
        self.count_again()

    # ------------------------------------------------------------------------ faces come and go

    def situate(self, face: Face) -> None:
        """Give a face that has no place the usual one."""
        if face.region < 0:
            mode = self.mode
            face.lie(mode, usual_region(mode, face.role), usually_serves(mode, face.role))

    def add(self, face: Face, now: float) -> None:
        """A neighbour has come: tell it what it should know unasked, ask what we must know."""
        self.situate(face)
        self.faces[face.id] = face
        self.version += 1
        if face.south or face.meshed:
            return
        self.listeners[face.id] = face
        self.joining[face.id] = Joining(face)
        if len(self.joining) == 1:
            self.introduce()
        if self.needs_interest(face):
            for south in list(self.faces.values()):
                for interest in list(south.interests_in.values()):
                    if interest.future and south.south:
                        self.send_interest(
                            face, interest.kinds, interest.key, BOTH, south, interest.id, now
                        )

    def introduce(self) -> None:
        """Tell the first of those that have come another slice of what there is.

        What changes meanwhile it is told at once, as all listeners are; rows that it knows then
        are passed over.
        """
        joining = next(iter(self.joining.values()))
        entries = self.tree.entries() if joining.entries is None else joining.entries
        for entry in entries[-self.slice :]:
            for kind in KINDS:
                self._update(joining.face, kind, entry.value, True)
        del entries[-self.slice :]
        joining.entries = entries
        if not entries:
            del self.joining[joining.face.id]
            if joining.final:
                self.conclude(joining.face)

    def conclude(self, face: Face) -> None:
        """Say that a face that has come was told everything, when it was."""
        joining = self.joining.get(face.id)
        if joining is not None:
            joining.final = True
        else:
            face.send(Declare(interest_id=0, qos=CONTROL_QOS, body=DeclareFinal()))

    def remove(self, face: Face) -> None:
        """A neighbour has gone: all it had goes with it."""
        if self.faces.pop(face.id, None) is None:
            return
        self.listeners.pop(face.id, None)
        self.joining.pop(face.id, None)
        face.closed = True
        self.version += 1
        for out in list(face.interests_out.values()):
            self.unanswered.over(out)
            if not out.final:
                self._unanswered(face, out)
        face.interests_out.clear()
        self.leave(face)

    def leave(self, face: Face) -> None:
        """Forget what a face had: at once what is little, and a slice a tick of what is much."""
        face.closed = True
        self.version += 1
        self.leaving.append(face)
        if len(self.leaving) == 1:
            self.sweep()

    def sweep(self) -> None:
        """Forget some rows of those that have left."""
        left = self.slice
        while left > 0 and self.leaving:
            face = self.leaving[0]
            for kind in KINDS:
                declared = face.declared[kind]
                while declared and left > 0:
                    id, key = declared.popitem()
                    self._release(face, kind, id, key)
                    left -= 1
            while face.interests_in and left > 0:
                self.withdrawn(face, next(reversed(face.interests_in)))
                left -= 1
            if left > 0:
                face.account.close()
                del self.leaving[0]

    def expire(self, now: float) -> None:
        """Give up waiting for neighbours that do not answer; tell and forget some rows."""
        super().expire(now)
        if self.joining:
            self.introduce()
        if self.leaving:
            self.sweep()

    def deadline(self) -> float:
        """When `expire` has something to do; 0: as soon as it can be."""
        return 0.0 if self.leaving or self.joining else super().deadline()

    # ----------------------------------------------------------------------------- what is heard

    def heard(self, face: Face, message: Declare) -> None:
        """A neighbour declares something; what makes no sense is ignored and counted."""
        body = message.body
        if isinstance(body, DeclareFinal):
            if message.interest_id is not None:
                self.interest_finished(face, message.interest_id)
        elif isinstance(body, DeclareKeyExpr):
            key = face.keys.resolve(body.scope, True, body.suffix)
            if key is None or body.id == 0:
                face.illegal_key(key_flaw(key) or "0 is not the number of a key")
            elif excess := key_excess(key, face.limits):
                face.illegal_key(excess)
            elif not face.keys.learn(body.id, key):
                raise LimitError(
                    f"its keys take more than their share of memory: {face.account.used} bytes "
                    "(limits/session/memory, limits/node/memory)"
                )
            else:
                self.version += 1
        elif isinstance(body, UndeclareKeyExpr):
            face.keys.forget(body.id)
            self.version += 1
        elif face.meshed:
            self.routers[face.region].heard(face, message)
        elif isinstance(body, DeclareSubscriber):
            self._heard_subscriber(face, body)
        elif isinstance(body, DeclareQueryable):
            self._heard_entity(
                face, QUERYABLE, body.id, body.scope, body.suffix, body.sender_mapping, body.info
            )
        elif isinstance(body, DeclareToken):
            self._heard_token(face, body, message.interest_id)
        elif isinstance(body, UndeclareSubscriber):
            self.undeclare(face, SUBSCRIBER, body.id)
        elif isinstance(body, UndeclareQueryable):
            self.undeclare(face, QUERYABLE, body.id)
        else:
            self.undeclare(face, TOKEN, body.id)

    def _heard_subscriber(self, face: Face, body: DeclareSubscriber) -> None:
        key = self.key_of(face, body.scope, body.sender_mapping, body.suffix)
        if key is None:
            return
        filter: SubscriberFilter | None = None
        if body.filter and self.mode == ROUTER and face.limits.filters:
            try:
                filter = heard_filter(body.filter)
            except FilterNotAsked as error:
                face.refused(f"a filter that is not asked: {error}"[:FLAW])
        self.declare(face, SUBSCRIBER, body.id, key, 0, filter)

    def _heard_entity(
        self, face: Face, kind: int, id: int, scope: int, suffix: str, mapping: bool, info: int
    ) -> None:
        key = self.key_of(face, scope, mapping, suffix)
        if key is not None:
            self.declare(face, kind, id, key, info)

    def _heard_token(self, face: Face, body: DeclareToken, interest: int | None) -> None:
        key = self.key_of(face, body.scope, body.sender_mapping, body.suffix)
        if key is None:
            return
        if body.id == 0 and interest is not None:
            # A reply to a query about the present: it is not kept.
            out = face.interests_out.get(interest)
            if out is not None:
                self._present(out, key)
            return
        self.declare(face, TOKEN, body.id, key)
