"""Where a node connects and listens, and when it counts as open."""

from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, ByMode, key, section
from zenlake.config.grammar import Endpoint
from zenlake.config.model_transport import Milliseconds
from zenlake.config.shape import Real, Whole
from zenlake.values.locator import EndPoint

__all__ = ["Connect", "EndpointGroup", "Listen", "OpenSettings", "Retry"]

Patience = Annotated[int, Whole("milliseconds", -(2**63), 2**63 - 1)]


@section
class Retry:
    """How long to pause between attempts."""

    period_init_ms: Milliseconds = key(
        ByMode(1000, 1000, 1000),
        "The first pause.",
        null=True,
        honoured_by="zenlake.node.sessions.connect.ConnectPlan",
    )
    period_max_ms: Milliseconds = key(
        ByMode(4000, 4000, 4000),
        "The longest pause.",
        null=True,
        honoured_by="zenlake.node.sessions.connect.ConnectPlan",
    )
    period_increase_factor: Annotated[float, Real("", 0)] = key(
        ByMode(2.0, 2.0, 2.0),
        "Each pause is this many times the one before.",
        null=True,
        honoured_by="zenlake.node.sessions.connect.ConnectPlan",
    )


@section
class EndpointGroup:
    """Several endpoints of one neighbour."""

    strategy: Literal["allOf", "oneOf"] = key(
        REQUIRED, "Whether all of them become links of one session, or the first that answers."
    )
    locators: tuple[Endpoint, ...] = key(REQUIRED, "The endpoints.")


@section
class Connect:
    """Neighbours to open sessions with."""

    timeout_ms: Patience = key(
        ByMode(-1, -1, 0),
        "How long to try at start, all endpoints together; 0 tries once, -1 never gives up.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    endpoints: tuple[Endpoint | EndpointGroup, ...] = key(
        ByMode((), (), ()),
        "Where to connect.",
        honoured_by="zenlake.engine.settings.connect_endpoints",
    )
    exit_on_failure: bool = key(
        ByMode(False, False, True),
        "Whether opening fails when the time is over.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    retry: Retry = key(Retry, "How long to pause between attempts.", null=True)


@section
class Listen:
    """Where others may open sessions with this node."""

    timeout_ms: Patience = key(
        ByMode(0, 0, 0),
        "How long to try at start, all endpoints together; 0 tries once, -1 never gives up.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    endpoints: tuple[Endpoint, ...] = key(
        ByMode((EndPoint.parse("tcp/[::]:7447"),), (EndPoint.parse("tcp/[::]:0"),), ()),
        "Where to listen.",
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    exit_on_failure: bool = key(
        ByMode(True, True, True),
        "Whether opening fails when the time is over.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    retry: Retry = key(Retry, "How long to pause between attempts.", null=True)


@section
class ReturnConditions:
    """What opening a session waits for, at most for `scouting/delay`."""

    connect_scouted: bool = key(
        True,
        "Sessions with the nodes found by scouting.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )
    declares: bool = key(
        True,
        "What connected peers declare first.",
        null=True,
        honoured_by="zenlake.engine.runtime.Runtime.open",
    )


@section
class OpenSettings:
    """Opening a session."""

    return_conditions: ReturnConditions = key(ReturnConditions, "What opening waits for.")
