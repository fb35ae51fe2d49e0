"""Every door × every right × every verb: what a user may do is the same whichever way it comes.

One router with all its doors open, and one rule book. Each case tries a verb through a door, from
outside, and then looks whether it happened: an observer without limits sees the value, or what was
asked for arrives. Codes and messages of errors do not count. That something did *not* happen is
known by a mark that the same user sends, or is sent, by the same way after it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import zenlake
from tests.api.sessions import connected, listening, where
from tests.hostile.doors import EclipseDoor, Mcp, Native, OldDevice, Rest, Sockets
from tests.waiting import SECONDS, until
from zenlake.config import Config
from zenlake.keys.parameters import Parameters
from zenlake.keys.readable import ReadableKeys
from zenlake.lake.service.local_server import LocalCaller, LocalServer
from zenlake.remote import RemoteApiService
from zenlake.rest import RestService
from zenlake.xrce_io.service import serving

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

# ------------------------------------------------------------------------------------ the rules

EVERYTHING = [
    "put", "delete", "query", "reply", "declare_subscriber", "declare_queryable",
    "liveliness_token", "liveliness_query", "declare_liveliness_subscriber",
]  # fmt: skip
#: `**` does not reach chunks with an `@`: only a case's own subscriber listens below `@match`.
ANY = ["**", "@/**", "@match/**", "@lake/**", "@journal/**", "**/@replay/control"]
#: Everybody may ask SQL and journals; of which rows they tell them is another matter.
MARKS = [
    "mark/**", "mark/*/@replay/control", "stored/mark/**", "@match/mark/**", "z18/**", "@lake/sql",
    "@journal/**",
]  # fmt: skip
SECRET = [
    "secret/**", "stored/secret/**", "past/secret/**", "@match/secret/**", "@/**",
    "@lake/views/secret$*", "view/secret$*/**", "secret/*/@replay/control",
]  # fmt: skip
SOME = [
    "open/some/**", "stored/some/**", "past/some/**", "@match/some/**", "@lake/views/some$*",
    "view/some$*/**", "open/some/*/@replay/control",
]  # fmt: skip
#: The same without the marks: they tell when a stream has shown all there was.
SHOWN = [
    "secret/*/value", "secret/*/error", "stored/secret/**", "past/secret/**", "@match/secret/**",
    "@/**",
]  # fmt: skip
#: By user: what is allowed; what is denied, in which flows, and of which messages.
USERS: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
    "root": (ANY, [], [], EVERYTHING),
    "free": (ANY, [], [], EVERYTHING),
    "barred": (ANY, SECRET, ["ingress", "egress"], EVERYTHING),
    "bare": (MARKS, [], [], EVERYTHING),
    "some": ([*MARKS, *SOME], [], [], EVERYTHING),
    "mute": (ANY, SECRET, ["ingress"], EVERYTHING),
    "deaf": (ANY, SHOWN, ["egress"], EVERYTHING),
    "unheard": (ANY, SECRET, ["ingress"], ["reply"]),
    "lonely": (ANY, SHOWN, ["egress"], ["liveliness_token"]),
    "present": (ANY, ["past/**"], ["ingress"], ["query"]),
    "blind": (ANY, SHOWN, ["egress"], ["put", "delete", "reply"]),
    "silent": (ANY, SECRET, ["ingress", "egress"], ["query"]),
    "absent": (ANY, SECRET, ["ingress", "egress"], ["declare_subscriber"]),
    "idle": (ANY, SECRET, ["ingress"], ["declare_queryable"]),
    "careless": (ANY, SECRET, ["ingress"], ["liveliness_query"]),
    "drowsy": (ANY, SECRET, ["ingress"], ["declare_liveliness_subscriber"]),
}


def password(user: str) -> str:
    return f"word of {user}"


def rule_book() -> dict[str, object]:
    rules: list[dict[str, object]] = []
    policies = []
    for user, (allowed, denied, flows, messages) in USERS.items():
        rules.append(
            {"id": f"{user} may", "permission": "allow", "messages": EVERYTHING,
             "key_exprs": allowed}
        )  # fmt: skip
        ids = [f"{user} may"]
        if denied:
            rules.append(
                {"id": f"{user} may not", "permission": "deny", "messages": messages,
                 "flows": flows, "key_exprs": denied}
            )  # fmt: skip
            ids.append(f"{user} may not")
        policies.append({"id": user, "rules": ids, "subjects": [user]})
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": [{"id": user, "usernames": [user]} for user in USERS],
        "policies": policies,
    }


# ------------------------------------------------------------------- the oracle, written by hand

#: A right: who it is, and the space of keys in which it is tried.
RIGHTS = {
    "allowed": ("free", "secret"),
    "denied by rule": ("barred", "secret"),
    "a rule for other keys": ("barred", "open"),
    "denied by default": ("bare", "secret"),
    "within a wildcard": ("some", "open/some"),
    "beside a wildcard": ("some", "open/other"),
    "ingress denied": ("mute", "secret"),
    "egress denied": ("deaf", "secret"),
    "replies denied": ("unheard", "secret"),
    "tokens denied": ("lonely", "secret"),
    "values denied": ("blind", "secret"),
    "queries denied": ("silent", "secret"),
    "subscribers denied": ("absent", "secret"),
    "queryables denied": ("idle", "secret"),
    "questions who lives denied": ("careless", "secret"),
    "hearing who lives denied": ("drowsy", "secret"),
}
#: Whether a verb has an effect, for each right in the order above, but for the last of them.
TABLE = {
    #                     all rul oth def wit bes ing egr rep tok val
    "put":               "yes no  yes no  yes no  no  yes yes yes yes",
    "delete":            "yes no  yes no  yes no  no  yes yes yes yes",
    "put beneath":       "yes no  yes no  yes no  no  yes yes yes yes",
    "delete beneath":    "yes no  yes no  yes no  no  yes yes yes yes",
    "put across":        "yes no  no  no  no  no  no  yes yes yes yes",
    "delete across":     "yes no  no  no  no  no  no  yes yes yes yes",
    "put acknowledged":  "yes no  yes no  yes no  no  yes yes yes yes",
    "receive":           "yes no  yes no  yes no  no  no  yes yes no",
    "receive widely":    "yes no  yes no  no  no  yes no  yes yes no",
    "get":               "yes no  yes no  yes no  no  no  yes yes no",
    "get by a querier":  "yes no  yes no  yes no  no  no  yes yes no",
    "see rows by SQL":   "yes no  yes no  yes no  no  no  yes yes no",
    "get widely":        "yes no  yes no  no  no  yes no  yes yes no",
    "ask for the past":  "yes no  yes no  yes no  no  no  yes yes no",
    "see an aggregate":  "yes no  yes no  yes no  no  no  yes yes no",
    "read a journal":    "yes no  yes no  yes no  no  no  yes yes no",
    "download CSV":      "yes no  yes no  yes no  no  no  yes yes no",
    "download Parquet":  "yes no  yes no  yes no  no  no  yes yes no",
    "get an error":      "yes no  yes no  yes no  no  no  yes yes no",
    "answer":            "yes no  yes no  yes no  no  no  no  yes yes",
    "answer an error":   "yes no  yes no  yes no  no  no  no  yes yes",
    "declare a token":   "yes no  yes no  yes no  no  yes yes yes yes",
    "ask who lives":     "yes no  yes no  yes no  no  no  yes no  yes",
    "hear who lives":    "yes no  yes no  yes no  no  no  yes no  yes",
    "learn who listens": "yes no  yes no  yes no  yes no  yes yes yes",
    "read the node":     "yes no  no  no  no  no  no  no  yes yes no",
    "change the node":   "yes no  no  no  no  no  no  yes yes yes yes",
    "make a view":       "yes no  yes no  yes no  no  yes yes yes yes",
    "drop a view":       "yes no  yes no  yes no  no  yes yes yes yes",
    "control a replay":  "yes no  yes no  yes no  no  yes yes yes yes",
    "view over the bus": "no  no  no  no  no  no  no  no  no  no  no",
    "page /status":      "yes no  no  no  no  no  no  no  yes yes no",
    "page /metrics":     "yes no  no  no  no  no  no  no  yes yes no",
}  # fmt: skip
#: Rights that deny one kind of message and nothing else: the verbs that need it.
ALONE = {
    "queries denied": ["get", "get an error", "see rows by SQL", "answer"],
    "subscribers denied": ["receive", "learn who listens"],
    "queryables denied": ["answer"],
    "questions who lives denied": ["ask who lives"],
    "hearing who lives denied": ["hear who lives"],
}
#: Verbs that are tried with those: each needs one kind.
PLAIN = sorted({verb for verbs in ALONE.values() for verb in verbs})
WRITING = [
    "put", "delete", "put beneath", "delete beneath", "put across", "delete across",
    "control a replay",
]  # fmt: skip
ASKING = ["ask for the past", "see an aggregate", "read a journal", "see rows by SQL"]
HEARING = ["receive", "receive widely", "get", "get widely", "get an error", *ASKING]
NODE = ["read the node", "change the node"]
FULL = [
    *WRITING, *HEARING, *NODE, "answer", "answer an error", "declare a token", "ask who lives",
    "hear who lives", "learn who listens", "put acknowledged", "get by a querier",
    "view over the bus",
]  # fmt: skip
DOORS = {
    "eclipse": FULL,
    "zenlake": FULL,
    "page": FULL,
    "remote": FULL,
    "rest": [
        *WRITING,
        *HEARING,
        *NODE,
        "page /status",
        "page /metrics",
        "put acknowledged",
        "make a view",
        "drop a view",
        "download CSV",
        "download Parquet",
    ],
    "mcp": [
        *WRITING,
        "get",
        "get widely",
        "get an error",
        *ASKING,
        *NODE,
        "view over the bus",
    ],
    # It has no deletions, no wildcards in what it writes, no tokens of its own, no admin space.
    "2018": ["put", "receive", "get", "answer"],
}
#: A write of many keys by who may write some of them is refused as a whole where that is answered,
#: as the table says. Where nobody answers, it changes those keys.
SILENT = ["eclipse", "zenlake", "mcp"]
NARROWED = ["a rule for other keys", "within a wildcard"]
CASES = [
    pytest.param(door, right, verb, id=f"{door}-{verb}-{right}".replace(" ", "_"))
    for door, verbs in DOORS.items()
    for verb in verbs
    for right in RIGHTS
    if right not in ALONE or verb in PLAIN
]


def expected(door: str, right: str, verb: str) -> bool:
    if right in ALONE:
        return verb not in ALONE[right]
    if door in SILENT and right in NARROWED and verb in ("put across", "delete across"):
        return True
    word = TABLE[verb].split()[list(RIGHTS).index(right)]
    return {"yes": True, "no": False}[word]


def test_the_page_about_trust_counts_the_cases() -> None:
    pairs = sum(map(len, DOORS.values()))
    counted = (
        f"{len(DOORS)} doors, {len(RIGHTS)} rights, {pairs} pairs of a door and a verb: "
        f"{len(CASES)} cases"
    )
    page = Path(__file__).parents[2] / "docs/why/trust.md"
    assert counted in " ".join(page.read_text("utf-8").split())


# ------------------------------------------------------------------------------------ the world


@dataclass
class World:
    """The router, the observer, and the doors that were opened."""

    router: zenlake.Session
    root: zenlake.Session
    closing: ExitStack
    seen: set[tuple[str, str]] = field(default_factory=set)
    #: What answers may tell of, by the question: its text in SQL, or its key.
    readable: dict[str, ReadableKeys] = field(default_factory=dict)
    #: The requests for views that came, by their action and name.
    views: set[tuple[str, str]] = field(default_factory=set)
    doors: dict[tuple[str, str], Any] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def admin(self) -> str:
        return f"@/{self.router.zid()}/router"

    def door(self, name: str, user: str) -> Any:
        if (name, user) not in self.doors:
            made = self._opened(name, user)
            self.closing.callback(made.close)
            self.doors[name, user] = made
        return self.doors[name, user]

    def _opened(self, name: str, user: str) -> Any:
        services = self.router.runtime.services
        rest, remote = services["zenlake.rest"], services["zenlake.remote"]
        assert isinstance(rest, RestService)
        assert isinstance(remote, RemoteApiService)
        word = password(user)
        match name:
            case "eclipse":
                return EclipseDoor(where(self.router), user, word)
            case "zenlake":
                return Native(client(self.router, user))
            case "mcp":
                return Mcp(client(self.router, user))
            case "rest":
                return Rest(rest.url, user, word)
            case "page":
                return Sockets(rest.url.replace("http:", "ws:"), "/@ws", user, word)
            case "remote":
                return Sockets(remote.url, "/", user, word)
        made = Config()
        made.insert_json5("xrce", json.dumps({"listen": ["tcp/127.0.0.1:0"], "username": user}))
        closing = ExitStack()
        running = closing.enter_context(serving(self.router, made.resolved.xrce))
        return OldDevice(running.locators()[0], closing)

    def done(self, door: Any, key: str) -> None:
        """The router has done all that came through a door before."""
        door.put(key, b"mark")
        until(lambda: ("put", key) in self.seen, f"no mark {key}")


def client(router: zenlake.Session, user: str) -> zenlake.Session:
    return connected(
        router, mode='"client"', transport__auth__usrpwd__user=json.dumps(user),
        transport__auth__usrpwd__password=json.dumps(password(user)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    users = tmp_path_factory.mktemp("doors") / "users"
    users.write_text("".join(f"{user}:{password(user)}\n" for user in USERS))
    users.chmod(0o600)
    lake = tmp_path_factory.mktemp("lake")
    plugins = {
        "rest": {"http_port": "127.0.0.1:0", "lake": str(lake)},
        "remote_api": {"websocket_port": "127.0.0.1:0"},
        "storage_manager": {
            "storages": {
                "stored": {"key_expr": "stored/**", "volume": "memory"},
                "past": {"key_expr": "past/**", "volume": "memory", "history": "all"},
            }
        },
    }
    with (
        listening(
            mode='"router"', adminspace="{enabled: true, permissions: {write: true}}",
            plugins=json.dumps(plugins), access_control=json.dumps(rule_book()),
            timestamping__enabled="true",
            transport__auth__usrpwd__dictionary_file=json.dumps(str(users)),
        ) as router,
        client(router, "root") as root,
        ExitStack() as closing,
    ):  # fmt: skip
        made = World(router, root, closing)

        def seen(sample: zenlake.Sample) -> None:
            made.seen.add((sample.kind.name.lower(), str(sample.key_expr)))

        def answer(query: zenlake.Query) -> None:
            with query:
                for key in ("secret", "open", "open/some", "open/other"):
                    number = str(query.key_expr).split("/")[-2]
                    at = f"{key}/{number}/value"
                    if query.key_expr.intersects(zenlake.KeyExpr(at)):
                        query.reply(at, b"of root")

        def asked_sql(query: zenlake.Query) -> None:
            parameters = Parameters(str(query.parameters))
            with query:
                readable = ReadableKeys.in_parameters(parameters)
                made.readable[str(parameters.get("_sql"))] = readable

        def asked_many(query: zenlake.Query) -> None:
            with query:
                readable = ReadableKeys.in_parameters(Parameters(str(query.parameters)))
                made.readable[str(query.key_expr)] = readable

        def asked_view(request: dict[str, Any], caller: LocalCaller) -> None:
            made.views.add((request["action"], request["name"]))
            caller.fact({})

        # As a lake is asked, on the bus and by the router beside it.
        server = LocalServer(lake)
        closing.callback(server.close)
        server.handle("continuous", asked_view)
        with (
            root.declare_subscriber("**", seen),
            root.declare_subscriber("**/@replay/control", seen),
            root.declare_queryable("@lake/sql", asked_sql),
            root.declare_queryable("@journal/**", asked_many),
            root.declare_queryable("**/aggregate", asked_many),
            root.declare_queryable("**/value", answer),
            root.declare_queryable("**/error", refuse),
        ):
            yield made


def refuse(query: zenlake.Query) -> None:
    with query:
        query.reply_err(b"of root")


# ----------------------------------------------------------------------------- verbs and effects


@dataclass
class Try:
    """One case: a door of a user, the key that it is about, and the marks behind it."""

    world: World
    door: Any
    space: str
    number: int

    @property
    def key(self) -> str:
        return f"{self.space}/{self.number}/value"

    @property
    def mark(self) -> str:
        return f"mark/{self.number}/mark"

    def settle(self) -> None:
        self.world.done(self.door, f"mark/{self.number}/settled")

    # Each gives whether the verb had its effect.

    def put(self) -> bool:
        self.door.put(self.key, b"by the user")
        self.settle()
        return ("put", self.key) in self.world.seen

    def delete(self) -> bool:
        self.door.delete(self.key)
        self.settle()
        return ("delete", self.key) in self.world.seen

    def put_beneath(self) -> bool:
        return self._wide(f"stored/{self._area}/{self.number}/*", True)

    def delete_beneath(self) -> bool:
        return self._wide(f"stored/{self._area}/{self.number}/*", False)

    def put_across(self) -> bool:
        return self._wide(f"stored/*/{self.number}/value", True)

    def delete_across(self) -> bool:
        return self._wide(f"stored/*/{self.number}/value", False)

    @property
    def _area(self) -> str:
        return self.space.rpartition("/")[2]

    def _wide(self, expr: str, put: bool) -> bool:
        """Whether a write of many keys changed a value that a storage has."""
        key = f"stored/{self._area}/{self.number}/value"
        root = self.world.root

        def stored(at: str) -> list[bytes]:
            replies = list(root.get(at))
            return [one.ok.payload.to_bytes() for one in replies if one.ok is not None]

        root.put(key, b"kept")
        until(lambda: stored(key) == [b"kept"])
        if put:
            self.door.put(expr, b"by the user")
        else:
            self.door.delete(expr)
        mark = f"stored/mark/{self.number}"
        self.door.put(mark, b"mark")
        until(lambda: stored(mark), "the storage has no mark")
        # What came before the mark is noted by now, and may not have been applied yet.
        until(lambda: self.world.router.runtime.narrowed_writes.is_idle)
        return stored(key) != [b"kept"]

    def put_acknowledged(self) -> bool:
        key = f"stored/{self._area}/{self.number}/value"
        self.door.put_acknowledged(key, b"by the user")
        replies = [one.ok for one in self.world.root.get(key) if one.ok is not None]
        return b"by the user" in {one.payload.to_bytes() for one in replies}

    def make_a_view(self) -> bool:
        name = f"{self._area}-{self.number}"
        self.door.put(f"@lake/views/{name}", b"SELECT 1")
        return ("create", name) in self.world.views

    def drop_a_view(self) -> bool:
        name = f"{self._area}-{self.number}"
        self.door.delete(f"@lake/views/{name}")
        return ("drop", name) in self.world.views

    def view_over_the_bus(self) -> bool:
        made = self.make_a_view()
        self.settle()
        return made or ("create", f"{self._area}-{self.number}") in self.world.views

    def see_rows_by_SQL(self) -> bool:
        question = f"SELECT {self.number}"
        self.door.get(f"@lake/sql?_sql={question}")
        return self._tells(question)

    def see_an_aggregate(self) -> bool:
        asked = f"{self.space}/{self.number}/aggregate"
        self.door.get(f"{asked}?_agg=count()")
        return self._tells(asked)

    def read_a_journal(self) -> bool:
        asked = f"@journal/{self.number}/rows/0"
        self.door.get(asked)
        return self._tells(asked)

    def _tells(self, question: str) -> bool:
        """Whether a question came, and its answer may tell of the key."""
        readable = self.world.readable.get(question)
        return readable is not None and readable.lets(self.key)

    def ask_for_the_past(self) -> bool:
        key, root = f"past/{self._area}/{self.number}/value", self.world.root
        root.put(key, b"before")
        until(lambda: list(root.get(key)), "the storage has no value")
        return key in self.door.get(f"past/{self._area}/{self.number}/*?_time=[now(-1h)..]")

    def download_CSV(self) -> bool:
        return self.key in self.door.download(self.key, "csv")

    def download_Parquet(self) -> bool:
        return self.key in self.door.download(self.key, "parquet")

    def control_a_replay(self) -> bool:
        key = f"{self.space}/{self.number}/@replay/control"
        self.door.put(key, b"pause")
        # Another subscriber hears it than hears marks at plain keys.
        self.world.done(self.door, f"mark/{self.number}/@replay/control")
        return ("put", key) in self.world.seen

    def receive(self) -> bool:
        return self._received(f"{self.space}/{self.number}/*")

    def receive_widely(self) -> bool:
        return self._received(f"**/{self.number}/*")

    def _received(self, expr: str) -> bool:
        # `open` is denied to nobody who may subscribe so widely.
        marks = [f"{self.space}/{self.number}/mark", f"open/{self.number}/mark", self.mark]

        def happens() -> None:
            if isinstance(self.door, OldDevice):
                # Its bridge declares in order, and what the device writes may overtake that.
                with self.world.root.declare_publisher(self.mark) as marking:
                    until(lambda: marking.matching_status.matching, "the mark is not awaited")
            elif not isinstance(self.door, Rest):
                self.settle()
            for key in (self.key, *marks):
                self.world.root.put(key, b"of root")

        return self.key in self.door.receive(expr, self.mark, happens)

    def get(self) -> bool:
        return self.key in self.door.get(self.key)

    def get_by_a_querier(self) -> bool:
        # Nobody is told of a queryable at `**` who may ask some of its keys alone, and a querier
        # that was told of none asks nobody: so there is one of this key.
        def answer(query: zenlake.Query) -> None:
            with query:
                query.reply(self.key, b"of root")

        with self.world.root.declare_queryable(self.key, answer):
            self._root_settles()
            return self.key in self.door.get_by_querier(self.key)

    def get_widely(self) -> bool:
        return self.key in self.door.get(f"**/{self.number}/value")

    def get_an_error(self) -> bool:
        asked = f"{self.space}/{self.number}/error"
        if isinstance(self.door, Mcp):
            return "of root" in self.door.error_of(asked)
        return asked in self.door.get(asked)

    def answer(self) -> bool:
        return self._answered(False)

    def answer_an_error(self) -> bool:
        return self._answered(True)

    def _answered(self, error: bool) -> bool:
        """Whether what the user answers reaches who asks."""
        said: list[Any] = []
        over = threading.Event()
        with self.door.answering(self.key, error):
            self.settle()

            def ask() -> None:
                for one in self.world.root.get(
                    self.key, target=zenlake.QueryTarget.ALL,
                    consolidation=zenlake.ConsolidationMode.NONE,
                ):  # fmt: skip
                    said.append(one.err if one.ok is None else one.ok)
                over.set()

            asking = threading.Thread(target=ask)
            asking.start()
            if isinstance(self.door, Sockets):
                self.door.serve(over.is_set, error)
            asking.join()
        payloads = {one.payload.to_bytes() for one in said}
        return (b"no" if error else b"by the user") in payloads

    def declare_a_token(self) -> bool:
        with self.door.alive_as(self.key):
            self.settle()
            replies = list(self.world.root.liveliness().get(self.key))
        return any(one.ok is not None for one in replies)

    def ask_who_lives(self) -> bool:
        with self._tokens(self.key):
            return self.key in self.door.who_lives(f"{self.space}/{self.number}/*")

    def hear_who_lives(self) -> bool:
        with ExitStack() as closing:

            def happens() -> None:
                self.settle()
                marks = (f"{self.space}/{self.number}/mark", self.mark)
                closing.enter_context(self._tokens(self.key, *marks))

            heard = self.door.see(f"{self.space}/{self.number}/*", self.mark, happens)
        return self.key in heard

    @contextmanager
    def _tokens(self, *keys: str) -> Iterator[None]:
        """The observer is alive under some keys, and the router knows it."""
        root = self.world.root
        tokens = [root.liveliness().declare_token(key) for key in keys]
        self._root_settles()
        yield
        for token in tokens:
            token.undeclare()

    def _root_settles(self) -> None:
        number = next(self.world.numbers)
        heard = threading.Event()
        with self.world.router.declare_subscriber(f"settled/{number}", lambda _: heard.set()):
            self.world.root.put(f"settled/{number}", b"")
            assert heard.wait(SECONDS)

    def learn_who_listens(self) -> bool:
        root = self.world.root
        key = f"@match/{self._area}/{self.number}/value"
        mark = f"@match/mark/{self.number}"
        with root.declare_subscriber(key), root.declare_subscriber(mark):
            self._root_settles()
            return bool(self.door.matches(key, mark))

    def read_the_node(self) -> bool:
        return self.world.admin in self.door.get(self.world.admin)

    def change_the_node(self) -> bool:
        key = f"{self.world.admin}/config/metadata"
        self.door.put(key, json.dumps({"by": self.number}).encode())
        self.settle()
        found = [one.ok for one in self.world.root.get(key) if one.ok is not None]
        return f'"by":{self.number}' in found[0].payload.to_string().replace(" ", "")

    def page_status(self) -> bool:
        return bool(self.door.page("/status"))

    def page_metrics(self) -> bool:
        return bool(self.door.page("/metrics"))


@pytest.mark.parametrize(("door", "right", "verb"), CASES)
def test_a_door_lets_through_what_the_table_says(
    world: World, door: str, right: str, verb: str
) -> None:
    user, space = RIGHTS[right]
    trying = Try(world, world.door(door, user), space, next(world.numbers))
    tried: Callable[[], bool] = getattr(trying, verb.replace(" /", "_").replace(" ", "_"))
    assert tried() == expected(door, right, verb)


def test_a_stream_that_goes_on_shows_the_past_to_those_who_may_ask_for_it(world: World) -> None:
    before = str(world.root.new_timestamp())
    world.root.put("past/a/value", b"1")
    until(lambda: list(world.root.get("past/a/value")), "the storage has no value")

    def mark(key: str) -> Callable[[], None]:
        return lambda: world.root.put(key, b"mark")

    free, present = world.door("rest", "free"), world.door("rest", "present")
    assert free.get("past/a/value") == {"past/a/value"}
    assert present.get("past/a/value") == set()
    assert "past/a/value" in free.receive("past/a/*", "", mark("past/a/mark"), after=before)
    heard = present.receive("past/a/*", "", mark("past/a/mark"), after=before)
    assert heard == {"past/a/mark"}


@pytest.mark.parametrize("door", ["zenlake", "page", "remote", "rest"])
def test_other_rules_hold_at_once_at_a_door_that_is_open(world: World, door: str) -> None:
    key = f"{world.admin}/config/access_control"
    number = next(world.numbers)
    free = world.door(door, "free")
    trying = Try(world, free, "secret", number)
    assert trying.put()
    other = rule_book()
    rules = other["rules"]
    assert isinstance(rules, list)
    by_id = {rule["id"]: rule for rule in rules}
    by_id["free may"]["key_exprs"] = ["mark/**"]

    def hold(rules: dict[str, object]) -> None:
        before = world.router.runtime.node.policy
        world.root.put(key, json.dumps(rules))
        until(lambda: world.router.runtime.node.policy is not before, "the old rules hold")

    hold(other)
    try:
        trying.number = next(world.numbers)
        assert not trying.put()
    finally:
        hold(rule_book())
    trying.number = next(world.numbers)
    assert trying.put()
