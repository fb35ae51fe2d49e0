"""What neighbours want to be told: shown, answered, kept, withdrawn.

Those who know more than we do are asked on their behalf, and an interest is answered when all of
them have answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.errors import RemoteError
from zenlake.keys.matching import includes
from zenlake.routing.announce import announce, retract
from zenlake.routing.face import CONTROL_QOS, CURRENT, FINAL, FUTURE, Face, InterestIn
from zenlake.routing.regions import PEER, ROUTER
from zenlake.routing.resources import KINDS, QUERYABLE, TOKEN
from zenlake.wire.codec_declare import DeclareFinal
from zenlake.wire.codec_network import Declare, Interest

if TYPE_CHECKING:
    from zenlake.routing.tables import Tables

#: How many interests one neighbour may have open.
INTERESTS: Final = 1 << 17


def shown(tables: Tables, face: Face, message: Interest, now: float) -> None:
    """A neighbour says what it wants to know, or no longer wants to."""
    if message.mode == FINAL:
        withdrawn(tables, face, message.id)
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
        found = tables.key_of(face, message.scope, message.sender_mapping, message.suffix)
        if found is None:
            return
        key = found
    if len(face.interests_in) >= INTERESTS or not face.charge(key):
        raise RemoteError("one neighbour has more interests than it may")
    aggregate = message.aggregate and not message.tokens and bool(key) and face.role != PEER
    if message.key_exprs:
        face.wants_keys = True
    future = bool(message.mode & FUTURE)
    interest = InterestIn(message.id, kinds, key, future, aggregate)
    face.interests_in[message.id] = interest
    tables.listeners[face.id] = face
    if future:
        for kind in KINDS:
            if kinds & (1 << kind):
                _want(face, kind, interest)
    if message.mode & CURRENT:
        _answer(tables, face, interest)
    _ask_north(tables, face, interest, message, now)
    if not interest.waiting:
        finish(face, interest)


def _want(face: Face, kind: int, interest: InterestIn) -> None:
    if not interest.key:
        face.wants_all[kind] += 1
        return
    row = face.wants[kind].get(interest.key)
    if row is None:
        face.wants[kind].insert(interest.key, [interest])
    else:
        row.append(interest)


def withdrawn(tables: Tables, face: Face, id: int) -> None:
    """A neighbour wants something no more, nor do we on its behalf."""
    interest = face.interests_in.pop(id, None)
    if interest is None:
        return
    face.refund(interest.key)
    for kind in KINDS:
        if not interest.future or not interest.kinds & (1 << kind):
            continue
        if not interest.key:
            face.wants_all[kind] -= 1
            continue
        row = face.wants[kind].get(interest.key)
        if row is not None and interest in row:
            row.remove(interest)
            if not row:
                face.wants[kind].remove(interest.key)
    for north in list(tables.faces.values()):
        for out in list(north.interests_out.values()):
            if out.owner is face and out.owner_id == id:
                tables.withdraw(north, out.id)


def _answer(tables: Tables, face: Face, interest: InterestIn) -> None:
    """Tell what there is now."""
    entries = tables.tree.intersecting(interest.key) if interest.key else tables.tree.entries()
    for kind in KINDS:
        if not interest.kinds & (1 << kind):
            continue
        if interest.aggregate:
            _aggregate(tables, face, kind, interest, interest.id)
            continue
        for entry in entries:
            resource = entry.value
            visible = tables.is_visible(face, kind, resource)
            # Its own tokens are told to a client, which is served like one program among others;
            # a peer knows them itself and would count them twice.
            echoed = kind == TOKEN and face.brokered and face in resource.holders[kind]
            if not visible and not echoed:
                continue
            if interest.future and visible:
                tables.tell(face, kind, resource, interest.id)
            else:
                # Of the present alone, or its own token, whose end it will know itself.
                info = tables.info(face, resource) if kind == QUERYABLE else 0
                announce(face, kind, 0, resource.key, info, interest.id)


def _ask_north(
    tables: Tables, face: Face, interest: InterestIn, message: Interest, now: float
) -> None:
    """Ask those who know more than we do, on behalf of a neighbour that we serve."""
    if not face.south or tables.mode == ROUTER:
        return
    for north in list(tables.faces.values()):
        if tables.asks(north):
            out = tables.ask(
                north, interest.kinds, interest.key, message.mode, face, interest.id, now
            )
            if not out.final:
                interest.waiting.add((north.id, out.id))


def finish(face: Face, interest: InterestIn) -> None:
    """Say that all has been told."""
    face.send(Declare(interest_id=interest.id, qos=CONTROL_QOS, body=DeclareFinal()))
    if not interest.future and face.interests_in.pop(interest.id, None) is not None:
        face.refund(interest.key)


def aggregates(tables: Tables, face: Face, kind: int, key: str) -> None:
    """Bring the aggregate interests of a face that meet `key` up to date."""
    for entry in face.wants[kind].intersecting(key):
        for interest in entry.value:
            if interest.aggregate:
                _aggregate(tables, face, kind, interest, None)


def _aggregate(
    tables: Tables, face: Face, kind: int, interest: InterestIn, answer: int | None
) -> None:
    """One announcement, under the interest's own key, for all that matches it."""
    matching = False
    complete = 0
    for entry in tables.tree.intersecting(interest.key):
        resource = entry.value
        if tables.is_visible(face, kind, resource):
            matching = True
            if kind == QUERYABLE and includes(resource.key, interest.key):
                complete |= tables.info(face, resource) & 1
    id = interest.told[kind]
    if matching and not id:
        id = face.fresh_id()
        interest.told[kind] = id
        interest.told_info = complete
        announce(face, kind, id, interest.key, complete, answer)
    elif id and not matching:
        interest.told[kind] = 0
        retract(face, kind, id, interest.key)
    elif id and kind == QUERYABLE and interest.told_info != complete:
        interest.told_info = complete
        announce(face, kind, id, interest.key, complete, None)
