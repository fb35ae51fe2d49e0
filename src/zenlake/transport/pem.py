"""RSA keys as files hold them: PEM text around the PKCS#1 numbers, as Eclipse's nodes read them.

openssl genrsa -traditional -out key.pem 2048
openssl rsa -in key.pem -RSAPublicKey_out -out key.pub
"""

from __future__ import annotations

import base64
import binascii
import re

from zenlake.transport.rsa import PrivateKey, PublicKey

SEQUENCE, INTEGER = 0x30, 0x02
PUBLIC, PRIVATE = "RSA PUBLIC KEY", "RSA PRIVATE KEY"

BLOCK = r"-----BEGIN ([A-Z ]+)-----\s*([A-Za-z0-9+/=\s]*?)-----END \1-----"


def public_keys(text: str) -> list[PublicKey]:
    """All public keys in a text; raises ValueError if there is none or one is damaged."""
    return [_public(_numbers(data)) for data in _blocks(text, PUBLIC)]


def private_key(text: str) -> PrivateKey:
    """The private key in a text; raises ValueError if there is none."""
    numbers = _numbers(_blocks(text, PRIVATE)[0])
    if len(numbers) < 9:
        raise ValueError(f"a private key has 9 numbers, this one {len(numbers)}")
    _, n, e, d = numbers[:4]
    return PrivateKey(_public([n, e]), d)


def _blocks(text: str, kind: str) -> list[bytes]:
    blocks = re.findall(BLOCK, text)
    named = [body for name, body in blocks if name == kind]
    if not named:
        others = ", ".join(sorted({name for name, _ in blocks})) or "no PEM text"
        raise ValueError(
            f"it holds {others}, not an {kind}; openssl's options -traditional and "
            "-RSAPublicKey_out write that form"
        )
    try:
        return [base64.b64decode("".join(body.split()), validate=True) for body in named]
    except binascii.Error as error:
        raise ValueError(f"the {kind} is damaged: {error}") from error


def _public(numbers: list[int]) -> PublicKey:
    if len(numbers) != 2 or numbers[0].bit_length() < 256 or not 3 <= numbers[1] < numbers[0]:
        raise ValueError("these are not the numbers of an RSA key of 256 bits or more")
    return PublicKey(numbers[0], numbers[1])


def _numbers(data: bytes) -> list[int]:
    """The integers of one DER sequence."""
    tag, inner, rest = _take(data)
    if tag != SEQUENCE or rest:
        raise ValueError("the key is no DER sequence")
    numbers = []
    while inner:
        tag, value, inner = _take(inner)
        if tag != INTEGER:
            raise ValueError(f"the key holds something else than numbers (tag {tag:#x})")
        numbers.append(int.from_bytes(value, "big"))
    return numbers


def _take(data: bytes) -> tuple[int, bytes, bytes]:
    """The first element: its tag, its value, and what comes behind."""
    if len(data) < 2:
        raise ValueError("the key ends too early")
    length, at = data[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(data[2:at], "big")
    if at + length > len(data):
        raise ValueError("the key ends too early")
    return data[0], data[at : at + length], data[at + length :]
