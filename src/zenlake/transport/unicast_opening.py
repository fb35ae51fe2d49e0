"""The opening of a session over one link, from either side."""

from __future__ import annotations

from zenlake.errors import HandshakeError
from zenlake.transport.handshake import INVALID, REASONS, Acceptor, Initiator, Offer, Terms
from zenlake.transport.listener import NOBODY, Listener
from zenlake.transport.outbox import Outbox
from zenlake.wire.cursor import Writer
from zenlake.wire.message import Message


class UnicastOpening:
    """The messages of an opening: answered by an `Initiator` or an `Acceptor`.

    The listener is asked whether the other side may open a session before this side agrees.
    """

    def __init__(self, offer: Offer, listener: Listener, outbox: Outbox) -> None:
        """It begins with `connect` or `listen`."""
        self._offer = offer
        self._listener: Listener = listener
        self._outbox: Outbox = outbox
        self.initiator: Initiator | None = None
        self.acceptor: Acceptor | None = None

    def part(self) -> None:
        """Tell the listener nothing any more."""
        self._listener = NOBODY

    def connect(self, expected: bytes) -> None:
        """Begin as the side that connects; `expected`: the id that the other side must have."""
        self.initiator = Initiator(self._offer, expected)
        self.send(self.initiator.start())

    def listen(self, cookie: bytes) -> None:
        """Begin as the side that was connected to."""
        self.acceptor = Acceptor(self._offer, cookie)

    def send(self, message: Message) -> None:
        """Send a transport message."""
        w = Writer()
        message.write(w)
        self._outbox.send_transport(w.getvalue())

    def receive(self, message: Message) -> Terms | None:
        """Answer a message; the terms of the session when it is open.

        Raises `HandshakeError` when there will be none.
        """
        initiator = self.initiator
        if initiator is not None:
            return self._initiate(initiator, message)
        acceptor = self.acceptor
        if acceptor is None:
            raise HandshakeError(f"{message.NAME} came before `listen` or `connect`", INVALID)
        return self._accept(acceptor, message)

    def _initiate(self, initiator: Initiator, message: Message) -> Terms | None:
        reply = initiator.receive(message)
        terms = initiator.terms
        if terms is not None:
            # As soon as we know who it is, and again at the end: of two links that both sides
            # make at once, neither side may open one after it has accepted the other.
            self._admit(terms)
        if reply is not None:
            self.send(reply)
        return terms if initiator.done else None

    def _accept(self, acceptor: Acceptor, message: Message) -> Terms | None:
        reply = acceptor.receive(message)
        if reply is not None:
            self.send(reply)
        terms = acceptor.terms
        if terms is None or not acceptor.done:
            return None
        try:
            reason = self._listener.admit(terms)
        except HandshakeError:
            # This side has no region for the other, which sees why from the bound in OpenAck;
            # Close has no field for that.
            self.send(acceptor.accept())
            raise
        refuse(reason)
        self.send(acceptor.accept())
        return terms

    def _admit(self, terms: Terms) -> None:
        refuse(self._listener.admit(terms))


def refuse(reason: int) -> None:
    """Raise `HandshakeError` if there is a reason not to open; -1: there is none."""
    if reason >= 0:
        raise HandshakeError(f"refused: {REASONS[reason]}", reason)
