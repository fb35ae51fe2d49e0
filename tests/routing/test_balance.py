"""Whatever is declared, undeclared, wanted and lost: everybody knows what it should."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tests.routing.oracle import (
    CLIENT,
    LOCAL,
    PEER,
    ROUTER,
    Neighbour,
    ProgramInterest,
    Told,
    World,
    south,
)
from zenlake.keys.matching import intersects
from zenlake.routing.face import Face
from zenlake.routing.home import Home
from zenlake.routing.tables import Tables
from zenlake.transport.outbox import Outbox
from zenlake.wire import (
    Declare,
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    Frame,
    Interest,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
    read_batch,
)

KEYS = ["a", "a/b", "a/*", "a/**", "b"]
SUBSCRIBER, QUERYABLE, TOKEN = 0, 1, 2
picks = st.integers(0, 11)
DECLARES = (DeclareSubscriber, DeclareQueryable, DeclareToken)
UNDECLARES = (UndeclareSubscriber, UndeclareQueryable, UndeclareToken)


class Listening:
    """The far side of a face: it believes what it is told, and nothing else."""

    def __init__(self, face: Face) -> None:
        assert face.outbox is not None
        self.outbox = face.outbox
        self.numbers: dict[int, str] = {}
        self.known: dict[tuple[int, int], tuple[str, int]] = {}
        self.current: list[tuple[int, str]] = []
        self.finals: list[int] = []
        self.answers: dict[int, list[tuple[int, str, int]]] = {}

    def listen(self) -> None:
        """Take in what was said."""
        while batch := self.outbox.take():
            for frame in read_batch(batch[2:]):
                assert isinstance(frame, Frame)
                assert frame.priority == 0
                for message in frame.messages:
                    if isinstance(message, Declare):
                        self.told(message)

    def told(self, message: Declare) -> None:
        body = message.body
        if isinstance(body, DeclareFinal):
            assert message.interest_id is not None
            self.finals.append(message.interest_id)
        elif isinstance(body, DeclareKeyExpr):
            assert body.id not in self.numbers
            self.numbers[body.id] = self.numbers.get(body.scope, "") + body.suffix
        elif isinstance(body, DECLARES):
            assert body.sender_mapping
            key = (self.numbers[body.scope] if body.scope else "") + body.suffix
            kind = DECLARES.index(type(body))
            info = body.info if isinstance(body, DeclareQueryable) else 0
            if message.interest_id is not None:
                self.answers.setdefault(message.interest_id, []).append((kind, key, body.id))
            if body.id == 0:
                self.current.append((kind, key))
                return
            old = self.known.get((kind, body.id))
            assert old is None or old[0] == key  # an id keeps its meaning
            self.known[kind, body.id] = (key, info)
        else:
            assert isinstance(body, UNDECLARES)
            kind = UNDECLARES.index(type(body))
            assert (kind, body.id) in self.known  # nothing is retracted that was not told
            del self.known[kind, body.id]


class Balance(RuleBasedStateMachine):
    """A node's tables between several neighbours, and the oracle beside them."""

    mode = PEER
    entities = Bundle("entities")
    interests = Bundle("interests")

    def __init__(self) -> None:
        super().__init__()
        self.tables = Tables(self.mode, Home())
        self.world = World(self.mode)
        self.real: dict[int, Face] = {}
        self.ears: dict[int, Listening] = {}
        #: What is announced individually and must be retracted when it goes: (face, kind, key).
        self.told: dict[tuple[int, int, str], Told] = {}
        self.next_face = 0
        self.next_id = 0
        self.add(LOCAL)

    def add(self, role: int) -> int:
        number = self.next_face
        self.next_face += 1
        outbox = None if role == LOCAL else Outbox(4096, 2, 0x0FFF_FFFF, 0, True, 2)
        face = Face(number, bytes((number + 1,)), role, outbox)
        self.real[number] = face
        self.world.faces[number] = Neighbour(role)
        if role != LOCAL:
            self.ears[number] = Listening(face)
        self.tables.add(face, 0.0)
        return number

    def one_of(self, pick: int, remote: bool = False) -> int:
        """One of the faces that are there."""
        return (
            sorted(self.real)[pick % len(self.real)]
            if not remote
            else (sorted(self.ears)[pick % len(self.ears)] if self.ears else 0)
        )

    @initialize(roles=st.lists(st.sampled_from([ROUTER, PEER, CLIENT]), min_size=2, max_size=3))
    def begin(self, roles: list[int]) -> None:
        for role in roles:
            self.come(role)

    @rule(role=st.sampled_from([ROUTER, PEER, CLIENT]))
    def come(self, role: int) -> None:
        if len(self.real) > 5:
            return
        if self.mode == CLIENT and (role == CLIENT or len(self.real) > 1):
            return
        number = self.add(role)
        for kind in range(3):
            for key in self.world.visible(number, kind):
                self.announce(number, kind, key)

    @rule(pick=picks)
    def go(self, pick: int) -> None:
        number = self.one_of(pick, remote=True)
        if number == 0:
            return
        self.tables.remove(self.real.pop(number))
        del self.world.faces[number], self.ears[number]
        self.told = {where: told for where, told in self.told.items() if where[0] != number}
        self.settle()

    @rule(
        target=entities,
        pick=picks,
        kind=st.integers(0, 2),
        key=st.sampled_from(KEYS),
        info=st.sampled_from([0, 1, 0x100, 0x101, 0x201]),
    )
    def declare(self, pick: int, kind: int, key: str, info: int) -> tuple[int, int, int]:
        number = self.one_of(pick)
        self.next_id += 1
        self.say(number, kind, self.next_id, key, info if kind == QUERYABLE else 0)
        return number, kind, self.next_id

    @rule(entity=entities, key=st.sampled_from(KEYS), info=st.sampled_from([0, 1, 0x101]))
    def declare_again(self, entity: tuple[int, int, int], key: str, info: int) -> None:
        number, kind, id = entity
        if number in self.real and (kind, id) in self.world.faces[number].declared:
            self.say(number, kind, id, key, info if kind == QUERYABLE else 0)

    def say(self, number: int, kind: int, id: int, key: str, info: int) -> None:
        if number not in self.real:
            return
        declared = self.world.faces[number].declared
        if declared.get((kind, id), (key, 0))[0] != key:
            del declared[kind, id]  # another key under the same id: the old one goes
            self.settle()
        declared[kind, id] = (key, info)
        self.tables.declare(self.real[number], kind, id, key, info)
        self.settle(kind, key)

    @rule(entity=consumes(entities))
    def undeclare(self, entity: tuple[int, int, int]) -> None:
        number, kind, id = entity
        if number in self.real:
            self.world.faces[number].declared.pop((kind, id), None)
            self.tables.undeclare(self.real[number], kind, id)
            self.settle()

    @rule(
        target=interests,
        pick=picks,
        kinds=st.integers(1, 7),
        key=st.sampled_from([*KEYS, ""]),
        mode=st.sampled_from([1, 2, 3, 3]),
        aggregate=st.booleans(),
    )
    def want(self, pick: int, kinds: int, key: str, mode: int, aggregate: bool) -> tuple[int, int]:
        number = self.one_of(pick, remote=True)
        if number == 0:
            return number, 0
        face, seen = self.real[number], self.world.faces[number]
        self.next_id += 1
        id = self.next_id
        before = len(self.ears[number].finals)
        self.tables.interest(
            face,
            Interest(
                mode=mode, id=id, subscribers=bool(kinds & 1), queryables=bool(kinds & 2),
                tokens=bool(kinds & 4), key_exprs=bool(id & 1), restricted=bool(key), suffix=key,
                aggregate=aggregate and bool(key),
            ),
            0.0,
        )  # fmt: skip
        self.ears[number].listen()
        finals = self.ears[number].finals[before:]
        if (self.mode == ROUTER and seen.role == ROUTER) or (mode == 1 and kinds != 4):
            assert finals == []  # not even a final for what is no interest
            return number, 0
        waiting = south(self.mode, seen.role) and any(
            self.tables.needs_interest(other) for other in self.real.values()
        )
        assert finals == ([] if waiting and self.mode != ROUTER else [id])
        aggregated = aggregate and bool(key) and not kinds & 4 and seen.role != PEER
        wish = ProgramInterest(kinds, key, mode >= 2, aggregated)
        if wish.future:
            seen.wishes[id] = wish
        self.check_answer(number, id, wish, mode)
        return number, id

    def check_answer(self, number: int, id: int, wish: ProgramInterest, mode: int) -> None:
        """An interest in the present is answered with all there is, each key once."""
        answer = self.ears[number].answers.get(id, [])
        expected: set[tuple[int, str]] = set()
        for kind in range(3):
            if not (wish.kinds >> kind & 1 and mode & 1):
                continue
            if wish.aggregate:
                if self.world.aggregate(number, kind, wish) is not None:
                    expected.add((kind, wish.key))
                continue
            keys = set(self.world.visible(number, kind))
            if kind == TOKEN and self.world.faces[number].role == CLIENT:
                own = self.world.faces[number].declared.items()
                keys |= {key for (of_kind, _), (key, _) in own if of_kind == TOKEN}
            for key in keys:
                if not wish.key or self.meets(wish.key, key):
                    expected.add((kind, key))
                    if wish.future and key in self.world.visible(number, kind):
                        self.told.setdefault((number, kind, key), Told(0, 0))
        assert sorted((kind, key) for kind, key, _ in answer) == sorted(expected)
        if not wish.future:
            assert all(told == 0 for _, _, told in answer)

    @staticmethod
    def meets(one: str, other: str) -> bool:
        return intersects(one, other)

    @rule(interest=consumes(interests))
    def want_no_more(self, interest: tuple[int, int]) -> None:
        number, id = interest
        if number in self.real and id:
            wish = self.world.faces[number].wishes.pop(id, None)
            if wish is None:
                return
            self.tables.interest(self.real[number], Interest(mode=0, id=id), 0.0)
            if wish.aggregate:
                self.forget_aggregates(number, wish)

    def forget_aggregates(self, number: int, wish: ProgramInterest) -> None:
        """Whoever ends an aggregate interest forgets what it was told for it."""
        ear = self.ears[number]
        ear.listen()
        counted = {where for where in self.told if where[0] == number}
        others = [w for w in self.world.faces[number].wishes.values() if w.aggregate]
        for (kind, id), (key, _) in list(ear.known.items()):
            if key != wish.key or not wish.kinds >> kind & 1:
                continue
            same = sum(1 for k, (other, _) in ear.known.items() if k[0] == kind and other == key)
            due = (number, kind, key) in counted
            due_aggregates = sum(
                1
                for w in others
                if w.key == key
                and w.kinds >> kind & 1
                and id in [i.announced[kind] for i in self.real[number].interests_in.values()]
            )
            if (
                same > due + due_aggregates
                and self.real[number].announced[kind].get(key) != id
                and id not in [i.announced[kind] for i in self.real[number].interests_in.values()]
            ):
                del ear.known[kind, id]

    def announce(self, number: int, kind: int, key: str) -> None:
        if self.world.wanted(number, kind, key):
            self.told.setdefault((number, kind, key), Told(0, 0))

    def settle(self, kind: int = -1, key: str = "") -> None:
        """Follow a change: what was declared is told to those who want it, what is gone is not."""
        for number, face in self.world.faces.items():
            if face.role == LOCAL:
                continue
            for of_kind in range(3):
                seen = self.world.visible(number, of_kind)
                if of_kind == kind and key in seen:
                    self.announce(number, kind, key)
                for where in [w for w in self.told if w[:2] == (number, of_kind)]:
                    if where[2] not in seen:
                        del self.told[where]

    @invariant()
    def everybody_knows_what_it_should(self) -> None:
        for number, ear in self.ears.items():
            ear.listen()
            expected: list[tuple[int, str, int]] = []
            for kind in range(3):
                seen = self.world.visible(number, kind)
                expected += [
                    (kind, key, seen[key] if kind == QUERYABLE else 0)
                    for where, of_kind, key in self.told
                    if where == number and of_kind == kind
                ]
                for interest in self.real[number].interests_in.values():
                    wish = self.world.faces[number].wishes.get(interest.id)
                    if wish is None or not wish.aggregate or not wish.kinds >> kind & 1:
                        continue
                    if interest.announced[kind]:
                        info = self.world.aggregate(number, kind, wish)
                        assert info is not None  # no ghosts
                        expected.append((kind, wish.key, info))
            found = [(kind, key, info) for (kind, _), (key, info) in ear.known.items()]
            assert sorted(found) == sorted(expected), f"face {number}"

    @invariant()
    def the_tree_holds_what_is_declared_and_nothing_else(self) -> None:
        keys = {key for face in self.world.faces.values() for key, _ in face.declared.values()}
        assert {entry.key for entry in self.tables.tree.entries()} == keys


class PeerBalance(Balance):
    mode = PEER


class RouterBalance(Balance):
    mode = ROUTER


class ClientBalance(Balance):
    mode = CLIENT


def case(machine: type[Balance]) -> Any:
    found = machine.TestCase
    found.settings = settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
    return found


TestPeerBalance = case(PeerBalance)
TestRouterBalance = case(RouterBalance)
TestClientBalance = case(ClientBalance)
