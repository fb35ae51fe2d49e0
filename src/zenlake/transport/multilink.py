"""Several links of one session: proof that they come from the same node, and which carries what.

A node that allows several links shows a key when a link opens, and proves that it is its own. A
link whose neighbour has shown that key before joins the session that there is. All links of a
session share its sequence numbers, so each lane travels over one of them at a time: over the one
that was made for it, by what its endpoint says (`?prio=6-7;rel=0`).

               initiator                       acceptor
    InitSyn    my key
    InitAck                                    my key, a nonce for yours
    OpenSyn    the nonce, for yours
    OpenAck                                    (agreed)
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import DecodeError, HandshakeError, RemoteError
from zenlake.transport.digests import is_same_secret
from zenlake.transport.rsa import PrivateKey, PublicKey, Random
from zenlake.wire.cursor import Reader, Writer

#: The reason in the Close message, as in `handshake`, which imports this module.
INVALID: Final = 2
NONCE: Final = 8

#: In the value that says what a link is for: a range of priorities and a reliability follow.
WITHOUT, RANGE, RELIABILITY = 0b001, 0b010, 0b100


class Purpose:
    """What a link is for: a range of priorities, a reliability, or everything."""

    __slots__ = ("first", "last", "reliable")

    def __init__(self, first: int = -1, last: int = -1, reliable: int = -1) -> None:
        """-1: not restricted."""
        self.first: int = first
        self.last: int = last
        self.reliable: int = reliable

    @classmethod
    def read(cls, value: int) -> Purpose:
        """From the number on the wire; raises `DecodeError` if it is none."""
        first = last = reliable = -1
        if value & RANGE:
            first = (value >> 3) & 0xFF
            last = (value >> 11) & 0xFF
            if not first <= last <= 7:
                raise DecodeError(f"priorities {first} to {last}")
        if value & RELIABILITY:
            reliable = (value >> 19) & 1
        return cls(first, last, reliable)

    def number(self) -> int:
        """As the number on the wire; 0 if nothing is restricted."""
        value = 0
        if self.first >= 0:
            value |= RANGE | self.first << 3 | self.last << 11
        if self.reliable >= 0:
            value |= RELIABILITY | self.reliable << 19
        return value

    def fitness(self, priority: int, reliable: bool) -> int:
        """How well a link suits a message; the greatest wins, and less than 0 is the last resort.

        The reliability must agree; then the narrowest range that holds the priority is best, and
        a link for all priorities comes behind those.
        """
        if self.reliable >= 0 and self.reliable != (1 if reliable else 0):
            return -1
        if self.first < 0:
            return 0
        if self.first <= priority <= self.last:
            return 9 - (self.last - self.first + 1)
        return -1


class LinkProof:
    """One side's part in showing that a link belongs to a node."""

    def __init__(self, key: PrivateKey | None, random: Random) -> None:
        """Without a key there is one link, and no extension is sent."""
        self.key: PrivateKey | None = key
        self.random: Random = random
        #: Whose link it is: the key that the other side showed.
        self.theirs: PublicKey | None = None
        self._nonce: bytes = b""

    def init_syn(self) -> bytes | None:
        """The extension of InitSyn: the key of this side."""
        if self.key is None:
            return None
        w = Writer()
        self.key.public.write(w)
        return w.getvalue()

    def init_ack(self, syn: bytes | None) -> bytes | None:
        """The extension of InitAck: this side's key, and a nonce encrypted for the other's."""
        if self.key is None or syn is None:
            return None
        self.theirs = PublicKey.read(Reader(syn))
        self._nonce = self.random(NONCE)
        w = Writer()
        self.key.public.write(w)
        w.sized(self.theirs.encrypt(self._nonce, self.random), 0xFFFF)
        return w.getvalue()

    def open_syn(self, ack: bytes | None) -> bytes | None:
        """The extension of OpenSyn: the proof, which is the nonce for the other side's key."""
        if self.key is None or ack is None:
            return None
        r = Reader(ack)
        self.theirs = PublicKey.read(r)
        nonce = self.key.decrypt(r.take(r.vle(0xFFFF)))
        w = Writer()
        w.sized(self.theirs.encrypt(nonce, self.random), 0xFFFF)
        return w.getvalue()

    def open_ack(self, syn: bytes | None) -> bool:
        """Whether several links are agreed; raises if the proof is none."""
        if self.theirs is None or self.key is None:
            return False
        if syn is None:
            raise HandshakeError("it did not prove whose link this is", INVALID)
        r = Reader(syn)
        try:
            shown = self.key.decrypt(r.take(r.vle(0xFFFF)))
        except DecodeError:
            raise
        except RemoteError as error:
            raise HandshakeError(f"it did not prove whose link this is: {error}", INVALID) from None
        if not is_same_secret(shown, self._nonce):
            raise HandshakeError("it did not prove whose link this is", INVALID)
        return True
