from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import all_expressions, expressions
from tests.routing.policies import (
    EVERY_MESSAGE,
    access_control,
    applying,
    policy_of,
    rule,
    settings_of,
    subject,
)
from tests.steps import steps
from zenlake.clock import ZenohId
from zenlake.keys import Parameters
from zenlake.keys.matching import chunk_includes, includes, intersects, is_wild
from zenlake.keys.readable import ReadableKeys
from zenlake.routing.policy import EGRESS, FLOWS, INGRESS, KINDS, Access, Subject
from zenlake.routing.policy.access import RULE_SETS, AccessRules, covers

PUT = KINDS.index("put")
QUERY = KINDS.index("query")
SUBSCRIBE = KINDS.index("declare_subscriber")
DELETE = KINDS.index("delete")
NOBODY = Subject()


def access(
    default: str,
    rules: list[dict[str, object]],
    subjects: list[dict[str, object]],
    policies: list[dict[str, object]],
    who: Subject = NOBODY,
) -> Access:
    section = access_control(default, rules, subjects, policies)
    found = policy_of(access_control=section).access_of(who)
    assert found is not None
    return found


def for_all(default: str, *rules: dict[str, object], who: Subject = NOBODY) -> Access:
    """Rules for everybody."""
    names = [str(item["id"]) for item in rules]
    return access(default, list(rules), [subject("all")], [applying(names, ["all"])], who)


# --- the sentences of the specification -----------------------------------------------------------


def test_it_is_off_until_it_is_enabled() -> None:
    assert policy_of().access_of(NOBODY) is None
    section = access_control("deny", [], [], []) | {"enabled": False}
    assert policy_of(access_control=section).for_neighbour(NOBODY) is None


def test_the_default_permission_is_to_deny() -> None:
    found = policy_of(access_control={"enabled": True}).access_of(NOBODY)
    assert found is not None
    assert not found.permits(INGRESS, PUT, "a")


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_without_any_policy_the_default_holds(default: str) -> None:
    told = access(default, [rule("r", "deny", "**")], [subject("all")], [])
    assert told.permits(INGRESS, PUT, "a") is (default == "allow")


def test_a_deny_rule_wins_over_an_allow_rule() -> None:
    told = for_all("deny", rule("all", "allow", "**"), rule("secret", "deny", "secret/**"))
    assert told.permits(INGRESS, PUT, "open/x")
    assert not told.permits(INGRESS, PUT, "secret/x")


def test_a_deny_rule_wins_over_the_default() -> None:
    told = for_all("allow", rule("secret", "deny", "secret/**"))
    assert told.permits(INGRESS, PUT, "open/x")
    assert not told.permits(INGRESS, PUT, "secret/x")


def test_an_allow_rule_is_no_exception_from_a_deny_rule() -> None:
    told = for_all("allow", rule("all", "deny", "a/**"), rule("one", "allow", "a/b"))
    assert not told.permits(INGRESS, PUT, "a/b")


def test_only_rules_that_include_the_whole_key_speak() -> None:
    told = for_all("deny", rule("r", "allow", "a/*"))
    assert told.permits(INGRESS, SUBSCRIBE, "a/*")
    assert not told.permits(INGRESS, SUBSCRIBE, "a/**")
    told = for_all("allow", rule("r", "deny", "a/*"))
    assert told.permits(INGRESS, SUBSCRIBE, "a/**")


def test_a_subscriber_to_everything_needs_a_rule_for_everything() -> None:
    assert not for_all("deny", rule("r", "allow", "a/**", "b/**")).permits(INGRESS, SUBSCRIBE, "**")
    assert for_all("deny", rule("r", "allow", "**")).permits(INGRESS, SUBSCRIBE, "**")


def test_a_rule_concerns_both_flows_unless_it_says_which() -> None:
    both = for_all("deny", rule("r", "allow", "**"))
    assert both.permits(INGRESS, PUT, "a")
    assert both.permits(EGRESS, PUT, "a")
    one = for_all("deny", rule("r", "allow", "**", flows=["egress"]))
    assert not one.permits(INGRESS, PUT, "a")
    assert one.permits(EGRESS, PUT, "a")


@pytest.mark.parametrize("message", EVERY_MESSAGE)
def test_a_rule_concerns_the_messages_that_it_lists(message: str) -> None:
    told = for_all("deny", rule("r", "allow", "**", messages=[message]))
    assert [name for kind, name in enumerate(KINDS) if told.permits(INGRESS, kind, "a")] == [
        message
    ]


def test_a_subject_is_every_combination_of_its_properties() -> None:
    group = subject("s", interfaces=["eth0", "eth1"], usernames=["ann", "bob"])
    policy = [applying(["r"], ["s"])]
    for interface, user in itertools.product(["eth0", "eth1", "lo"], ["ann", "bob", "eve", None]):
        told = access(
            "deny",
            [rule("r", "allow", "**")],
            [group],
            policy,
            Subject(interfaces=(interface,), username=user),
        )
        expected = interface != "lo" and user in ("ann", "bob")
        assert told.permits(INGRESS, PUT, "a") is expected


@pytest.mark.parametrize(
    ("property", "value", "who"),
    [
        ("interfaces", "eth0", Subject(interfaces=("lo", "eth0"))),
        ("cert_common_names", "ann", Subject(cert_common_names=("ann", "bob"))),
        ("usernames", "ann", Subject(username="ann")),
        ("link_protocols", "tls", Subject(link_protocol="tls")),
        ("zids", "ab1", Subject(zid=ZenohId.parse("ab1"))),
    ],
)
def test_a_property_that_is_listed_must_be_there(property: str, value: str, who: Subject) -> None:
    one = [subject("s", **{property: [value]})]
    arguments = ("deny", [rule("r", "allow", "**")], one, [applying(["r"], ["s"])])
    assert access(*arguments, who).permits(INGRESS, PUT, "a")
    assert not access(*arguments, NOBODY).permits(INGRESS, PUT, "a")


def test_of_several_subjects_one_that_allows_is_enough() -> None:
    told = access(
        "deny",
        [rule("yes", "allow", "a/**"), rule("no", "deny", "a/**")],
        [subject("by-user", usernames=["ann"]), subject("by-link", link_protocols=["tcp"])],
        [applying(["yes"], ["by-user"]), applying(["no"], ["by-link"])],
        Subject(username="ann", link_protocol="tcp"),
    )
    assert told.permits(INGRESS, PUT, "a/b")


def test_with_the_default_to_allow_a_subject_without_rules_is_enough() -> None:
    told = access(
        "allow",
        [rule("no", "deny", "a/**")],
        [subject("all"), subject("ann", usernames=["ann"])],
        [applying(["no"], ["all"])],
        Subject(username="ann"),
    )
    assert told.permits(INGRESS, PUT, "a/b")


def test_equal_identities_of_two_subjects_are_one_and_its_deny_rule_wins() -> None:
    rules = [rule("yes", "allow", "**"), rule("no", "deny", "secret/**")]
    subjects = [subject("staff", usernames=["ann", "bob"]), subject("ann", usernames=["ann"])]
    policies = [applying(["yes"], ["staff"]), applying(["no"], ["ann"])]
    ann = access("deny", rules, subjects, policies, Subject(username="ann"))
    bob = access("deny", rules, subjects, policies, Subject(username="bob"))
    assert not ann.permits(INGRESS, PUT, "secret/x")
    assert bob.permits(INGRESS, PUT, "secret/x")


def test_a_neighbour_that_no_subject_matches_gets_the_default() -> None:
    rules = [rule("r", "deny", "**")]
    for default in ("allow", "deny"):
        told = access(default, rules, [subject("s", usernames=["ann"])], [applying(["r"], ["s"])])
        assert told.permits(INGRESS, PUT, "a") is (default == "allow")


@pytest.mark.parametrize("default", ["allow", "deny"])
def test_a_message_without_a_key_is_denied(default: str) -> None:
    told = for_all(default, rule("r", "deny", "a"), rule("s", "allow", "**"))
    assert not told.permits(INGRESS, QUERY, "")


def test_wildcards_do_not_reach_keys_that_begin_with_an_at_sign() -> None:
    told = for_all("deny", rule("r", "allow", "**"))
    assert not told.permits(INGRESS, PUT, "@/router/config")


# --- inclusion, read for safety ------------------------------------------------------------------


def test_an_allow_rule_includes_no_more_than_it_did_in_eclipse_zenoh() -> None:
    assert includes("*/**", "**/x")
    assert not for_all("deny", rule("r", "allow", "*/**")).permits(INGRESS, SUBSCRIBE, "**/x")


def test_a_deny_rule_includes_all_that_it_says() -> None:
    assert not for_all("allow", rule("r", "deny", "*/**")).permits(INGRESS, SUBSCRIBE, "**/x")


def test_the_narrow_reading_is_eclipses_on_every_small_pair() -> None:
    every = [text.split("/") for text in all_expressions(2)]
    wrong = [(a, b) for a in every for b in every if covers(a, b) is not covers_slowly(a, b)]
    assert wrong == []


@given(expressions(5), expressions(5))
def test_the_narrow_reading_is_eclipses_and_within_the_wide_one(a: str, b: str) -> None:
    narrow = covers(a.split("/"), b.split("/"))
    assert narrow is covers_slowly(a.split("/"), b.split("/"))
    assert not narrow or includes(a, b)


@given(expressions(5))
def test_every_expression_covers_itself(a: str) -> None:
    assert covers(a.split("/"), a.split("/"))


def covers_slowly(a: list[str], b: list[str]) -> bool:
    if not a:
        return not b
    if a[0] == "**":
        swallow = bool(b) and not b[0].startswith("@") and covers_slowly(a, b[1:])
        return covers_slowly(a[1:], b) or swallow
    if not b or b[0] == "**":
        return False
    return chunk_includes(a[0], b[0]) and covers_slowly(a[1:], b[1:])


# --- against brute force -------------------------------------------------------------------------

VALUES: dict[str, list[str]] = {
    "interfaces": ["e0", "e1"],
    "cert_common_names": ["c", "d"],
    "usernames": ["u", "v"],
    "link_protocols": ["tcp", "tls"],
    "zids": ["1", "2"],
}


@dataclass(frozen=True)
class Case:
    default: str
    rules: list[dict[str, object]]
    subjects: list[dict[str, object]]
    policies: list[dict[str, object]]
    who: dict[str, list[str]]
    key: str


def some_of(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    keys = st.one_of(expressions(3), st.sampled_from(["a", "a/b", "**", "a/**", "*/**", "**/b"]))
    rules = [
        rule(
            f"r{number}",
            draw(st.sampled_from(["allow", "deny"])),
            *draw(st.lists(keys, min_size=1, max_size=3)),
            messages=draw(some_of(["put", "declare_subscriber", "query", "reply"])),
            flows=draw(st.none() | some_of(["ingress", "egress"])),
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    subjects = [
        subject(f"s{number}", **{name: draw(some_of(VALUES[name])) for name in listed})
        for number in range(draw(st.integers(0, 4)))
        for listed in [draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=2))]
    ]
    policies = []
    if rules and subjects:
        policies = [
            applying(
                draw(some_of([str(item["id"]) for item in rules])),
                draw(some_of([str(item["id"]) for item in subjects])),
            )
            for _ in range(draw(st.integers(0, 4)))
        ]
    single = {"usernames", "link_protocols", "zids"}
    who = {
        name: draw(st.lists(st.sampled_from(values), max_size=1 if name in single else 2))
        for name, values in VALUES.items()
    }
    default = draw(st.sampled_from(["allow", "deny"]))
    return Case(default, rules, subjects, policies, who, draw(keys))


def texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def decided_slowly(case: Case, flow: str, message: str) -> bool:
    """Every identity of every subject written out, every rule looked at."""
    combined: dict[tuple[str | None, ...], list[dict[str, object]]] = {}
    of_subject: dict[str, list[tuple[str | None, ...]]] = {}
    for item in case.subjects:
        lists: list[list[str | None]] = [
            list(texts(item[name])) if name in item else [None] for name in VALUES
        ]
        of_subject[str(item["id"])] = list(itertools.product(*lists))
        for identity in of_subject[str(item["id"])]:
            combined.setdefault(identity, [])
    by_id = {str(item["id"]): item for item in case.rules}
    for policy in case.policies:
        for rule_id, subject_id in itertools.product(
            texts(policy["rules"]), texts(policy["subjects"])
        ):
            for identity in of_subject[subject_id]:
                combined[identity].append(by_id[rule_id])
    its: list[list[str | None]] = [[*case.who[name]] or [None] for name in VALUES]
    faces = list(itertools.product(*its))
    decisions = [
        identity_decides(rules, case, flow, message)
        for identity, rules in combined.items()
        if any(
            all(wanted is None or wanted == has for wanted, has in zip(identity, face, strict=True))
            for face in faces
        )
    ]
    return any(decisions) if decisions else case.default == "allow"


def identity_decides(rules: list[dict[str, object]], case: Case, flow: str, message: str) -> bool:
    speaking = [
        (item["permission"], key)
        for item in rules
        if message in texts(item["messages"])
        and (item["flows"] is None or flow in texts(item["flows"]))
        for key in texts(item["key_exprs"])
    ]
    # A put of many keys is denied if it means one key that is.
    meets = intersects if message in ("put", "delete") else includes
    if any(what == "deny" and meets(key, case.key) for what, key in speaking):
        return False
    if case.default == "allow":
        return True
    chunks = case.key.split("/")
    return any(what == "allow" and covers_slowly(key.split("/"), chunks) for what, key in speaking)


@given(cases())
def test_decisions_are_those_of_brute_force(case: Case) -> None:
    who = Subject(
        interfaces=tuple(case.who["interfaces"]),
        cert_common_names=tuple(case.who["cert_common_names"]),
        username=next(iter(case.who["usernames"]), None),
        link_protocol=next(iter(case.who["link_protocols"]), None),
        zid=next((ZenohId.parse(text) for text in case.who["zids"]), None),
    )
    told = access(case.default, case.rules, case.subjects, case.policies, who)
    for flow, name in enumerate(FLOWS):
        for kind in (PUT, SUBSCRIBE, QUERY):
            expected = decided_slowly(case, name, KINDS[kind])
            assert told.permits(flow, kind, case.key) is expected
            explained = told.explain(flow, kind, case.key)
            assert explained.allowed is expected
            assert explained.sentence()
            if not told.may_refuse(flow):
                assert expected
            deciding = explained.deciding
            if deciding is not None and deciding.rule is not None:
                named = next(item for item in case.rules if item["id"] == deciding.rule)
                assert named["permission"] == ("allow" if expected else "deny")
                assert deciding.key_expr is not None
                if deciding.in_part:
                    assert kind == PUT
                    assert is_wild(case.key)
                    assert intersects(deciding.key_expr, case.key)
                else:
                    assert includes(deciding.key_expr, case.key)
    readable = told.readable()
    if not is_wild(case.key):
        asked = decided_slowly(case, "ingress", "query")
        replied = decided_slowly(case, "egress", "reply")
        assert readable.lets(case.key) is (asked and replied)
        # For what acts later, whatever the order of the rules.
        assert told.rights().readable.lets(case.key) is (asked and replied)
        put = decided_slowly(case, "ingress", "put")
        assert told.rights().writable.lets(case.key) is put
        # What is granted lacks nothing but what rules deny.
        assert readable.granted().lets(case.key) >= readable.lets(case.key)
    said = Parameters(readable.restrict("_readable=W10;_sql=SELECT 1"))
    assert ReadableKeys.in_parameters(said) == readable
    assert said.get("_sql") == "SELECT 1"


@pytest.mark.parametrize(
    ("key", "passes"),
    [
        ("**", False),
        ("*/a", False),
        ("secret/*", False),
        ("s$*/**", False),
        ("free/**", True),
        ("free/*/secret", True),
        ("*", False),
        ("*/secret/a", False),
        ("free/secret/*", True),
        ("secret/a", False),
        ("free/a", True),
        ("@/**", True),
    ],
)
@pytest.mark.parametrize("default", ["allow", "deny"])
def test_a_write_of_many_keys_needs_the_right_to_write_each_of_them(
    default: str, key: str, passes: bool
) -> None:
    every = rule("all", "allow", "**", "@/**", messages=["put", "delete", "declare_subscriber"])
    no = rule("no", "deny", "secret/**", messages=["put", "delete", "declare_subscriber"])
    applied = [applying(["all", "no"], ["s"])]
    told = access(default, [every, no], [subject("s")], applied, Subject())
    for flow in (INGRESS, EGRESS):
        for kind in (PUT, DELETE):
            assert told.permits(flow, kind, key) is passes
            assert told.explain(flow, kind, key).allowed is passes
    wider = is_wild(key) and key != "secret/*"
    if wider:  # as in Eclipse: what is told to a subscriber is judged by its own key
        assert told.permits(INGRESS, SUBSCRIBE, key)


def test_a_write_of_many_keys_is_told_what_to_do_instead() -> None:
    no = rule("no", "deny", "secret/**", messages=["delete"])
    told = access("allow", [no], [subject("s")], [applying(["no"], ["s"])], Subject())
    assert told.explain(INGRESS, DELETE, "**").sentence() == (
        "rule 'no' denies keys of secret/**, and this is a write of many keys that would change "
        "them, for subject 's', by policy '#1'; write to keys, or to a key expression without those"
    )


# --- explanations --------------------------------------------------------------------------------


def test_the_deciding_rule_subject_and_policy_are_named() -> None:
    told = access(
        "deny",
        [rule("publish", "allow", "robot/**"), rule("hush", "deny", "robot/*/secret")],
        [subject("staff", usernames=["ann", "bob"]), subject("guests", usernames=["eve"])],
        [applying(["publish", "hush"], ["staff"], id="work"), applying(["hush"], ["guests"])],
        Subject(username="ann"),
    )
    assert told.explain(INGRESS, PUT, "robot/1/pose").sentence() == (
        "rule 'publish' allows it by robot/**, for subject 'staff', by policy 'work'"
    )
    assert told.explain(INGRESS, PUT, "robot/1/secret").sentence() == (
        "rule 'hush' denies it by robot/*/secret, for subject 'staff', by policy 'work'"
    )
    assert told.explain(INGRESS, PUT, "car/1").sentence() == (
        "no rule allows it for subject 'staff'; by default it is denied"
    )


def test_of_rules_that_agree_the_first_policy_is_named() -> None:
    rules = [rule("b", "allow", "a/**"), rule("a", "allow", "**")]
    told = access("deny", rules, [subject("s")], [applying(["b"], ["s"]), applying(["a"], ["s"])])
    deciding = told.explain(INGRESS, PUT, "a/b").deciding
    assert deciding is not None
    assert (deciding.rule, deciding.policy, deciding.key_expr) == ("b", "#1", "a/**")


def test_a_silent_configuration_is_explained() -> None:
    nobody = access("allow", [], [], [])
    assert nobody.explain(INGRESS, PUT, "a").sentence() == (
        "no subject matches the neighbour; by default it is allowed"
    )
    assert nobody.explain(INGRESS, PUT, "").sentence() == (
        "it names no key expression that a rule could include"
    )
    default = for_all("allow", rule("r", "deny", "b"))
    assert default.explain(INGRESS, PUT, "a").sentence() == (
        "no rule denies it for subject 'all'; by default it is allowed"
    )


# --- hostile -------------------------------------------------------------------------------------


def test_twenty_thousand_keys_are_as_quick_as_one() -> None:
    def searched(size: int) -> tuple[int, int]:
        keys = [f"robot/{number}/**" for number in range(size)]
        told = for_all("deny", rule("r", "allow", *keys, messages=["put"]))
        for number in range(0, size, 200):
            assert told.permits(INGRESS, PUT, f"robot/{number}/x")
            assert not told.permits(INGRESS, PUT, f"car/{number}/x")
        return (
            steps(told.permits, INGRESS, PUT, "robot/0/y"),
            steps(told.permits, INGRESS, PUT, "car/0/y"),
        )

    assert searched(20_000) == searched(1)


def test_long_keys_full_of_wildcards_are_decided_at_once() -> None:
    long = "/".join(["a", "**"] * 5000 + ["b"])
    told = for_all(
        "deny",
        rule("r", "allow", "**/a/**/a/**/a/**/c", "*/**"),
        rule("s", "deny", "**/a/**/a/**/a/**/c", "**/$*a$*a$*a$*b/**"),
    )
    for key, permitted in ((long + "/c", False), (long, True), ("**/" + long, False)):
        assert told.permits(INGRESS, SUBSCRIBE, key) is permitted
        assert steps(told.permits, INGRESS, SUBSCRIBE, key) < 20 * len(key)


def test_subjects_with_long_lists_are_not_multiplied_out() -> None:
    many = subject(
        "s",
        interfaces=[f"e{number}" for number in range(300)],
        usernames=[f"u{number}" for number in range(300)],
        cert_common_names=[f"c{number}" for number in range(300)],
    )
    who = Subject(interfaces=("e299",), username="u299", cert_common_names=("c299",))

    def decide() -> None:
        told = access("deny", [rule("r", "allow", "**")], [many], [applying(["r"], ["s"])], who)
        assert told.permits(INGRESS, PUT, "a")

    assert steps(decide) < 1000 * 3 * 300  # multiplied out these are 27 million subjects


def test_neighbours_that_match_alike_share_their_rules() -> None:
    section = access_control(
        "deny", [rule("r", "allow", "**")], [subject("s")], [applying(["r"], ["s"])]
    )
    policy = policy_of(access_control=section)
    one, other = policy.access_of(Subject(username="a")), policy.access_of(Subject(username="b"))
    assert one is not None
    assert other is not None
    assert one.rule_sets[0] is other.rule_sets[0]


def test_compiled_rules_are_kept_for_so_many_combinations_only() -> None:
    names = [f"u{number}" for number in range(RULE_SETS + 2)]
    section = access_control(
        "deny",
        [rule("r", "allow", "a")],
        [subject(name, usernames=[name]) for name in names],
        [applying(["r"], names)],
    )
    rules = AccessRules(settings_of(access_control=section).access_control)
    for name in names:
        assert rules.for_neighbour(Subject(username=name)).permits(INGRESS, PUT, "a")
        assert len(rules._rule_sets) <= RULE_SETS
