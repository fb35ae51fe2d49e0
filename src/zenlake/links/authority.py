"""An authority of certificates in a folder: for a fleet that has none of its own.

    authority.pem  authority.key     whose signature everybody believes; the key signs others
    router.pem     router.key        what a router shows
    NAME.pem       NAME.key          what a robot or a person shows

Keys are written for their owner alone. Who has an authority already needs none of this.
"""

from __future__ import annotations

import ipaddress
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from zenlake.errors import LocalError

__all__ = ["AUTHORITY", "ROUTER", "init", "issue"]

AUTHORITY: Final = "authority"
ROUTER: Final = "router"
YEARS: Final = 10
_NAME: Final = re.compile(r"[\w.@-]{1,64}")


def init(folder: Path, hosts: tuple[str, ...]) -> list[Path]:
    """Make an authority, and a certificate of a router that is called by these hosts."""
    if (folder / f"{AUTHORITY}.key").exists():
        raise LocalError(
            f"there is an authority in {folder} already; `zenlake certs issue NAME` signs with it"
        )
    x509, hashes, ec, oid = _cryptography()
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # `parents` have no mode
    folder.mkdir(exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid.COMMON_NAME, "zenlake authority")])
    signs = x509.KeyUsage(
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
    made = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return [*_write(folder, AUTHORITY, made, key), *issue(folder, ROUTER, hosts)]


def issue(folder: Path, name: str, hosts: tuple[str, ...] = ()) -> list[Path]:
    """Sign a certificate for a name, and for the hosts that it is called by."""
    if not _NAME.fullmatch(name) or name == AUTHORITY:
        raise LocalError(f"'{name}' cannot be the name of a certificate; write letters and digits")
    x509, hashes, ec, oid = _cryptography()
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        signer: Any = load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), None)
        issuer = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.pem").read_bytes())
    except OSError as error:
        raise LocalError(
            f"there is no authority in {folder}; make one with `zenlake certs init`"
        ) from error
    if (folder / f"{name}.key").exists():
        raise LocalError(f"{folder / name}.key is there already; choose another name, or remove it")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(oid.COMMON_NAME, name)])
    builder = _builder(subject, issuer.subject, key).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    names = [_host(x509, host) for host in (name, *hosts)]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _write(folder, name, builder.sign(signer, hashes.SHA256()), key)


def _builder(subject: Any, issuer: Any, key: Any) -> Any:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * YEARS))
    )


def _host(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(folder: Path, name: str, made: Any, key: Any) -> list[Path]:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate, secret = folder / f"{name}.pem", folder / f"{name}.key"
    fd = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    return [certificate, secret]


def _cryptography() -> tuple[Any, Any, Any, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    return x509, hashes, ec, NameOID
