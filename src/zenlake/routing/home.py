"""What the tables report to the node that they belong to: changes, and queries for its programs."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from zenlake.routing.face import Face, InterestOut, QueryBranch
from zenlake.wire.codec_network import TimestampStack
from zenlake.wire.codec_zenoh import Query


@mypyc_attr(allow_interpreted_subclasses=True)
class Home:
    """The node as its tables see it; this one ignores what they report."""

    def changed(self, kind: int, key: str, face: Face, added: bool) -> None:
        """An entity was declared or undeclared."""

    def interest_final(self, interest: InterestOut) -> None:
        """An interest of our own programs has been answered."""

    def token_present(self, interest: InterestOut, key: str) -> None:
        """A token is alive now, says the reply to a query of our own programs."""

    def deliver_query(self, branch: QueryBranch, key: str, body: Query, target: int) -> None:
        """A query for our own queryables; each reply goes to `Queries.reply`."""

    def time(self) -> float:
        """What time it is, as far as the node was told."""
        return 0.0

    def stamped(self, stack: TimestampStack, point: int) -> TimestampStack:
        """The times of a message, with ours if it is wanted at this point."""
        return stack
