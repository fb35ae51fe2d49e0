"""The small RSA that Zenoh uses to tell that two links come from the same node.

Keys have 512 bits: enough to recognise a neighbour, no protection of anything; general
libraries rightly refuse keys of this size, hence these few lines. Secrecy is the business of TLS.
"""

from __future__ import annotations

from collections.abc import Callable

from zenlake.errors import DecodeError, RemoteError
from zenlake.records import record
from zenlake.wire.cursor import Reader, Writer

Random = Callable[[int], bytes]

#: The largest modulus that is taken from a stranger, in bytes.
MAX_MODULUS = 1024
EXPONENT = 65537


@record(frozen=True, slots=True)
class PublicKey:
    """What others encrypt with."""

    n: int
    e: int

    @property
    def size(self) -> int:
        """The length of the modulus in bytes."""
        return (self.n.bit_length() + 7) // 8

    def write(self, w: Writer) -> None:
        """Append both numbers, little-endian behind their length."""
        w.sized(self.n.to_bytes(self.size, "little"), 0xFFFF)
        w.sized(self.e.to_bytes((self.e.bit_length() + 7) // 8, "little"), 0xFFFF)

    @classmethod
    def read(cls, r: Reader) -> PublicKey:
        """A key from the wire; raises if it is none that can be used."""
        n = int.from_bytes(r.take(r.vle(MAX_MODULUS)), "little")
        e = int.from_bytes(r.take(r.vle(MAX_MODULUS)), "little")
        if n.bit_length() < 256 or n % 2 == 0 or e < 3 or e >= n:
            raise DecodeError("the public key is not one", r.pos)
        return cls(n, e)

    def encrypt(self, message: bytes, random: Random) -> bytes:
        """Encrypt with PKCS#1 v1.5 padding."""
        room = self.size - 3 - len(message)
        if room < 8:
            raise RemoteError(f"a key of {self.size} bytes is too short for {len(message)} bytes")
        padding = b""
        while len(padding) < room:
            padding += random(room).replace(b"\0", b"")
        block = b"\0\2" + padding[:room] + b"\0" + message
        cipher = pow(int.from_bytes(block, "big"), self.e, self.n)
        return cipher.to_bytes(self.size, "big")


@record(frozen=True, slots=True)
class PrivateKey:
    """What this node decrypts with."""

    public: PublicKey
    d: int

    @classmethod
    def make(cls, random: Random, bits: int = 512) -> PrivateKey:
        """A new key."""
        while True:
            p = prime(bits // 2, random)
            q = prime(bits // 2, random)
            totient = (p - 1) * (q - 1)
            if p != q and totient % EXPONENT and (p * q).bit_length() == bits:
                return cls(PublicKey(p * q, EXPONENT), pow(EXPONENT, -1, totient))

    def decrypt(self, cipher: bytes) -> bytes:
        """The message; raises if it was not encrypted for this key."""
        value = int.from_bytes(cipher, "big")
        if value >= self.public.n:
            raise RemoteError("it was not encrypted with our key")
        block = pow(value, self.d, self.public.n).to_bytes(self.public.size, "big")
        end = block.find(b"\0", 2)
        if block[:2] != b"\0\2" or end < 10:
            raise RemoteError("it was not encrypted with our key")
        return block[end + 1 :]


def prime(bits: int, random: Random) -> int:
    """A probable prime with its two highest bits set."""
    while True:
        value = int.from_bytes(random(bits // 8), "big") | 3 << (bits - 2) | 1
        if all(value % small for small in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)) and all(
            _witness(value, 2 + int.from_bytes(random(16), "big")) for _ in range(16)
        ):
            return value


def _witness(value: int, base: int) -> bool:
    """Whether Miller and Rabin find nothing against `value` with this base."""
    odd = value - 1
    twos = 0
    while odd % 2 == 0:
        odd //= 2
        twos += 1
    x = pow(base, odd, value)
    if x in (1, value - 1):
        return True
    for _ in range(twos - 1):
        x = x * x % value
        if x == value - 1:
            return True
    return False
