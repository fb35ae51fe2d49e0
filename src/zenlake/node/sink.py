"""The columnar subscriber: rows for a table instead of objects for a program.

An ordinary subscriber is given a `Sample`. A `FrameSink` gives each neighbour a `Lane` of its own,
and the lane reads Push messages where they lie in the batch that brought them: whoever writes
tables can fill whole columns and makes nothing a sample. A lane of a router also gives times to
values that have none, and passes messages on to other neighbours, in the same bytes. What a lane
leaves to others (keys that it has not been told of, messages in pieces, samples of this very node)
comes through `push`, as a `Sample`, in its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from zenlake.node.entities import SampleSink
from zenlake.wire.cursor import Reader

if TYPE_CHECKING:
    from zenlake.node.forward import Inbound, Relay
    from zenlake.node.stamps import Stamps


@mypyc_attr(allow_interpreted_subclasses=True)
class Lane:
    """The way of one neighbour's messages into one sink."""

    def __init__(self) -> None:
        """It knows no key yet."""
        #: The version of the tables that it was told by.
        self.version: int = -1

    def walk(self, r: Reader, reliable: bool) -> int:
        """Take the Push messages that follow; how many. `r` stands before the first not taken.

        A lane raises no error: what it cannot read is left to those who say what is wrong.
        """
        return 0

    def learn(self, scope: int, mine: bool, suffix: str, inbound: Inbound, deletes: bool) -> None:
        """What a Push with this scope (`mine`: of the sender's numbers) and suffix means.

        A lane also passes on what it takes, to the faces of `inbound`. `deletes`: whether it may
        take a Del; else only Put.
        """

    def clear(self) -> None:
        """Names may mean other keys now, or be heard by others."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameSink(SampleSink):
    """A subscriber that reads batches by itself."""

    def lane(self, stamps: Stamps | None, relay: Relay) -> Lane:
        """A lane for one more neighbour.

        With `stamps`, its values are given times or have them checked, as `Stamps` does; `relay`
        is given what others hear too, with the very times that the rows have.
        """
        return Lane()
