"""What `zenlake up --open` asks for: users, certificates, or both, in the data folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zenlake.cli.ending import note
from zenlake.errors import LocalError

if TYPE_CHECKING:
    from zenlake.config import Config

LOOPBACK: Final = "tcp/127.0.0.1:7447"
EVERYWHERE: Final = "[::]:7447"


@dataclass(frozen=True, slots=True)
class OpenedRouter:
    """The options that `--open` adds for the router: changes of its configuration, endpoints."""

    changes: list[str]
    listen: list[str]

    @classmethod
    def of(cls, data: Path, listen: list[str] | None, said: Config) -> OpenedRouter:
        """Return the changes that let in users and certificates; raise where there are neither.

        What the router's file says of users and certificates (`said`) stays.
        """
        users, certs = data / "users", data / "certs"
        transport = said.for_mode("router").transport
        file, tls = transport.auth.usrpwd.dictionary_file, transport.link.tls
        has_users = file is not None or (users.is_file() and bool(users.read_text().strip()))
        its_certs = tls.listen_private_key is not None
        has_certs = its_certs or (certs / "router.key").is_file()
        if not has_users and not has_certs:
            raise LocalError(
                "--open lets others connect, and nobody could be told from anybody: "
                f"`zenlake users add NAME --data {data}` makes users, "
                f"`zenlake certs init --data {data}` makes certificates; then run it again"
            )
        changes: list[str] = []
        if has_users and file is None:
            changes.append(_change("transport/auth/usrpwd/dictionary_file", str(users)))
        if has_certs and not its_certs:
            for name, pem in (
                ("root_ca_certificate", "authority.pem"),
                ("listen_certificate", "router.pem"),
                ("listen_private_key", "router.key"),
            ):
                changes.append(_change(f"transport/link/tls/{name}", str(certs / pem)))
        if has_certs and not has_users:
            # A certificate of our own authority lets a program in, where there are no users.
            changes.append(_change("transport/link/tls/enable_mtls", True))
        places = listen or [f"{'tls' if has_certs else 'tcp'}/{EVERYWHERE}"]
        for place in places if has_certs and not has_users else ():
            if not place.startswith(("tls/", "quic/", "wss/")):
                raise LocalError(
                    f"'{place}' asks nobody for a certificate; listen on tls/…, or add users"
                )
        who = "a user and a password" if has_users else "a certificate of this authority"
        note(
            f"open: whoever reaches this machine and shows {who} may read, write and delete every "
            "key that access_control does not forbid"
        )
        if not has_certs:
            note(
                "passwords are not sent, but all else is readable on the way: `zenlake certs init`"
            )
        return cls(changes, places)


def _change(key: str, value: object) -> str:
    return f"{key}:{json.dumps(value)}"
