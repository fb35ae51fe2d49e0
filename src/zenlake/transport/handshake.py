"""How a session begins: both sides of INIT and OPEN.

    initiator                              acceptor
    InitSyn   id, what it can       ──►
              ◄──  InitAck   id, what both can, a cookie
    OpenSyn   lease, first number, cookie  ──►
              ◄──  OpenAck   lease, first number

What is agreed is in `Terms`. A side that cannot go on raises `HandshakeError`, which knows the
reason to give in Close.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from zenlake.errors import ClosedError, HandshakeError
from zenlake.records import record
from zenlake.transport.auth import AcceptorAuth, Credentials, InitiatorAuth
from zenlake.transport.multilink import LinkProof, Purpose
from zenlake.transport.rsa import PrivateKey, PublicKey, Random
from zenlake.transport.sequence import initial_sn, mask_of
from zenlake.wire import Close, InitAck, InitSyn, Message, OpenAck, OpenSyn
from zenlake.wire.message import zid_text

VERSION = 9

GENERIC, UNSUPPORTED, INVALID, MAX_SESSIONS = 0, 1, 2, 3
MAX_LINKS, EXPIRED, UNRESPONSIVE, CONNECTION_TO_SELF = 4, 5, 6, 7
REASONS = {
    GENERIC: "no reason given",
    UNSUPPORTED: "not supported",
    INVALID: "invalid",
    MAX_SESSIONS: "too many sessions",
    MAX_LINKS: "too many links, or this id is connected already",
    EXPIRED: "the lease ran out",
    UNRESPONSIVE: "it took too long to take our data",
    CONNECTION_TO_SELF: "connected to itself",
}

ROLES = ("router", "peer", "client")


def no_chance(size: int) -> bytes:
    """For nodes that demand no proof."""
    return bytes(size)


def no_bound(terms: Terms) -> int:
    """For nodes that assign no bounds: the modes decide."""
    return -1


#: Nothing to show, and nothing to ask for.
NO_CREDENTIALS = Credentials()


@record(frozen=True, slots=True)
class Offer:
    """What this side brings to a session."""

    zid: bytes
    whatami: int
    resolution: int = 0x0A
    batch_size: int = 65535
    lease: int = 10_000
    qos: bool = True
    patch: int = 1
    low_latency: bool = False
    compression: bool = False
    credentials: Credentials = NO_CREDENTIALS
    #: The region that this node says it is in, for gateways that ask; empty: none.
    region_name: bytes = b""
    #: The bound that it assigns to the other side: 0 north, 1 south, -1 none.
    bound: Callable[[Terms], int] = no_bound
    #: Shown by nodes that allow several links to one neighbour.
    link_key: PrivateKey | None = None
    #: What this link is for, as the number on the wire; 0: everything.
    purpose: int = 0
    #: Gives bytes that cannot be guessed, for proofs.
    random: Random = no_chance


@record(frozen=True, slots=True)
class Terms:
    """What two sides have agreed on."""

    zid: bytes  # the neighbour's
    whatami: int  # the neighbour's
    resolution: int
    batch_size: int
    qos: bool
    patch: int
    mask: int
    tx_initial_sn: int
    rx_initial_sn: int = 0
    tx_lease: int = 10_000
    rx_lease: int = 10_000
    low_latency: bool = False
    compression: bool = False
    user: str = ""  # who the neighbour is, if it had to prove it
    link_key: PublicKey | None = None  # whose links may join the session; None: it has one link
    purpose: int = 0  # what this link is for; 0: everything
    region_name: bytes = b""  # the region that the neighbour says it is in
    assigned: int = -1  # the bound it assigns to us: 0 north, 1 south, -1 none, -2 not known yet


def bound_field(bound: int) -> int | None:
    """A bound as the field of the message; None: not assigned."""
    return None if bound < 0 else bound


def refuse_close(message: Close, guess: str = "") -> ClosedError:
    """The error for a neighbour that closes instead of going on; `guess`: what it may mean.

    A closing word has room for a number alone, and the number of a refused login is that of any
    other failure: this side knows better what it had just said.
    """
    why = REASONS.get(message.reason, f"reason {message.reason}")
    return ClosedError(f"the other side closed while opening: {why}{guess}", message.reason)


class Initiator:
    """The side that connects."""

    def __init__(self, offer: Offer, expected: bytes = b"") -> None:
        """`expected`: the id that the acceptor must have (empty: any)."""
        self.offer = offer
        self.expected = expected
        #: Whether the acceptor asked for proof of who this is.
        self.auth_required = False
        self.auth = InitiatorAuth(offer.credentials, offer.random)
        self.proof = LinkProof(offer.link_key, offer.random)
        self.terms: Terms | None = None
        self.done = False

    def start(self) -> Message:
        """The InitSyn."""
        offer = self.offer
        return InitSyn(
            version=VERSION, whatami=offer.whatami, zid=offer.zid, resolution=offer.resolution,
            batch_size=offer.batch_size, qos=offer.qos and not offer.purpose,
            qos_link=offer.purpose if offer.qos else 0, auth=self.auth.syn(),
            multilink=self.proof.init_syn(), low_latency=offer.low_latency,
            compression=offer.compression, patch=offer.patch,
            region_name=offer.region_name or None,
        )  # fmt: skip

    def receive(self, message: Message) -> Message | None:
        """The answer to a message of the acceptor; `terms` are final once `done`."""
        if isinstance(message, Close):
            raise refuse_close(message, self._guess(message.reason))
        if self.terms is None:
            if not isinstance(message, InitAck):
                raise HandshakeError(f"an InitAck was due, {message.NAME} came", INVALID)
            return self._agree(message)
        if not isinstance(message, OpenAck):
            raise HandshakeError(f"an OpenAck was due, {message.NAME} came", INVALID)
        check_sn(message.initial_sn, self.terms.mask)
        self.terms = replace(
            self.terms,
            rx_initial_sn=message.initial_sn,
            rx_lease=message.lease,
            link_key=self.proof.theirs if message.multilink else None,
            assigned=-1 if message.remote_bound is None else message.remote_bound,
        )
        self.done = True
        return None

    def _guess(self, reason: int) -> str:
        """What a closing word that gives no reason may mean, after what was said last."""
        offer = self.offer
        credentials = offer.credentials
        if reason not in (GENERIC, INVALID):
            return ""
        if offer.batch_size < SMALLEST_BATCH:
            return (
                f"; batches of {offer.batch_size} bytes are offered here, and {SMALLEST_BATCH} is "
                "the least that carries something: see transport/link/tx/batch_size"
            )
        if self.terms is not None and self.auth_required:
            if credentials.user:
                user = credentials.user.decode("utf-8", "replace")
                return f"; most likely user '{user}' or its password is wrong there"
            return "; most likely the public key of this side is not known there"
        if self.terms is None and not credentials.user and credentials.key is None:
            return "; it may ask for a login, and none is configured here: see transport/auth"
        return ""

    def _agree(self, ack: InitAck) -> Message:
        offer = self.offer
        if self.expected and ack.zid != self.expected:
            raise HandshakeError(
                f"{zid_text(self.expected)} was expected there, {zid_text(ack.zid)} answered",
                INVALID,
            )
        for shift, name in ((0, "sequence numbers"), (2, "request ids")):
            if (ack.resolution >> shift) & 3 > (offer.resolution >> shift) & 3:
                raise HandshakeError(f"the acceptor wants longer {name} than offered", INVALID)
        if ack.patch > offer.patch:
            raise HandshakeError(f"patch {ack.patch} answered, {offer.patch} offered", INVALID)
        mask = mask_of(ack.resolution)
        self.auth_required = ack.auth is not None
        shown = self.proof.open_syn(ack.multilink)
        self.terms = Terms(
            zid=ack.zid,
            whatami=ack.whatami,
            resolution=ack.resolution,
            batch_size=checked_size(min(offer.batch_size, ack.batch_size)),
            qos=offer.qos and (ack.qos or ack.qos_link != 0),
            patch=ack.patch,
            mask=mask,
            tx_initial_sn=initial_sn(offer.zid, ack.zid, mask),
            tx_lease=offer.lease,
            low_latency=offer.low_latency and ack.low_latency,
            compression=offer.compression and ack.compression,
            link_key=self.proof.theirs,
            purpose=offer.purpose,
            region_name=ack.region_name or b"",
            assigned=-2,
        )
        return OpenSyn(
            lease=offer.lease,
            initial_sn=self.terms.tx_initial_sn,
            cookie=ack.cookie,
            auth=self.auth.open(ack.auth),
            multilink=shown,
            remote_bound=bound_field(offer.bound(self.terms)),
        )


class Acceptor:
    """The side that listens."""

    def __init__(self, offer: Offer, cookie: bytes) -> None:
        """`cookie`: bytes that cannot be guessed, made for this link alone."""
        self.offer = offer
        self.cookie = cookie
        self.auth = AcceptorAuth(offer.credentials, offer.random)
        self.proof = LinkProof(offer.link_key, offer.random)
        self._multilink = False
        self._welcome: bytes | None = None
        self.terms: Terms | None = None
        self.done = False

    def receive(self, message: Message) -> Message | None:
        """The answer to a message of the initiator; none yet when `done`: see `accept`."""
        if isinstance(message, Close):
            raise refuse_close(message)
        if self.terms is None:
            if not isinstance(message, InitSyn):
                raise HandshakeError(f"an InitSyn was due, {message.NAME} came", INVALID)
            return self._agree(message)
        if not isinstance(message, OpenSyn):
            raise HandshakeError(f"an OpenSyn was due, {message.NAME} came", INVALID)
        if message.cookie != self.cookie:
            raise HandshakeError("the cookie is not the one given on this link", INVALID)
        check_sn(message.initial_sn, self.terms.mask)
        self._welcome = self.auth.open(message.auth)
        self._multilink = self.proof.open_ack(message.multilink)
        self.terms = replace(
            self.terms,
            rx_initial_sn=message.initial_sn,
            rx_lease=message.lease,
            user=self.auth.user,
            link_key=self.proof.theirs if self._multilink else None,
            assigned=-1 if message.remote_bound is None else message.remote_bound,
        )
        self.done = True
        return None

    def accept(self) -> Message:
        """The OpenAck, once the node admits this neighbour."""
        assert self.terms is not None
        return OpenAck(
            lease=self.offer.lease,
            initial_sn=self.terms.tx_initial_sn,
            auth=self._welcome,
            multilink=self._multilink,
            remote_bound=bound_field(self.offer.bound(self.terms)),
        )

    def _agree(self, syn: InitSyn) -> Message:
        offer = self.offer
        if syn.version != VERSION:
            raise HandshakeError(
                f"protocol version {syn.version} offered, {VERSION} spoken here", INVALID
            )
        low = min(offer.resolution & 0b0011, syn.resolution & 0b0011)
        high = min(offer.resolution & 0b1100, syn.resolution & 0b1100)
        resolution = high | low
        mask = mask_of(resolution)
        self.terms = Terms(
            zid=syn.zid,
            whatami=syn.whatami,
            resolution=resolution,
            batch_size=checked_size(min(offer.batch_size, syn.batch_size)),
            qos=offer.qos and (syn.qos or syn.qos_link != 0),
            patch=min(offer.patch, syn.patch),
            mask=mask,
            tx_initial_sn=initial_sn(offer.zid, syn.zid, mask),
            tx_lease=offer.lease,
            low_latency=offer.low_latency and syn.low_latency,
            compression=offer.compression and syn.compression,
            purpose=syn.qos_link,
            region_name=syn.region_name or b"",
        )
        Purpose.read(syn.qos_link)
        # QoS of a link for some priorities only is acknowledged by the extension that asked for it.
        qos_link = syn.qos_link if self.terms.qos else 0
        return InitAck(
            version=VERSION, whatami=offer.whatami, zid=offer.zid, resolution=resolution,
            batch_size=self.terms.batch_size, cookie=self.cookie,
            qos=self.terms.qos and not qos_link, qos_link=qos_link, auth=self.auth.ack(syn.auth),
            multilink=self.proof.init_ack(syn.multilink), low_latency=self.terms.low_latency,
            compression=self.terms.compression, patch=self.terms.patch,
            region_name=offer.region_name or None,
        )  # fmt: skip


#: Below this no fragment carries anything worth its header.
SMALLEST_BATCH = 64


def checked_size(size: int) -> int:
    """A batch size that can carry something."""
    if size < SMALLEST_BATCH:
        raise HandshakeError(
            f"batches of {size} bytes are too small: {SMALLEST_BATCH} at least",
            INVALID,
            "batch-size",
        )
    return size


def check_sn(sn: int, mask: int) -> None:
    """Refuse a first sequence number that the agreed resolution cannot count to."""
    if sn > mask:
        raise HandshakeError(f"the first sequence number {sn} is above {mask}", INVALID)
