"""Digests, and the comparison of secrets.

`hashlib` and `hmac` load OpenSSL's tables of algorithms: 3 ms, which a node that has no neighbour
yet does without. So they are imported here, when they are used.
"""

from __future__ import annotations

__all__ = ["hmac_sha3_256", "is_same_secret", "shake_128"]


def hmac_sha3_256(key: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message, with SHA3-256."""
    import hashlib
    import hmac

    return hmac.digest(key, message, hashlib.sha3_256)


def is_same_secret(one: bytes, other: bytes) -> bool:
    """Return whether both are equal, in a time that does not tell where they differ."""
    import hmac

    return hmac.compare_digest(one, other)


def shake_128(data: bytes, size: int) -> bytes:
    """Return the first `size` bytes of the SHAKE-128 digest."""
    import hashlib

    return hashlib.shake_128(data).digest(size)
