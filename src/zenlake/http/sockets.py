"""Where an HTTP server listens, and the names by which it may be asked."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from zenlake.errors import ConfigError, LocalError

__all__ = ["hosts_of", "is_loopback", "listen", "open_socket", "refuse_strangers", "url_of"]

LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
LOCAL_OF_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
BACKLOG: Final = 1024


def refuse_strangers(name: str, host: str, allowed: bool, anybody: bool) -> None:
    """Refuse an address that other machines reach while requests need no user."""
    if anybody and not allowed and not is_loopback(host):
        raise ConfigError(
            f"{host} is open to other machines and there are no users: set "
            f"transport/auth/usrpwd/dictionary_file or plugins/{name}/tokens_file, listen on "
            f"127.0.0.1, or set plugins/{name}/allow_anonymous"
        )


def is_loopback(host: str) -> bool:
    """Return whether an address or name is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises `OSError`. Port 0 means any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=dual)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises `LocalError` with the place in words."""
    try:
        return open_socket(host, port)
    except OSError as error:
        raise LocalError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


def hosts_of(host: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the names under which a socket at `host` may be asked."""
    names = {_in_url(host).lower(), *LOCAL, *(name.lower() for name in more)}
    if not is_loopback(host):
        from zenlake.links.interfaces import local_addresses

        # Other machines know this one by names and addresses of its own.
        names.add(socket.gethostname().lower())
        names |= {_in_url(str(address)) for address in local_addresses()}
    return frozenset(names)


def url_of(scheme: str, host: str, port: int) -> str:
    """Return the URL of a server for programs on this machine."""
    return f"{scheme}://{_in_url(LOCAL_OF_ANY.get(host, host))}:{port}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
