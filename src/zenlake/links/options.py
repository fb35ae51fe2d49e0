"""What may be written behind the address of an endpoint, and what it means.

    tcp/192.168.0.1:7447?rel=1#iface=eth0;so_sndbuf=65536

Each protocol names the options it honours. One that it does not honour is refused by name, with
those that it does: a setting that is silently without effect is worse than an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from zenlake.errors import LocatorError
from zenlake.records import record
from zenlake.values.locator import EndPoint, split_host_port

__all__ = [
    "BAUD_RATE",
    "BIND",
    "DSCP",
    "IFACE",
    "INET",
    "RETRY",
    "SERIAL",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "TLS",
    "LinkOption",
    "Metadata",
    "Side",
    "only_inet",
    "shown",
]

Side = Literal["connect", "listen"]
Kind = Literal["integer", "factor", "flag", "class", "text", "address"]

MAX_INT: Final = 2**31 - 1


@record(frozen=True, slots=True)
class LinkOption:
    """One key that may stand behind the `#` of an endpoint."""

    name: str
    kind: Kind
    effect: str
    sides: tuple[Side, ...] = ("connect", "listen")

    def check(self, value: str) -> None:
        """Refuse a value that is none."""
        fault = _FAULTS[self.kind](value)
        if fault:
            raise LocatorError(f"'{self.name}={value}': {fault}")


@record(frozen=True, slots=True)
class Metadata:
    """One key that may stand behind the `?` of an endpoint, with the values it may have."""

    name: str
    values: tuple[str, ...]
    effect: str
    form: str = ""
    """How the values look, where there are too many to name."""


IFACE = LinkOption("iface", "text", "Uses this network interface alone (Linux).")
BIND = LinkOption("bind", "address", "Connects from this local address.", ("connect",))
SO_SNDBUF = LinkOption("so_sndbuf", "integer", "The size of the system's send buffer, in bytes.")
SO_RCVBUF = LinkOption("so_rcvbuf", "integer", "The size of the system's receive buffer, in bytes.")
DSCP = LinkOption(
    "dscp", "class", "The traffic class byte of packets: 0 to 255, `0x` allowed, joined by a bar."
)
RETRY: Final = (
    LinkOption("retry_period_init_ms", "integer", "The first pause before trying again."),
    LinkOption("retry_period_max_ms", "integer", "The longest pause before trying again."),
    LinkOption("retry_period_increase_factor", "factor", "How much each pause grows."),
    LinkOption("exit_on_failure", "flag", "Whether opening the session fails when this does."),
)
"""Read by `node.connect`, which decides when to connect again; every protocol allows them."""

INET: Final = (IFACE, BIND, SO_SNDBUF, SO_RCVBUF, DSCP)

BAUD_RATE: Final = 9600
"""Bits a second of a serial line whose endpoint does not say."""
SERIAL: Final = (
    LinkOption("baudrate", "integer", f"Bits a second, {BAUD_RATE} unless given."),
    LinkOption(
        "exclusive", "flag", "Whether no other process may open the line; true unless given."
    ),
)


def _material(name: str, effect: str, sides: tuple[Side, ...]) -> tuple[LinkOption, ...]:
    return (
        LinkOption(
            f"{name}_file", "text", f"{effect} A PEM file, read again when it has changed.", sides
        ),
        LinkOption(
            f"{name}_base64", "text", f"{effect} The content of such a file, in base64.", sides
        ),
        LinkOption(f"{name}_raw", "text", f"{effect} The content of such a file, as it is.", sides),
    )


TLS: Final = (
    *_material(
        "root_ca_certificate",
        "Whose signature to believe on the other side's certificate, and no others'.",
        ("connect", "listen"),
    ),
    *_material("listen_certificate", "The certificate to show.", ("listen",)),
    *_material("listen_private_key", "The key of the certificate.", ("listen",)),
    *_material("connect_certificate", "The certificate to show for mTLS.", ("connect",)),
    *_material("connect_private_key", "The key of the certificate.", ("connect",)),
    LinkOption("enable_mtls", "flag", "Whether the side that connects shows a certificate too."),
    LinkOption(
        "verify_name_on_connect",
        "flag",
        "Whether the certificate must be for the host of the endpoint.",
        ("connect",),
    ),
    LinkOption(
        "close_link_on_expiration",
        "flag",
        "Whether the link ends when the other side's certificate does.",
    ),
    LinkOption(
        "tls_handshake_timeout_ms",
        "integer",
        "How long a node that connects may take for the handshake.",
        ("listen",),
    ),
)
"""They count more than the keys of `transport/link/tls`, which have the same names."""


def shown(endpoint: EndPoint) -> str:
    """The text of an endpoint for people to read: secrets are left out."""
    if not any("private_key" in name for name, _ in endpoint.config):
        return str(endpoint)
    pairs = tuple(
        (name, "..." if "private_key" in name and not name.endswith("_file") else value)
        for name, value in endpoint.config
    )
    return str(EndPoint(endpoint.locator, pairs))


def only_inet(endpoint: EndPoint, so_sndbuf: int | None, so_rcvbuf: int | None) -> EndPoint:
    """The endpoint with what concerns its socket alone; sizes are used where it names none."""
    names = {option.name for option in INET}
    pairs = {name: value for name, value in endpoint.config if name in names}
    for name, size in (("so_sndbuf", so_sndbuf), ("so_rcvbuf", so_rcvbuf)):
        if size:
            pairs.setdefault(name, str(size))
    return EndPoint(endpoint.locator, tuple(pairs.items()))


def check_options(endpoint: EndPoint, known: Iterable[LinkOption], side: Side) -> None:
    """Refuse an option that is not honoured on this side, or has a value that is none."""
    by_name = {option.name: option for option in known if side in option.sides}
    for name, value in endpoint.config:
        option = by_name.get(name)
        if option is None:
            raise LocatorError(
                f"'{shown(endpoint)}': the option '{name}' is not honoured when {side}ing over "
                f"{endpoint.protocol}; these are: {', '.join(sorted(by_name))}"
            )
        option.check(value)
    if endpoint.get("iface") is not None and endpoint.get("bind") is not None:
        raise LocatorError(f"'{shown(endpoint)}': write either 'iface' or 'bind', not both")


def check_metadata(endpoint: EndPoint, known: Iterable[Metadata]) -> None:
    """Refuse metadata that is not honoured, or has a value that is not."""
    by_name = {metadata.name: metadata for metadata in known}
    for name, value in endpoint.metadata:
        metadata = by_name.get(name)
        if metadata is None:
            names = ", ".join(sorted(by_name)) or "none"
            raise LocatorError(
                f"'{shown(endpoint)}': the metadata '{name}' is not honoured over "
                f"{endpoint.protocol}; these are: {names}"
            )
        if value not in metadata.values:
            forms = metadata.form or " or ".join(f"{name}={each}" for each in metadata.values)
            raise LocatorError(
                f"'{shown(endpoint)}': '{name}={value}' is not honoured over {endpoint.protocol}; "
                f"write {forms}"
            )


def parse_integer(text: str) -> int | None:
    """The integer that `text` spells, if it is one that a socket option can have."""
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MAX_INT:
        return int(text)
    return None


def traffic_class(text: str) -> int | None:
    """The byte that `text` spells, such as `0x20` or `4|16`."""
    bits = 0
    for part in text.split("|"):
        try:
            number = int(part, 16 if part[:2] in ("0x", "0X") else 10)
        except ValueError:
            return None
        if not 0 <= number <= 255:
            return None
        bits |= number
    return bits


def _integer_fault(value: str) -> str:
    return "" if parse_integer(value) else f"write a whole number from 1 to {MAX_INT}"


def _factor_fault(value: str) -> str:
    try:
        fine = 1.0 <= float(value) < float("inf")
    except ValueError:
        fine = False
    return "" if fine else "write a number of at least 1"


def _flag_fault(value: str) -> str:
    return "" if value in ("true", "false") else "write true or false"


def _class_fault(value: str) -> str:
    return "" if traffic_class(value) is not None else "write a number up to 255, such as 0x20"


def _text_fault(value: str) -> str:
    return "" if value else "write a name"


def _address_fault(value: str) -> str:
    try:
        split_host_port(value)
    except LocatorError as error:
        return str(error)
    return ""


_FAULTS: Final = {
    "integer": _integer_fault,
    "factor": _factor_fault,
    "flag": _flag_fault,
    "class": _class_fault,
    "text": _text_fault,
    "address": _address_fault,
}
