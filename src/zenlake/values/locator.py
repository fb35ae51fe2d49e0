"""Where a node can be reached.

    tcp/192.168.0.1:7447?prio=1-3;rel=1#iface=eth0
    └┬┘ └──────┬───────┘ └─────┬──────┘ └───┬────┘
    protocol  address       metadata      config

A **locator** goes to other nodes: it ends before the `#`. An **endpoint** is what a configuration
says; its config part is for this node alone and never leaves it. Metadata and config are
`key=value` pairs, kept in the order of their keys.
"""

from __future__ import annotations

from typing import Final, final

from zenlake.errors import LocatorError

__all__ = ["MAX_LOCATOR_BYTES", "EndPoint", "Locator", "Pairs", "split_host_port"]

MAX_LOCATOR_BYTES: Final = 255
_FORM: Final = "write 'protocol/address', such as 'tcp/127.0.0.1:7447'"

Pairs = tuple[tuple[str, str], ...]


@final
class Locator:
    """A protocol and an address that another node can connect to."""

    __slots__ = ("_address", "_metadata", "_protocol")

    def __init__(self, protocol: str, address: str, metadata: Pairs = ()) -> None:
        """Take the parts of a locator; `parse` reads its text."""
        _check_part(protocol, "protocol", "/?#")
        _check_part(address, "address", "?#")
        self._protocol: str = protocol
        self._address: str = address
        self._metadata: Pairs = _ordered(metadata)
        if any("#" in key + value for key, value in metadata):
            raise LocatorError(f"the metadata of '{self}' holds a '#', which begins the config")
        size = _size(str(self))
        if size > MAX_LOCATOR_BYTES:
            raise LocatorError(
                f"'{str(self)[:60]}...' has {size} bytes; a locator has at most {MAX_LOCATOR_BYTES}"
            )

    @classmethod
    def parse(cls, text: str) -> Locator:
        """The locator that `text` spells."""
        if "#" in text:
            raise LocatorError(
                f"'{text}' has a '#': a config part belongs to an endpoint and is never told to "
                f"other nodes; write '{text.partition('#')[0]}'"
            )
        protocol, address, metadata, _ = _split(text)
        return cls(protocol, address, metadata)

    @property
    def protocol(self) -> str:
        """How to speak: tcp, udp, tls, quic, ws, unixsock-stream, serial, ..."""
        return self._protocol

    @property
    def address(self) -> str:
        """Where, in the words of the protocol."""
        return self._address

    @property
    def metadata(self) -> Pairs:
        """What others should know of the address, in the order of the keys."""
        return self._metadata

    @property
    def host(self) -> str:
        """The host of a network address, an IPv6 one without its brackets."""
        return split_host_port(self._address)[0]

    @property
    def port(self) -> int:
        """The port of a network address."""
        return split_host_port(self._address)[1]

    def get(self, key: str) -> str | None:
        """The metadata under `key`, if there is any."""
        return _get(self._metadata, key)

    def __str__(self) -> str:
        return _text(self._protocol, self._address, self._metadata, ())

    def __repr__(self) -> str:
        return f"Locator.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Locator) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[Locator], tuple[str, str, Pairs]]:
        return Locator, (self._protocol, self._address, self._metadata)


@final
class EndPoint:
    """A locator, and how this node should use it."""

    __slots__ = ("_config", "_locator")

    def __init__(self, locator: Locator, config: Pairs = ()) -> None:
        """Take the parts of an endpoint; `parse` reads its text."""
        self._locator: Locator = locator
        self._config: Pairs = _ordered(config)
        # The first `?` of the text begins the metadata; those after it are ordinary.
        if not locator.metadata and any("?" in key + value for key, value in config):
            raise LocatorError(f"'{self}' has a '?' after '#'; metadata comes before config")

    @classmethod
    def parse(cls, text: str) -> EndPoint:
        """The endpoint that `text` spells."""
        protocol, address, metadata, config = _split(text)
        return cls(Locator(protocol, address, metadata), config)

    @property
    def locator(self) -> Locator:
        """What other nodes may be told."""
        return self._locator

    @property
    def protocol(self) -> str:
        """How to speak: tcp, udp, tls, quic, ws, unixsock-stream, serial, ..."""
        return self._locator.protocol

    @property
    def address(self) -> str:
        """Where, in the words of the protocol."""
        return self._locator.address

    @property
    def metadata(self) -> Pairs:
        """What others should know of the address, in the order of the keys."""
        return self._locator.metadata

    @property
    def config(self) -> Pairs:
        """What this node alone should know, in the order of the keys."""
        return self._config

    @property
    def host(self) -> str:
        """The host of a network address, an IPv6 one without its brackets."""
        return self._locator.host

    @property
    def port(self) -> int:
        """The port of a network address."""
        return self._locator.port

    def get(self, key: str) -> str | None:
        """The config under `key`, if there is any."""
        return _get(self._config, key)

    def __str__(self) -> str:
        return _text(self.protocol, self.address, self.metadata, self._config)

    def __repr__(self) -> str:
        return f"EndPoint.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EndPoint) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[EndPoint], tuple[Locator, Pairs]]:
        return EndPoint, (self._locator, self._config)


def split_host_port(address: str) -> tuple[str, int]:
    """The host and the port of `host:port` or `[ipv6]:port`."""
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise LocatorError(f"'{address}' has no port; write 'host:7447' or '[::1]:7447'")
    if host[0] == "[" and host[-1] == "]" and len(host) > 2:
        host = host[1:-1]
    elif ":" in host or "[" in host or "]" in host:
        raise LocatorError(f"'{address}': put an IPv6 address in brackets, as in '[::1]:7447'")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 0xFFFF):
        raise LocatorError(f"'{address}': '{port}' is not a port; write a number up to 65535")
    return host, int(port)


def _split(text: str) -> tuple[str, str, Pairs, Pairs]:
    """Protocol, address, metadata and config of an endpoint's text."""
    protocol, slash, rest = text.partition("/")
    if not slash or not protocol:
        raise LocatorError(f"'{text}' names no protocol; {_FORM}")
    rest, hash_sign, config = rest.partition("#")
    address, question_mark, metadata = rest.partition("?")
    if not address:
        raise LocatorError(f"'{text}' has no address; {_FORM}")
    pairs = _pairs(metadata) if question_mark else ()
    more = _pairs(config) if hash_sign else ()
    if (question_mark and not pairs) or (hash_sign and not more):
        mark = "?" if question_mark and not pairs else "#"
        raise LocatorError(f"'{text}' has nothing after '{mark}'; write 'key=value' there or end")
    return protocol, address, pairs, more


def _pairs(text: str) -> Pairs:
    pairs: list[tuple[str, str]] = []
    for item in text.split(";"):
        key, _, value = item.partition("=")
        if key:
            pairs.append((key, value))
    return tuple(pairs)


def _ordered(pairs: Pairs) -> Pairs:
    for key, value in pairs:
        if not key or ";" in key or "=" in key or ";" in value:
            raise LocatorError(f"'{key}={value}' is not one 'key=value' pair")
    return tuple(sorted(pairs, key=_key_of))


def _key_of(pair: tuple[str, str]) -> str:
    return pair[0]


def _get(pairs: Pairs, key: str) -> str | None:
    for name, value in pairs:
        if name == key:
            return value
    return None


def _check_part(part: str, what: str, forbidden: str) -> None:
    if not part:
        raise LocatorError(f"the {what} is empty; {_FORM}")
    for sign in forbidden:
        if sign in part:
            raise LocatorError(f"the {what} '{part}' cannot hold a '{sign}'; {_FORM}")


def _text(protocol: str, address: str, metadata: Pairs, config: Pairs) -> str:
    text = f"{protocol}/{address}"
    if metadata:
        text += "?" + ";".join([f"{k}={v}" if v else k for k, v in metadata])
    if config:
        text += "#" + ";".join([f"{k}={v}" if v else k for k, v in config])
    return text


def _size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise LocatorError(f"{text!r} cannot be written as UTF-8") from error
