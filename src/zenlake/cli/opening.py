"""What `zenlake up --open` asks for: users, certificates, or both, in the data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from zenlake.cli.ending import note
from zenlake.errors import LocalError

LOOPBACK: Final = "tcp/127.0.0.1:7447"
EVERYWHERE: Final = "[::]:7447"


def opening(data: Path, listen: list[str] | None) -> list[str]:
    """The options of a router that others may connect to; raises without users or certificates."""
    users, certs = data / "users", data / "certs"
    has_users = users.is_file() and bool(users.read_text().strip())
    has_certs = (certs / "router.key").is_file()
    if not has_users and not has_certs:
        raise LocalError(
            "--open lets others connect, and nobody could be told from anybody: "
            f"`zenlake users add NAME --data {data}` makes users, "
            f"`zenlake certs init --data {data}` makes certificates; then run it again"
        )
    options: list[str] = []
    if has_users:
        options += _cfg("transport/auth/usrpwd/dictionary_file", str(users))
    if has_certs:
        for name, file in (
            ("root_ca_certificate", "authority.pem"),
            ("listen_certificate", "router.pem"),
            ("listen_private_key", "router.key"),
        ):
            options += _cfg(f"transport/link/tls/{name}", str(certs / file))
        # A certificate of our own authority is what lets a program in, where there are no users.
        options += _cfg("transport/link/tls/enable_mtls", not has_users)
    protocol = "tls" if has_certs else "tcp"
    for place in listen or [f"{protocol}/{EVERYWHERE}"]:
        if has_certs and not has_users and not place.startswith(("tls/", "quic/", "wss/")):
            raise LocalError(
                f"'{place}' asks nobody for a certificate; listen on tls/…, or add users"
            )
        options += ["-l", place]
    who = "a user and a password" if has_users else "a certificate of this authority"
    note(
        f"open: whoever reaches this machine and shows {who} may read, write and delete every key "
        "that access_control does not forbid"
    )
    if not has_certs:
        note("passwords are not sent, but all else is readable on the way: `zenlake certs init`")
    return options


def _cfg(key: str, value: object) -> list[str]:
    return ["--cfg", f"{key}:{json.dumps(value)}"]
