"""What is done to messages on their way in and out: access control, downsampling, limits, QoS."""

from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, NonEmpty, key, section
from zenlake.config.grammar import KeyText, SizeRange, Zid
from zenlake.config.json5 import Plain
from zenlake.config.model_transport import Bytes
from zenlake.config.shape import Real, Whole

__all__ = ["AccessControl", "Downsampling", "LowPassFilter", "Qos"]

Flow = Literal["egress", "ingress"]
LinkProtocol = Literal[
    "tcp", "udp", "tls", "quic", "serial", "unixpipe", "unixsock-stream", "vsock", "ws"
]
DataMessage = Literal["put", "delete", "query", "reply"]
Permission = Literal["allow", "deny"]
Priority = Literal[
    "real_time",
    "interactive_high",
    "interactive_low",
    "data_high",
    "data",
    "data_low",
    "background",
]
CongestionControl = Literal["drop", "block", "block_first"]
Reliability = Literal["best_effort", "reliable"]

Flows = Annotated[tuple[Flow, ...], NonEmpty()]
Names = Annotated[tuple[str, ...], NonEmpty()]
Zids = Annotated[tuple[Zid, ...], NonEmpty()]
KeyTexts = Annotated[tuple[KeyText, ...], NonEmpty()]
LinkProtocols = Annotated[tuple[LinkProtocol, ...], NonEmpty()]
DataMessages = Annotated[tuple[DataMessage, ...], NonEmpty()]

_FLOWS = "Whether it concerns what leaves, what arrives, or (null) both."
_INTERFACES = "The network interfaces it concerns; null means all."
_PROTOCOLS = "The link protocols it concerns; null means all."


@section
class AccessRule:
    """Which messages on which keys are allowed or denied."""

    id: str = key(REQUIRED, "The name by which policies refer to the rule.")
    key_exprs: KeyTexts = key(REQUIRED, "The rule concerns keys included in one of these.")
    messages: Annotated[
        tuple[
            Literal[
                "put",
                "delete",
                "declare_subscriber",
                "query",
                "declare_queryable",
                "reply",
                "liveliness_token",
                "declare_liveliness_subscriber",
                "liveliness_query",
            ],
            ...,
        ],
        NonEmpty(),
    ] = key(REQUIRED, "The messages that the rule concerns.")
    flows: Flows | None = key(None, _FLOWS)
    permission: Permission = key(REQUIRED, "Whether those messages pass.")


@section
class AccessSubject:
    """Neighbours that have all the properties listed; a property not listed does not matter."""

    id: str = key(REQUIRED, "The name by which policies refer to the subject.")
    interfaces: Names | None = key(None, "The network interface it is reached through.")
    cert_common_names: Names | None = key(None, "The name in its certificate.")
    usernames: Names | None = key(None, "The user it authenticated as.")
    link_protocols: LinkProtocols | None = key(None, "The protocol of its link.")
    zids: Zids | None = key(None, "Its Zenoh id.")


@section
class AccessPolicy:
    """Rules applied to subjects."""

    id: str | None = key(None, "A name for messages and logs.")
    rules: tuple[str, ...] = key(REQUIRED, "The ids of the rules.")
    subjects: tuple[str, ...] = key(REQUIRED, "The ids of the subjects.")


@section
class AccessControl:
    """Who may do what on which keys."""

    enabled: bool = key(
        False,
        "Whether messages are checked at all.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )
    default_permission: Permission = key(
        "deny",
        "What happens where no rule speaks.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )
    rules: tuple[AccessRule, ...] | None = key(
        None,
        "Messages on keys, allowed or denied.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )
    subjects: tuple[AccessSubject, ...] | None = key(
        None, "Groups of neighbours.", honoured_by="zenlake.routing.policy.policy.Policy"
    )
    policies: tuple[AccessPolicy, ...] | None = key(
        None,
        "Which rules apply to which subjects.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )

    @staticmethod
    def holds(section: dict[str, Plain]) -> list[tuple[tuple[str, ...], str]]:
        """Ids are unique, and policies refer to ids that exist."""
        wrong: list[tuple[tuple[str, ...], str]] = []
        for kind in ("rules", "subjects"):
            ids: set[Plain] = set()
            for number, item in enumerate(_items(section[kind])):
                if item["id"] in ids:
                    wrong.append(((kind, str(number), "id"), f"'{item['id']}' is used twice"))
                ids.add(item["id"])
            for number, policy in enumerate(_items(section["policies"])):
                names = policy[kind]
                for name in names if isinstance(names, list) else ():
                    if name not in ids:
                        where = ("policies", str(number), kind)
                        wrong.append((where, f"'{name}' is the id of none of the {kind}"))
        return wrong


def _items(plain: Plain) -> list[dict[str, Plain]]:
    return [item for item in plain if isinstance(item, dict)] if isinstance(plain, list) else []


@section
class DownsamplingRule:
    """How often a key may be heard."""

    key_expr: KeyText = key(REQUIRED, "The rule concerns keys that intersect this.")
    freq: Annotated[float, Real("hertz", 0)] = key(
        REQUIRED, "At most this many messages a second pass; 0 lets none pass."
    )


@section
class Downsampling:
    """Messages thinned out to a frequency."""

    id: str | None = key(None, "A name for messages and logs.")
    interfaces: Names | None = key(None, _INTERFACES)
    link_protocols: LinkProtocols | None = key(None, _PROTOCOLS)
    messages: DataMessages = key(REQUIRED, "The messages that are thinned out.")
    rules: Annotated[tuple[DownsamplingRule, ...], NonEmpty()] = key(
        REQUIRED, "Frequencies by key; the first rule that matches counts."
    )
    flows: Flows | None = key(None, _FLOWS)


@section
class LowPassFilter:
    """Messages above a size dropped."""

    id: str | None = key(None, "A name for messages and logs.")
    interfaces: Names | None = key(None, _INTERFACES)
    link_protocols: LinkProtocols | None = key(None, _PROTOCOLS)
    flows: Flows | None = key(None, _FLOWS)
    messages: DataMessages = key(REQUIRED, "The messages that are measured.")
    key_exprs: KeyTexts = key(REQUIRED, "It concerns keys included in one of these.")
    size_limit: Bytes = key(REQUIRED, "The largest payload and attachment together that pass.")


@section
class PublicationOptions:
    """What replaces the choices of the program that publishes; null leaves a choice alone."""

    congestion_control: CongestionControl | None = key(None, "What happens when a queue is full.")
    priority: Priority | None = key(None, "The lane.")
    express: bool | None = key(None, "Whether messages are sent without waiting for company.")
    reliability: Reliability | None = key(None, "Whether lost messages are sent again.")
    allowed_destination: Literal["session_local", "remote", "any"] | None = key(
        None, "Which subscribers are reached."
    )


@section
class PublicationQos:
    """Options of publications on some keys."""

    key_exprs: tuple[KeyText, ...] = key(REQUIRED, "It concerns keys included in one of these.")
    config: PublicationOptions = key(REQUIRED, "What replaces the program's choices.")


@section
class QosFilter:
    """The options a message must have; null is any."""

    congestion_control: CongestionControl | None = key(None, "What happens when a queue is full.")
    priority: Priority | None = key(None, "The lane.")
    express: bool | None = key(None, "Whether it is sent without waiting for company.")
    reliability: Reliability | None = key(None, "Whether it is sent again when lost.")


@section
class QosOverwrite:
    """The options a message gets; null leaves an option alone."""

    congestion_control: CongestionControl | None = key(None, "What happens when a queue is full.")
    priority: Priority | Annotated[int, Whole("steps", -7, 7)] | None = key(
        None, "The lane, or how many lanes up or down from its own."
    )
    express: bool | None = key(None, "Whether it is sent without waiting for company.")


@section
class NetworkQos:
    """Options of messages that pass through."""

    id: str | None = key(None, "A name for messages and logs.")
    zids: Zids | None = key(None, "The neighbours it concerns; null means all.")
    interfaces: Names | None = key(None, _INTERFACES)
    link_protocols: LinkProtocols | None = key(None, _PROTOCOLS)
    messages: Annotated[tuple[Literal["put", "delete", "query"], ...], NonEmpty()] = key(
        REQUIRED, "The messages that are changed; a reply travels like its query."
    )
    key_exprs: KeyTexts | None = key(
        None, "It concerns keys included in one of these; null means all."
    )
    overwrite: QosOverwrite = key(REQUIRED, "The options that the messages get.")
    flows: Flows | None = key(None, _FLOWS)
    qos: QosFilter | None = key(None, "The options that the messages must have.")
    payload_size: SizeRange | None = key(None, "The sizes of payload that it concerns.")


@section
class Qos:
    """Quality of service decided by key instead of by program."""

    publication: tuple[PublicationQos, ...] = key(
        (),
        "Options of publications of this session.",
        honoured_by="zenlake.node.programs.local.Local.publication",
    )
    network: tuple[NetworkQos, ...] = key(
        (),
        "Options of messages that pass through this node.",
        honoured_by="zenlake.routing.policy.policy.Policy",
    )
