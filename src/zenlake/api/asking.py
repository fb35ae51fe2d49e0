"""Questions without options: what most of them are, on the shortest way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenlake.api.entity import receiver_of
from zenlake.api.reply import GetReplyQueue
from zenlake.engine.locked import LockedNode
from zenlake.keys.parameters import ANY_KEY_EXPR, TIME
from zenlake.keys.selector import Selector
from zenlake.values.qos import QOS_BLOCK, QOS_DEFAULT

if TYPE_CHECKING:
    from zenlake.api.session import Session

#: How many selectors are remembered.
SELECTORS: Final = 1 << 10
#: In order, data priority, not to be dropped: the byte of the wire for a question.
QOS: Final = QOS_DEFAULT | QOS_BLOCK


class Asked:
    """A selector that was read."""

    __slots__ = ("any_key", "key", "parameters", "timed")

    def __init__(self, text: str) -> None:
        """Raises what a selector raises that makes no sense."""
        selector = Selector(text)
        parameters = selector.parameters
        self.key: str = str(selector.key_expr)
        self.parameters: str = str(parameters)
        self.any_key: bool = ANY_KEY_EXPR in parameters
        self.timed: bool = TIME in parameters


class PlainQuestions:
    """Asks for a session, which it does not hold: programs let go of sessions."""

    __slots__ = ("_asked", "_timeout")

    def __init__(self, timeout: float) -> None:
        """`timeout`: how long answers may take, in seconds."""
        self._timeout: float = timeout
        self._asked: dict[str, Asked] = {}

    def ask(self, session: Session, selector: str, handler: object) -> object:
        """Ask, and give the handler that the answers come to."""
        asked = self._asked.get(selector)
        if asked is None:
            asked = Asked(selector)
            if len(self._asked) >= SELECTORS:
                self._asked = {}
            self._asked[selector] = asked
        receiver = receiver_of(session, handler, "Reply", asked.key)
        with LockedNode(session._runtime) as node:
            node.local.get(
                asked.key,
                asked.parameters,
                GetReplyQueue(receiver.channel),
                any_key=asked.any_key,
                timeout=self._timeout,
                qos=QOS,
                timed=asked.timed,
            )
        return receiver.handler
