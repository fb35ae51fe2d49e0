"""What somebody may do who comes to a node by another way than a session of Zenoh 1.x.

HTTP, WebSockets and the bridge of 2018 speak to the bus as programs of the node, which no rule
concerns. They ask here first, in the words of the messages that a neighbour would have sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from zenlake.keys.asker import with_asker
from zenlake.keys.readable import ALL_KEYS, ReadableKeys, asks_of_many
from zenlake.keys.rights import ALL_RIGHTS, Rights
from zenlake.routing.policy.access import Access
from zenlake.routing.policy.messages import EGRESS, INGRESS, QUERY, REPLY
from zenlake.routing.policy.policy import Policy
from zenlake.routing.policy.subject import Subject

__all__ = ["SubjectRights"]


class _Ruled(NamedTuple):
    """What a policy says of somebody."""

    policy: Policy
    access: Access | None
    readable: ReadableKeys


class SubjectRights:
    """Decides for one subject, by the policy that holds at that moment."""

    __slots__ = ("_policy", "_ruled", "_who")

    def __init__(self, who: Subject, policy: Callable[[], Policy]) -> None:
        """`policy` gives the policy of the node, which may change while it runs."""
        self._who = who
        self._policy = policy
        self._ruled: _Ruled | None = None

    def _rules(self) -> _Ruled:
        policy, ruled = self._policy(), self._ruled
        if ruled is None or ruled.policy is not policy:
            access = policy.access_of(self._who)
            readable = ALL_KEYS if access is None else access.readable()
            # Set at once: several threads may ask.
            ruled = self._ruled = _Ruled(policy, access, readable)
        return ruled

    @property
    def unrestricted(self) -> bool:
        """Whether there are no rules that could stop something."""
        return self._rules().access is None

    @property
    def rights(self) -> Rights:
        """What the subject may read and write, for what acts for it later."""
        access = self._rules().access
        return ALL_RIGHTS if access is None else access.rights()

    def may(self, flow: int, kind: int, key: str) -> bool:
        """Whether a message of this kind passes."""
        access = self._rules().access
        return access is None or access.permits(flow, kind, key)

    def may_read(self, key: str) -> bool:
        """Whether a question about this very key would be answered."""
        return self.may(INGRESS, QUERY, key) and self.may(EGRESS, REPLY, key)

    def reason(self, flow: int, kind: int, key: str) -> str:
        """Why a message passes or not, in a sentence."""
        access = self._rules().access
        if access is None:
            return "access control is not enabled"
        return access.explain(flow, kind, key).sentence()

    def restricted(self, key: str, parameters: str, asker: str) -> str:
        """Return the parameters of a query as the router of a neighbour would pass them on.

        They name the `asker`, and the keys that may be in the answer if not all may.
        """
        readable = self._rules().readable
        if not readable.unrestricted and asks_of_many(key, parameters):
            parameters = readable.restrict(parameters)
        return with_asker(key, parameters, asker)
