"""The files that a configuration names: whether they can be read, and certificates be used."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zenlake.cli.machine import Finding
from zenlake.values.locator import EndPoint

if TYPE_CHECKING:
    from zenlake.config import Problem, Settings

__all__ = ["certificates", "expiry", "missing", "named"]

#: A certificate that ends so soon should be renewed, in seconds.
SOON = 14 * 86_400

TLS = (
    "root_ca_certificate",
    "listen_private_key",
    "listen_certificate",
    "connect_private_key",
    "connect_certificate",
)

# Validity ::= SEQUENCE { notBefore Time, notAfter Time }, each a UTCTime or a GeneralizedTime.
_TIME = rb"(?:\x17\x0d(\d{12}Z)|\x18\x0f(\d{14}Z))"
_VALIDITY = re.compile(rb"\x30." + _TIME + _TIME, re.DOTALL)


def named(settings: Settings) -> Iterator[tuple[str, str]]:
    """The keys that name files, with the files."""
    tls, auth = settings.transport.link.tls, settings.transport.auth
    for name in TLS:
        file = getattr(tls, name)
        if file is not None:
            yield f"transport/link/tls/{name}", file
    if auth.usrpwd.dictionary_file is not None:
        yield "transport/auth/usrpwd/dictionary_file", auth.usrpwd.dictionary_file
    for name in ("public_key_file", "private_key_file", "known_keys_file"):
        file = getattr(auth.pubkey, name)
        if file is not None:
            yield f"transport/auth/pubkey/{name}", file
    for side, places in (
        ("listen", settings.listen.endpoints),
        ("connect", settings.connect.endpoints),
    ):
        for place in places:
            if isinstance(place, EndPoint):
                for name, value in place.config:
                    if name.endswith("_file"):
                        yield f"{side}/endpoints: {place.locator}#{name}", value


def missing(settings: Settings) -> list[Problem]:
    """The files that cannot be read."""
    from zenlake.config import Problem

    problems: list[Problem] = []
    for key, file in named(settings):
        try:
            with open(file, "rb") as opened:
                opened.read(1)
        except OSError as error:
            problems.append(Problem(key, f"{file}: {error.strerror or error}"))
    return problems


def certificates(settings: Settings, now: float) -> Iterator[Finding]:
    """Whether the certificates of a configuration can be read, and until when they hold."""
    for problem in missing(settings):
        yield Finding("fail", "file", f"{problem.path}: {problem.message}", "name one that exists")
    for key, file in named(settings):
        if "certificate" not in key:
            continue
        try:
            with open(file, encoding="ascii", errors="replace") as opened:
                until = expiry(opened.read())
        except OSError:
            continue  # told above
        if until is None:
            yield Finding("fail", "certificate", f"{file} holds none in PEM", "see how it was made")
            continue
        day = time.strftime("%Y-%m-%d", time.gmtime(until))
        if until < now:
            yield Finding("fail", "certificate", f"{file} ended on {day}", "renew it")
        elif until < now + SOON:
            yield Finding("warn", "certificate", f"{file} ends on {day}", "renew it")
        else:
            yield Finding("ok", "certificate", f"{file} holds until {day}")


def expiry(pem: str) -> float | None:
    """When the first of the certificates in a PEM text ends; None if there is none."""
    ends: list[float] = []
    for block in re.findall(
        r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.DOTALL
    ):
        try:
            validity = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(block))
        except ValueError:
            continue
        if validity is not None:
            ends.append(_seconds((validity[3] or validity[4]).decode()))
    return min(ends, default=None)


def _seconds(text: str) -> float:
    if len(text) == 13:  # UTCTime: years 50 to 99 are of the last century
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
