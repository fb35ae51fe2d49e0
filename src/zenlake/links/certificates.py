"""Which certificates a link shows, and which it believes.

They come from `transport/link/tls` of the configuration, or from the options of one endpoint, which
count more. Each is a file, or its content in base64. A file is read again when it has changed, so
that a renewed certificate is shown to the next neighbour that connects.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from zenlake.config.model_transport import Tls
from zenlake.errors import ConfigError, LinkError
from zenlake.links.link import reason
from zenlake.links.options import Side
from zenlake.links.secrets import demand_secret
from zenlake.values.locator import EndPoint

__all__ = ["Pem", "ServerContext", "TlsCredentials", "client_context", "credentials", "tls_reason"]

HANDSHAKE_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class Pem:
    """A certificate or a key: in a file, or in memory."""

    what: str
    path: str = ""
    content: bytes = b""

    def read(self) -> bytes:
        """Its text."""
        if not self.path:
            return self.content
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise LinkError(f"cannot read {self.what} '{self.path}': {reason(error)}") from error

    def stamp(self) -> object:
        """What differs once the file has changed."""
        if not self.path:
            return None
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    @contextlib.contextmanager
    def as_file(self) -> Iterator[str]:
        """A path where it can be read; OpenSSL takes certificates from nowhere else."""
        if self.path:
            self.read()  # names the missing file, where OpenSSL only says that one is
            yield self.path
            return
        if hasattr(os, "memfd_create"):  # never touches a disk
            descriptor = os.memfd_create("pem")
            try:
                os.write(descriptor, self.content)
                yield f"/proc/self/fd/{descriptor}"
            finally:
                os.close(descriptor)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pem")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(self.content)
            yield path

    def __repr__(self) -> str:
        return f"<{self.what} {self.path or 'in memory'}>"


@dataclass(frozen=True, slots=True)
class TlsCredentials:
    """The certificates and rules of one side of a secure link."""

    authority: Pem | None
    certificate: Pem | None
    key: Pem | None
    mtls: bool
    verify_name: bool
    close_on_expiration: bool
    handshake_timeout: float

    def identity(self, side: Side) -> tuple[Pem, Pem]:
        """The certificate to show and its key, which must be there."""
        for what, pem in (("certificate", self.certificate), ("private_key", self.key)):
            if pem is None:
                why = "listening" if side == "listen" else "connecting with enable_mtls"
                raise ConfigError(
                    f"{why} needs transport/link/tls/{side}_{what}, which is not set; "
                    f"write the path of a PEM file there"
                )
        assert self.certificate is not None
        assert self.key is not None
        return self.certificate, self.key

    def stamps(self) -> tuple[object, ...]:
        """What differs once one of the files has changed."""
        return tuple(
            pem.stamp() for pem in (self.authority, self.certificate, self.key) if pem is not None
        )


def credentials(endpoint: EndPoint, settings: Tls, side: Side) -> TlsCredentials:
    """The credentials in the configuration and the endpoint, checked for contradictions."""
    timeout = endpoint.get("tls_handshake_timeout_ms")
    return TlsCredentials(
        authority=_pem(endpoint, settings, "root_ca_certificate"),
        certificate=_pem(endpoint, settings, f"{side}_certificate"),
        key=_pem(endpoint, settings, f"{side}_private_key"),
        mtls=_flag(endpoint, "enable_mtls", settings.enable_mtls),
        verify_name=_flag(endpoint, "verify_name_on_connect", settings.verify_name_on_connect),
        close_on_expiration=_flag(
            endpoint, "close_link_on_expiration", settings.close_link_on_expiration
        ),
        handshake_timeout=int(timeout or HANDSHAKE_TIMEOUT_MS) / 1000,
    )


def client_context(tls: TlsCredentials) -> ssl.SSLContext:
    """How to be the side that connects: believe the given authorities, else those of the system.

    With authorities of one's own the system's are not believed as well: a private network is not
    open to every owner of a certificate for any name.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify_name
    if tls.authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _believe(context, tls.authority)
    if tls.mtls:
        _show(context, *tls.identity("connect"))
    return context


def server_context(tls: TlsCredentials) -> ssl.SSLContext:
    """How to be the side that is connected to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # sessions are not resumed
    _show(context, *tls.identity("listen"))
    if tls.mtls:
        if tls.authority is None:
            raise ConfigError(
                "enable_mtls needs transport/link/tls/root_ca_certificate, which is not set: "
                "nothing says whose certificates to believe"
            )
        context.verify_mode = ssl.CERT_REQUIRED
        _believe(context, tls.authority)
    return context


class ServerContext:
    """The context for the next handshake, made anew when a file has changed."""

    def __init__(self, tls: TlsCredentials) -> None:
        """Read everything once, so that a fault is known before a neighbour connects."""
        self._tls = tls
        self._stamps = tls.stamps()
        self._context = server_context(tls)

    def current(self) -> tuple[ssl.SSLContext, LinkError | ConfigError | None]:
        """The context, and why new files could not be used if they could not."""
        stamps = self._tls.stamps()
        if stamps == self._stamps:
            return self._context, None
        self._stamps = stamps
        try:
            self._context = server_context(self._tls)
        except (LinkError, ConfigError) as error:
            # A file may be half written: it changes again, and is then looked at again.
            return self._context, error
        return self._context, None


def tls_reason(error: Exception) -> str:
    """Why a handshake failed, as text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message or "it does not verify"
        return f"its certificate is not accepted: {why[:1].lower()}{why[1:].rstrip('.')}"
    if isinstance(error, ssl.SSLError):
        code = (error.reason or "").upper()
        if "ALERT" in code:
            words = code.partition("ALERT_")[2].replace("_", " ").lower()
            return f"it refused us: {words or 'without a reason'}"
        if code == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "it showed no certificate, which enable_mtls demands"
        if code in _NOT_TLS:
            return "it does not speak TLS"
        if isinstance(error, ssl.SSLEOFError):
            return "it broke off"
        return code.replace("_", " ").lower() or "TLS failed"
    return reason(error)


_NOT_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
)


def _believe(context: ssl.SSLContext, authority: Pem) -> None:
    # An authority that is itself signed by another is believed without that other.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=authority.read().decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise LinkError(
            f"{authority!r} holds no certificate that can be read; write it in PEM"
        ) from error


def _show(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    if key.path:
        with contextlib.suppress(OSError):  # that it is not there is said when it is read
            demand_secret(key.what, key.path)
    with certificate.as_file() as chain, key.as_file() as secret:
        try:
            context.load_cert_chain(chain, secret, password=_no_password)
        except LinkError:
            raise
        except (OSError, ValueError) as error:
            why = "they do not belong together" if _is_mismatch(error) else "write both in PEM"
            raise LinkError(f"cannot use {certificate!r} with {key!r}: {why}") from error


def _is_mismatch(error: Exception) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH"


def _no_password() -> NoReturn:
    # Without this OpenSSL asks at the terminal, and waits.
    raise LinkError("the private key is encrypted with a password; write it without one")


def _pem(endpoint: EndPoint, settings: Tls, what: str) -> Pem | None:
    forms = [f"{what}_file", f"{what}_base64", f"{what}_raw"]
    given = [form for form in forms if endpoint.get(form) is not None]
    if len(given) > 1:
        raise ConfigError(f"an endpoint has both {given[0]} and {given[1]}; write one of them")
    if given:
        value = endpoint.get(given[0]) or ""
        if given[0] == forms[0]:
            return Pem(what, value)
        return Pem(what, content=value.encode() if given[0] == forms[2] else _decoded(what, value))
    path: str | None = getattr(settings, what)
    text: str | None = getattr(settings, f"{what}_base64")
    if path is not None and text is not None:
        raise ConfigError(
            f"transport/link/tls has both {what} and {what}_base64; write one of them"
        )
    if path is not None:
        return Pem(what, path)
    return None if text is None else Pem(what, content=_decoded(what, text))


def _decoded(what: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ConfigError(f"{what}_base64 is not base64: {error}") from error


def _flag(endpoint: EndPoint, name: str, otherwise: bool) -> bool:
    value = endpoint.get(name)
    return otherwise if value is None else value == "true"
