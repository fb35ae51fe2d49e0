"""Who asks, and what they may do: users, passwords and tokens, and the rules of access control.

Users with passwords are those that sessions authenticate as (`transport/auth/usrpwd`); tokens are
in a file of their own. What a user may do is decided by the section `access_control`, as it is for
a neighbour of that name. Who guesses passwords or tokens is slowed down as neighbours are, and told
of: in the log, in the metrics, among the events of the admin space.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zenlake.config.model import Settings
from zenlake.engine.settings import credentials
from zenlake.errors import ConfigError
from zenlake.http.shares import holder_of
from zenlake.keys.rights import Rights
from zenlake.links.secrets import demand_secret
from zenlake.node.brake import LoginBrake
from zenlake.node.incidents import DENIED
from zenlake.node.rejections import LOGIN
from zenlake.routing.policy.messages import EGRESS, INGRESS, KINDS, QUERY, REPLY, kinds_of_query
from zenlake.routing.policy.policy import Policy
from zenlake.routing.policy.rights import SubjectRights
from zenlake.routing.policy.subject import Subject

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

__all__ = ["Denied", "User", "Users", "Watch", "read_tokens"]

LONGEST_TOKEN: Final = 4096
_KEY: Final = secrets.token_bytes(16)
"""Hides users and addresses in the names of askers."""


class Denied(Exception):
    """A request that is not allowed: 401 if nobody is known, 403 if the user may not, 429: wait."""

    def __init__(self, code: int, why: str, key: str = "", user: str = "") -> None:
        """`why`: for the one who asked."""
        super().__init__(why)
        self.code = code
        self.key = key
        self.user = user


class Watch:
    """Notes for operators who failed to log in over HTTP, and who was denied something."""

    def __init__(self, runtime: Runtime) -> None:
        """They are noted in the node."""
        self._runtime = runtime

    def failed(self, address: str, user: str) -> None:
        """A login failed."""
        who = f"user '{user[:64]}'" if user else "an unknown token"
        with self._runtime.locked() as node:
            what = f"HTTP login refused: {who}"
            node.rejections.add(LOGIN, f"http/{address}:0", what, node.moment(), user[:64])

    def denied(self, address: str, denied: Denied) -> None:
        """The rules of access control stopped a request."""
        with self._runtime.locked() as node:
            node.incidents.add(
                DENIED,
                node.moment(),
                peer=address,
                user=denied.user,
                key=denied.key,
                reason=f"HTTP: {denied}",
            )


class User:
    """The user of a request: a name, or None where none is needed.

    The rules are those of the moment: a user may stay connected while they change.
    """

    __slots__ = ("_rights", "name")

    def __init__(self, name: str | None, policy: Callable[[], Policy]) -> None:
        """`policy` gives the policy of the node, which may change while it runs."""
        self.name = name
        self._rights = SubjectRights(Subject(username=name), policy)

    @property
    def unrestricted(self) -> bool:
        """Whether there are no rules that could stop something."""
        return self._rights.unrestricted

    @property
    def rights(self) -> Rights:
        """What the user may read and write, for what acts for the user later."""
        return self._rights.rights

    def restricted(self, key: str, parameters: str, address: str) -> str:
        """Return the parameters of a query, with its asker and the keys that may be in its answer.

        The asker is the user, or without users the `address` that the query came from.
        """
        return self._rights.restricted(key, parameters, self.asker(address))

    def asker(self, address: str) -> str:
        """Return the name of the asker for services that answer in turn.

        It is the same over HTTP and WebSockets, and tells others neither user nor address.
        """
        who = f"at {holder_of(address)}" if self.name is None else f"user {self.name}"
        return hashlib.blake2b(who.encode("utf-8", "replace"), digest_size=8, key=_KEY).hexdigest()

    def may(self, flow: int, kind: int, key: str) -> bool:
        """Whether a message of this kind passes."""
        return self._rights.may(flow, kind, key)

    def may_read(self, key: str) -> bool:
        """Whether a question about this very key would be answered."""
        return self._rights.may_read(key)

    def demand_read(self, key: str) -> None:
        """Raise `Denied` if a question about this very key would not be answered."""
        self.demand(INGRESS, QUERY, key)
        self.demand(EGRESS, REPLY, key)

    def demand(self, flow: int, kind: int, key: str) -> None:
        """Raise `Denied` if a message of this kind may not pass."""
        if not self._rights.may(flow, kind, key):
            why = self._rights.reason(flow, kind, key)
            who = "without credentials" if self.name is None else f"for user '{self.name}'"
            what = f"{KINDS[kind]} on '{key[:200]}' is denied {who}: {why}"
            raise Denied(403, what, key, self.name or "")

    def demand_query(self, key: str, parameters: str) -> None:
        """Raise `Denied` if a question may not pass, or the put that it is as well."""
        for kind in kinds_of_query(parameters):
            self.demand(INGRESS, kind, key)


class Users:
    """The users who may send requests, with their passwords, tokens and rights."""

    def __init__(
        self,
        settings: Settings,
        tokens_file: str | None,
        policy: Callable[[], Policy],
        watch: Watch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """As the configuration says; raises `ConfigError` for files that cannot be read.

        Args:
            settings: The passwords are those of its sessions.
            tokens_file: The file with tokens, if there is one.
            policy: Gives the policy of the node, which may change while it runs.
            watch: Told of logins that failed.
            clock: Gives the time in seconds.
        """
        self.watch = watch
        self._clock = clock
        self._brake = LoginBrake()
        self._passwords = {
            user.decode("utf-8", "replace"): password
            for user, password in (credentials(settings).users or {}).items()
        }
        self._tokens = {} if tokens_file is None else read_tokens(tokens_file)
        self._policy = policy
        self._known: dict[str | None, User] = {}

    @classmethod
    def of_node(cls, runtime: Runtime, settings: Settings, tokens_file: str | None) -> Users:
        """The users of a running node, under its rules of the moment."""
        return cls(settings, tokens_file, lambda: runtime.node.policy, Watch(runtime))

    @property
    def anybody(self) -> bool:
        """Whether no credentials are asked for."""
        return not self._passwords and not self._tokens

    def of(self, authorization: str, address: str = "") -> User:
        """The user that a header `Authorization` shows, from an address; raises `Denied`."""
        if self.anybody:
            return self._user(None)
        scheme, _, rest = authorization.strip().partition(" ")
        given = rest.strip()
        claimed = ""
        if scheme.lower() == "basic":
            claimed = _claimed(given)[0]
        wait = self._brake.wait(address, self._clock(), claimed)
        if given and wait > 0.0:
            raise Denied(429, f"too many logins failed; again in {wait:.0f} s")
        name: str | None = None
        if scheme.lower() == "bearer":
            name = self.by_token(given)
        elif scheme.lower() == "basic":
            name = self._by_password(given)
        if name is not None:
            if claimed:
                self._brake.succeeded(address, claimed)
            return self._user(name)
        if given:  # who shows nothing guesses nothing
            self._brake.failed(address, claimed, self._clock())
            if self.watch is not None:
                self.watch.failed(address, claimed)
        raise Denied(401, "show who you are: Authorization: Bearer TOKEN, or Basic")

    def rights_of(self, name: str | None) -> Rights | None:
        """What a user may read and write now; None: nobody of this name can log in."""
        known = self.anybody if name is None else self._is_known(name)
        return self._user(name).rights if known else None

    def _is_known(self, name: str) -> bool:
        return name in self._passwords or name in self._tokens.values()

    def by_token(self, token: str) -> str | None:
        """The user of a token; every token is compared, so that time tells nothing."""
        matched = None
        given = token.encode("utf-8", "replace")[:LONGEST_TOKEN]
        for known, user in self._tokens.items():
            if hmac.compare_digest(known, given):
                matched = user
        return matched

    def _by_password(self, encoded: str) -> str | None:
        user, password = _claimed(encoded)
        known = self._passwords.get(user)
        right = hmac.compare_digest(known or b"\0", password.encode())
        return user if known is not None and right else None

    def _user(self, name: str | None) -> User:
        user = self._known.get(name)
        if user is None:
            user = self._known[name] = User(name, self._policy)
        return user


def _claimed(encoded: str) -> tuple[str, str]:
    """User and password of Basic credentials; empty if they are none."""
    try:
        text = base64.b64decode(encoded[: 2 * LONGEST_TOKEN], validate=True).decode()
    except (binascii.Error, ValueError):
        return "", ""
    user, _, password = text.partition(":")
    return user, password


def read_tokens(path: str) -> dict[bytes, str]:
    """Users by token, from a file with a line `user:token` for each; `#` begins a remark.

    Refused is a file that everybody on this machine can read.
    """
    try:
        demand_secret("tokens_file", path)
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"tokens_file {path}: {error}") from error
    users: dict[bytes, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, token = line.strip().partition(":")
        if not colon or not user or len(token) < 16:
            raise ConfigError(
                f"tokens_file {path}:{number}: write user:token, with a token of 16 letters or more"
            )
        users[token.encode()] = user
    return users
