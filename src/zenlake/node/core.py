"""What all parts of a node share: its identity, the time, the tables, pending queries, counters.

The parts (programs, routes, sessions) are given this and each other; `node/node.py` puts them
together. Nothing here knows any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from zenlake.node.brake import LoginBrake
from zenlake.node.busy import BusyWatch
from zenlake.node.events import EventQueue, NodeEvent
from zenlake.node.incidents import Incidents
from zenlake.node.narrowed_write import NarrowedWrite
from zenlake.node.rejections import Rejections
from zenlake.node.settings import NodeSettings
from zenlake.node.stamps import Timestamper
from zenlake.node.traffic import DropTotals, Traffic
from zenlake.routing.borders import Borders
from zenlake.routing.face import Face
from zenlake.routing.filters import SampleFilters
from zenlake.routing.home import Home
from zenlake.routing.mesh import Mesh
from zenlake.routing.policy.policy import Policy
from zenlake.routing.queries import Queries
from zenlake.routing.regions import LOCAL, ROUTER
from zenlake.routing.resources import SUBSCRIBER
from zenlake.routing.tables import Tables
from zenlake.transport.budget import MemoryPool
from zenlake.transport.turn import Turn
from zenlake.wire.codec_network import TimestampRecord, TimestampStack

FOREVER: Final = float("inf")

#: The most times that a message carries.
TIMES: Final = 255


class Core(Home):
    """The state of a node that all of its parts read."""

    def __init__(
        self,
        settings: NodeSettings,
        cookie: Callable[[], bytes],
        random: Callable[[], float],
        stamps: Timestamper | None,
    ) -> None:
        """`cookie` gives bytes nobody can guess, `random` a number from 0 to 1.

        With `stamps`, values that pass without a time are given one.
        """
        self.settings: NodeSettings = settings
        self.zid: bytes = settings.zid
        self.mode: int = settings.mode
        self.cookie: Callable[[], bytes] = cookie
        self.random: Callable[[], float] = random
        self.stamps: Timestamper | None = stamps
        #: Takes the time at a point of a message's route; None: no program here does.
        self.take_time: Callable[[int], TimestampRecord | None] | None = None
        self.now: float = 0.0
        #: Tells the time to publications, which do not wait for `now`; None: it is `now`.
        self.clock: Callable[[], float] | None = None
        self.policy: Policy = settings.policy
        #: Called with each message that the policy stops: (face, flow, reason, kind, key).
        self.on_stopped: Callable[[Face | None, str, str, str, str], None] | None = None
        #: Called with each write of many keys that its sender may write in part; it must not wait.
        self.on_narrowed: Callable[[NarrowedWrite], None] | None = None
        self.tables: Tables = Tables(settings.mode, self)
        self.tables.interest_timeout = settings.interest_timeout
        self.tables.brokering = settings.brokering and settings.mode == ROUTER
        meshes: dict[int, Mesh] = {}
        self.borders: Borders = Borders(settings.zid, meshes)
        self.queries: Queries = Queries(self.tables, self.borders, self, settings.query_timeout)
        #: The node's own programs, as the tables see them.
        self.face: Face = Face(0, settings.zid, LOCAL, None)
        self.tables.add(self.face, 0.0)
        #: What the tables keep for all neighbours, what waits to be sent to them, and what they
        #: have not finished sending.
        limits = settings.limits
        self.memory: MemoryPool = MemoryPool(limits.all_memory)
        self.waiting: MemoryPool = MemoryPool(limits.all_waiting)
        self.fragments: MemoryPool = MemoryPool(limits.all_fragments)
        #: How much of one neighbour is handled at once while there are others; None: all that came.
        self.turn: Turn | None = None
        self.next_face: int = 1
        #: The multicast groups that it is in: what is sent to one of these goes to all members.
        self.group_faces: list[Face] = []
        #: What passed, by key.
        self.traffic: Traffic = Traffic(
            settings.prefix_depth, settings.prefix_limit, settings.counted_keys
        )
        #: What was dropped, by reason and key.
        self.drops: DropTotals = DropTotals(settings.prefix_depth)
        #: What neighbours and strangers sent that was not taken.
        self.rejections: Rejections = Rejections()
        #: What has happened that the edge has not been told of.
        self.happened: EventQueue = EventQueue()
        #: Who guesses at passwords, and must wait.
        self.brake: LoginBrake = LoginBrake()
        #: Asks the filters of neighbours' subscribers.
        self.filters: SampleFilters = SampleFilters()
        #: What an operator should know of.
        self.incidents: Incidents = Incidents()
        self.rejections.incidents = self.incidents
        #: Who uses up one turn after the other; and how many reads ended within theirs.
        self.busy: BusyWatch = BusyWatch(self.incidents)
        self.brief: int = 0
        #: When `tick` wants to be called.
        self.deadline: float = FOREVER
        self.closing: bool = False

    def events(self) -> list[NodeEvent]:
        """What has happened since the last call; the edge takes it after each call of the node."""
        return self.happened.take()

    def chance(self, size: int) -> bytes:
        """Random bytes, for cookies and nonces."""
        drawn = b""
        while len(drawn) < size:
            drawn += self.cookie()
        return drawn[:size]

    def time(self) -> float:
        """What time it is, as far as the node was told."""
        return self.now

    def moment(self) -> float:
        """What time it is, for threads that come without telling it."""
        clock = self.clock
        return self.now if clock is None else clock()

    def wake_by(self, when: float) -> None:
        """Have `tick` called by then at the latest."""
        if when < self.deadline:
            self.deadline = when

    def fresh_face(self) -> int:
        """A number for one more face."""
        number = self.next_face
        self.next_face = number + 1
        return number

    def locators(self) -> list[str]:
        """Where others can connect to this node."""
        return list(self.settings.locators)

    def stamped(self, stack: TimestampStack, point: int) -> TimestampStack:
        """The times of a message, with ours if it is wanted at this point."""
        take = self.take_time
        if take is None or not stack.points & point or len(stack.records) >= TIMES:
            return stack
        record = take(point)
        if record is None:
            return stack
        return TimestampStack(points=stack.points, records=(*stack.records, record))

    def matches(self, key: str) -> bool:
        """Whether a neighbour subscribes to something that meets `key`."""
        return bool(self.tables.holders(SUBSCRIBER, key, self.face))
