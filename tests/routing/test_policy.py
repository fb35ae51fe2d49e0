from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.keys.oracle import expressions
from tests.routing.policies import access_control, applying, policy_of, rule, subject
from tests.steps import steps
from zenlake.routing.policy import (
    EGRESS,
    INGRESS,
    KINDS,
    Policy,
    PolicyGate,
    PolicyVerdict,
    Subject,
)
from zenlake.routing.policy.gate import REMEMBERED
from zenlake.testing.strategies import messages
from zenlake.wire.codec_declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareSubscriber,
    KeyExt,
    UndeclareSubscriber,
)
from zenlake.wire.codec_network import Declare, Interest, Push, Request, Response
from zenlake.wire.codec_zenoh import Err, Put, Query
from zenlake.wire.declared.network import PAGE
from zenlake.wire.message import Message

PUT = KINDS.index("put")


def walled(default: str = "deny", *rules: dict[str, object], **others: object) -> Policy:
    """A policy with rules for everybody, and perhaps other sections."""
    listed = list(rules) or [rule("open", "allow", "open/**")]
    names = [str(item["id"]) for item in listed]
    section = access_control(default, listed, [subject("all")], [applying(names, ["all"], id="p")])
    return policy_of(access_control=section, **others)


def gate(policy: Policy, flow: int = INGRESS) -> PolicyGate:
    told = policy.for_neighbour(Subject())
    assert told is not None
    found = told.gate(flow)
    assert found is not None
    return found


def put(payload: bytes = b"", attachment: bytes | None = None) -> Push:
    return Push(scope=1, body=Put(payload=payload, attachment=attachment))


# --- nothing to do -------------------------------------------------------------------------------


def test_a_plain_configuration_has_no_interceptors() -> None:
    assert policy_of().for_neighbour(Subject()) is None
    assert Policy().for_neighbour(Subject()) is None


def test_access_control_that_can_refuse_nothing_costs_nothing() -> None:
    assert walled("allow", rule("r", "allow", "a")).for_neighbour(Subject()) is None
    section = access_control("allow", [], [], [])
    assert policy_of(access_control=section).for_neighbour(Subject()) is None


def test_a_flow_in_which_nothing_is_refused_has_no_gate() -> None:
    told = walled("allow", rule("r", "deny", "a", flows=["egress"])).for_neighbour(Subject())
    assert told is not None
    assert told.ingress is None
    assert told.egress is not None
    assert told.allows(INGRESS, PUT, "a", 0.0)
    assert not told.allows(EGRESS, PUT, "a", 0.0)


# --- verdicts ------------------------------------------------------------------------------------


def test_what_is_allowed_passes_and_what_is_denied_is_dropped() -> None:
    one = gate(walled())
    assert one.judge(put(), "open/x", 0.0) is PolicyVerdict.PASS
    assert one.judge(put(), "closed/x", 0.0) is PolicyVerdict.DROP


def test_a_refused_request_is_owed_a_final_by_whatever_refused_it() -> None:
    request = Request(id=1, scope=1, body=Query(attachment=b"abc"))
    sections: list[dict[str, object]] = [
        {"access_control": access_control("deny", [], [], [])},
        {"downsampling": [{"messages": ["query"], "rules": [{"key_expr": "**", "freq": 0}]}]},
        {"low_pass_filter": [{"messages": ["query"], "key_exprs": ["**"], "size_limit": 2}]},
    ]
    for section in sections:
        for flow in (INGRESS, EGRESS):
            assert gate(policy_of(**section), flow).judge(request, "a", 0.0) is (
                PolicyVerdict.RESPONSE_FINAL
            )


def test_a_refused_interest_is_owed_a_final() -> None:
    one = gate(walled())
    interest = Interest(mode=1, id=1, tokens=True, restricted=True, scope=1)
    assert one.judge(interest, "closed/x", 0.0) is PolicyVerdict.DECLARE_FINAL
    assert one.judge(interest, "open/x", 0.0) is PolicyVerdict.PASS


def test_an_interest_in_every_token_there_is_needs_more_than_rules_can_say() -> None:
    unrestricted = Interest(mode=3, id=1, tokens=True)
    everything = gate(walled("deny", rule("r", "allow", "**")))
    assert everything.judge(unrestricted, "", 0.0) is PolicyVerdict.DECLARE_FINAL
    assert everything.judge(Interest(mode=3, id=1, subscribers=True), "", 0.0) is PolicyVerdict.PASS


def test_an_error_without_a_key_is_dropped() -> None:
    error = Response(id=1, scope=0, body=Err(payload=b""))
    assert (
        gate(walled("deny", rule("r", "allow", "**"))).judge(error, "", 0.0) is PolicyVerdict.DROP
    )


def test_what_is_not_filtered_passes_a_closed_gate() -> None:
    one = gate(policy_of(access_control=access_control("deny", [], [], [])))
    for message in (
        Declare(body=DeclareKeyExpr(id=1, scope=0, suffix="a")),
        Declare(body=DeclareFinal()),
        Interest(mode=0, id=1),
    ):
        assert one.judge(message, "a", 0.0) is PolicyVerdict.PASS
    assert one.counters.denied == 0


def test_an_undeclaration_by_number_passes_and_one_by_key_is_judged() -> None:
    one = gate(walled())
    key = KeyExt(scope=1, sender_mapping=True)
    by_number = Declare(body=UndeclareSubscriber(id=1))
    by_key = Declare(body=UndeclareSubscriber(id=1, key=key))
    assert one.judge(by_number, "", 0.0) is PolicyVerdict.PASS
    assert one.judge(by_key, "closed", 0.0) is PolicyVerdict.DROP
    assert one.judge(by_key, "open/x", 0.0) is PolicyVerdict.PASS
    assert one.judge(Declare(body=DeclareSubscriber(id=1, scope=1)), "", 0.0) is PolicyVerdict.DROP


def test_payload_and_attachment_count_together() -> None:
    filters = [{"messages": ["put"], "key_exprs": ["**"], "size_limit": 3}]
    one = gate(policy_of(low_pass_filter=filters))
    assert one.judge(put(b"ab", b"c"), "a", 0.0) is PolicyVerdict.PASS
    assert one.judge(put(b"ab", b"cd"), "a", 0.0) is PolicyVerdict.DROP


@given(messages(PAGE), st.one_of(expressions(3), st.text(max_size=8)))
def test_any_message_on_any_text_gets_a_verdict(message: Message, key: str) -> None:
    one = gate(EVERYTHING)
    told = one.judge(message, key, 0.0)
    assert (told is PolicyVerdict.PASS) is (sum(one.counters.to_dict().values()) == 0)
    assert -1 <= one.qos(message, key, True) <= 0xFF


EVERYTHING = walled(
    "deny",
    rule("open", "allow", "a/**"),
    rule("closed", "deny", "a/b/**"),
    downsampling=[{"messages": ["put", "query"], "rules": [{"key_expr": "a/*", "freq": 0}]}],
    low_pass_filter=[{"messages": ["put", "reply"], "key_exprs": ["**"], "size_limit": 3}],
    qos={"network": [{"messages": ["put"], "overwrite": {"express": True}}]},
)


# --- order, counters, memory ---------------------------------------------------------------------


def test_a_message_that_is_refused_or_too_large_takes_no_turn() -> None:
    one = gate(
        walled(
            "deny",
            downsampling=[{"messages": ["put"], "rules": [{"key_expr": "**", "freq": 1}]}],
            low_pass_filter=[{"messages": ["put"], "key_exprs": ["**"], "size_limit": 3}],
        )
    )
    assert not one.passes(PUT, "closed", 0, 0.0)
    assert not one.passes(PUT, "open/x", 4, 0.0)
    assert one.passes(PUT, "open/x", 3, 0.0)
    assert not one.passes(PUT, "open/x", 3, 0.5)
    assert one.counters.to_dict() == {
        "denied": 1,
        "downsampled": 1,
        "too_large": 1,
        "overwritten": 0,
    }


def test_both_flows_are_counted_apart() -> None:
    told = walled().for_neighbour(Subject())
    assert told is not None
    told.allows(EGRESS, PUT, "closed", 0.0)
    assert told.counts()["ingress"]["denied"] == 0
    assert told.counts()["egress"]["denied"] == 1


def test_text_that_is_no_key_is_denied_where_rules_decide() -> None:
    one = gate(walled("deny", rule("r", "allow", "**")))
    assert [key for key in ("a//b", "/a", "a/**/*", "", "a#") if one.passes(PUT, key, 0, 0.0)] == []


def test_the_same_question_gets_the_same_answer_again() -> None:
    one = gate(walled())
    for _ in range(3):
        assert one.passes(PUT, "open/x", 0, 0.0)
        assert not one.passes(PUT, "closed/x", 0, 0.0)


def test_a_neighbour_with_ever_new_keys_fills_no_memory() -> None:
    one = gate(walled("deny", rule("r", "allow", "open/**")))
    long = "x" * 60_000
    for number in range(200):
        assert one.passes(PUT, f"open/{long}{number}", 0, 0.0)
        kept = sum(len(key) for rulings in one._rulings for key in rulings)
        assert kept <= REMEMBERED
    for number in range(30_000):
        one.passes(PUT, f"closed/{number}", 0, 0.0)
    assert sum(len(rulings) for rulings in one._rulings) < REMEMBERED // 200


def test_a_decision_made_before_is_cheap() -> None:
    keys = [f"robot/{number}/**" for number in range(5_000)]
    one = gate(walled("deny", rule("r", "allow", *keys, messages=["put"])))
    assert one.passes(PUT, "robot/77/pose", 0, 0.0)
    assert steps(one.passes, PUT, "robot/77/pose", 0, 0.0) < 20


# --- explanations --------------------------------------------------------------------------------


def test_all_that_happens_to_a_message_is_told() -> None:
    account = gate(EVERYTHING).explain(PUT, "a/x")
    assert account.access is not None
    assert account.access.allowed
    assert account.sentences() == [
        "rule 'open' allows it by a/**, for subject 'all', by policy 'p'",
        "low-pass filter number 1 drops above 3 bytes by **",
        "downsampling number 1 lets 0 a second pass by a/*",
        "QoS overwrite number 1 sets express True",
    ]


def test_an_explanation_counts_nothing_and_moves_no_clock() -> None:
    rules = [{"key_expr": "**", "freq": 1}]
    one = gate(policy_of(downsampling=[{"id": "slow", "messages": ["put"], "rules": rules}]))
    assert one.explain(PUT, "a").sentences() == ["downsampling 'slow' lets 1 a second pass by **"]
    assert one.passes(PUT, "a", 0, 0.0)
    assert one.counters.downsampled == 0


def test_text_that_is_no_key_can_be_explained_too() -> None:
    account = gate(EVERYTHING).explain(PUT, "")
    assert account.sentences() == ["it names no key expression that a rule could include"]


def test_a_message_that_nothing_concerns_has_no_story() -> None:
    filters = [{"messages": ["put"], "key_exprs": ["a"], "size_limit": 3}]
    assert gate(policy_of(low_pass_filter=filters)).explain(PUT, "b").sentences() == []


@given(st.one_of(expressions(3), st.sampled_from(["a/x", "a/b/c", "a"])), st.sampled_from(KINDS))
def test_what_is_explained_is_what_happens(key: str, message: str) -> None:
    one = gate(EVERYTHING)
    kind = KINDS.index(message)
    access = one.explain(kind, key).access
    assert access is not None
    one.passes(kind, key, 0, 0.0)
    assert access.allowed is (one.counters.denied == 0)
