"""How the parts of one `zenlake up` know each other: secrets of this start, in a folder of its own.

    run/parts.json      for the router: where parts connect, and who they are
    run/lake.json5      for the lake: how it connects, as a configuration of Zenoh
    run/operator.json5  the same for whoever may read this folder: `zenlake get -c …`
    run/router.sock     where they connect

The folder and the files are for their owner alone. Secrets are on no command line and in no
environment; the next start makes others. The users have a colon in their names, which no file of
users or tokens can say, so that nobody else can be called like a part.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any, Final, final

__all__ = ["LAKE_USER", "OPERATOR", "OPERATOR_USER", "RUN", "PartsFolder", "read_parts"]

LAKE_USER: Final = "zenlake:lake"
"""What access control may call the lake of `zenlake up`."""
OPERATOR_USER: Final = "zenlake:operator"
"""And whoever connects with `operator.json5`."""

RUN: Final = "run"
OPERATOR: Final = "operator.json5"
SOCKET: Final = "router.sock"
LONGEST_PATH: Final = 100
"""Bytes of a path that every system takes for a socket."""


@final
class PartsFolder:
    """The folder `run` of a data folder, while `zenlake up` runs there."""

    def __init__(self, data: Path) -> None:
        """Make it anew; raises `OSError` where that is not possible."""
        self._folder = data / RUN
        self._away: Path | None = None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)  # whoever made it
        self._sweep()
        place = self._folder / SOCKET
        if not _can_be_socket(place):
            self._away = Path(tempfile.mkdtemp(prefix="zenlake-"))
            place = self._away / SOCKET
        users = {name: secrets.token_urlsafe(32) for name in (LAKE_USER, OPERATOR_USER)}
        #: What the router is told with `--parts`.
        self.parts = self._write("parts.json", {"socket": str(place), "users": users})
        #: How the lake connects, and how an operator may.
        self.lake = self._write("lake.json5", _session(place, LAKE_USER, users))
        self.operator = self._write(OPERATOR, _session(place, OPERATOR_USER, users))

    def close(self) -> None:
        """Take the secrets away."""
        for file in (self.parts, self.lake, self.operator):
            file.unlink(missing_ok=True)
        if self._away is not None:
            shutil.rmtree(self._away, ignore_errors=True)

    def _sweep(self) -> None:
        """Take away what one that was killed has left here, or elsewhere."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            away = Path(
                json.loads((self._folder / "parts.json").read_text("utf-8"))["socket"]
            ).parent
            if away.name.startswith("zenlake-") and away.parent == Path(tempfile.gettempdir()):
                shutil.rmtree(away, ignore_errors=True)
        for file in self._folder.iterdir():
            if not file.is_dir():
                file.unlink(missing_ok=True)

    def _write(self, name: str, content: dict[str, Any]) -> Path:
        path = self._folder / name
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
        return path


def _can_be_socket(path: Path) -> bool:
    """Whether a socket can have this path: it is short enough, and the filesystem takes them."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        return False
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.bind(str(path))
        except OSError:
            return False
    path.unlink()
    return True


def _session(place: Path, user: str, users: dict[str, str]) -> dict[str, Any]:
    """The configuration of a session of a part."""
    return {
        "mode": "client",
        "connect": {"endpoints": [f"unixsock-stream/{place}"]},
        "scouting": {"multicast": {"enabled": False}},
        "transport": {"auth": {"usrpwd": {"user": user, "password": users[user]}}},
    }


def read_parts(file: Path) -> tuple[str, dict[str, str]]:
    """What `parts.json` says: the path of the socket, and the secrets by user."""
    page = json.loads(file.read_text("utf-8"))
    return str(page["socket"]), {str(name): str(one) for name, one in page["users"].items()}
