"""One configuration, two routers: clients cannot tell by what passes whose router it is.

Each case is a configuration and a walk of two Eclipse clients, done once through a router of ours
and once through one of theirs. What they see must be the same, and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.interop.peer import Peer, Plain
from tests.interop.processes import OURS, Process, connect, listen
from tests.links.authority import Authority
from tests.ports import free_port
from tests.routing.policies import access_control, applying, rule, subject
from zenlake.routing.policy import KINDS

pytestmark = pytest.mark.interop

numbers = count(1)
Walk = Callable[[Peer, Peer], object]


@contextmanager
def clients(
    elsewhere: Process, router: Peer, near: Plain, far: Plain, **keys: object
) -> Iterator[tuple[Peer, Peer]]:
    """Two Eclipse clients of a router, with keys of their own."""
    place = listen(router, "router", **keys)  # type: ignore[arg-type]
    found = elsewhere.node(f"near {next(numbers)}"), elsewhere.node(f"far {next(numbers)}")
    for client, own in zip(found, (near, far), strict=True):
        connect(client, place, "client", **own)
    try:
        yield found
    finally:
        for client in found:
            client.close()
        router.close()


def both(
    elsewhere: Process,
    walk: Walk,
    near: Plain | None = None,
    far: Plain | None = None,
    **keys: object,
) -> object:
    """What is seen through either router: the same."""
    seen = []
    for router in (Peer(OURS), elsewhere.node(f"router {next(numbers)}")):
        with clients(elsewhere, router, near or {}, far or {}, **keys) as pair:
            seen.append(walk(*pair))
    ours, theirs = seen
    assert ours == theirs
    return ours


def fence(*peers: Peer) -> None:
    """Wait until the router has heard all that was said, and each has heard the router."""
    for peer in (*peers, *peers):
        assert peer.get("fence/k") == []


def nine(near: Peer, far: Peer) -> dict[str, bool]:
    """Which of the nine kinds of messages of one client come to pass, where allowed and not."""
    found: dict[str, bool] = {}
    for where in ("yes", "no"):
        for kind in ("put", "delete"):
            far.subscribe(f"{where} {kind}", f"{where}/{kind}/*")
        for kind in ("query", "reply"):
            far.queryable(f"{where} {kind}", f"{where}/{kind}/k", [{"payload": "answer"}])
        for kind in ("liveliness_query", "declare_liveliness_subscriber"):
            far.token(f"{where} {kind}", f"{where}/{kind}/k")
        far.publisher(f"{where} publisher", f"{where}/declare_subscriber/k")
        far.querier(f"{where} querier", f"{where}/declare_queryable/k")
    fence(far)
    for where in ("yes", "no"):
        near.put(f"{where}/put/k", "value")
        near.delete(f"{where}/delete/k")
        near.put(f"{where}/put/end", "")
        near.delete(f"{where}/delete/end")
        near.get(f"{where}/query/k")
        found[f"{where} reply"] = near.get(f"{where}/reply/k") != []
        near.subscribe(f"{where} subscriber", f"{where}/declare_subscriber/k")
        near.queryable(f"{where} queryable", f"{where}/declare_queryable/k", [])
        near.token(f"{where} token", f"{where}/liveliness_token/k")
        found[f"{where} liveliness_query"] = near.alive(f"{where}/liveliness_query/k") != []
    for where in ("yes", "no"):
        near.watch(f"{where} watch", f"{where}/declare_liveliness_subscriber/k", history=True)
    fence(near, far)
    for where in ("yes", "no"):
        for kind in ("put", "delete"):
            heard = far.take_until(f"{where} {kind}", f"{where}/{kind}/end")
            found[f"{where} {kind}"] = [one["key"] for one in heard] == [
                f"{where}/{kind}/k",
                f"{where}/{kind}/end",
            ]
        found[f"{where} query"] = far.heard_by(f"{where} query") == 1
        found[f"{where} declare_subscriber"] = far.matches(f"{where} publisher")
        found[f"{where} declare_queryable"] = far.matches(f"{where} querier")
        found[f"{where} declare_liveliness_subscriber"] = not near.quiet(f"{where} watch", 0.3)
        found[f"{where} liveliness_token"] = far.alive(f"{where}/liveliness_token/k") != []
    return found


def expected(*refused: str) -> dict[str, bool]:
    return {f"{where} {kind}": where == "yes" or kind not in refused
            for where in ("yes", "no") for kind in KINDS}  # fmt: skip


#: Routers do not ask clients who is alive, so nothing of the kind leaves them.
SAID = [kind for kind in KINDS if not kind.endswith(("_query", "liveliness_subscriber"))]
FLOWS = {"ingress": ["ingress"], "egress": ["egress"], "both": None}


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("default", ["allow", "deny"])
def test_each_kind_of_message_is_denied_and_permitted_alike(
    default: str, flow: str, elsewhere: Process
) -> None:
    rules: list[dict[str, object]]
    if default == "allow":
        rules = [
            rule(kind, "deny", f"no/{kind}/k", messages=[kind], flows=FLOWS[flow]) for kind in KINDS
        ]
    else:
        rules = [
            rule(
                kind, "allow", "yes/**", "fence/**", f"no/{kind}/end",
                *(f"no/{other}/**" for other in KINDS if other != kind),
                messages=[kind], flows=FLOWS[flow],
            )
            for kind in KINDS
        ]  # fmt: skip
        if flow != "both":
            other = "egress" if flow == "ingress" else "ingress"
            rules.append(rule("the other way", "allow", "**", flows=[other]))
    section = access_control(
        default,
        rules,
        [subject("everybody")],
        [applying([str(one["id"]) for one in rules], ["everybody"])],
    )
    refused = SAID if flow == "egress" else KINDS
    assert both(elsewhere, nine, access_control=section) == expected(*refused)


def test_a_mixed_file_for_two_clients(elsewhere: Process) -> None:
    """Rules by id, by protocol and for all, that overlap."""
    section = access_control(
        "deny",
        [
            rule("all", "allow", "**"),
            rule("no puts", "deny", "no/put/k", messages=["put"], flows=["ingress"]),
            rule("no reply", "deny", "no/reply/*", "no/query/*", messages=["reply", "query"]),
            rule("nothing else", "deny", "no/*/k", flows=["egress"]),
        ],
        [
            subject("near", zids=["aa01"]),
            subject("tcp", link_protocols=["tcp", "udp"], zids=["aa01", "bb02"]),
            subject("far", zids=["bb02"], interfaces=["lo"]),
        ],
        [
            applying(["all", "no puts"], ["near"]),
            applying(["no reply"], ["near", "tcp"]),
            applying(["all"], ["far"]),
            applying(["nothing else"], ["tcp"]),
        ],
    )
    seen = both(elsewhere, nine, {"id": "aa01"}, {"id": "bb02"}, access_control=section)
    assert isinstance(seen, dict)
    assert {kind for kind in KINDS if not seen[f"no {kind}"]} != set()


@pytest.mark.parametrize("flow", ["ingress", "egress"])
def test_downsampling_passes_the_same(flow: str, elsewhere: Process) -> None:
    """Within a moment a slow clock passes one message, whatever key it shares it with.

    Which of several rules that meet a key counts, theirs decides anew at each start.
    """

    def walk(near: Peer, far: Peer) -> object:
        far.subscribe("s", "d/**")
        far.queryable("q", "d/slow/q", [{"payload": "answer"}])
        fence(far)
        for number in range(5):
            near.put(f"d/none/{number}", "x")
            near.put(f"d/slow/{number}", "x")
            near.put(f"d/free/{number}", "x")
            near.delete(f"d/slow/{number}")
        near.put("d/free/end", "x")
        answers = [len(near.get("d/slow/q")) for _ in range(3)]
        heard = [(one["kind"], one["key"]) for one in far.take_until("s", "d/free/end")[:-1]]
        return answers, sorted(heard)

    items = [
        {
            "messages": ["put"],
            "flows": [flow],
            "rules": [
                {"key_expr": "d/none/*", "freq": 0},
                {"key_expr": "d/slow/*", "freq": 0.01},
            ],
        },
        {
            "messages": ["query"],
            "flows": [flow],
            "rules": [{"key_expr": "d/**", "freq": 0.01}],
        },
    ]
    seen = both(elsewhere, walk, downsampling=items)
    assert isinstance(seen, tuple)
    answers, heard = seen
    assert answers == [1, 0, 0]
    puts = [key for kind, key in heard if kind == "PUT"]
    assert puts == [*(f"d/free/{number}" for number in range(5)), "d/slow/0"]
    assert len(heard) - len(puts) == 5


@pytest.mark.parametrize("flow", ["ingress", "egress"])
def test_the_same_sizes_pass(flow: str, elsewhere: Process) -> None:
    def walk(near: Peer, far: Peer) -> object:
        far.subscribe("s", "l/**")
        for size in (10, 11):
            far.queryable(f"q{size}", f"l/reply/{size}", [{"payload": "a" * size}])
            far.queryable(f"e{size}", f"l/error/{size}", [{"error": "a" * size}])
            far.queryable(f"b{size}", f"l/query/{size}", [{"payload": ""}])
        fence(far)
        answers = []
        for size in (10, 11):
            near.put(f"l/put/{size}", "a" * size)
            near.put("l/narrow/k", "a" * (size - 5))
            near.put(f"l/attached/{size}", "a" * 4, attachment="b" * (size - 4))
            near.delete(f"l/delete/{size}", attachment="b" * size)
            near.put(f"free/{size}", "a" * size)
            answers.append(len(near.get(f"l/reply/{size}")))
            answers.append(len(near.get(f"l/error/{size}")))
            answers.append(len(near.get(f"l/query/{size}", payload="c" * size)))
        near.put("l/end", "")
        heard = [(one["kind"], one["key"]) for one in far.take_until("s", "l/end")[:-1]]
        return answers, sorted(heard)

    items = [
        {
            "messages": ["put", "delete", "query", "reply"],
            "flows": [flow],
            "key_exprs": ["l/**"],
            "size_limit": 10,
        },
        {"messages": ["put"], "flows": [flow], "key_exprs": ["l/narrow/*"], "size_limit": 5},
    ]
    assert both(elsewhere, walk, low_pass_filter=items) == (
        [1, 1, 1, 0, 0, 0],
        [("DELETE", "l/delete/10"), ("PUT", "l/attached/10"), ("PUT", "l/narrow/k"),
         ("PUT", "l/put/10")],
    )  # fmt: skip


@pytest.mark.parametrize("flow", ["ingress", "egress"])
def test_messages_are_changed_alike(flow: str, elsewhere: Process) -> None:
    """But for steps up, which theirs takes from the configuration and does not take."""

    def walk(near: Peer, far: Peer) -> object:
        far.subscribe("s", "**")
        fence(far)
        for priority in ("REAL_TIME", "DATA", "BACKGROUND"):
            for key in ("down/k", "named/k", "small/k", "other/k"):
                near.put(key, "x" * (3 if priority == "DATA" else 30), priority=priority)
        return [
            (one["key"], one["priority"], one["congestion_control"], one["express"])
            for one in sorted(far.take("s", 12), key=lambda one: (one["key"], one["priority"]))
        ]

    items = [
        {"key_exprs": ["down/*"], "overwrite": {"priority": 2}},
        {"key_exprs": ["named/*"], "overwrite": {"priority": "data_high", "express": True}},
        {"key_exprs": ["small/*"], "payload_size": "..10", "overwrite": {"express": True}},
        {"key_exprs": ["small/*"], "qos": {"priority": "background"},
         "overwrite": {"congestion_control": "block"}},
    ]  # fmt: skip
    network = [{"messages": ["put"], "flows": [flow], **one} for one in items]
    assert both(elsewhere, walk, qos__network=network)


def test_users_have_rights(tmp_path: Path, elsewhere: Process) -> None:
    names = tmp_path / "users"
    names.write_text("ann:secret\nbob:hidden\n")
    names.chmod(0o600)
    section = access_control(
        "deny",
        [
            rule("all", "allow", "yes/**", "fence/**", "no/**"),
            rule("no puts", "deny", "no/*/k", messages=["put"]),
        ],
        [subject("ann", usernames=["ann"]), subject("bob", usernames=["bob"])],
        [applying(["all", "no puts"], ["ann"]), applying(["all"], ["bob"])],
    )
    seen = both(
        elsewhere,
        nine,
        {"transport__auth__usrpwd__user": "ann", "transport__auth__usrpwd__password": "secret"},
        {"transport__auth__usrpwd__user": "bob", "transport__auth__usrpwd__password": "hidden"},
        transport__auth__usrpwd__dictionary_file=str(names),
        access_control=section,
    )
    assert seen == expected("put")


def test_certificates_have_rights(tmp_path: Path, elsewhere: Process) -> None:
    authority = Authority(tmp_path)
    section = access_control(
        "deny",
        [rule("all", "allow", "**"), rule("no puts", "deny", "no/*/k", messages=["put"])],
        [subject("near", cert_common_names=["near"]), subject("far", cert_common_names=["far"])],
        [applying(["all", "no puts"], ["near"]), applying(["all"], ["far"])],
    )

    def papers(name: str, side: str) -> Plain:
        paper = authority.sign(f"{name}-{next(numbers)}", name)
        return {
            "transport__link__tls": {
                "root_ca_certificate": str(authority.path),
                "enable_mtls": True,
                f"{side}_certificate": str(paper.certificate),
                f"{side}_private_key": str(paper.key),
            }
        }

    seen = []
    for router in (Peer(OURS), elsewhere.node(f"router {next(numbers)}")):
        place = f"tls/127.0.0.1:{free_port()}"
        said = papers("router", "listen")
        router.open("router", listen__endpoints=[place], access_control=section, **said)
        pair = elsewhere.node(f"near {next(numbers)}"), elsewhere.node(f"far {next(numbers)}")
        for client, name in zip(pair, ("near", "far"), strict=True):
            connect(client, place, "client", **papers(name, "connect"))
        seen.append(nine(*pair))
        for client in (*pair, router):
            client.close()
    assert seen[0] == seen[1] == expected("put")


@pytest.mark.parametrize("within", ["ours", "theirs"])
def test_a_namespace_is_the_same_on_both_sides(within: str, elsewhere: Process) -> None:
    """One session in a namespace, of either kind; one of theirs in the same; one in none."""
    router = elsewhere.node(f"router {next(numbers)}")
    place = listen(router, "router")
    inner = Peer(OURS) if within == "ours" else elsewhere.node(f"inner {next(numbers)}")
    fellow, outer = (elsewhere.node(f"{name} {next(numbers)}") for name in ("fellow", "outer"))
    connect(inner, place, "client", namespace="site/a")
    connect(fellow, place, "client", namespace="site/a")
    connect(outer, place, "client")
    for peer in (inner, fellow, outer):
        peer.subscribe("s", "**")
    fellow.queryable("q", "far", [{"key": "far", "payload": "far"}])
    outer.queryable("q", "site/a/out", [{"key": "site/a/out", "payload": "out"}])
    inner.queryable("q", "near", [{"key": "near", "payload": "near"}])
    fence(inner, fellow, outer)
    inner.put("pose", "1")
    fellow.put("goal", "2")
    outer.put("site/a/other", "3")
    outer.put("site/b/other", "4")
    outer.put("other", "5")
    inner.token("t", "alive")
    answers = [
        sorted((one["key"], one["payload"]) for one in inner.get("*")),
        sorted((one["key"], one["payload"]) for one in fellow.get("near")),
        sorted((one["key"], one["payload"]) for one in outer.get("site/*/near")),
    ]
    fence(inner, fellow, outer)
    outer.put("site/a/end", "")
    heard = [
        sorted((one["key"], one["payload"]) for one in peer.take_until("s", end)[:-1])
        for peer, end in ((inner, "end"), (fellow, "end"), (outer, "site/a/end"))
    ]
    inside = [("goal", "2"), ("other", "3"), ("pose", "1")]
    assert heard[0] == inside
    assert heard[1] == inside
    assert heard[2] == [
        ("other", "5"), ("site/a/goal", "2"), ("site/a/other", "3"), ("site/a/pose", "1"),
        ("site/b/other", "4"),
    ]  # fmt: skip
    assert answers == [
        [("far", "far"), ("near", "near"), ("out", "out")],
        [("near", "near")],
        [("site/a/near", "near")],
    ]
    assert fellow.alive("*") == ["alive"]
    assert outer.alive("**") == ["site/a/alive"]
    for peer in (inner, fellow, outer, router):
        peer.close()
