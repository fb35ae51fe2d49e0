"""The sockets of scouting.

    receivers    bound to the group, joined on each interface: hear the SCOUTs of others
    senders      one for each interface, at a free port: ask the group, hear the HELLOs, answer

What the datagrams mean is decided elsewhere; these sockets only carry them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import struct
import sys
from collections.abc import Callable
from typing import Final, final

from zenlake.errors import LinkError
from zenlake.links.inet import host_of
from zenlake.links.interfaces import Interface, Look, interfaces
from zenlake.links.link import reason
from zenlake.values.locator import split_host_port

__all__ = ["DEFAULT_GROUP", "MulticastSockets", "OnDatagram"]

DEFAULT_GROUP: Final = "224.0.0.224:7446"
READ_SIZE: Final = 65536
READS_AT_ONCE: Final = 32
MAX_INTERFACES: Final = 64
LOOK_AGAIN: Final = 5.0
"""How many seconds the addresses of this machine are taken for unchanged."""

OnDatagram = Callable[[bytes, tuple[str, int], str], None]
"""Gets the datagram, where it came from, and the name of the interface it belongs to."""

log = logging.getLogger("zenlake.links")


@final
class _Sender:
    """A socket that sends over one interface."""

    def __init__(self, sock: socket.socket, name: str, host: str) -> None:
        self.sock = sock
        self.name = name
        self.host = host
        self.port = int(sock.getsockname()[1])


@final
class MulticastSockets:
    """Sends to a multicast group over chosen interfaces, and receives from it and from its members.

    Args:
        loop: where it lives.
        group: the address and port of the group, IPv4 or IPv6.
        interface: `auto` for every interface that is up and can do it, or loopback alone where
            none can; or names and addresses, separated by commas.
        ttl: how many routers of the network a datagram may cross.
        listen: whether datagrams to the group are received.
        look: lists the interfaces of this machine.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        group: str = DEFAULT_GROUP,
        interface: str = "auto",
        ttl: int = 1,
        listen: bool = True,
        look: Look = interfaces,
    ) -> None:
        self._loop = loop
        self._look = look
        host, self._port = split_host_port(group)
        try:
            self._group = ipaddress.ip_address(host)
        except ValueError as error:
            raise LinkError(f"'{group}' is not the address of a multicast group") from error
        if not self._group.is_multicast:
            raise LinkError(f"'{group}' is no multicast group; write such as '{DEFAULT_GROUP}'")
        self._wanted = interface
        self._ttl = min(ttl, 255)
        self._listen = listen
        self._receivers: list[socket.socket] = []
        self._senders: list[_Sender] = []
        #: The addresses of this machine, and when they were looked up.
        self._own: frozenset[str] = frozenset()
        self._looked = 0.0
        self._on_group_datagram: OnDatagram | None = None
        self._on_unicast_datagram: OnDatagram | None = None

    def open(self, on_group_datagram: OnDatagram, on_unicast_datagram: OnDatagram) -> None:
        """Make the sockets and begin to read.

        `on_group_datagram` gets what was sent to the group, but for one's own;
        `on_unicast_datagram` what was sent to a sender. An interface that refuses is passed over
        with a warning; `LinkError` is raised when none is left.
        """
        chosen = self._chosen()
        self._on_group_datagram = on_group_datagram
        self._on_unicast_datagram = on_unicast_datagram
        self._own = self._local_addresses()
        self._looked = self._loop.time()
        try:
            for interface in chosen:
                self._open_sender(*interface)
            if not self._senders:
                raise LinkError(
                    f"no interface of '{self._wanted}' can reach the group {self._group}"
                )
            if self._listen and self._group.version == 4:
                self._open_receiver(chosen)
            elif self._listen:
                # A group of IPv6 may be one of a single link, and a socket is then bound to it
                # on one interface.
                for interface in chosen:
                    self._open_receiver([interface])
        except BaseException:
            self.close()
            raise

    def send_to_group(self, datagram: bytes) -> int:
        """Send to the group over every interface; how many took it."""
        sent = 0
        for sender in self._senders:
            try:
                sender.sock.sendto(datagram, (str(self._group), self._port))
                sent += 1
            except OSError as error:
                log.debug("cannot scout over %s: %s", sender.name, reason(error))
        return sent

    def send_to(self, datagram: bytes, address: tuple[str, int]) -> None:
        """Send to one address, over the interface that is nearest to it."""
        sender = self._nearest(address[0])
        if sender is None:
            return
        try:
            sender.sock.sendto(datagram, address)
        except OSError as error:
            log.debug("cannot answer %s: %s", address[0], reason(error))

    def is_local(self, address: tuple[str, int]) -> bool:
        """Whether a datagram came from this machine, over whichever of its interfaces.

        A program asks from the address of the interface that it asks over, or from no address at
        all where loopback has none of a wider scope. Addresses come and go: they are looked up
        again, at most once in `LOOK_AGAIN` seconds, before a sender counts as a stranger.
        """
        host = host_of(address).partition("%")[0]
        try:
            parsed = ipaddress.ip_address(host)
        except ValueError:
            return False
        if parsed.is_loopback or parsed.is_unspecified or host in self._own:
            return True
        now = self._loop.time()
        if now - self._looked < LOOK_AGAIN:
            return False
        self._looked = now
        self._own = self._local_addresses()
        return host in self._own

    def _local_addresses(self) -> frozenset[str]:
        """The addresses of all interfaces of this machine."""
        return frozenset(str(address) for each in self._look() for address in each.addresses)

    def close(self) -> None:
        """End it; a second time does nothing."""
        self._on_group_datagram = None
        self._on_unicast_datagram = None
        sockets = [sender.sock for sender in self._senders]
        self._senders.clear()
        sockets.extend(self._receivers)
        self._receivers.clear()
        for sock in sockets:
            if not self._loop.is_closed():
                self._loop.remove_reader(sock.fileno())
            sock.close()

    def _chosen(self) -> list[tuple[str, int, str]]:
        """Name, number and address of each interface to use."""
        present = self._look()
        if self._wanted.strip() == "auto":
            # Where no interface claims multicast, loopback carries it without the claim.
            return (
                self._usable([each for each in present if each.up and each.multicast])
                or self._usable([each for each in present if each.up and each.loopback])
                or [("any", 0, str(_unspecified(self._group.version)))]
            )
        chosen: list[tuple[str, int, str]] = []
        for word in self._wanted.split(",")[:MAX_INTERFACES]:
            one = self._named(word.strip(), present)
            if one is None:
                log.warning("no interface is '%s', by name or by IPv%d address", word.strip(),
                            self._group.version)  # fmt: skip
            else:
                chosen.append(one)
        return chosen

    def _usable(self, candidates: list[Interface]) -> list[tuple[str, int, str]]:
        """Those of the interfaces that have an address of the group's family."""
        usable = [
            (each.name, each.number, address)
            for each in candidates
            for address in self._addresses(each)[:1]
        ]
        return usable[:MAX_INTERFACES]

    def _named(self, word: str, present: tuple[Interface, ...]) -> tuple[str, int, str] | None:
        for each in present:
            addresses = self._addresses(each)
            if each.name == word and addresses:
                return each.name, each.number, addresses[0]
            if word in addresses:
                return each.name, each.number, word
        return None

    def _addresses(self, interface: Interface) -> list[str]:
        return [
            str(address)
            for address in interface.addresses
            if address.version == self._group.version
        ]

    def _open_sender(self, name: str, number: int, host: str) -> None:
        sock = socket.socket(self._family(), socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            if self._group.version == 4:
                packed = socket.inet_aton(host)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, packed)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._ttl)
            else:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, number)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, self._ttl)
            sock.bind((str(_unspecified(self._group.version)), 0))
        except OSError as error:
            sock.close()
            log.warning("cannot scout over %s (%s): %s", name, host, reason(error))
            return
        sender = _Sender(sock, name, host)
        self._senders.append(sender)
        self._loop.add_reader(sock.fileno(), self._sender_readable, sender)

    def _open_receiver(self, chosen: list[tuple[str, int, str]]) -> None:
        sock = socket.socket(self._family(), socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform != "linux" and hasattr(socket, "SO_REUSEPORT"):
                # The BSDs let processes share a multicast port only with this one.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            address = str(
                _unspecified(self._group.version) if sys.platform == "win32" else self._group
            )
            if self._group.version == 4:
                sock.bind((address, self._port))
            else:
                sock.bind((address, self._port, 0, chosen[0][1]))
        except OSError as error:
            sock.close()
            log.warning("cannot hear the group %s: %s", self._group, reason(error))
            return
        for name, number, host in chosen:
            try:
                self._join(sock, number, host)
            except OSError as error:
                log.warning("cannot join %s over %s: %s", self._group, name, reason(error))
        self._receivers.append(sock)
        self._loop.add_reader(sock.fileno(), self._group_readable, sock)

    def _join(self, sock: socket.socket, number: int, host: str) -> None:
        packed = self._group.packed
        if self._group.version == 4:
            request = packed + socket.inet_aton(host)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        else:
            request = packed + struct.pack("@I", number)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)

    def _family(self) -> socket.AddressFamily:
        return socket.AF_INET if self._group.version == 4 else socket.AF_INET6

    def _sender_readable(self, sender: _Sender) -> None:
        for _ in range(READS_AT_ONCE):
            if self._on_unicast_datagram is None:
                return
            try:
                datagram, address = sender.sock.recvfrom(READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                continue  # a datagram of ours found no socket
            self._on_unicast_datagram(datagram, address, sender.name)

    def _group_readable(self, receiver: socket.socket) -> None:
        for _ in range(READS_AT_ONCE):
            if self._on_group_datagram is None:
                return
            try:
                datagram, address = receiver.recvfrom(READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                continue
            if self._is_own(address):
                continue
            nearest = self._nearest(address[0])
            self._on_group_datagram(datagram, address, nearest.name if nearest else "")

    def _is_own(self, address: tuple[str, int]) -> bool:
        ports = [sender.port for sender in self._senders]
        return address[1] in ports and host_of(address).partition("%")[0] in self._own

    def _nearest(self, host: str) -> _Sender | None:
        """The sender whose address has the longest beginning in common."""
        best: _Sender | None = None
        most = -1
        with contextlib.suppress(ValueError):
            wanted = int(ipaddress.ip_address(host.partition("%")[0]))
            for sender in self._senders:
                apart = (wanted ^ int(ipaddress.ip_address(sender.host))).bit_length()
                if 128 - apart > most:
                    best, most = sender, 128 - apart
        return best


def _unspecified(version: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.IPv4Address(0) if version == 4 else ipaddress.IPv6Address(0)
