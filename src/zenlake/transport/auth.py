"""Who may open a session: user and password, or a public key.

Each method has its own extension inside the `auth` extension of the four opening messages:

                 user and password (id 2)             public key (id 1)
    InitSyn      I have credentials                   my key
    InitAck      a nonce                              my key, a nonce for yours
    OpenSyn      user, HMAC of the password           the nonce, for mine
    OpenAck      welcome                              welcome

The password itself never travels: its HMAC-SHA3-256 under the nonce does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from zenlake.errors import DecodeError, HandshakeError, RemoteError
from zenlake.records import record
from zenlake.transport.digests import hmac_sha3_256, is_same_secret
from zenlake.transport.rsa import PrivateKey, PublicKey, Random
from zenlake.wire.cursor import Reader, Writer

GENERIC = 0
#: What counters call a refusal.
LOGIN = "login"
PUBLIC_KEY, USER_PASSWORD = 1, 2
UNIT, Z64, ZBUF = 0x00, 0x20, 0x40

#: How many methods a neighbour may name at once.
METHODS = 8


def read_methods(data: bytes | None) -> dict[int, int | bytes | None]:
    """The methods in an `auth` extension, by id."""
    methods: dict[int, int | bytes | None] = {}
    if data is None:
        return methods
    r = Reader(data)
    while r.pos < r.end:
        header = r.u8()
        id = header & 0x0F
        shape = header & 0x60
        if shape == UNIT:
            methods[id] = None
        elif shape == Z64:
            methods[id] = r.vle(0xFFFF_FFFF_FFFF_FFFF)
        elif shape == ZBUF:
            methods[id] = r.take(r.vle(0xFFFF))
        else:
            raise DecodeError("an authentication method with the reserved encoding 3", r.pos)
        if len(methods) > METHODS:
            raise DecodeError(f"more than {METHODS} authentication methods", r.pos)
        if not header & 0x80:
            break
    return methods


def write_methods(methods: Mapping[int, int | bytes | None]) -> bytes | None:
    """The `auth` extension for some methods; None if there are none."""
    if not methods:
        return None
    w = Writer()
    left = len(methods)
    for id, value in sorted(methods.items()):
        left -= 1
        more = 0x80 if left else 0
        if value is None:
            w.u8(id | UNIT | more)
        elif isinstance(value, int):
            w.u8(id | Z64 | more)
            w.vle(value, 0xFFFF_FFFF_FFFF_FFFF)
        else:
            w.u8(id | ZBUF | more)
            w.sized(value, 0xFFFF)
    return w.getvalue()


def proof(nonce: int, password: bytes) -> bytes:
    """What shows that one knows the password."""
    return hmac_sha3_256(nonce.to_bytes(8, "little"), password)


@record(frozen=True, slots=True)
class Credentials:
    """What a node knows: its own user and password, and those that it lets in."""

    user: bytes = b""
    password: bytes = field(default=b"", repr=False)
    #: The users that may connect to us; None: every node, without credentials.
    users: Mapping[bytes, bytes] | None = field(default=None, repr=False)
    key: PrivateKey | None = field(default=None, repr=False)
    #: The keys that may connect to us; None: any key.
    known: frozenset[PublicKey] | None = None


def read_dictionary(text: str) -> dict[bytes, bytes]:
    """Users and passwords from the lines `user:password` of a file."""
    users: dict[bytes, bytes] = {}
    for line in text.splitlines():
        line = line.strip()
        if line:
            user, colon, password = line.partition(":")
            if not colon or not user:
                raise ValueError(f"'{user}': a line is user:password")
            if not password:
                raise ValueError(f"user '{user}' has an empty password; give it one")
            users[user.encode()] = password.encode()
    return users


class InitiatorAuth:
    """The side that connects."""

    def __init__(self, credentials: Credentials, random: Random) -> None:
        """`random` gives bytes that cannot be guessed."""
        self.credentials = credentials
        self.random = random

    def syn(self) -> bytes | None:
        """For InitSyn."""
        methods: dict[int, int | bytes | None] = {}
        if self.credentials.user:
            methods[USER_PASSWORD] = None
        if self.credentials.key is not None:
            w = Writer()
            self.credentials.key.public.write(w)
            methods[PUBLIC_KEY] = w.getvalue()
        return write_methods(methods)

    def open(self, ack: bytes | None) -> bytes | None:
        """For OpenSyn, from what InitAck brought."""
        methods = read_methods(ack)
        shown: dict[int, int | bytes | None] = {}
        nonce = methods.get(USER_PASSWORD)
        if isinstance(nonce, int) and self.credentials.user:
            w = Writer()
            w.sized(self.credentials.user, 0xFFFF)
            w.sized(proof(nonce, self.credentials.password), 0xFFFF)
            shown[USER_PASSWORD] = w.getvalue()
        offered = methods.get(PUBLIC_KEY)
        if isinstance(offered, bytes) and self.credentials.key is not None:
            r = Reader(offered)
            theirs = PublicKey.read(r)
            challenge = self.credentials.key.decrypt(r.take(r.vle(0xFFFF)))
            w = Writer()
            w.sized(theirs.encrypt(challenge, self.random), 0xFFFF)
            shown[PUBLIC_KEY] = w.getvalue()
        return write_methods(shown)


class AcceptorAuth:
    """The side that is connected to."""

    def __init__(self, credentials: Credentials, random: Random) -> None:
        """`random` gives bytes that cannot be guessed."""
        self.credentials = credentials
        self.random = random
        self.nonce = int.from_bytes(random(8), "little")
        self.challenge = random(8)
        self.theirs: PublicKey | None = None
        #: Who it is, once known.
        self.user: str = ""
        #: Who it says that it is.
        self.tried: str = ""

    def ack(self, syn: bytes | None) -> bytes | None:
        """For InitAck; raises if the initiator has no credentials and needs some."""
        methods = read_methods(syn)
        shown: dict[int, int | bytes | None] = {}
        if self.credentials.users is not None:
            if USER_PASSWORD not in methods:
                raise HandshakeError(
                    "it has no user and password, and we let none in so", GENERIC, LOGIN
                )
            shown[USER_PASSWORD] = self.nonce
        if self.credentials.key is not None:
            offered = methods.get(PUBLIC_KEY)
            if not isinstance(offered, bytes):
                raise HandshakeError(
                    "it has no public key, and we let none in without", GENERIC, LOGIN
                )
            self.theirs = PublicKey.read(Reader(offered))
            if self.credentials.known is not None and self.theirs not in self.credentials.known:
                raise HandshakeError(
                    "its public key is not among those of transport/auth/pubkey/known_keys_file",
                    GENERIC,
                    LOGIN,
                )
            w = Writer()
            self.credentials.key.public.write(w)
            w.sized(self.theirs.encrypt(self.challenge, self.random), 0xFFFF)
            shown[PUBLIC_KEY] = w.getvalue()
        return write_methods(shown)

    def open(self, syn: bytes | None) -> bytes | None:
        """For OpenAck, from what OpenSyn brought; raises if it proves nothing."""
        methods = read_methods(syn)
        shown: dict[int, int | bytes | None] = {}
        if self.credentials.users is not None:
            self._check_password(methods.get(USER_PASSWORD))
            shown[USER_PASSWORD] = None
        if self.credentials.key is not None:
            self._check_key(methods.get(PUBLIC_KEY), self.credentials.key)
            shown[PUBLIC_KEY] = None
        return write_methods(shown)

    def _check_password(self, shown: int | bytes | None) -> None:
        if not isinstance(shown, bytes) or self.credentials.users is None:
            raise HandshakeError("it did not show its user and password", GENERIC, LOGIN)
        r = Reader(shown)
        user = r.take(r.vle(0xFFFF))
        shown_proof = r.take(r.vle(0xFFFF))
        self.tried = user[:64].decode("utf-8", "replace")
        password = self.credentials.users.get(user)
        # Computed for unknown users too, so that time does not tell who exists.
        expected = proof(self.nonce, b"" if password is None else password)
        # An empty password is none: nobody is let in by it, whatever a file says.
        if not is_same_secret(expected, shown_proof) or not password:
            raise HandshakeError(f"user or password is wrong (user {self.tried!r})", GENERIC, LOGIN)
        self.user = user.decode("utf-8", "replace")

    def _check_key(self, shown: int | bytes | None, key: PrivateKey) -> None:
        if not isinstance(shown, bytes):
            raise HandshakeError("it did not prove that its key is its own", GENERIC, LOGIN)
        r = Reader(shown)
        try:
            challenge = key.decrypt(r.take(r.vle(0xFFFF)))
        except DecodeError:
            raise
        except RemoteError as error:
            raise HandshakeError(f"it did not prove its key: {error}", GENERIC, LOGIN) from error
        if not is_same_secret(challenge, self.challenge):
            raise HandshakeError("it did not prove that its key is its own", GENERIC, LOGIN)
