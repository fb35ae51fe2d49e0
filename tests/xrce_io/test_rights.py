"""What devices of the 2018 protocol may do is what the rules say of their user, at any moment."""

from __future__ import annotations

from zenlake.config import Config
from zenlake.keys.asker import named_asker
from zenlake.routing.policy.messages import EGRESS, INGRESS, PUT, REPLY
from zenlake.routing.policy.policy import Policy
from zenlake.xrce_io.rights import DeviceRights

RULES = """{access_control: {
    enabled: true, default_permission: "allow",
    rules: [{id: "r", permission: "deny", key_exprs: ["secret/**"], messages: ["put", "reply"]}],
    subjects: [{id: "s", usernames: ["devices"]}],
    policies: [{rules: ["r"], subjects: ["s"]}],
}}"""


def rights(username: str) -> tuple[DeviceRights, list[tuple[str, str]]]:
    policy = Policy.of(Config.from_json5(RULES).resolved)
    told: list[tuple[str, str]] = []
    return DeviceRights(username, lambda: policy, lambda key, why: told.append((key, why))), told


def test_a_message_that_a_rule_denies_is_stopped_counted_and_told() -> None:
    devices, told = rights("devices")
    assert devices.may(INGRESS, PUT, "open/key")
    assert not devices.may(INGRESS, PUT, "secret/key")
    assert not devices.may(EGRESS, REPLY, "secret/key")
    assert not devices.may(INGRESS, PUT, "**"), "it would change secret/key"
    assert devices.may(INGRESS, PUT, "open/**")
    assert devices.stopped == 3
    [(key, why), _, _] = told
    assert key == "secret/key"
    assert "put" in why
    assert "rule 'r' denies it" in why


def test_rules_for_others_do_not_concern_devices() -> None:
    devices, told = rights("")
    assert devices.may(INGRESS, PUT, "secret/key")
    assert not told


def test_a_question_about_many_keys_says_which_may_be_in_its_answer() -> None:
    devices, _ = rights("devices")
    others, _ = rights("")
    assert "_readable" not in others.restricted("@lake/sql", "q=SELECT 1")
    assert "_readable" in devices.restricted("@lake/sql", "q=SELECT 1")
    assert devices.restricted("some/key", "") == ""


def test_all_devices_are_one_asker() -> None:
    devices, _ = rights("devices")
    name = named_asker(devices.restricted("@lake/sql", ""))
    assert name
    assert named_asker(devices.restricted("some/key", "_asker=me;_limit=1")) == name
    assert devices.restricted("some/key", "_asker=me") == ""


def test_another_policy_holds_from_the_next_message_on() -> None:
    policies = [Policy()]
    devices = DeviceRights("devices", lambda: policies[-1], lambda key, why: None)
    assert devices.may(INGRESS, PUT, "secret/key")
    policies.append(Policy.of(Config.from_json5(RULES).resolved))
    assert not devices.may(INGRESS, PUT, "secret/key")
