"""The node's own side of its tables: told what changes, asked what others ask."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from zenlake.routing.face import Branch, Face, InterestOut
from zenlake.wire.codec_network import TimestampStack
from zenlake.wire.codec_zenoh import Query


@mypyc_attr(allow_interpreted_subclasses=True)
class Home:
    """Where the node's own programs live; by default it does not care."""

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """Somebody declared or undeclared an entity."""

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of our own programs has been answered."""

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now, says the answer to a question of our own programs."""

    def ask(self, branch: Branch, key: str, body: Query, target: int) -> None:
        """A question for our own queryables; each answer goes to `Queries.answer`."""

    def time(self) -> float:
        """What time it is, as far as the node was told."""
        return 0.0

    def stamped(self, stack: TimestampStack, point: int) -> TimestampStack:
        """The times of a message, with ours if it is wanted at this point."""
        return stack
