"""Refuses options that open what a configuration file closes: an option may only narrow it.

Guards of a file are users, public keys, certificates that are asked for, roles, access control, the
tokens and origins of HTTP and WebSockets, and endpoints that only this machine reaches. An option
that takes one of them away is refused; what no file says, options may say as they like.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from zenlake.config.config import Config
from zenlake.config.model import Settings
from zenlake.config.problem import InvalidConfig, Problem
from zenlake.values.locator import EndPoint
from zenlake.values.loopback import is_within_machine

__all__ = ["asks_who_connects", "refuse_more_open"]

#: Plugins that listen, with the keys that a page's origin is compared with.
SERVERS: Final = {"rest": ("cors_origins", "hosts"), "remote_api": ("origins", "hosts")}
SECURE: Final = frozenset(("tls", "quic", "wss"))


def refuse_more_open(said: Config, made: Config, source: str) -> None:
    """Raise if `made` lets in or allows more than `said`, what `source` says, does."""
    words = f"{source} says so, and an option would undo that"
    help = f"leave the option out, or change {source}"
    problems = [Problem(path, f"{what}: {words}; {help}") for path, what in _opened(said, made)]
    if problems:
        raise InvalidConfig(tuple(problems))


def asks_who_connects(config: Config) -> bool:
    """Return True if a router of this configuration asks strangers for a user, key or certificate.

    Or rules say what they may do.
    """
    settings = config.for_mode("router")
    return (
        settings.transport.auth.usrpwd.dictionary_file is not None
        or _has_key(settings)
        or settings.transport.link.tls.enable_mtls is True
        or settings.access_control.enabled
    )


def _opened(said: Config, made: Config) -> Iterator[tuple[str, str]]:
    before, after = said.for_mode("router"), made.for_mode("router")
    auth, now = before.transport.auth, after.transport.auth
    users, keys = auth.usrpwd.dictionary_file, auth.pubkey.known_keys_file
    if users not in (None, now.usrpwd.dictionary_file):
        yield "transport/auth/usrpwd/dictionary_file", f"only users in {users} are let in"
    if keys not in (None, now.pubkey.known_keys_file):
        yield "transport/auth/pubkey/known_keys_file", f"only keys in {keys} are let in"
    elif _has_key(before) and not _has_key(after):
        yield "transport/auth/pubkey", "only known public keys are let in"
    if before.transport.link.tls.enable_mtls and not after.transport.link.tls.enable_mtls:
        yield "transport/link/tls/enable_mtls", "only certificates are let in"
    for role in ("router", "peer"):
        had, has = getattr(auth.roles, role), getattr(now.roles, role)
        if had is not None and (has is None or set(has) - set(had)):
            who = f"only {', '.join(had)}" if had else "nobody"
            yield f"transport/auth/roles/{role}", f"{who} may connect as a {role}"
    if before.access_control.enabled and before.access_control != after.access_control:
        yield "access_control", "rules say who may do what"
    if after.adminspace.permissions.read and not before.adminspace.permissions.read:
        yield "adminspace/permissions/read", "the admin space answers nobody"
    yield from _servers(said, made)
    if said.get_json("listen/endpoints") != Config().get_json("listen/endpoints"):
        yield from _places(before, after)


def _has_key(settings: Settings) -> bool:
    own = settings.transport.auth.pubkey
    return own.private_key_file is not None or own.private_key_pem is not None


def _servers(said: Config, made: Config) -> Iterator[tuple[str, str]]:
    """Return the paths at which an HTTP server of the file would answer to more."""
    before: dict[str, Any] = json.loads(said.get_json("plugins"))
    after: dict[str, Any] = json.loads(made.get_json("plugins"))
    for plugin, lists in SERVERS.items():
        had, has = before.get(plugin), after.get(plugin)
        if had is None or has is None:
            continue
        path = f"plugins/{plugin}"
        tokens = had.get("tokens_file")
        if tokens not in (None, has.get("tokens_file")):
            yield f"{path}/tokens_file", f"only tokens in {tokens} are answered"
        if has.get("allow_anonymous") and not had.get("allow_anonymous"):
            yield f"{path}/allow_anonymous", "who shows no user is not answered"
        for name in lists:
            if set(has.get(name) or ()) - set(had.get(name) or ()):
                yield f"{path}/{name}", "pages of other origins are not answered"


def _places(before: Settings, after: Settings) -> Iterator[tuple[str, str]]:
    """Endpoints that others reach, where the file has none and nobody is asked who he is."""
    if not all(map(_is_within, before.listen.endpoints)):
        return
    for endpoint in after.listen.endpoints:
        if not _is_within(endpoint) and not _asks(after, endpoint):
            words = f"only this machine reaches it, and {endpoint.locator} asks nobody for a user"
            yield "listen/endpoints", f"{words} or a certificate"


def _is_within(endpoint: EndPoint) -> bool:
    return is_within_machine(str(endpoint.locator))


def _asks(settings: Settings, endpoint: EndPoint) -> bool:
    """Return True if a stranger at an endpoint has to show a user, a key or a certificate."""
    auth = settings.transport.auth
    if auth.usrpwd.dictionary_file is not None or _has_key(settings):
        return True
    return endpoint.locator.protocol in SECURE and settings.transport.link.tls.enable_mtls is True
