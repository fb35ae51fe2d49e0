"""Access control beside that of a real Eclipse Zenoh router with the same configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from tests.routing.policies import access_control, applying, policy_of, rule, subject
from zenlake.keys import is_wild
from zenlake.routing.policy import INGRESS, KINDS, Subject

zenoh = pytest.importorskip("zenoh")

pytestmark = pytest.mark.interop

SUBSCRIBE = KINDS.index("declare_subscriber")
CLIENT = Subject(link_protocol="unixsock-stream")
TWO_RULES = [rule("yes", "allow", "**"), rule("no", "deny", "a/**")]
APART = [applying(["yes"], ["wide"]), applying(["no"], ["unix"])]
UNIX = subject("unix", link_protocols=["unixsock-stream"])


def for_all(default: str, permission: str, key: str) -> dict[str, object]:
    return access_control(
        default, [rule("r", permission, key)], [subject("all")], [applying(["r"], ["all"])]
    )


SAME = {
    "everything for everybody": (for_all("deny", "allow", "**"), "**"),
    "a part is not the whole": (for_all("deny", "allow", "a/**"), "**"),
    "the whole is not a part": (for_all("allow", "deny", "a/*"), "a/**"),
    "allow is read narrowly": (for_all("deny", "allow", "*/**"), "**/x"),
    "denied": (for_all("allow", "deny", "a/**"), "a/x"),
    "no policy": (access_control("deny", TWO_RULES, [UNIX], []), "a/x"),
    "equal identities merge": (
        access_control(
            "deny",
            TWO_RULES,
            [subject("wide", link_protocols=["unixsock-stream", "udp"]), UNIX],
            APART,
        ),
        "a/x",
    ),
    "other identities do not": (
        access_control("deny", TWO_RULES, [subject("wide"), UNIX], APART),
        "a/x",
    ),
    "a subject without rules has the default": (
        access_control("allow", TWO_RULES, [subject("wide"), UNIX], [applying(["no"], ["unix"])]),
        "a/x",
    ),
    "nobody": (
        access_control("allow", TWO_RULES, [subject("s", link_protocols=["tls"])], []),
        "a/x",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_a_subscriber_is_accepted_by_both_or_by_none(name: str, tmp_path: Path) -> None:
    section, key = SAME[name]
    assert ours(section, key) is theirs(section, key, tmp_path)


def test_a_deny_rule_is_read_more_widely_here(tmp_path: Path) -> None:
    section = for_all("allow", "deny", "*/**")
    assert theirs(section, "**/x", tmp_path)
    assert not ours(section, "**/x")


SUBJECTS = [
    subject("all"),
    UNIX,
    subject("both", link_protocols=["unixsock-stream", "tcp"]),
    subject("other", link_protocols=["tcp"]),
]
NAMES = [str(one["id"]) for one in SUBJECTS]
some_keys = st.lists(
    st.one_of(expressions(3), st.sampled_from(["a", "**", "a/**", "*/**"])), min_size=1, max_size=3
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["allow", "deny"]),
    st.lists(
        st.tuples(
            st.sampled_from(["allow", "deny"]),
            some_keys,
            st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
        ),
        min_size=1,
        max_size=4,
    ),
    some_keys,
)
def test_a_migrated_configuration_opens_no_door(
    tmp_path: Path,
    default: str,
    applied: list[tuple[str, list[str], list[str]]],
    keys: list[str],
) -> None:
    rules = [rule(f"r{n}", what, *texts) for n, (what, texts, _) in enumerate(applied)]
    policies = [applying([f"r{n}"], names) for n, (_, _, names) in enumerate(applied)]
    section = access_control(default, rules, SUBJECTS, policies)
    for key in {*keys, applied[0][1][0]}:
        mine, their = ours(section, key), theirs(section, key, tmp_path)
        assert their or not mine
        if not is_wild(key):
            assert mine is their


def ours(section: dict[str, object], key: str) -> bool:
    access = policy_of(access_control=section).access_of(CLIENT)
    assert access is not None
    return access.permits(INGRESS, SUBSCRIBE, key)


def theirs(section: dict[str, object], key: str, folder: Path) -> bool:
    """Whether a real router lets its own publisher know of a client's subscriber."""
    where = f"unixsock-stream/{folder}/router"
    router = zenoh.open(_config("router", {"access_control": section, "listen": where}))
    try:
        client = zenoh.open(_config("client", {"connect": where}))
        try:
            subscriber = client.declare_subscriber(key)
            # The answer to a question that was asked later: the declaration has been heard.
            assert list(client.get("barrier")) == []
            publisher = router.declare_publisher(key)
            matching = bool(publisher.matching_status.matching)
            subscriber.undeclare()
            return matching
        finally:
            client.close()
    finally:
        router.close()


def _config(mode: str, sections: dict[str, object]) -> object:
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/delay", "0")
    for name, value in sections.items():
        if isinstance(value, str):
            config.insert_json5(f"{name}/endpoints", json.dumps([value]))
        else:
            config.insert_json5(name, json.dumps(value))
    return config
