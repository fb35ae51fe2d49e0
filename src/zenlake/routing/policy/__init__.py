"""What may pass, and how: access control, downsampling, size limits, QoS by key, namespace.

How a node uses it:

    policy = Policy.of(settings)                     # at the start, at each new configuration
    interceptors = policy.for_neighbour(Subject(…))  # when a session opens; None: nothing to do

    gate = interceptors.ingress                      # None: nothing to do in this flow
    verdict = gate.judge(message, key, now)          # before the tables hear of the message
    byte = gate.qos(message, key, reliable)          # the byte to go on with, if it passed

and the same with `interceptors.egress` for each message on its way to the neighbour's outbox.
`key` is the whole key that the message's scope and suffix stand for, checked, and empty where it
names none (an interest that is not restricted, an undeclaration by number). An undeclaration on
its way out is judged with the key of what was declared, so that it goes where the declaration
went. `PolicyVerdict` says what a refusal owes:

    PASS             go on
    DROP             forget it
    RESPONSE_FINAL   in: reply with a RESPONSE_FINAL of the request's id and QoS
                     out: take the request for answered finally by that neighbour
    DECLARE_FINAL    in: reply with a D_FINAL of the interest's id
                     out: take the interest for answered completely by that neighbour

`gate.kinds` has a bit for each kind of message that may be stopped, `gate.rewrites` for each that
may be changed, so that others need no key looked up. A message that `qos` changed cannot be
forwarded as the bytes that came. A new policy means new gates, and with them new clocks and
counters. `gate.counters` counts what was stopped, by reason; `gate.explain` says what would happen
to a message and by which rule.

`policy.namespace` and `policy.publications` are about this node's own session, not about
neighbours: they belong where its programs' keys and options enter and leave the node.
"""

from __future__ import annotations

from zenlake.routing.policy.access import Access, AccessRules, Explanation, Ground
from zenlake.routing.policy.gate import Interceptors, PolicyAccount, PolicyCounters, PolicyGate
from zenlake.routing.policy.messages import (
    EGRESS,
    FLOWS,
    INGRESS,
    KINDS,
    UNFILTERED,
    PolicyVerdict,
    kind_of,
)
from zenlake.routing.policy.namespace import Namespace
from zenlake.routing.policy.policy import Policy
from zenlake.routing.policy.qos_overwrite import PublicationOverwrites
from zenlake.routing.policy.subject import Subject

__all__ = [
    "EGRESS",
    "FLOWS",
    "INGRESS",
    "KINDS",
    "UNFILTERED",
    "Access",
    "AccessRules",
    "Explanation",
    "Ground",
    "Interceptors",
    "Namespace",
    "Policy",
    "PolicyAccount",
    "PolicyCounters",
    "PolicyGate",
    "PolicyVerdict",
    "PublicationOverwrites",
    "Subject",
    "kind_of",
]
