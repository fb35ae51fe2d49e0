"""The private parts of aioquic that links over QUIC use.

aioquic has no public way to know how many bytes wait to be sent, which certificate the peer showed,
or to end a connection at once. Only this module touches the private names
(`tests/build/test_private_names.py`), and the extra `quic` bounds aioquic to the versions that the
suite runs on. To support a new version, begin here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from cryptography.x509 import Certificate

__all__ = ["ConnectionProtocol", "ServerProtocol"]


class ConnectionProtocol(QuicConnectionProtocol):
    """One end of a connection."""

    def __init__(self, quic: QuicConnection) -> None:
        super().__init__(quic)
        self.quic = quic
        self.loop: asyncio.AbstractEventLoop = self._loop

    def unsent(self, stream_id: int) -> int:
        """Return how many bytes of a stream wait to be sent or acknowledged."""
        stream = self._quic._streams.get(stream_id)
        return len(stream.sender._buffer) if stream is not None else 0

    def is_flushed(self, stream_id: int) -> bool:
        """Return True if every byte of a stream has been sent at least once."""
        stream = self._quic._streams.get(stream_id)
        return stream is None or stream.sender.buffer_is_empty

    def peer_certificate(self) -> Certificate | None:
        """Return the certificate that the peer showed in the handshake."""
        return self._quic.tls._peer_certificate

    def abandon(self) -> None:
        """Close the connection without waiting for the peer: no timer and no id of it is left."""
        if self._transport is not None and not self._transport.is_closing():
            self.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._connection_terminated_handler()

    def on_timer(self) -> None:
        """A timer of the connection is due: something was lost, or has to be acknowledged."""
        super()._handle_timer()

    def _handle_timer(self) -> None:
        self.on_timer()


class ServerProtocol(QuicServer):
    """A bound socket, whose datagrams go to connections by their ids."""

    def __init__(
        self,
        configuration: QuicConfiguration,
        on_connection: Callable[..., QuicConnectionProtocol],
    ) -> None:
        super().__init__(configuration=configuration, create_protocol=on_connection)
        self.loop: asyncio.AbstractEventLoop = self._loop

    def is_known(self, connection_id: bytes) -> bool:
        """Return True if a connection has this id."""
        return connection_id in self._protocols

    def set_configuration(self, configuration: QuicConfiguration) -> None:
        """Use another configuration for connections that begin from now on."""
        self._configuration = configuration

    def close_socket(self) -> None:
        """Close the socket, without a word to the connections on it."""
        if self._transport is not None:
            self._transport.close()
