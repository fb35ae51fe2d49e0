"""Keys from PEM text: openssl writes them, we read the same numbers."""

from __future__ import annotations

import random

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from zenlake.transport.pem import private_key, public_keys

THEIRS = rsa.generate_private_key(public_exponent=65537, key_size=1024)
PRIVATE = THEIRS.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
).decode()
PUBLIC = (
    THEIRS.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1)
    .decode()
)


def test_a_private_key_is_read_and_fits_its_public_one() -> None:
    key = private_key(PRIVATE)
    assert [key.public] == public_keys(PUBLIC)
    assert key.public.n == THEIRS.public_key().public_numbers().n
    cipher = key.public.encrypt(b"nonce", random.Random(1).randbytes)
    assert key.decrypt(cipher) == b"nonce"


def test_a_file_may_hold_many_keys() -> None:
    assert public_keys(f"# the fleet\n{PUBLIC}\nand another\n{PUBLIC}") == public_keys(PUBLIC) * 2


def test_another_form_is_refused_with_the_way_to_the_right_one() -> None:
    other = THEIRS.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with pytest.raises(ValueError, match=r"holds PUBLIC KEY, not an RSA PUBLIC KEY.*openssl"):
        public_keys(other.decode())
    with pytest.raises(ValueError, match="no PEM text"):
        private_key("secret")


@given(at=st.integers(30, len(PRIVATE) - 40), put=st.sampled_from("AZ/9"))
def test_a_damaged_key_is_refused_or_still_a_key(at: int, put: str) -> None:
    try:
        key = private_key(PRIVATE[:at] + put + PRIVATE[at + 1 :])
    except ValueError:
        return
    assert key.public.n > 0


@given(cut=st.integers(0, len(PUBLIC) - 1))
def test_a_key_cut_short_is_refused(cut: int) -> None:
    if PUBLIC[:cut].strip() != PUBLIC.strip():
        with pytest.raises(ValueError, match="not an RSA PUBLIC KEY"):
            public_keys(PUBLIC[:cut])
