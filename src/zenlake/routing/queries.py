"""Routing of queries: the faces that get them, the replies that are due, the one final at the end.

A query from a face becomes a `PendingQuery` with a `QueryBranch` for each face that it was sent to.
Whatever happens to a branch (it ends, its neighbour dies, its time runs out), it is closed once;
when the last one is closed the face that asked is told that there will be no more replies.
"""

from __future__ import annotations

from typing import Final

from zenlake.keys.matching import includes
from zenlake.routing.borders import Borders
from zenlake.routing.deadlines import Deadlines
from zenlake.routing.face import Face, PendingQuery, QueryBranch, ReplyBody
from zenlake.routing.home import Home
from zenlake.routing.keyids import key_flaw
from zenlake.routing.regions import LOCAL, PEER
from zenlake.routing.resources import QUERYABLE
from zenlake.routing.tables import Tables
from zenlake.values.qos import QOS_BLOCK, QOS_EXPRESS, QOS_PRIORITY
from zenlake.wire.codec_network import (
    Request,
    Responder,
    Response,
    ResponseFinal,
    TimestampStack,
)
from zenlake.wire.codec_zenoh import Err

BEST_MATCHING: Final = 0
ALL: Final = 1
ALL_COMPLETE: Final = 2

#: The branches of queries that are ended in one go when time runs out or a neighbour leaves: as
#: long as a turn.
SLICE: Final = 32

#: Where the times of a message are taken: its flags on the wire.
SEND: Final = 1
ROUTE: Final = 2
RECEIVE: Final = 4


class Queries:
    """All queries that pass through the node."""

    def __init__(
        self, tables: Tables, borders: Borders, home: Home, default_timeout: float
    ) -> None:
        """`default_timeout` in seconds, for queries that bring none."""
        self.tables: Tables = tables
        self.borders: Borders = borders
        self.home: Home = home
        self.default_timeout: float = default_timeout
        #: Open queries of neighbours, by (face, its id).
        self.open: dict[tuple[int, int], PendingQuery] = {}
        #: Such queries by their deadline; our own programs keep the time of theirs themselves.
        self.unanswered: Deadlines = Deadlines()
        #: Neighbours that have gone, with queries to them or of theirs that are not over yet.
        self.leaving: list[Face] = []

    # ----------------------------------------------------------------------------- who is asked

    def candidates(self, source: Face, key: str, target: int, root: bytes = b"") -> list[Face]:
        """The faces to ask, each once; never the one that asks.

        Among routers a query goes down the tree of `root`, the router where it came from.
        """
        tables = self.tables
        complete: dict[Face, float] = {}
        known: dict[Face, bool] = {}
        for entry in tables.tree.intersecting(key):
            resource = entry.value
            holders = resource.holders[QUERYABLE]
            if not holders:
                continue
            covers = resource.key == key or includes(resource.key, key)
            for face, infos in holders.items():
                if face.closed:
                    continue
                far = face.meshed
                if far:
                    if self.borders.hop(source, root, face) is None:
                        continue
                elif not tables.flows(source, face) or not self.borders.crosses(source, root, face):
                    continue
                known[face] = True
                for info in infos.values():
                    if covers and info & 1:
                        distance = float(info >> 8)
                        if far:
                            distance = self.borders.meshes[face.region].distance(face)
                        complete[face] = min(complete.get(face, distance), distance)
        for face in tables.faces.values():
            if face.role != LOCAL and tables.flows(source, face) and self._unknown(face, key):
                # Whatever it has told so far, it may have more.
                known[face] = False
        if target == ALL:
            chosen = list(known)
        elif target == ALL_COMPLETE:
            chosen = [face for face in known if face in complete or not known[face]]
        else:
            chosen = self._best(known, complete)
        near = [face for face in chosen if not face.meshed]
        if len(near) == len(chosen):
            return near
        routers = [face for face in chosen if face.meshed]
        return near + self.borders.hops(source, root, routers)

    def _unknown(self, face: Face, key: str) -> bool:
        """Whether a neighbour may have queryables that it has not told us of."""
        if self.tables.needs_interest(face):
            return not face.knows_all(QUERYABLE, key)
        return face.role == PEER and not face.settled

    def _best(self, known: dict[Face, bool], complete: dict[Face, float]) -> list[Face]:
        """In each region the nearest complete queryable, or else all of them."""
        chosen: list[Face] = []
        regions: dict[int, list[Face]] = {}
        for face in known:
            regions.setdefault(face.region, []).append(face)
        for faces in regions.values():
            best: Face | None = None
            for face in faces:
                if face in complete and (best is None or complete[face] < complete[best]):
                    best = face
            if best is None:
                chosen.extend(faces)
            else:
                chosen.append(best)
        return chosen

    # -------------------------------------------------------------------------------- asking

    def request(self, source: Face, message: Request, now: float) -> None:
        """A neighbour sent a Request."""
        key = source.keys.resolve(message.scope, message.sender_mapping, message.suffix)
        if (source.id, message.id) in self.open:
            source.ignored += 1
            return
        flaw = key_flaw(key)
        if key is None or flaw:
            source.illegal_key(flaw)
            self.refuse(source, message)
            return
        limits = source.limits
        if len(source.asked) >= limits.queries * source.times:
            source.refused("more queries in flight than it may have (limits/session/queries)")
            self.refuse(source, message)
            return
        root = self.borders.root_of(source, message.node_id)
        if not source.carried or (source.meshed and root == self.borders.zid):
            # Another gateway carries it, or it is our own that came back.
            self.refuse(source, message)
            return
        if message.timestamp_stack is not None:
            message.timestamp_stack = self.home.stamped(message.timestamp_stack, ROUTE)
        targets = self.candidates(source, key, message.target, root)
        if source.questions + len(targets) > limits.questions * source.times:
            source.refused(
                "queries in flight to more queryables than it may ask at once "
                "(limits/session/questions)"
            )
            self.refuse(source, message)
            return
        query = PendingQuery(source, message.id, message.qos, None, root)
        self.open[(source.id, message.id)] = query
        source.asked[message.id] = query
        source.questions += len(targets)
        self.send(query, key, message, targets, now)

    def refuse(self, source: Face, message: Request) -> None:
        """There will be no replies."""
        self._final(source, message.id, message.qos)

    def send(
        self, query: PendingQuery, key: str, message: Request, targets: list[Face], now: float
    ) -> None:
        """Send a query to each face of `targets`."""
        if query.receiver is None and targets:
            query.deadline = now + self.patience(message)
            self.unanswered.add(query)
        body = message.body
        region = query.source.region
        number = self.borders.number_of(query.source, query.root)
        stack = message.timestamp_stack
        routed = stack
        if stack is not None and query.receiver is not None:
            routed = self.home.stamped(stack, ROUTE)
        branches: list[QueryBranch] = []
        for face in targets:
            id = face.next_request
            face.next_request = (id + 1) & 0xFFFF_FFFF
            branch = QueryBranch(query, face, id)
            query.branches.add(branch)
            face.requests[id] = branch
            branches.append(branch)
        for branch in branches:
            face = branch.face
            if face.role == LOCAL:
                branch.stack = stack
                self.home.deliver_query(branch, key, body, message.target)
                continue
            scope, mine, suffix = face.wire_key(key, False)
            request = Request(
                id=branch.id,
                scope=scope,
                suffix=suffix,
                sender_mapping=mine,
                qos=message.qos,
                target=message.target,
                budget=message.budget,
                timeout=message.timeout,
                node_id=number if face.region == region else 0,
                timestamp_stack=routed,
                body=body,
            )
            outbox = face.outbox_for(request.qos & QOS_PRIORITY, True)
            if (
                outbox is None
                or not face.may_have(request, key, True, now)
                or not outbox.send(
                    request,
                    request.qos & QOS_PRIORITY,
                    True,
                    force=bool(request.qos & QOS_BLOCK),
                    awaited=True,
                )
            ):
                self.close(branch)
        if not branches:
            self._finished(query)

    def patience(self, message: Request) -> float:
        """How many seconds the queryables have for their replies."""
        return message.timeout / 1000.0 if message.timeout else self.default_timeout

    # ------------------------------------------------------------------------------- replies

    def response(self, face: Face, message: Response) -> None:
        """A neighbour sent a Response."""
        branch = face.requests.get(message.id)
        if branch is None:
            face.ignored += 1
            return
        key = face.keys.resolve(message.scope, message.sender_mapping, message.suffix)
        if key is None:
            face.ignored += 1
            return
        stack = message.timestamp_stack
        if stack is not None:
            stack = self.home.stamped(stack, ROUTE)
        self.reply(branch, key, message.body, message.responder, stack)

    def reply(
        self,
        branch: QueryBranch,
        key: str,
        body: ReplyBody,
        responder: Responder | None,
        stack: TimestampStack | None = None,
        express: bool | None = None,
    ) -> bool:
        """Pass a reply on to the node that asked; False if it found no room.

        It has the QoS of its query, so that it cannot be overtaken by the word that it was the
        last; only `express`, if given, is its own.
        """
        query = branch.query
        if branch not in query.branches:
            return True  # the query is over
        receiver = query.receiver
        if receiver is not None:
            if stack is not None:
                receiver.stamp(self.home.stamped(stack, RECEIVE))
            receiver.reply(key, body, responder)
            return True
        source = query.source
        outbox = source.outbox_for(query.qos & QOS_PRIORITY, True)
        if outbox is None:
            return True
        qos = query.qos
        if express is not None:
            qos = qos | QOS_EXPRESS if express else qos & ~QOS_EXPRESS
        response = Response(
            id=query.id,
            scope=0,
            suffix=key,
            qos=qos,
            responder=responder,
            timestamp_stack=stack,
            body=body,
        )
        if not source.may_have(response, key, True, self.home.time()):
            return True
        blocking = bool(qos & QOS_BLOCK)
        return outbox.send(
            response, qos & QOS_PRIORITY, True, force=blocking, awaited=bool(express)
        )

    def response_final(self, face: Face, id: int) -> None:
        """A neighbour sent a ResponseFinal: it has no more replies."""
        branch = face.requests.get(id)
        if branch is not None:
            self.close(branch)

    def close(self, branch: QueryBranch) -> None:
        """A branch is over."""
        branch.face.requests.pop(branch.id, None)
        query = branch.query
        if branch in query.branches:
            query.branches.discard(branch)
            if query.receiver is None:
                query.source.questions -= 1
            if not query.branches:
                self._finished(query)

    def _finished(self, query: PendingQuery) -> None:
        receiver = query.receiver
        if receiver is not None:
            receiver.final()
            return
        self.unanswered.over(query)
        self.open.pop((query.source.id, query.id), None)
        query.source.asked.pop(query.id, None)
        self._final(query.source, query.id, query.qos)

    def _final(self, face: Face, id: int, qos: int) -> None:
        outbox = face.outbox_for(qos & QOS_PRIORITY, True)
        if outbox is not None and not face.closed:
            # Never dropped: the node that asked would wait for ever.
            final = ResponseFinal(id=id, qos=qos)
            outbox.send(final, qos & QOS_PRIORITY, True, force=True, awaited=True)

    def cancel(self, query: PendingQuery) -> None:
        """The node that asked has lost interest: later replies are dropped."""
        self.unanswered.over(query)
        for branch in query.branches:
            branch.face.requests.pop(branch.id, None)
        if query.receiver is None:
            query.source.questions -= len(query.branches)
        query.branches.clear()

    # --------------------------------------------------------------------------- time and death

    def expire(self, now: float) -> None:
        """Reply with an error for the faces that did not reply in time; `SLICE` of them a call."""
        left = SLICE
        while left > 0:
            due = self.unanswered.due(now, 1)
            if not due:
                break
            query = due[0]
            if not isinstance(query, PendingQuery):
                continue
            for branch in list(query.branches):
                body = Err(payload=b"Timeout")
                self.reply(branch, "", body, Responder(zid=branch.face.zid, eid=0))
                self.close(branch)
                left -= 1
        if self.leaving:
            self.sweep()

    def deadline(self) -> float:
        """When `expire` has something to do; 0: as soon as it can be."""
        return 0.0 if self.leaving else self.unanswered.next()

    def remove(self, face: Face) -> None:
        """A neighbour is gone: what it owed is over, what it asked is forgotten."""
        self.leaving.append(face)
        if len(self.leaving) == 1:
            self.sweep()

    def sweep(self) -> None:
        """End some of the queries of those that have gone."""
        left = SLICE
        while left > 0 and self.leaving:
            face = self.leaving[0]
            while face.requests and left > 0:
                self.close(next(reversed(face.requests.values())))
                left -= 1
            while face.asked and left > 0:
                id, query = face.asked.popitem()
                self.open.pop((face.id, id), None)
                left -= 1 + len(query.branches)
                self.cancel(query)
            if left > 0:
                del self.leaving[0]
