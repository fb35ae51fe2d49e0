"""What devices of the 2018 protocol may do: access control, as for any neighbour.

The bridge speaks as a program of its router, which no rule concerns; so it asks here first. All
devices are one neighbour, of the user that the configuration names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from zenlake.routing.policy.messages import KINDS
from zenlake.routing.policy.policy import Policy
from zenlake.routing.policy.rights import SubjectRights
from zenlake.routing.policy.subject import Subject

__all__ = ["DeviceRights"]


class DeviceRights:
    """Decides what passes between devices and 1.x, by the policy that holds at that moment.

    Args:
        username: who devices are to the rules; empty: somebody without a name.
        policy: gives the policy of the router, which may change while it runs.
        denied: told the key and the reason of each message that was stopped.
    """

    def __init__(
        self, username: str, policy: Callable[[], Policy], denied: Callable[[str, str], None]
    ) -> None:
        self._rights = SubjectRights(Subject(username=username or None), policy)
        self._denied = denied
        self._asker = secrets.token_hex(8)
        #: How many messages were stopped.
        self.stopped = 0

    def may(self, flow: int, kind: int, key: str) -> bool:
        """Whether a message passes; one that does not is counted and told."""
        if self._rights.may(flow, kind, key):
            return True
        self.stopped += 1
        why = self._rights.reason(flow, kind, key)
        self._denied(key, f"{KINDS[kind]} of devices of 2018: {why}")
        return False

    def restricted(self, key: str, parameters: str) -> str:
        """Return the parameters of a query, with its asker and the keys that may be in its answer.

        All devices are one asker.
        """
        return self._rights.restricted(key, parameters, self._asker)
