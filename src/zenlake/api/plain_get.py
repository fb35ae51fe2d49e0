"""`Session.get` without options: what most queries are, compiled."""

from __future__ import annotations

from typing import Final

from zenlake.api.core import SessionCore
from zenlake.api.entity import receiver_of
from zenlake.api.reply import GetReplyQueue
from zenlake.engine.locked import LockedNode
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME
from zenlake.keys.selector import Selector
from zenlake.values.qos import QOS_BLOCK, QOS_DEFAULT

#: How many selectors are remembered.
SELECTORS: Final = 1 << 10
#: The QoS byte of a query without options: priority DATA, congestion control BLOCK.
QOS: Final = QOS_DEFAULT | QOS_BLOCK


class ParsedSelector:
    """A selector in the parts that a query is made of."""

    __slots__ = ("any_key", "key", "parameters", "timed")

    def __init__(self, text: str) -> None:
        """Raises what a selector raises that makes no sense."""
        selector = Selector(text)
        parameters = selector.parameters
        self.key: str = str(selector.key_expr)
        self.parameters: str = str(parameters)
        self.any_key: bool = ANY_KEY_EXPR in parameters
        self.timed: bool = TIME in parameters


class PlainGets:
    """Sends queries for a session, which it does not hold: programs let go of sessions."""

    __slots__ = ("_selectors", "_timeout")

    def __init__(self, timeout: float) -> None:
        """`timeout`: how long replies may take, in seconds."""
        self._timeout: float = timeout
        self._selectors: dict[str, ParsedSelector] = {}

    def get(self, session: SessionCore, selector: str, handler: object) -> object:
        """Send a query, and give the handler that the replies come to."""
        parsed = self._selectors.get(selector)
        if parsed is None:
            parsed = ParsedSelector(selector)
            if len(self._selectors) >= SELECTORS:
                self._selectors = {}
            self._selectors[selector] = parsed
        receiver = receiver_of(session, handler, "Reply", parsed.key)
        with LockedNode(session.runtime) as node:
            node.local.get(
                parsed.key,
                parsed.parameters,
                GetReplyQueue(receiver.channel),
                any_key=parsed.any_key,
                timeout=self._timeout,
                qos=QOS,
                timed=parsed.timed,
            )
        return receiver.handler
