"""A certificate for localhost, made for one run."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def settings(folder: Path) -> dict[str, Any]:
    """Write an authority and a certificate that it signed; what both sides are told of them."""
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in ("bench", "localhost")
    ]
    made = []
    for index in range(2):
        builder = (
            x509.CertificateBuilder()
            .subject_name(names[index])
            .issuer_name(names[0])
            .public_key(keys[index].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=index == 0, path_length=None), critical=True)
        )
        if index == 1:
            # Python 3.13 takes no certificate that does not say which key signed it.
            builder = builder.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(keys[0].public_key()),
                critical=False,
            )
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName("localhost"), address]), critical=False
            )
        else:
            builder = builder.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(keys[0].public_key()), critical=False
            )
        made.append(builder.sign(keys[0], hashes.SHA256()))
    key = keys[1].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    files = {
        "root_ca_certificate": made[0].public_bytes(serialization.Encoding.PEM),
        "listen_certificate": made[1].public_bytes(serialization.Encoding.PEM),
        "listen_private_key": key,
    }
    for name, text in files.items():
        (folder / name).write_bytes(text)
        (folder / name).chmod(0o600)
    return {f"transport/link/tls/{name}": str(folder / name) for name in files}
