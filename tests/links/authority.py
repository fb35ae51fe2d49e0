"""Certificates for the tests of links: an authority, and what it signs."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    @property
    def certificate_base64(self) -> str:
        return base64.b64encode(self.certificate.read_bytes()).decode()

    @property
    def key_base64(self) -> str:
        return base64.b64encode(self.key.read_bytes()).decode()


class Authority:
    """Signs certificates, with files in a folder of the test."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(SIGNS, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(made.public_bytes(Encoding.PEM))

    def sign(
        self,
        file: str,
        name: str | None = "node",
        hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "::1"),
        until: timedelta = DAY,
        password: bytes = b"",
    ) -> Certificate:
        """A certificate for hosts, with or without a common name, until a time from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + until)
            # Python 3.13 takes no certificate that does not say which key signed it.
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            names = [_host(host) for host in hosts]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(names), critical=not subject
            )
        made = builder.sign(self._key, hashes.SHA256())
        paper = Certificate(self.folder / f"{file}.pem", self.folder / f"{file}.key")
        paper.certificate.write_bytes(made.public_bytes(Encoding.PEM))
        locked = BestAvailableEncryption(password) if password else NoEncryption()
        paper.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        paper.key.chmod(0o600)
        return paper


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
