"""The keys under `transport`: how sessions with neighbours are kept, and over which links."""

from typing import Annotated, Literal

from zenlake.config.declare import key, section
from zenlake.config.json5 import Plain
from zenlake.config.shape import Whole

__all__ = ["Bytes", "Milliseconds", "TransportSettings"]

Milliseconds = Annotated[int, Whole("milliseconds", 0)]
SomeMilliseconds = Annotated[int, Whole("milliseconds", 1)]
Microseconds = Annotated[int, Whole("microseconds", -(2**63), 2**63 - 1)]
Bytes = Annotated[int, Whole("bytes", 0)]
Count = Annotated[int, Whole("", 0)]
SomeCount = Annotated[int, Whole("", 1)]
SocketBuffer = Annotated[int, Whole("bytes", 0, 2**32 - 1)]
Batches = Annotated[int, Whole("batches", 1, 16)]


@section
class Switch:
    """A feature that is on or off."""

    enabled: bool = key(False, "Whether the feature is offered when a session opens.")


@section
class UnicastQos:
    """Priorities on unicast sessions."""

    enabled: bool = key(
        True,
        "Whether messages travel in one lane for each priority.",
        honoured_by="zenlake.engine.settings.node_settings",
    )


@section
class UnicastCompression:
    """Compression of batches on unicast sessions."""

    enabled: bool = key(
        False,
        "Whether the feature is offered when a session opens.",
        honoured_by="zenlake.engine.settings.node_settings",
    )


@section
class UnicastSettings:
    """Sessions with one neighbour."""

    open_timeout: Milliseconds = key(
        10_000,
        "How long opening a session may take.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    accept_timeout: Milliseconds = key(
        10_000,
        "How long accepting a session may take.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    accept_pending: Count = key(
        100,
        "How many sessions may be in the middle of opening.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    max_sessions: Count = key(
        1000, "How many sessions may be open.", honoured_by="zenlake.engine.settings.node_settings"
    )
    max_links: Count = key(
        1,
        "How many links one session may join.",
        honoured_by="zenlake.node.node.Node",
    )
    lowlatency: bool = key(
        False,
        "Whether to offer the leaner session that has neither lanes nor fragments.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    qos: UnicastQos = key(UnicastQos, "Priorities on unicast sessions.")
    compression: UnicastCompression = key(
        UnicastCompression, "Compression of batches on unicast sessions."
    )


@section
class MulticastQos:
    """Priorities in multicast groups."""

    enabled: bool = key(
        False,
        "Whether priorities are kept apart; members without them are not heard.",
        honoured_by="zenlake.engine.multicast.MulticastPump",
    )


@section
class MulticastSettings:
    """Sessions with all members of a multicast group."""

    join_interval: Milliseconds = key(
        2500,
        "How often the node repeats its presence to the group.",
        honoured_by="zenlake.engine.multicast.MulticastPump",
    )
    max_sessions: Count = key(
        1000,
        "How many members of groups are kept.",
        honoured_by="zenlake.engine.multicast.MulticastPump",
    )
    qos: MulticastQos = key(MulticastQos, "Priorities on multicast sessions.")
    compression: Switch = key(Switch, "Compression of batches on multicast sessions.")


@section
class QueueSize:
    """How many batches may wait to be sent, for each priority."""

    control: Batches = key(2, "Batches of control messages.")
    real_time: Batches = key(2, "Batches of priority 1.")
    interactive_high: Batches = key(2, "Batches of priority 2.")
    interactive_low: Batches = key(2, "Batches of priority 3.")
    data_high: Batches = key(2, "Batches of priority 4.")
    data: Batches = key(
        2,
        "Batches of priority 5, or of all messages when priorities are off.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    data_low: Batches = key(2, "Batches of priority 6.")
    background: Batches = key(2, "Batches of priority 7.")


@section
class CongestionDrop:
    """What a droppable message does when its queue is full."""

    wait_before_drop: Microseconds = key(
        1000,
        "How long it waits for room before it is dropped.",
        honoured_by="zenlake.engine.shared.SharedOutbox",
    )
    max_wait_before_drop_fragments: Microseconds = key(
        50_000, "How long all fragments of one message may wait together."
    )


@section
class CongestionBlock:
    """What a message that must not be dropped does when its queue is full."""

    wait_before_close: Microseconds = key(
        5_000_000,
        "How long it waits for room before the session is closed.",
        honoured_by="zenlake.engine.shared.SharedOutbox",
    )


@section
class CongestionSettings:
    """What happens to messages when the queue is full."""

    drop: CongestionDrop = key(CongestionDrop, "Messages sent with congestion control drop.")
    block: CongestionBlock = key(CongestionBlock, "Messages sent with congestion control block.")


@section
class Batching:
    """Several small messages in one batch."""

    enabled: bool = key(True, "Whether messages share batches while the link is busy.")
    time_limit: Milliseconds = key(1, "How long a message may be held back for company.")


@section
class Allocation:
    """The memory of the batches."""

    mode: Literal["init", "lazy"] = key(
        "lazy", "Whether memory is taken when the session opens or when a batch is first needed."
    )


@section
class Queue:
    """Messages waiting to be sent."""

    size: QueueSize = key(QueueSize, "How many batches may wait, for each priority.")
    congestion_control: CongestionSettings = key(
        CongestionSettings, "What happens when the queue is full."
    )
    batching: Batching = key(Batching, "Several small messages in one batch.")
    allocation: Allocation = key(Allocation, "The memory of the batches.")


@section
class Tx:
    """Sending."""

    sequence_number_resolution: Literal["8bit", "16bit", "32bit"] = key(
        "32bit",
        "The size of sequence numbers; two nodes use the smaller of theirs.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    lease: SomeMilliseconds = key(
        10_000,
        "How long this node may be silent before it is given up.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    keep_alive: SomeCount = key(
        4,
        "How many signs of life are sent in one lease.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    batch_size: Annotated[int, Whole("bytes", 1, 65535)] = key(
        65535,
        "The largest batch sent; two nodes use the smaller of theirs.",
        honoured_by="zenlake.engine.settings.node_settings",
    )
    queue: Queue = key(Queue, "Messages waiting to be sent.")
    threads: SomeCount = key(1, "How many threads send.")


@section
class Rx:
    """Receiving."""

    buffer_size: Bytes = key(65535, "How much is read from a link at once.")
    max_message_size: Bytes = key(
        1_073_741_824,
        "The largest message put together from fragments; larger ones are dropped.",
        honoured_by="zenlake.engine.settings.node_settings",
    )


@section
class Tls:
    """Certificates of tls and quic links."""

    root_ca_certificate: str | None = key(
        None,
        "File of the authorities trusted to sign the other side's certificate.",
        honoured_by="zenlake.links.certificates.credentials",
    )
    listen_private_key: str | None = key(
        None,
        "File of the key used when accepting.",
        honoured_by="zenlake.links.certificates.credentials",
    )
    listen_certificate: str | None = key(
        None,
        "File of the certificate shown when accepting.",
        honoured_by="zenlake.links.certificates.credentials",
    )
    enable_mtls: bool = key(
        False,
        "Whether a node that connects must show a certificate too.",
        null=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    connect_private_key: str | None = key(
        None,
        "File of the key used when connecting.",
        honoured_by="zenlake.links.certificates.credentials",
    )
    connect_certificate: str | None = key(
        None,
        "File of the certificate shown when connecting.",
        honoured_by="zenlake.links.certificates.credentials",
    )
    verify_name_on_connect: bool = key(
        True,
        "Whether the certificate must be for the host that was connected to.",
        null=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    close_link_on_expiration: bool = key(
        False,
        "Whether a link is closed when the certificate shown on it expires.",
        null=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    so_sndbuf: SocketBuffer | None = key(
        None, "The socket's buffer for sending.", honoured_by="zenlake.links.options.only_inet"
    )
    so_rcvbuf: SocketBuffer | None = key(
        None, "The socket's buffer for receiving.", honoured_by="zenlake.links.options.only_inet"
    )
    root_ca_certificate_base64: str | None = key(
        None,
        "The content of `root_ca_certificate`, in base64.",
        hidden=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    listen_private_key_base64: str | None = key(
        None,
        "The content of `listen_private_key`, in base64.",
        hidden=True,
        secret=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    listen_certificate_base64: str | None = key(
        None,
        "The content of `listen_certificate`, in base64.",
        hidden=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    connect_private_key_base64: str | None = key(
        None,
        "The content of `connect_private_key`, in base64.",
        hidden=True,
        secret=True,
        honoured_by="zenlake.links.certificates.credentials",
    )
    connect_certificate_base64: str | None = key(
        None,
        "The content of `connect_certificate`, in base64.",
        hidden=True,
        honoured_by="zenlake.links.certificates.credentials",
    )


@section
class Tcp:
    """Sockets of tcp links."""

    so_sndbuf: SocketBuffer | None = key(
        None, "The socket's buffer for sending.", honoured_by="zenlake.links.options.only_inet"
    )
    so_rcvbuf: SocketBuffer | None = key(
        None, "The socket's buffer for receiving.", honoured_by="zenlake.links.options.only_inet"
    )


@section
class UnixPipe:
    """Named pipes."""

    file_access_mask: Annotated[int, Whole("permission bits", 0, 2**32 - 1)] | None = key(
        None, "Who may open the pipes, as file permission bits."
    )


@section
class LinkSettings:
    """The links below a session."""

    protocols: tuple[str, ...] | None = key(
        None,
        "The link protocols that may be used; null allows all.",
        honoured_by="zenlake.links.registry.check",
    )
    tx: Tx = key(Tx, "Sending.")
    rx: Rx = key(Rx, "Receiving.")
    tls: Tls = key(Tls, "Certificates of tls and quic links.")
    tcp: Tcp = key(Tcp, "Sockets of tcp links.")
    unixpipe: UnixPipe = key(UnixPipe, "Named pipes.")


@section
class TransportOptimization:
    """Large messages between processes of one machine."""

    enabled: bool = key(True, "Whether large messages go through shared memory by themselves.")
    pool_size: Annotated[int, Whole("bytes", 1)] = key(16_777_216, "How much memory is shared.")
    message_size_threshold: Bytes = key(3072, "The smallest message that is worth it.")
    messages: tuple[Literal["put", "delete", "query", "reply"], ...] = key(
        ("put", "query", "reply"), "The messages it is done for."
    )


@section
class SharedMemory:
    """Memory shared by processes of one machine."""

    enabled: bool = key(
        True,
        "Whether shared memory is offered when a session opens.",
        honoured_by="zenlake.transport.handshake.Offer",
    )
    mode: Literal["init", "lazy"] = key(
        "lazy", "Whether it is set up when the session opens or when it is first needed."
    )
    transport_optimization: TransportOptimization = key(
        TransportOptimization, "Large messages between processes of one machine."
    )


@section
class UserPassword:
    """Authentication by user and password."""

    user: str | None = key(
        None,
        "The name shown when connecting.",
        honoured_by="zenlake.engine.settings.credentials",
    )
    password: str | None = key(
        None,
        "The password that proves it.",
        secret=True,
        honoured_by="zenlake.engine.settings.credentials",
    )
    dictionary_file: str | None = key(
        None,
        "File of the users who may connect: a line `user:password` for each.",
        honoured_by="zenlake.engine.settings.credentials",
    )

    @staticmethod
    def holds(section: dict[str, Plain]) -> list[tuple[tuple[str, ...], str]]:
        """A user and a password come together."""
        if (section["user"] is None) == (section["password"] is None):
            return []
        given, missing = ("user", "password") if section["user"] else ("password", "user")
        return [((), f"'{given}' is given without '{missing}'; write both or neither")]


@section
class PublicKeySettings:
    """Authentication by public key."""

    public_key_pem: str | None = key(
        None,
        "The public key, as PEM text (PKCS#1).",
        honoured_by="zenlake.engine.settings.credentials",
    )
    private_key_pem: str | None = key(
        None,
        "The private key, as PEM text (PKCS#1).",
        secret=True,
        honoured_by="zenlake.engine.settings.credentials",
    )
    public_key_file: str | None = key(
        None,
        "File of the public key (PEM, PKCS#1).",
        honoured_by="zenlake.engine.settings.credentials",
    )
    private_key_file: str | None = key(
        None,
        "File of the private key (PEM, PKCS#1).",
        honoured_by="zenlake.engine.settings.credentials",
    )
    key_size: Annotated[int, Whole("bits", 0)] | None = key(
        None, "The size of the key made when none is given."
    )
    known_keys_file: str | None = key(
        None,
        "File of the public keys that may connect; without it a node with a key lets nobody in.",
        honoured_by="zenlake.engine.settings.credentials",
    )


@section
class Roles:
    """Who may be more than a client."""

    router: tuple[str, ...] | None = key(
        None,
        "The users and the names in certificates that may connect as routers; null: everybody.",
        hidden=True,
        honoured_by="zenlake.node.sessions.sessions.Sessions.admit",
    )
    peer: tuple[str, ...] | None = key(
        None,
        "The users and the names in certificates that may connect as peers; null: everybody.",
        hidden=True,
        honoured_by="zenlake.node.sessions.sessions.Sessions.admit",
    )


@section
class Auth:
    """How neighbours prove who they are."""

    usrpwd: UserPassword = key(UserPassword, "Authentication by user and password.")
    pubkey: PublicKeySettings = key(PublicKeySettings, "Authentication by public key.")
    roles: Roles = key(Roles, "Who may be more than a client.", hidden=True)


@section
class TransportSettings:
    """Sessions with neighbours and the links below them."""

    unicast: UnicastSettings = key(UnicastSettings, "Sessions with one neighbour.")
    multicast: MulticastSettings = key(
        MulticastSettings, "Sessions with all members of a multicast group."
    )
    link: LinkSettings = key(LinkSettings, "The links below a session.")
    shared_memory: SharedMemory = key(SharedMemory, "Memory shared by processes of one machine.")
    auth: Auth = key(Auth, "How neighbours prove who they are.")
