"""Interests: what neighbours want to be told, and what this node wants neighbours to tell.

An interest is shown, answered, kept and withdrawn. Neighbours that know more than this node are
asked on behalf of those that it serves, and an interest is answered when all of them have
answered.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from zenlake.errors import LimitError
from zenlake.keys.tree import TreeEntry
from zenlake.routing.announce import Announcements, announce
from zenlake.routing.deadlines import NEVER, Deadlines
from zenlake.routing.face import (
    CONTROL_QOS,
    CURRENT,
    FINAL,
    FUTURE,
    Face,
    InterestIn,
    InterestOut,
)
from zenlake.routing.home import Home
from zenlake.routing.keyids import key_flaw
from zenlake.routing.limits import key_excess
from zenlake.routing.policy.messages import (
    DECLARE_LIVELINESS_SUBSCRIBER,
    LIVELINESS_QUERY,
)
from zenlake.routing.regions import PEER, ROUTER
from zenlake.routing.resources import KINDS, QUERYABLE, TOKEN, Resource
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare, Interest

SLICE: Final = 32
"""The rows that are told or forgotten in one go, as long as a turn; then others have theirs."""
MANY_WAIT: Final = 16
"""The interests of a neighbour that may wait for what there is before it is named for them."""
CURRENT_ROWS: Final = (-1, 0)
"""Among what an interest waits for: that all there is now has been told."""


class CurrentRows:
    """What there was when an interest came, as far as its face has not been told."""

    __slots__ = ("entries", "face", "interest")

    def __init__(self, face: Face, interest: InterestIn) -> None:
        """Nothing has been told; which rows there are is seen when it is their turn."""
        self.face: Face = face
        self.interest: InterestIn = interest
        self.entries: list[TreeEntry[Resource]] | None = None


class Interests(Announcements):
    """The interests of all faces, and those that were shown to them."""

    def __init__(self, mode: int, home: Home) -> None:
        """For a node of `mode`, whose own programs are reached through `home`."""
        super().__init__(mode)
        self.home: Home = home
        self.interest_timeout: float = 10.0
        self.slice: int = SLICE
        #: Interests that neighbours have not answered.
        self.unanswered: Deadlines = Deadlines()
        #: By face: the interests that are still told what there is now; each face in its turn.
        self.telling: dict[int, deque[CurrentRows]] = {}

    # --------------------------------------------------------------------- what neighbours want

    def key_of(self, face: Face, scope: int, mine: bool, suffix: str) -> str | None:
        """The key that a neighbour names; None, which is counted, if it makes no sense."""
        key = face.keys.resolve(scope, mine, suffix)
        flaw = key_flaw(key)
        if not flaw and key is not None:
            flaw = key_excess(key, face.limits)
        if flaw:
            face.illegal_key(flaw)
            return None
        return key

    def interest(self, face: Face, message: Interest, now: float) -> None:
        """A neighbour says what it wants to know, or no longer wants to."""
        if message.mode == FINAL:
            self.withdrawn(face, message.id)
            return
        kinds = 0
        if message.subscribers:
            kinds |= 1
        if message.queryables:
            kinds |= 2
        if message.tokens:
            kinds |= 4
        if face.kind == ROUTER:
            face.ignored += 1  # routers tell each other everything, unasked
            return
        if message.mode == CURRENT and (kinds & 3 or not kinds):
            face.ignored += 1  # no current-only interests in subscribers and queryables
            return
        if message.id in face.interests_in:
            face.ignored += 1
            return
        key = ""
        if message.restricted:
            named = self.key_of(face, message.scope, message.sender_mapping, message.suffix)
            if named is None:
                return
            key = named
        most = face.limits.interests * face.times
        if len(face.interests_in) >= most or not face.charge(key):
            raise LimitError(
                f"it has more interests than it may: {len(face.interests_in)} of {most} "
                "(limits/session/interests, limits/session/memory)"
            )
        aggregate = message.aggregate and not message.tokens and bool(key) and face.role != PEER
        if message.key_exprs:
            face.wants_keys = True
        future = bool(message.mode & FUTURE)
        interest = InterestIn(message.id, kinds, key, future, aggregate)
        face.interests_in[message.id] = interest
        self.listeners[face.id] = face
        if future:
            for kind in KINDS:
                if not kinds & (1 << kind):
                    continue
                if aggregate:
                    reply_to = message.id if message.mode & CURRENT else None
                    self.aggregate(face, kind, interest, reply_to)
                else:
                    face.want(kind, interest)
        if message.mode & CURRENT:
            self._declare_current(face, interest)
        self._interest_north(face, interest, message, now)
        if not interest.waiting:
            finish(face, interest)

    def withdrawn(self, face: Face, id: int) -> None:
        """A neighbour wants something no more, nor do we on its behalf."""
        interest = face.interests_in.pop(id, None)
        if interest is None:
            return
        face.refund(interest.key)
        for kind in KINDS:
            if not interest.future or not interest.kinds & (1 << kind):
                continue
            if interest.aggregate:
                self.aggregate_no_more(face, kind, interest)
            else:
                face.want_no_more(kind, interest)
        for north, shown in interest.shown:
            out = north.interests_out.get(shown)
            if out is not None and out.owner is face and out.owner_id == id:
                self.withdraw(north, shown)

    def _declare_current(self, face: Face, interest: InterestIn) -> None:
        """Tell what there is now: at once what is little, and a slice a tick of what is much."""
        if interest.aggregate:
            return  # it has been told when it was counted
        if face.id not in self.telling:
            entries = self._entries(interest)
            if len(entries) <= self.slice:
                self._tell_current(face, interest, entries)
                return
        # Which rows there are is seen again in its turn: lists of them for all the interests that
        # a neighbour may show would cost more than the interests.
        interest.waiting.add(CURRENT_ROWS)
        queue = self.telling.setdefault(face.id, deque())
        queue.append(CurrentRows(face, interest))
        if len(queue) > MANY_WAIT:
            face.held_back(
                f"more than {MANY_WAIT} interests in many keys at once are answered in turn"
            )

    def _entries(self, interest: InterestIn) -> list[TreeEntry[Resource]]:
        return self.tree.intersecting(interest.key) if interest.key else self.tree.entries()

    def _tell_current(
        self, face: Face, interest: InterestIn, entries: list[TreeEntry[Resource]]
    ) -> None:
        for kind in KINDS:
            if not interest.kinds & (1 << kind):
                continue
            for entry in entries:
                resource = entry.value
                visible = self.is_visible(face, kind, resource)
                # Its own tokens are told to a client, which is served like one program among
                # others; a peer knows them itself and would count them twice.
                echoed = kind == TOKEN and face.brokered and face in resource.holders[kind]
                if not visible and not echoed:
                    continue
                if interest.future and visible:
                    self.tell(face, kind, resource, interest.id)
                else:
                    # Of the present alone, or its own token, whose end it will know itself.
                    info = self.info(face, resource) if kind == QUERYABLE else 0
                    announce(face, kind, 0, resource.key, info, interest.id)

    def tell_more(self) -> None:
        """Tell the face whose turn it is another slice of what there was when it asked."""
        id = next(iter(self.telling))
        queue = self.telling.pop(id)
        rows = queue[0]
        face, interest = rows.face, rows.interest
        if face.closed:
            return
        if face.interests_in.get(interest.id) is not interest:
            queue.popleft()  # it was withdrawn meanwhile
        else:
            entries = self._entries(interest) if rows.entries is None else rows.entries
            self._tell_current(face, interest, entries[-self.slice :])
            del entries[-self.slice :]
            rows.entries = entries
            if not entries:
                queue.popleft()
                interest.waiting.discard(CURRENT_ROWS)
                if not interest.waiting:
                    finish(face, interest)
        if queue:
            self.telling[id] = queue  # behind the others

    def _interest_north(
        self, face: Face, interest: InterestIn, message: Interest, now: float
    ) -> None:
        """Pass the interest of a neighbour in the south on to the gateways in the north."""
        if not face.south or self.mode == ROUTER:
            return
        for north in list(self.faces.values()):
            if self.needs_interest(north):
                out = self.send_interest(
                    north, interest.kinds, interest.key, message.mode, face, interest.id, now
                )
                if not out.final:
                    interest.waiting.add((north.id, out.id))

    # ------------------------------------------------------------------------- what this node wants

    def needs_interest(self, face: Face) -> bool:
        """Whether a neighbour tells us things only when asked."""
        return face.serves and face.kind != ROUTER

    def send_interest(
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
        asker = None if owner is None else owner.interests_in.get(owner_id)
        if asker is not None:
            asker.shown.append((face, id))
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

    def interest_finished(self, face: Face, id: int) -> None:
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
            del face.interests_out[id]  # a query about the present has been answered
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
        """Give up waiting for neighbours that do not answer; tell more of what there is."""
        for out in self.unanswered.due(now):
            if isinstance(out, InterestOut):
                out.deadline = NEVER
                if not out.future:
                    out.face.interests_out.pop(out.id, None)
                self._unanswered(out.face, out)
        if self.telling:
            self.tell_more()

    def _unanswered(self, face: Face, out: InterestOut) -> None:
        """Go on without the reply; what it has not told stays unknown."""
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
        """When `expire` has something to do; 0: as soon as it can be."""
        return 0.0 if self.telling else self.unanswered.next()

    def _present(self, out: InterestOut, key: str) -> None:
        """A token that is alive now, for the node that asked."""
        owner = out.owner
        if owner is None:
            self.home.token_present(out, key)
            return
        interest = owner.interests_in.get(out.owner_id)
        if interest is not None:
            announce(owner, TOKEN, 0, key, 0, interest.id)


def finish(face: Face, interest: InterestIn) -> None:
    """Say that all has been told."""
    face.send(Declare(interest_id=interest.id, qos=CONTROL_QOS, body=DeclareFinal()))
    if not interest.future and face.interests_in.pop(interest.id, None) is not None:
        face.refund(interest.key)
