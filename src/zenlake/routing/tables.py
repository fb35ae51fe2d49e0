"""What there is, and who was told: declarations and interests, always in balance.

Every change goes through `declare`, `undeclare`, `interest` or `remove`, which keep one rule: a
neighbour has been told of a key if and only if somebody whose things may flow to it holds that
key, and it is either told everything or has shown interest. Announcements are one a key, however
many hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.errors import KeyExprError, RemoteError
from zenlake.keys.matching import check
from zenlake.keys.tree import KeyTree
from zenlake.routing.announce import announce, retract
from zenlake.routing.deadlines import NEVER, Deadlines
from zenlake.routing.face import (
    BOTH,
    CONTROL_QOS,
    CURRENT,
    ENTITIES,
    FINAL,
    FUTURE,
    Face,
    InterestOut,
)
from zenlake.routing.home import Home
from zenlake.routing.interests import aggregates, finish, shown, withdrawn
from zenlake.routing.policy.messages import (
    DECLARE_LIVELINESS_SUBSCRIBER,
    LIVELINESS_QUERY,
)
from zenlake.routing.regions import PEER, ROUTER, usual_region, usually_serves
from zenlake.routing.resources import KINDS, QUERYABLE, SUBSCRIBER, TOKEN, Resource, merged
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
from zenlake.wire.codec_network import Declare, Interest

if TYPE_CHECKING:
    from zenlake.routing.mesh import Mesh

#: What is wrong with a key that cannot be told.
UNDECLARED: Final = "it names a key by a number that it has not declared"


class Tables:
    """The declarations and interests of all faces."""

    def __init__(self, mode: int, home: Home) -> None:
        """For a node of `mode`."""
        self.mode: int = mode
        self.home: Home = home
        self.tree: KeyTree[Resource] = KeyTree()
        self.faces: dict[int, Face] = {}
        #: Those who are told of declarations: unasked, or since they first showed interest. Most
        #: clients of a router never do, and cost a declaration nothing.
        self.listeners: dict[int, Face] = {}
        #: Grows with every change that may alter a route.
        self.version: int = 0
        self.interest_timeout: float = 10.0
        #: Interests that neighbours have not answered.
        self.unanswered: Deadlines = Deadlines()
        #: Whether a router passes on between its peers that have no link to each other.
        self.brokering: bool = False
        #: This node.
        self.zid: bytes = b""
        #: The other routers, if this is one, by region: those of one tell each other everything
        #: in their own way.
        self.meshes: dict[int, Mesh] = {}

    # --------------------------------------------------------------------------- what there is

    def declare(self, face: Face, kind: int, id: int, key: str, info: int = 0) -> None:
        """`face` declares an entity."""
        declared = face.declared[kind]
        old = declared.get(id)
        if old is not None and old != key:
            self.undeclare(face, kind, id)
            old = None
        if old is None and (len(declared) >= ENTITIES or not face.charge(key)):
            raise RemoteError("one neighbour declared more entities than it may")
        declared[id] = key
        resource = self.tree.get(key)
        if resource is None:
            resource = Resource(key)
            self.tree.insert(key, resource)
        first = face not in resource.holders[kind]
        resource.hold(kind, face, id, info)
        self.version += 1
        self.spread(kind, resource, True)
        if first or kind == QUERYABLE:  # which may have become complete
            self.home.changed(kind, key, face, True)

    def undeclare(self, face: Face, kind: int, id: int) -> None:
        """`face` undeclares an entity; an unknown id is nothing."""
        key = face.declared[kind].pop(id, None)
        if key is None:
            return
        face.refund(key)
        resource = self.tree.get(key)
        if resource is None:
            return
        resource.release(kind, face, id)
        self.version += 1
        self.spread(kind, resource, False)
        if kind == QUERYABLE or face not in resource.holders[kind]:
            self.home.changed(kind, key, face, False)
        self._prune(resource)

    def _prune(self, resource: Resource) -> None:
        if resource.is_empty() and self.tree.get(resource.key) is resource:
            self.tree.remove(resource.key)

    def holders(self, kind: int, key: str, target: Face) -> list[Face]:
        """The faces whose entities of this kind meet `key` and may be known to `target`."""
        found: list[Face] = []
        for entry in self.tree.intersecting(key):
            for face in entry.value.holders[kind]:
                if face is not target and face not in found and self.flows(face, target):
                    found.append(face)
        return found

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

    def relink(self, face: Face, links: frozenset[bytes]) -> None:
        """A peer told whom it is connected to: them it tells itself, the others it tells by us."""
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

    def respread(self) -> None:
        """Who speaks for whom has changed: tell other routers anew."""
        self.version += 1
        for entry in self.tree.entries():
            for kind in KINDS:
                for mesh in self.meshes.values():
                    mesh.spread(kind, entry.value)

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

    # ------------------------------------------------------------------------- who is told what

    def spread(self, kind: int, resource: Resource, added: bool) -> None:
        """Tell every face what it should know of a key now; `added`: somebody declared it."""
        for mesh in self.meshes.values():
            mesh.spread(kind, resource)
        for face in list(self.listeners.values()):
            self._update(face, kind, resource, added)

    def is_visible(self, face: Face, kind: int, resource: Resource) -> bool:
        """Whether `face` should know that somebody has something under a key."""
        return any(self.flows(holder, face) for holder in resource.holders[kind])

    def info(self, face: Face, resource: Resource) -> int:
        """What the queryables of a key amount to, as `face` should see it."""
        infos: list[int] = []
        for holder, ids in resource.holders[QUERYABLE].items():
            if self.flows(holder, face):
                infos.extend(ids.values())
        return merged(infos) if infos else 0

    def _update(self, face: Face, kind: int, resource: Resource, added: bool) -> None:
        key = resource.key
        told = face.told[kind]
        visible = self.is_visible(face, kind, resource)
        if key in told:
            if not visible:
                id = told.pop(key)
                face.told_info.pop(key, None) if kind == QUERYABLE else None
                retract(face, kind, id, key)
            elif kind == QUERYABLE:
                info = self.info(face, resource)
                if face.told_info.get(key, 0) != info:
                    face.told_info[key] = info
                    announce(face, kind, told[key], key, info, None)
        elif (
            added  # an interest in the future alone is not told of a key by its loss
            and visible
            and (not face.south or face.wants_told(kind, key))
        ):
            self.tell(face, kind, resource, None)
        if face.interests_in:
            aggregates(self, face, kind, key)

    def tell(self, face: Face, kind: int, resource: Resource, interest: int | None) -> None:
        """Announce a key that the face will be kept informed about."""
        key = resource.key
        info = self.info(face, resource) if kind == QUERYABLE else 0
        told = face.told[kind]
        id = told.get(key, 0)
        if not id:
            id = face.fresh_id()
            told[key] = id
        if kind == QUERYABLE:
            face.told_info[key] = info
        announce(face, kind, id, key, info, interest)

    # ------------------------------------------------------------------- what a neighbour wants

    def interest(self, face: Face, message: Interest, now: float) -> None:
        """A neighbour says what it wants to know, or no longer wants to."""
        shown(self, face, message, now)

    def asks(self, face: Face) -> bool:
        """Whether a neighbour tells us things only when asked."""
        return face.serves and face.kind != ROUTER

    # --------------------------------------------------------------------------- what we want

    def ask(
        self,
        face: Face,
        kinds: int,
        key: str,
        mode: int,
        owner: Face | None,
        owner_id: int,
        now: float,
    ) -> InterestOut:
        """Show interest to a neighbour; if it may not be asked, it has answered: nothing."""
        id = face.next_interest
        face.next_interest = id + 1
        deadline = now + self.interest_timeout
        out = InterestOut(face, id, kinds, key, bool(mode & FUTURE), owner, owner_id, deadline)
        if kinds & 4 and not face.may_learn(
            LIVELINESS_QUERY if mode == CURRENT else DECLARE_LIVELINESS_SUBSCRIBER, key
        ):
            out.final = True
            if out.future:
                face.interests_out[id] = out
                self.version += 1
            return out
        face.interests_out[id] = out
        self.unanswered.add(out)
        scope, mine, suffix = face.wire_key(key, True) if key else (0, True, "")
        face.send(
            Interest(
                mode=mode,
                id=id,
                key_exprs=True,
                subscribers=bool(kinds & 1),
                queryables=bool(kinds & 2),
                tokens=bool(kinds & 4),
                restricted=bool(key),
                scope=scope,
                suffix=suffix,
                sender_mapping=mine,
                qos=CONTROL_QOS,
            )
        )
        return out

    def withdraw(self, face: Face, id: int) -> None:
        """Want nothing more of it."""
        out = face.interests_out.pop(id, None)
        if out is not None:
            self.unanswered.over(out)
            face.send(Interest(mode=FINAL, id=id, qos=CONTROL_QOS))
            self.version += 1

    def answered(self, face: Face, id: int) -> None:
        """A neighbour has told all there is for an interest of ours."""
        if id == 0:
            if not face.settled:
                face.settled = True
                self.version += 1
            return
        out = face.interests_out.get(id)
        if out is None or out.final:
            return
        out.final = True
        self.unanswered.over(out)
        if not out.future:
            del face.interests_out[id]  # a question about the present has been answered
        self.version += 1
        owner = out.owner
        if owner is None:
            self.home.interest_final(out)
            return
        interest = owner.interests_in.get(out.owner_id)
        if interest is not None:
            interest.waiting.discard((face.id, id))
            if not interest.waiting:
                finish(owner, interest)

    def expire(self, now: float) -> None:
        """Give up waiting for neighbours that do not answer interests."""
        for out in self.unanswered.due(now):
            if isinstance(out, InterestOut):
                out.deadline = NEVER
                if not out.future:
                    out.face.interests_out.pop(out.id, None)
                self._unanswered(out.face, out)

    def _unanswered(self, face: Face, out: InterestOut) -> None:
        """Go on without the answer; what it has not told stays unknown."""
        owner = out.owner
        if owner is None:
            self.home.interest_final(out)
            return
        interest = owner.interests_in.get(out.owner_id)
        if interest is not None and (face.id, out.id) in interest.waiting:
            interest.waiting.discard((face.id, out.id))
            if not interest.waiting:
                finish(owner, interest)

    def deadline(self) -> float:
        """When `expire` has something to do."""
        return self.unanswered.next()

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
        for entry in self.tree.entries():
            for kind in KINDS:
                self._update(face, kind, entry.value, True)
        if self.asks(face):
            for south in list(self.faces.values()):
                for interest in list(south.interests_in.values()):
                    if interest.future and south.south:
                        self.ask(face, interest.kinds, interest.key, BOTH, south, interest.id, now)

    def remove(self, face: Face) -> None:
        """A neighbour has gone: all it had goes with it."""
        if self.faces.pop(face.id, None) is None:
            return
        self.listeners.pop(face.id, None)
        face.closed = True
        self.version += 1
        for kind in KINDS:
            for id in list(face.declared[kind]):
                self.undeclare(face, kind, id)
        for out in list(face.interests_out.values()):
            self.unanswered.over(out)
            if not out.final:
                self._unanswered(face, out)
        face.interests_out.clear()
        for id in list(face.interests_in):
            withdrawn(self, face, id)

    # ----------------------------------------------------------------------------- what is heard

    def heard(self, face: Face, message: Declare) -> None:
        """A neighbour declares something; what makes no sense is ignored and counted."""
        body = message.body
        if isinstance(body, DeclareFinal):
            if message.interest_id is not None:
                self.answered(face, message.interest_id)
        elif isinstance(body, DeclareKeyExpr):
            key = face.keys.resolve(body.scope, True, body.suffix)
            if key is None or body.id == 0:
                face.illegal_key(key_flaw(key) or "0 is not the number of a key")
            elif not face.keys.learn(body.id, key):
                raise RemoteError("it declared more bytes of keys than a neighbour may")
            else:
                self.version += 1
        elif isinstance(body, UndeclareKeyExpr):
            face.keys.forget(body.id)
            self.version += 1
        elif face.meshed:
            self.meshes[face.region].heard(face, message)
        elif isinstance(body, DeclareSubscriber):
            self._heard_entity(
                face, SUBSCRIBER, body.id, body.scope, body.suffix, body.sender_mapping, 0
            )
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

    def key_of(self, face: Face, scope: int, mine: bool, suffix: str) -> str | None:
        """The key that a neighbour names; None, which is counted, if it makes no sense."""
        key = face.keys.resolve(scope, mine, suffix)
        flaw = key_flaw(key)
        if flaw:
            face.illegal_key(flaw)
            return None
        return key

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
            # An answer to a question about the present: it is not kept.
            out = face.interests_out.get(interest)
            if out is not None:
                self._present(out, key)
            return
        self.declare(face, TOKEN, body.id, key)

    def _present(self, out: InterestOut, key: str) -> None:
        """A token that is alive now, for whoever asked."""
        owner = out.owner
        if owner is None:
            self.home.token_present(out, key)
            return
        interest = owner.interests_in.get(out.owner_id)
        if interest is not None:
            announce(owner, TOKEN, 0, key, 0, interest.id)


def is_key(text: str) -> bool:
    """Whether a text is a canonical key expression."""
    return not key_flaw(text)


def key_flaw(key: str | None) -> str:
    """What is wrong with a key that a neighbour named; empty: nothing."""
    if key is None:
        return UNDECLARED
    try:
        check(key)
    except KeyExprError as error:
        return str(error)
    return ""
